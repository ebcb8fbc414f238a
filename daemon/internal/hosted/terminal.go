package hosted

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	sdk "github.com/coder/acp-go-sdk"

	"sublet/daemon/config"
	"sublet/daemon/internal/mask"
	"sublet/wire"
	"sublet/wire/visible"
)

var variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })

// terminal is a command that the agent asked for by terminal/create, and its output.
type terminal struct {
	cancel context.CancelFunc
	exited chan struct{} // closed when result is set
	result *wire.CommandResult
	limit  int // bytes of output

	mu      sync.Mutex
	partial []byte // guarded by mu: the raw output of a command that runs, up to maxPartial
}

// maxPartial bounds what is kept, in bytes, of the output of a command that runs.
const maxPartial = 256 << 10

func (t *terminal) write(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.partial = append(t.partial, p[:min(len(p), maxPartial-len(t.partial))]...)
}

// CreateTerminal implements the SDK's client: the command runs in the turn's shell as one of our tool bash.
func (h *host) CreateTerminal(ctx context.Context, p sdk.CreateTerminalRequest) (sdk.CreateTerminalResponse, error) {
	return serve(h, ctx, func(_ context.Context, r *run) (out sdk.CreateTerminalResponse, err error) {
		t := &terminal{exited: make(chan struct{}), limit: maxOutput}
		sh, err := r.shellFor(deref(p.Cwd), false, t.write)
		if err != nil {
			return out, refused("%v", err)
		}
		command := p.Command
		if len(p.Args) == 0 && len(p.Env) > 0 { // so that the variables hold for the whole line
			p.Command, p.Args = "sh", []string{"-c", p.Command}
		}
		if len(p.Args) > 0 { // else the command is a line for a shell
			command = line(append([]string{p.Command}, p.Args...), nil)
		}
		for _, v := range p.Env {
			if !variable().MatchString(v.Name) {
				return out, refused("env: %s cannot be a variable", shown(v.Name, 60))
			}
			command = v.Name + "=" + quote(v.Value) + " " + command
		}
		args, _ := json.Marshal(map[string]any{"command": command, "timeout_ms": config.MaxCommandTimeout.Milliseconds()}) // cannot fail
		ctx, done, err := r.begin(r.ctx)
		if err != nil {
			return out, refused("%v", err)
		}
		if p.OutputByteLimit != nil && *p.OutputByteLimit >= 0 {
			t.limit = min(t.limit, *p.OutputByteLimit)
		}
		ctx, cancel := context.WithCancel(ctx)
		t.cancel = cancel
		id := wire.NewID()
		r.mu.Lock()
		r.terminals[id] = t
		r.mu.Unlock()
		go func() { // ends with the command; the turn waits for it
			defer done()
			defer cancel()
			defer close(t.exited)
			defer h.guard()
			t.result = &wire.CommandResult{Status: wire.StatusError} // if a fault ends the call
			res, err := r.runTool(ctx, "bash", args, sh, 0, t.write)
			if err != nil {
				res = &wire.CommandResult{Status: wire.StatusError, Output: []byte(err.Error())}
			}
			t.result = res
		}()
		out.TerminalId = id
		return out, nil
	})
}

// quote returns s as one word of a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// withTerminal calls do to answer a request about a terminal that the agent holds. An unknown id is a protocol error.
func withTerminal[T any](h *host, ctx context.Context, id string, do func(ctx context.Context, r *run, t *terminal) (T, error)) (T, error) {
	return serve(h, ctx, func(ctx context.Context, r *run) (out T, err error) {
		r.mu.Lock()
		t := r.terminals[id]
		r.mu.Unlock()
		if t == nil {
			return out, refused("there is no terminal %s", shown(id, 60))
		}
		return do(ctx, r, t)
	})
}

// TerminalOutput implements the SDK's client. While the command runs, the output is the lines that it has written, since what looks
// like a secret is recognised in whole lines only.
func (h *host) TerminalOutput(ctx context.Context, p sdk.TerminalOutputRequest) (sdk.TerminalOutputResponse, error) {
	return withTerminal(h, ctx, p.TerminalId, func(_ context.Context, r *run, t *terminal) (out sdk.TerminalOutputResponse, err error) {
		select {
		case <-t.exited:
			out.Output = string(t.result.Output)
			out.ExitStatus = &sdk.TerminalExitStatus{ExitCode: t.result.ExitCode, Signal: t.signal()}
		default:
			t.mu.Lock()
			lines := t.partial[:bytes.LastIndexByte(t.partial, '\n')+1]
			out.Truncated = len(t.partial) == maxPartial
			t.mu.Unlock()
			if out.Output = visible.Clean(string(lines)); r.t.Of.ShowSecrets == nil || !r.t.Of.ShowSecrets() {
				out.Output = mask.String(out.Output)
			}
		}
		out.Output = strings.ToValidUTF8(out.Output, "\uFFFD")
		if cut := len(out.Output) - t.limit; cut > 0 { // the end is kept
			out.Truncated = true
			for out.Output = out.Output[cut:]; len(out.Output) > 0 && !utf8.RuneStart(out.Output[0]); {
				out.Output = out.Output[1:]
			}
		}
		return out, nil
	})
}

// signal returns the status of a command without an exit code, nil for one with an exit code.
func (t *terminal) signal() *string {
	if t.result.ExitCode != nil {
		return nil
	}
	return new(visible.Line(t.result.Status))
}

// WaitForTerminalExit implements the SDK's client.
func (h *host) WaitForTerminalExit(ctx context.Context, p sdk.WaitForTerminalExitRequest) (sdk.WaitForTerminalExitResponse, error) {
	return withTerminal(h, ctx, p.TerminalId, func(ctx context.Context, _ *run, t *terminal) (out sdk.WaitForTerminalExitResponse, err error) {
		select {
		case <-t.exited:
		case <-ctx.Done():
			return out, context.Cause(ctx)
		}
		out.ExitCode, out.Signal = t.result.ExitCode, t.signal()
		return out, nil
	})
}

// KillTerminal implements the SDK's client.
func (h *host) KillTerminal(ctx context.Context, p sdk.KillTerminalRequest) (sdk.KillTerminalResponse, error) {
	return withTerminal(h, ctx, p.TerminalId, func(_ context.Context, _ *run, t *terminal) (out sdk.KillTerminalResponse, err error) {
		t.cancel()
		return out, nil
	})
}

// ReleaseTerminal implements the SDK's client.
func (h *host) ReleaseTerminal(ctx context.Context, p sdk.ReleaseTerminalRequest) (sdk.ReleaseTerminalResponse, error) {
	return withTerminal(h, ctx, p.TerminalId, func(_ context.Context, r *run, t *terminal) (out sdk.ReleaseTerminalResponse, err error) {
		t.cancel()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.terminals, p.TerminalId)
		return out, nil
	})
}
