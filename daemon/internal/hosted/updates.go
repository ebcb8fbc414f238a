package hosted

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"sublet/daemon/internal/tool"
	"sublet/wire"
	"sublet/wire/visible"
)

const (
	maxOutput    = 30_000 // bytes of a call's result
	maxArguments = 8_000  // bytes of its arguments
	maxTitle     = 200    // bytes of a title
	maxPlan      = 100    // entries of a plan
	maxEntry     = 500    // bytes of one of them
)

// call is a tool call as the agent reports it: of a tool of its own, or of our MCP server. The run's mu guards it.
type call struct {
	id        wire.ExecutionID
	ref       sdk.ToolCallId
	title     string
	first     string // the first title, in full
	kind      sdk.ToolKind
	input     map[string]any
	meta      map[string]any
	output    any
	locations []sdk.ToolCallLocation
	content   []sdk.ToolCallContent
	begun     time.Time
	shown     bool   // the event of its begin was sent, or need not be
	done      bool   // it has ended
	viaServer bool   // to our MCP server, which shows and judges it; it stays so if a later update names another tool
	denied    string // why it was refused; "" = it was not
}

// SessionUpdate implements the SDK's client, which calls it for one update after the other.
func (h *host) SessionUpdate(_ context.Context, n sdk.SessionNotification) error {
	defer h.in.updateHandled()
	defer h.guard()
	u := n.Update
	h.mu.Lock()
	r, before := h.run, h.session.mode.Current
	if n.SessionId != h.session.id {
		r = nil
	} else if m := u.CurrentModeUpdate; m != nil {
		h.session.mode.Current = string(m.CurrentModeId)
	} else if o := u.ConfigOptionUpdate; o != nil {
		h.session.configure(o.ConfigOptions)
	}
	mode := h.session.mode.Current
	if mode != before && mode != h.chosen {
		h.chosen = "" // the agent has changed it by itself
	}
	h.mu.Unlock()
	if r == nil {
		return nil
	}
	r.markHeard()
	switch {
	case mode != before:
		r.notice(r.name + " is in its mode " + visible.Exact(shown(mode, 60)) + " now")
	case u.AgentMessageChunk != nil:
		r.addText(wire.ChunkText, textOf(u.AgentMessageChunk.Content))
	case u.AgentThoughtChunk != nil:
		r.addText(wire.ChunkReasoning, textOf(u.AgentThoughtChunk.Content))
	case u.Plan != nil:
		r.plan(u.Plan.Entries)
	case u.ToolCall != nil:
		c := u.ToolCall
		r.update(change{c.ToolCallId, &c.Title, &c.Kind, &c.Status, c.RawInput, c.RawOutput, c.Locations, c.Content, c.Meta})
	case u.ToolCallUpdate != nil:
		c := u.ToolCallUpdate
		r.update(change{c.ToolCallId, c.Title, c.Kind, c.Status, c.RawInput, c.RawOutput, c.Locations, c.Content, c.Meta})
	case u.UsageUpdate != nil:
		r.mu.Lock()
		r.sum.Context = wire.ContextUse{Used: int64(u.UsageUpdate.Used), Window: int64(u.UsageUpdate.Size)}
		if c := u.UsageUpdate.Cost; c != nil && c.Currency == "USD" {
			h.mu.Lock()
			h.session.cost = c.Amount
			h.mu.Unlock()
			r.sum.Usage.CostUSD = new(max(0, c.Amount-r.costBefore))
		}
		r.mu.Unlock()
	}
	return nil
}

// HandleExtensionMethod implements the SDK's client: no extension is known.
func (h *host) HandleExtensionMethod(_ context.Context, method string, _ json.RawMessage) (any, error) {
	return nil, sdk.NewMethodNotFound(method)
}

// textOf returns a piece of content as text; for what is none, a note.
func textOf(b sdk.ContentBlock) string {
	switch {
	case b.Text != nil:
		return b.Text.Text
	case b.ResourceLink != nil:
		return b.ResourceLink.Uri
	case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
		return b.Resource.Resource.TextResourceContents.Text
	}
	return "[content that is not text]"
}

// plan shows the agent's plan as a call of our tool todo that has succeeded, which makes it the session's list.
func (r *run) plan(entries []sdk.PlanEntry) {
	items := []tool.TodoItem{}
	for _, e := range entries[:min(len(entries), maxPlan)] {
		status := string(e.Status)
		if e.Status == sdk.PlanEntryStatusCompleted {
			status = "done"
		}
		items = append(items, tool.TodoItem{Text: visible.Clip(visible.Clean(e.Content), maxEntry), Status: status})
	}
	list := &tool.TodoList{}
	list.Set(items)
	c := call{id: wire.ExecutionID(wire.NewID()), begun: time.Now()}
	r.emitCallOf(c, "todo", map[string]any{"todos": items})
	r.emitResult(c, "todo", wire.StatusSuccess, list.String(), nil)
}

// change holds the fields of a call that an update sets; nil fields are left unchanged.
type change struct {
	id        sdk.ToolCallId
	title     *string
	kind      *sdk.ToolKind
	status    *sdk.ToolCallStatus
	input     any
	output    any
	locations []sdk.ToolCallLocation
	content   []sdk.ToolCallContent
	meta      map[string]any
}

func (c *call) apply(n change) {
	if n.title != nil && *n.title != "" {
		c.title = shown(*n.title, maxTitle)
		c.first = cmp.Or(c.first, *n.title)
	}
	if n.kind != nil && *n.kind != "" {
		c.kind = *n.kind
	}
	if m, ok := n.input.(map[string]any); ok && len(m) > 0 {
		c.input = m
	}
	if n.meta != nil {
		c.meta = n.meta
	}
	if n.output != nil {
		c.output = n.output
	}
	if n.locations != nil {
		c.locations = n.locations
	}
	if n.content != nil {
		c.content = n.content
	}
}

// update applies a change to its call, and sends the call's events when it begins and ends. It returns nil for a
// call beyond maxCalls.
func (r *run) update(n change) *call {
	c, now, show, finish := r.applyChange(n)
	if c == nil {
		return nil
	}
	if show {
		r.emitCall(now)
	}
	if finish {
		r.emitEnd(now, *n.status == sdk.ToolCallStatusCompleted)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.done { // the fields are not read again
		c.input, c.output, c.content, c.locations = nil, nil, nil, nil
	}
	return c
}

// applyChange applies a change to its call, which it makes if it is new. It returns the call, nil beyond maxCalls; now, a copy of it after
// the change; and whether the event of its begin (show) and that of its end (finish) are to be sent. The begin waits for the call's
// input, unless the call ends without one.
func (r *run) applyChange(n change) (c *call, now call, show, finish bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c = r.calls[n.id]
	if c == nil {
		c = &call{id: wire.ExecutionID(wire.NewID()), ref: n.id, begun: time.Now(), kind: sdk.ToolKindOther}
		if len(r.calls) >= maxCalls {
			return nil, now, false, false
		}
		r.calls[n.id] = c
	}
	c.apply(n)
	c.viaServer = c.viaServer || r.host.known.ours(c)
	var status sdk.ToolCallStatus
	if n.status != nil {
		status = *n.status
	}
	ended := status == sdk.ToolCallStatusCompleted || status == sdk.ToolCallStatusFailed
	hidden := c.done || c.viaServer
	show = !hidden && !c.shown && (ended || status == sdk.ToolCallStatusInProgress && c.input != nil)
	c.shown = c.shown || show
	c.done = c.done || ended
	return c, *c, show, ended && !hidden
}

// emitCall sends the event of a call that begins.
func (r *run) emitCall(c call) {
	name, arguments := c.describe()
	r.emitCallOf(c, name, arguments)
}

// emitCallOf sends the event of a call that begins, as one of a tool of that name with these arguments.
func (r *run) emitCallOf(c call, name string, arguments map[string]any) {
	r.mu.Lock()
	r.summary = ""
	r.mu.Unlock()
	text, err := json.Marshal(arguments)
	if err != nil || len(text) > maxArguments {
		text, _ = json.Marshal(map[string]any{"name": c.title}) // cannot fail: it is a string
	}
	r.chunk(wire.Chunk{Type: wire.ChunkToolCall, ExecutionID: c.id, Tool: name, Arguments: strings.ToValidUTF8(string(text), "\uFFFD")})
}

// emitEnd sends the events of a call that has ended; ok is whether the agent reports success.
func (r *run) emitEnd(c call, ok bool) {
	var parts, files []string
	for _, part := range c.content {
		switch {
		case part.Content != nil:
			parts = append(parts, textOf(part.Content.Content))
		case part.Diff != nil:
			d := part.Diff
			parts = append(parts, tool.Diff(r.t.Of.Env.Cwd, d.Path, []byte(deref(d.OldText)), []byte(d.NewText), d.OldText != nil).Content)
			files = append(files, d.Path)
		}
	}
	text := strings.Join(parts, "\n")
	if text == "" && c.output != nil {
		text = rawText(c.output)
	}
	status := wire.StatusSuccess
	switch {
	case c.denied != "":
		status, text, files = wire.StatusDenied, "Denied: "+c.denied, nil
	case !ok:
		status, files = wire.StatusError, nil
	}
	name, _ := c.describe()
	r.emitResult(c, name, status, text, files)
}

// emitResult sends the two events of a call's result, and adds the tool to those of the turn unless the call was refused.
func (r *run) emitResult(c call, name, status, text string, files []string) {
	m := &wire.CommandResult{
		Agent: r.name, ExecutionID: c.id, Tool: name, Status: status, Output: []byte(visible.Clip(visible.Clean(text), maxOutput)),
		FilesModified: []wire.OSString{}, StartedAtMS: c.begun.UnixMilli(), DurationMS: time.Since(c.begun).Milliseconds(),
	}
	if name == "bash" {
		command, _ := c.command() // such a call has one
		m.Command = wire.OSString(command)
	}
	for _, f := range files {
		m.FilesModified = append(m.FilesModified, wire.OSString(f))
	}
	r.emit(m)
	r.chunk(wire.Chunk{Type: wire.ChunkToolResult, ExecutionID: c.id, Tool: name, Status: status})
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.sum.ToolsExecuted, name) && status != wire.StatusDenied {
		r.sum.ToolsExecuted = append(r.sum.ToolsExecuted, name)
	}
}

// rawText returns a raw result as text.
func rawText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	text, _ := json.Marshal(v) // cannot fail: it was decoded from JSON
	return string(text)
}

// describe returns a call as the tool of sublet's own agents that is most like it, with arguments.
func (c *call) describe() (name string, arguments map[string]any) {
	switch c.kind {
	case sdk.ToolKindExecute:
		if command, ok := c.command(); ok {
			return "bash", map[string]any{"command": command}
		}
	case sdk.ToolKindRead, sdk.ToolKindEdit, sdk.ToolKindDelete, sdk.ToolKindMove:
		if p := c.paths(); len(p) > 0 {
			return string(c.kind), map[string]any{"path": strings.Join(p, ", ")}
		}
		return string(c.kind), map[string]any{"path": c.title}
	case sdk.ToolKindSearch:
		return "grep", map[string]any{"path": c.title}
	case sdk.ToolKindFetch:
		return "fetch", map[string]any{"url": cmp.Or(stringField(c.input, "url"), c.title)}
	}
	arguments = map[string]any{"name": c.title}
	if c.input != nil {
		arguments["input"] = c.input
	}
	return "tool", arguments
}

// command returns the command line of a call of the agent's own shell. It returns false if the input has none, or more than that, since
// the policy would then judge the wrong one.
func (c *call) command() (text string, ok bool) {
	text = stringField(c.input, "command")
	return text, strings.TrimSpace(text) != "" && c.input["cmd"] == nil && c.input["args"] == nil
}

// folder returns the working folder in the input of a call of the agent's own shell, cwd if there is none. The keys, like those in
// command and paths, are the ones that agents use.
func (c *call) folder(cwd string) string {
	for _, key := range []string{"cwd", "workdir", "working_directory", "dir_path", "directory"} {
		if dir := stringField(c.input, key); filepath.IsAbs(dir) {
			return filepath.Clean(dir)
		} else if dir != "" {
			return filepath.Join(cwd, dir)
		}
	}
	return cwd
}

// paths are the files that a call concerns, each once.
func (c *call) paths() (list []string) {
	add := func(path string) {
		if path != "" && !slices.Contains(list, path) {
			list = append(list, path)
		}
	}
	for _, part := range c.content {
		if part.Diff != nil {
			add(part.Diff.Path)
		}
	}
	for _, l := range c.locations {
		add(l.Path)
	}
	if len(list) == 0 {
		for _, key := range []string{"file_path", "filePath", "path", "absolute_path"} {
			add(stringField(c.input, key))
		}
	}
	return list
}

func stringField(of map[string]any, key string) string {
	s, _ := of[key].(string)
	return s
}
