package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sublet/client"
	"sublet/wire"
)

// maxStdin is how many bytes of standard input a question takes along.
const maxStdin = 16 << 20

func (a *app) ask() *cobra.Command {
	var asJSON, showRequest bool
	var mode, session, model, agent, thinking string
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "ask 'PROMPT'",
		Short: "One question, the answer on standard output",
		Long: "ask runs one turn and prints the answer. Standard input, where it is a file or a pipe, goes along as context; with\n" +
			"the prompt - it is the prompt. On a terminal you are asked before anything risky; a script is refused what would\n" +
			"need a question, and told by exit status 3. The agent works in a private shell that starts in the current folder.",
		Example: "  sublet ask 'what changed since yesterday?'\n  go test ./... 2>&1 | sublet ask 'why does this fail?'",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			q := question{prompt: strings.Join(args, " "), json: asJSON, mode: mode, session: wire.SessionID(session), model: model, agent: agent, thinking: thinking, timeout: timeout, show: showRequest}
			return a.runAsk(q)
		},
	}
	f := c.Flags()
	f.BoolVar(&asJSON, "json", false, "print the events as they come, one JSON object a line")
	f.StringVar(&mode, "mode", "", "policy mode for this turn: plan, ask, auto, full")
	f.StringVar(&session, "session", "", "go on in this session")
	f.StringVar(&model, "model", "", "provider/name instead of the configured one")
	f.StringVar(&thinking, "thinking", "", "how much the model thinks first: off, low, medium, high")
	f.StringVar(&agent, "agent", "", "orchestrator (default), engineer, reviewer, explorer or one of yours")
	f.DurationVar(&timeout, "timeout", 0, "end the turn after this time (0 = no bound)")
	f.BoolVar(&showRequest, "show-request", false, "print what the model would be sent first, with tokens by part, and ask nothing")
	f.SetInterspersed(true)
	return c
}

type question struct {
	prompt, mode, model, agent, thinking string
	session                              wire.SessionID
	json                                 bool
	timeout                              time.Duration
	show                                 bool
}

func (a *app) runAsk(q question) error {
	switch q.mode {
	case "", "plan", "ask", "auto", "full":
	default:
		return &usageError{fmt.Errorf("mode %q is none of plan, ask, auto, full", q.mode)}
	}
	switch q.thinking {
	case "", "off", "low", "medium", "high":
	default:
		return &usageError{fmt.Errorf("thinking %q is none of off, low, medium, high", q.thinking)}
	}
	ctx, stop := interruptible(context.Background())
	defer stop()
	req := &wire.AgentRequest{
		Agent: q.agent, Prompt: q.prompt, Attachments: []wire.Attachment{},
		Context: wire.RequestContext{RecentCommands: []wire.RecentCommand{}, OpenFiles: []wire.OSString{}},
		Options: wire.RequestOptions{Model: q.model, Mode: q.mode, Thinking: q.thinking, TimeoutMS: q.timeout.Milliseconds()},
	}
	if dir, err := os.Getwd(); err == nil {
		req.Context.Cwd = wire.OSString(dir)
	}
	input, err := a.input(ctx)
	if err != nil {
		return err
	}
	if q.prompt == "-" {
		req.Prompt, input = strings.TrimSpace(string(input)), nil
	}
	if strings.TrimSpace(req.Prompt) == "" {
		return &usageError{errors.New("the prompt is empty")}
	}
	if len(input) > 0 {
		file, remove, err := keep(input)
		if err != nil {
			return err
		}
		defer remove()
		req.Attachments = append(req.Attachments, wire.Attachment{Path: wire.OSString(file), MIME: "text/plain"})
	}
	asker := newAsker(a, q.json)
	defer asker.close()
	c, err := a.dial(ctx, false, func(o *client.Options) {
		o.Session, o.Confirm, o.Handle = q.session, asker != nil, a.warn
	})
	if err != nil {
		return err
	}
	defer c.Close()
	if q.show {
		return a.showRequest(ctx, c, req, q.json)
	}
	out := &answer{app: a, json: q.json, asker: asker, conn: c}
	end, err := c.Turn(ctx, req, func(m wire.Message) { out.show(ctx, m) })
	out.finish()
	if err != nil {
		return err
	}
	return statusOfTurn(end)
}

// input reads standard input where it is a file, a pipe or a socket. It never waits silently.
func (a *app) input(ctx context.Context) ([]byte, error) {
	info, err := a.stdin.Stat()
	if err != nil || !(info.Mode().IsRegular() || info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0) {
		return nil, nil
	}
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() { // ends with its input, or with the program: a blocked read cannot be taken back
		data, err := io.ReadAll(io.LimitReader(a.stdin, maxStdin+1))
		done <- result{data, err}
	}()
	slow := time.NewTimer(2 * time.Second)
	defer slow.Stop()
	for {
		select {
		case r := <-done:
			if len(r.data) > maxStdin {
				return nil, fmt.Errorf("standard input is over %d MiB", maxStdin>>20)
			}
			return r.data, r.err
		case <-slow.C:
			fmt.Fprintln(a.stderr, "sublet: reading standard input to its end, as context; call it with </dev/null where there is none")
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// keep puts what came on standard input where the agent can read it. The file is there for as long as the turn.
func keep(input []byte) (path string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "sublet-ask-") // 0700
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, "standard-input.txt")
	if err := os.WriteFile(path, input, 0o600); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return path, func() { os.RemoveAll(dir) }, nil
}

// answer prints a turn: the agent's text on standard output, what it does and what failed on standard error.
type answer struct {
	app     *app
	json    bool
	asker   *asker
	conn    *client.Conn
	model   string    // that was asked
	held    wire.Said // where standard output is no terminal: text that may still turn out void
	written bool      // some text is on standard output
	open    bool      // the last line has no end yet
}

func (o *answer) show(ctx context.Context, m wire.Message) {
	if q, ok := m.(*wire.ConfirmationRequest); ok && o.asker != nil {
		o.endLine()
		o.asker.ask(ctx, o.conn, q)
	}
	if o.json {
		_ = o.app.printMessage(m)
		return
	}
	switch m := m.(type) {
	case *wire.AgentStreamChunk:
		if isDelegate(m.Agent) {
			return
		}
		switch m.Chunk.Type {
		case wire.ChunkText:
			if f, ok := o.app.stdout.(*os.File); ok && isTerminal(f) {
				o.text(m.Chunk.Text)
			} else {
				o.held.Add(m.First(), m.Chunk.Text)
			}
		case wire.ChunkVoid:
			o.held.Void(m.Chunk.FromSeq)
			o.endLine()
			fmt.Fprintf(o.app.stderr, "sublet: the answer so far is void and asked for again: %s\n", oneLine(m.Chunk.Text))
		case wire.ChunkBlock:
			if m.Chunk.Block != nil {
				o.release()
				o.endLine()
				o.text(m.Chunk.Block.Content)
			}
		case wire.ChunkToolCall:
			o.release()
			o.endLine()
			o.note("%s %s", m.Chunk.Tool, firstLine(m.Chunk.Arguments, 100))
		case wire.ChunkNotice:
			o.note("%s", firstLine(m.Chunk.Text, 200))
		}
	case *wire.TurnStarted:
		o.model = m.Model
	case *wire.AgentThinking:
		if m.Phase == wire.PhaseWaiting { // also where standard error is no terminal: nothing else happens meanwhile
			o.endLine()
			fmt.Fprintf(o.app.stderr, "sublet: %s: %s\n", oneLine(m.Agent), oneLine(m.Message))
		}
	case *wire.Error:
		o.release()
		o.endLine()
		fmt.Fprintf(o.app.stderr, "sublet: error: %s\n", oneLine(m.Error()))
		if m.Hint != "" {
			fmt.Fprintf(o.app.stderr, "sublet: hint: %s\n", oneLine(m.Hint))
		}
	case *wire.AgentComplete:
		o.release()
		o.endLine()
		if !o.written && m.Summary != "" && m.Status == wire.StatusSuccess { // else the Error says it
			o.text(m.Summary)
			o.endLine()
		}
		if m.Model != o.model && m.Model != "" {
			fmt.Fprintf(o.app.stderr, "sublet: warning: %s answered in place of %s\n", oneLine(m.Model), oneLine(o.model))
		}
		if m.StopReason == "max_tokens" {
			fmt.Fprintln(o.app.stderr, "sublet: warning: the answer is cut off at the model's output limit")
			fmt.Fprintf(o.app.stderr, "sublet: hint: `sublet ask --session %s 'go on'` continues it\n", oneLine(string(m.SessionID)))
		}
		for _, r := range m.Refused {
			fmt.Fprintf(o.app.stderr, "sublet: error: %s was refused: %s\n", oneLine(r.Tool), oneLine(r.Reason))
		}
		if len(m.Refused) > 0 && o.asker == nil {
			fmt.Fprintln(o.app.stderr, "sublet: hint: nobody could be asked; ask on a terminal, or see `sublet help policy`")
		}
	}
}

// warn prints what the daemon warns of beside a turn.
func (a *app) warn(m wire.Message) {
	if n, ok := m.(*wire.Notice); ok && n.Level != "info" {
		fmt.Fprintf(a.stderr, "sublet: %s: %s\n", oneLine(n.Level), oneLine(n.Text))
		if n.Hint != "" {
			fmt.Fprintf(a.stderr, "sublet: hint: %s\n", oneLine(n.Hint))
		}
	}
}

// isDelegate reports whether an agent works for another one: a task's name carries its number.
func isDelegate(agent string) bool {
	_, number, ok := strings.Cut(agent, "-")
	return ok && strings.Trim(number, "0123456789") == ""
}

func (o *answer) text(s string) {
	if s = plain(s); s == "" {
		return
	}
	fmt.Fprint(o.app.stdout, s)
	o.written, o.open = true, !strings.HasSuffix(s, "\n")
}

// release prints what was held back.
func (o *answer) release() {
	o.text(o.held.String())
	o.held.Reset()
}

func (o *answer) endLine() {
	if o.open && !o.json {
		fmt.Fprintln(o.app.stdout)
		o.open = false
	}
}

func (o *answer) finish() {
	o.release()
	o.endLine()
}

// note says on a terminal what the agent is doing.
func (o *answer) note(format string, args ...any) {
	if f, ok := o.app.stderr.(*os.File); ok && isTerminal(f) {
		fmt.Fprintf(f, "· "+format+"\n", args...)
	}
}
