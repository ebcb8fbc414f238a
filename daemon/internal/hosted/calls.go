package hosted

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/reach"
	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/tool"
	"sublet/wire"
	"sublet/wire/visible"
)

// tool runs a tool for the agent's MCP server.
func (r *run) tool(ctx context.Context, m *wire.ToolRequest) (*wire.CommandResult, error) {
	ctx, done, err := r.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	switch m.Tool {
	case wire.ToolAskUser:
		if r.t.Ask == nil {
			return nil, errors.New("nobody can be asked here")
		}
		return r.t.Ask(ctx, m.Arguments)
	case "bash", "jobs":
		sh, err := r.shellFor(string(m.Cwd), m.Private, nil)
		if err != nil {
			return nil, err
		}
		return r.runTool(ctx, m.Tool, json.RawMessage(m.Arguments), sh, tool.MaxForeign, nil)
	}
	return nil, fmt.Errorf("there is no tool %q", visible.Cut(m.Tool, 64))
}

// shellFor returns the shell for a command in cwd, "" = where the shell is: a window's, or the turn's private one if private is set or the
// role is. watch, unless nil, gets what the command writes in a window's shell; in a private one it is for runTool.
func (r *run) shellFor(cwd string, private bool, watch func([]byte)) (tool.Shell, error) {
	if info, err := os.Stat(cwd); cwd != "" && (!filepath.IsAbs(cwd) || err != nil || !info.IsDir()) {
		return nil, fmt.Errorf("cwd: %s is not an absolute path of a folder", shown(cwd, 200))
	}
	if !private && !r.t.Of.Role.Private && r.t.Shell != nil {
		return r.t.Shell(cwd, watch), nil
	}
	if r.private == nil {
		return nil, tool.ErrNoShell
	}
	return r.private(cwd), nil
}

// runTool runs a tool of sublet in the turn. The call is judged, shown and stored as in a turn of sublet's own agents. most is
// Env.MaxResult of the call. In a private shell watch, unless nil, gets what the command writes.
func (r *run) runTool(ctx context.Context, name string, args json.RawMessage, sh tool.Shell, most int, watch func([]byte)) (*wire.CommandResult, error) {
	at := r.t.Of
	at.Name, at.Role = r.name, agent.Role{Name: r.name, Mode: r.t.Of.Role.Mode, ReadOnly: r.readOnly()}
	at.Roles, at.NewPrivateShell = nil, nil
	at.Env.Shell, at.Env.Agent, at.Env.MaxResult = sh, r.name, most
	if name == "bash" { // the working folder comes from the shell alone
		at.Env.Cwd, at.Context = "", wire.RequestContext{}
	}
	var result *wire.CommandResult
	at.Emit = func(m wire.EventMessage) {
		r.emit(m)
		switch m := m.(type) {
		case *wire.CommandResult:
			copied := *m
			result = &copied
		case *wire.AgentStreamChunk:
			if watch != nil && m.Chunk.Type == wire.ChunkToolOutput {
				watch(m.Chunk.Data)
			}
		}
	}
	r.mu.Lock()
	r.summary = ""
	r.mu.Unlock()
	out := agent.RunTool(ctx, at, name, args)
	r.mu.Lock()
	r.sum.ToolsExecuted = append(r.sum.ToolsExecuted, out.ToolsExecuted...)
	r.sum.Refused = append(r.sum.Refused, out.Refused...)
	r.mu.Unlock()
	if result == nil {
		return nil, fmt.Errorf("%s: %s", name, out.Summary)
	}
	return result, nil
}

// readOnly reports whether the agent's role or the reach of its process allows it only to read.
func (r *run) readOnly() bool {
	return r.t.Of.Role.ReadOnly || r.t.Of.Role.Hosted.Reach == string(risk.ReachRead)
}

// guard must be deferred itself. It recovers a panic in sublet, logs it and ends the agent, so that only this turn fails.
func (h *host) guard() {
	if v := recover(); v != nil {
		h.agents.log.Error("hosted agent", "agent", h.key.agent, "panic", v, "stack", string(debug.Stack()))
		h.mu.Lock()
		h.cause = cmp.Or(h.cause, fmt.Errorf("a fault in sublet ended it (the log has more): %s", shown(fmt.Sprint(v), 200)))
		h.mu.Unlock()
		h.agents.work.Go(h.end) // not here: end may wait for the caller
	}
}

// RequestPermission implements the SDK's client: the policy decides, or the user. A call of our own MCP server is allowed at once,
// since its command is judged when it comes.
func (h *host) RequestPermission(ctx context.Context, p sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
	answer, err := serve(h, ctx, func(ctx context.Context, r *run) (sdk.RequestPermissionResponse, error) { return r.permit(ctx, p), nil })
	if err != nil {
		answer.Outcome = sdk.NewRequestPermissionOutcomeCancelled()
	}
	return answer, nil
}

// permit returns the policy's or the user's answer to a request for permission: one of the options that the agent offers, to allow the
// call once or to reject it. The answer is "cancelled" if ctx ends, the turn has too many calls, or no offered option fits.
func (r *run) permit(ctx context.Context, p sdk.RequestPermissionRequest) sdk.RequestPermissionResponse {
	cancelled := sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeCancelled()}
	u := p.ToolCall
	c := r.update(change{u.ToolCallId, u.Title, u.Kind, nil, u.RawInput, u.RawOutput, u.Locations, u.Content, u.Meta})
	if c == nil {
		return cancelled
	}
	now, show, q := r.permission(c)
	allowed := now.viaServer
	if show {
		r.emitCall(now)
	}
	if !allowed {
		d, err := r.t.Of.Approver.Approve(ctx, q)
		if ctx.Err() != nil {
			return cancelled
		}
		if err != nil {
			d = agent.Decision{Reason: "nobody could be asked: " + err.Error()}
		}
		if allowed = d.Allowed && d.EditedCommand == nil; !allowed { // an edited command is a refusal: the agent would run its own
			r.refuse(c, q.Tool, d)
		}
	}
	if allowed && !now.viaServer {
		r.grant(now)
	}
	kinds := []sdk.PermissionOptionKind{sdk.PermissionOptionKindRejectOnce, sdk.PermissionOptionKindRejectAlways}
	if allowed { // never "always": the policy decides on each call
		kinds = []sdk.PermissionOptionKind{sdk.PermissionOptionKindAllowOnce}
	}
	for _, kind := range kinds {
		for _, o := range p.Options {
			if o.Kind == kind {
				return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeSelected(o.OptionId)}
			}
		}
	}
	if allowed {
		r.notice(r.name + " offers no answer that allows this only once: it is refused")
	}
	return cancelled
}

// permission returns a copy of a call as it is now, whether the event of its begin is to be sent, and what the policy is asked.
func (r *run) permission(c *call) (now call, show bool, q agent.Question) {
	r.mu.Lock()
	defer r.mu.Unlock()
	show = !c.viaServer && !c.shown
	c.shown = c.shown || show
	return *c, show, r.question(c)
}

// refuse records that the call of the tool name was refused, with d's reason and comment, for the result and the turn's summary.
func (r *run) refuse(c *call, name string, d agent.Decision) {
	why := cmp.Or(d.Reason, "refused by "+cmp.Or(d.By, "the user"))
	if d.Comment != "" {
		why += ": " + d.Comment
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c.denied = why
	r.sum.Refused = append(r.sum.Refused, wire.RefusedTool{Tool: name, Reason: why})
}

// grant allows an edit that was approved to be written once without another question: each file with the change that was shown. What the
// agent gives as the old content need not be the file's.
func (r *run) grant(c call) {
	if c.kind != sdk.ToolKindEdit {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, part := range c.content {
		if d := part.Diff; d != nil {
			before := ""
			if d.OldText != nil {
				before = tool.Digest([]byte(*d.OldText))
			}
			r.granted[newWrite(r.absolute(d.Path), before, d.NewText)]++
		}
	}
}

// newWrite returns the write of a content to a file whose digest is before, "" = absent. Agents differ in whether they give an empty old text
// for a file that does not exist.
func newWrite(path, before, content string) write {
	if before == tool.Digest(nil) {
		before = ""
	}
	return write{path, before, tool.Digest([]byte(content))}
}

// spend uses up one grant of w, and reports whether there was one.
func (r *run) spend(w write) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.granted[w] == 0 {
		return false
	}
	r.granted[w]--
	return true
}

// absolute returns a path of a call with its links resolved, or unchanged if that fails.
func (r *run) absolute(path string) string {
	if to, err := tool.Resolve(r.t.Of.Env.Cwd, path); err == nil {
		return to
	}
	return path
}

// question returns what the policy is asked about a call. Nothing confines a command of the agent's own shell; a call with unknown
// effects is judged as one of an MCP server. r.mu is held.
func (r *run) question(c *call) agent.Question {
	name, arguments := c.describe()
	cwd := r.t.Of.Env.Cwd
	q := agent.Question{
		Agent: r.name, Role: r.t.Of.Role.Name, Mode: r.t.Of.Role.Mode, ReadOnly: r.readOnly(), Tool: name, ExecutionID: c.id, Action: tool.Action{Cwd: cwd}, Fixed: true,
	}
	q.Arguments, _ = json.Marshal(arguments) // cannot fail: it was decoded from JSON
	var paths []string
	for _, p := range c.paths() {
		paths = append(paths, r.absolute(p))
	}
	command, known := c.command()
	switch {
	case c.kind == sdk.ToolKindExecute && known:
		q.Action.Command, q.Action.Cwd, q.Action.Reach = command, c.folder(cwd), string(risk.ReachFree)
		q.Action.ReachWhy = r.name + " runs it in a shell of its own, which nothing confines"
	case len(paths) > 0 && (c.kind == sdk.ToolKindRead || c.kind == sdk.ToolKindSearch):
		q.Action.Reads = paths
	case len(paths) > 0 && (c.kind == sdk.ToolKindEdit || c.kind == sdk.ToolKindDelete || c.kind == sdk.ToolKindMove):
		q.Action.Writes = paths
		for _, part := range c.content {
			if d := part.Diff; d != nil {
				one := tool.Diff(cwd, d.Path, []byte(deref(d.OldText)), []byte(d.NewText), d.OldText != nil)
				q.Action.Preview = tool.Preview{Type: one.Type, Content: q.Action.Preview.Content + one.Content}
			}
		}
	case c.kind == sdk.ToolKindSearch:
		q.Action.Reads = []string{cwd}
	case c.kind == sdk.ToolKindFetch && hostOf(stringField(c.input, "url")) != "":
		q.Action.Network = hostOf(stringField(c.input, "url"))
	default:
		q.Action.Server = r.name
	}
	return q
}

// hostOf returns the host of a URL, with the port if it names one; "" where there is none.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// inside returns path without symbolic links. A path outside of the project is a protocol error.
func (r *run) inside(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", refused("path: %s is not absolute", shown(path, 200))
	}
	to, err := tool.Resolve("", path)
	if err != nil {
		return "", refused("%s", shown(err.Error(), 300))
	}
	root := reach.Real(r.t.Of.Project)
	if to != root && !strings.HasPrefix(to, strings.TrimRight(root, "/")+"/") {
		return "", refused("path: %s lies outside of the folder %s", shown(path, 200), root)
	}
	return to, nil
}

// refused returns a protocol error that names the cause.
func refused(format string, args ...any) error {
	e := sdk.NewInvalidParams(nil)
	e.Message = fmt.Sprintf(format, args...)
	return e
}

// approve asks the policy, or the user, about a file that sublet is to read or write for the agent.
func (r *run) approve(ctx context.Context, name, path string, act tool.Action) error {
	args, _ := json.Marshal(map[string]string{"path": path}) // cannot fail: it has strings only
	d, err := r.t.Of.Approver.Approve(ctx, agent.Question{
		Agent: r.name, Role: r.t.Of.Role.Name, Mode: r.t.Of.Role.Mode, ReadOnly: r.readOnly(), Tool: name, ExecutionID: wire.ExecutionID(wire.NewID()), Arguments: args, Action: act,
	})
	switch {
	case err != nil:
		return refused("%s: nobody could be asked: %v", path, err)
	case !d.Allowed:
		return refused("%s: denied: %s", path, cmp.Or(d.Reason, "refused by "+cmp.Or(d.By, "the user")))
	}
	return nil
}

// serve runs do for a request of the agent. Without a running turn, or beyond maxActive, the request is refused.
func serve[T any](h *host, ctx context.Context, do func(ctx context.Context, r *run) (T, error)) (T, error) {
	var none T
	r := h.running()
	if r == nil {
		return none, refused("%v", errNoTurn)
	}
	defer h.guard()
	ctx, done, err := r.begin(ctx)
	if err != nil {
		return none, refused("%v", err)
	}
	defer done()
	return do(ctx, r)
}

// ReadTextFile implements the SDK's client. Line counts from 1. ReadText remembers the content, so that a later write is refused
// if the file has changed since.
func (h *host) ReadTextFile(ctx context.Context, p sdk.ReadTextFileRequest) (sdk.ReadTextFileResponse, error) {
	return serve(h, ctx, func(ctx context.Context, r *run) (out sdk.ReadTextFileResponse, err error) {
		path, err := r.inside(p.Path)
		if err != nil {
			return out, err
		}
		if err := r.approve(ctx, "read", path, tool.Action{Cwd: r.t.Of.Env.Cwd, Reads: []string{path}}); err != nil {
			return out, err
		}
		content, err := r.t.Of.Env.Files.ReadText(r.t.Of.Env.Agent, path)
		if err != nil {
			return out, refused("%v", err)
		}
		lines := strings.SplitAfter(content, "\n")
		from := 0
		if p.Line != nil {
			from = min(max(*p.Line-1, 0), len(lines))
		}
		lines = lines[from:]
		if p.Limit != nil {
			lines = lines[:min(max(*p.Limit, 0), len(lines))]
		}
		out.Content = strings.Join(lines, "")
		return out, nil
	})
}

// WriteTextFile implements the SDK's client.
func (h *host) WriteTextFile(ctx context.Context, p sdk.WriteTextFileRequest) (sdk.WriteTextFileResponse, error) {
	return serve(h, ctx, func(ctx context.Context, r *run) (out sdk.WriteTextFileResponse, err error) {
		path, err := r.inside(p.Path)
		if err != nil {
			return out, err
		}
		return out, r.writeFile(ctx, path, p.Content)
	})
}

// writeFile writes a file for the agent, at a path of inside. It runs sublet's tool write, which can be undone, and asks first unless
// this change was granted.
func (r *run) writeFile(ctx context.Context, path, content string) error {
	args, _ := json.Marshal(map[string]string{"path": path, "content": content}) // cannot fail: it has strings only
	env := r.t.Of.Env
	act, err := tool.Write().Plan(ctx, env, args)
	if err == nil && act.Writes[len(act.Writes)-1] != path { // a link was put into the path since
		err = tool.ErrChanged
	}
	if err != nil {
		return refused("%v", err)
	}
	if !r.spend(newWrite(path, act.FileDigest, content)) {
		if err := r.approve(ctx, "write", path, act); err != nil {
			return err
		}
	}
	if _, err := tool.Write().Run(ctx, env, args, act, nil); err != nil {
		return refused("%s: %v", path, err)
	}
	return nil
}
