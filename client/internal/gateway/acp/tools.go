package acp

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"sublet/client/internal/gateway"
	"sublet/wire"
	"sublet/wire/visible"
)

const (
	// outputEvery is the minimum interval of updates with a running tool's output; each replaces the one before.
	outputEvery = 200 * time.Millisecond
	// outputTail is how many bytes of output such an update has; all of it follows at the end.
	outputTail = 8 << 10
	// diffMost is the largest file, in bytes, that is read for the left side of a diff.
	diffMost = 1 << 20
)

// toolCall is a running tool.
type toolCall struct {
	tool string
	diff []sdk.ToolCallContent // the change that it is about to make
	tail []byte                // the end of the output, at most outputTail
	sent time.Time             // when the last update with output was sent
	term *terminal             // where the output is shown; nil: in the call itself
}

var kinds = map[string]sdk.ToolKind{
	"bash": sdk.ToolKindExecute, "read": sdk.ToolKindRead, "write": sdk.ToolKindEdit, "edit": sdk.ToolKindEdit, "glob": sdk.ToolKindSearch,
	"grep": sdk.ToolKindSearch, "fetch": sdk.ToolKindFetch, "task": sdk.ToolKindThink, "todo": sdk.ToolKindThink,
	wire.ToolPlan: sdk.ToolKindSwitchMode,
}

func kindOf(tool string) sdk.ToolKind {
	if k, ok := kinds[tool]; ok {
		return k
	}
	return sdk.ToolKindOther
}

// began reports a tool's call; a call of todo is reported as the protocol's plan.
func (s *session) began(m *wire.AgentStreamChunk) {
	c := &m.Chunk
	args := gateway.Arguments(c.Arguments)
	if c.Tool == "todo" {
		if entries := plan(args); entries != nil {
			s.update(sdk.UpdatePlan(entries...))
			return
		}
	}
	call := &toolCall{tool: c.Tool, diff: s.diff(c.Tool, args)}
	s.calls[c.ExecutionID] = call
	options := []sdk.ToolCallStartOpt{
		sdk.WithStartKind(kindOf(c.Tool)), sdk.WithStartStatus(sdk.ToolCallStatusPending), sdk.WithStartRawInput(args),
	}
	if path, ok := args["path"].(string); ok && path != "" {
		options = append(options, sdk.WithStartLocations([]sdk.ToolCallLocation{{Path: s.absolute(path)}}))
	}
	if call.diff != nil {
		options = append(options, sdk.WithStartContent(call.diff))
	}
	s.update(sdk.StartToolCall(sdk.ToolCallId(c.ExecutionID), title(c.Tool, wire.CallSubject(c.Tool, c.Arguments)), options...))
}

// title returns one line about a call, for the editor.
func title(tool, subject string) string {
	if subject = gateway.OneLine(subject); tool == "bash" && subject != "" {
		return "`" + subject + "`"
	}
	return strings.TrimSpace(tool + " " + subject)
}

// absolute resolves a path of a call against the session's folder.
func (s *session) absolute(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.gs.Place().Cwd, path)
}

// diff returns the change that a call of write or edit is about to make.
func (s *session) diff(tool string, args map[string]any) []sdk.ToolCallContent {
	path, _ := args["path"].(string)
	if path == "" {
		return nil
	}
	path = s.absolute(path)
	switch tool {
	case "write":
		content, ok := args["content"].(string)
		if !ok {
			return nil
		}
		var old []string
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() <= diffMost && !s.past {
			if text, err := os.ReadFile(path); err == nil {
				old = append(old, string(text))
			}
		}
		return []sdk.ToolCallContent{sdk.ToolDiffContent(path, content, old...)}
	case "edit":
		edits, ok := args["edits"].([]any)
		if !ok {
			edits = []any{args}
		}
		var diffs []sdk.ToolCallContent
		for _, e := range edits {
			e, _ := e.(map[string]any)
			from, ok1 := e["old"].(string)
			to, ok2 := e["new"].(string)
			if ok1 && ok2 {
				diffs = append(diffs, sdk.ToolDiffContent(path, to, from))
			}
		}
		return diffs
	}
	return nil
}

// plan converts the todo tool's list; nil if there is none.
func plan(args map[string]any) []sdk.PlanEntry {
	list, _ := args["todos"].([]any)
	var entries []sdk.PlanEntry
	for _, v := range list {
		item, _ := v.(map[string]any)
		text, _ := item["text"].(string)
		e := sdk.PlanEntry{Content: text, Priority: sdk.PlanEntryPriorityMedium, Status: sdk.PlanEntryStatusPending}
		switch item["status"] {
		case "in_progress":
			e.Status = sdk.PlanEntryStatusInProgress
		case "done":
			e.Status = sdk.PlanEntryStatusCompleted
		}
		if text != "" {
			entries = append(entries, e)
		}
	}
	return entries
}

// output reports a running tool's output.
func (s *session) output(m *wire.AgentStreamChunk) {
	id, data := m.Chunk.ExecutionID, m.Chunk.Data
	call := s.calls[id]
	if call == nil {
		return
	}
	if call.tool == "bash" && call.term == nil && !s.past {
		call.term = s.terminal(id, m.TurnID)
	}
	if call.tail = append(call.tail, data...); len(call.tail) > outputTail {
		call.tail = call.tail[len(call.tail)-outputTail:]
	}
	if call.term != nil && call.term.write(data) { // false: the terminal has failed, so the call shows it
		return
	}
	now := time.Now()
	if now.Sub(call.sent) < outputEvery {
		return
	}
	call.sent = now
	s.update(sdk.UpdateToolCall(
		sdk.ToolCallId(id), sdk.WithUpdateStatus(sdk.ToolCallStatusInProgress), sdk.WithUpdateContent(printed(call.tail)),
	))
}

// printed returns output as code in Markdown.
func printed(output []byte) []sdk.ToolCallContent {
	text := strings.TrimRight(strings.ToValidUTF8(string(output), "\uFFFD"), "\n")
	return []sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(visible.Fenced("", text)))}
}

// ended reports a tool's result.
func (s *session) ended(m *wire.CommandResult) {
	call := s.calls[m.ExecutionID]
	if call == nil {
		return // the plan, or a command that a person ran
	}
	delete(s.calls, m.ExecutionID)
	status := sdk.ToolCallStatusCompleted
	if m.Status != wire.StatusSuccess {
		status = sdk.ToolCallStatusFailed
	}
	raw := map[string]any{"status": m.Status, "output": string(m.Output), "durationMs": m.DurationMS}
	if m.ExitCode != nil {
		raw["exitCode"] = *m.ExitCode
	}
	content := call.diff
	if call.term != nil {
		content = call.term.finish(m)
	}
	if content == nil || call.diff != nil && status == sdk.ToolCallStatusFailed {
		content = append(content[:len(content):len(content)], printed(m.Output)...)
	}
	options := []sdk.ToolCallUpdateOpt{sdk.WithUpdateStatus(status), sdk.WithUpdateContent(content), sdk.WithUpdateRawOutput(raw)}
	if len(m.FilesModified) > 0 {
		var at []sdk.ToolCallLocation
		for _, f := range m.FilesModified {
			at = append(at, sdk.ToolCallLocation{Path: s.absolute(string(f))})
		}
		options = append(options, sdk.WithUpdateLocations(at))
	}
	s.update(sdk.UpdateToolCall(sdk.ToolCallId(m.ExecutionID), options...))
}

// ask has the editor ask its user. It does not block: the answer, or the question's end, comes later.
func (s *session) ask(q *gateway.Question) {
	ctx := q.Context()
	s.a.work.Go(func() { // ends with the answer, the question, or the connection; close waits for it
		reply, err := s.a.conn.RequestPermission(ctx, permission(s.id, q.ConfirmationRequest))
		if err != nil && ctx.Err() != nil {
			return // the question ended otherwise, or the editor is gone: then it is cancelled with its turn
		}
		r := wire.ConfirmationResponse{Decision: wire.DecisionDeny}
		switch {
		case err != nil:
			s.a.log.Warn("the editor could not ask", "err", err)
			r.Comment = "the editor could not ask: " + gateway.OneLine(err.Error())
		case reply.Outcome.Selected != nil:
			chosen(&r, q.ConfirmationRequest, string(reply.Outcome.Selected.OptionId))
		default:
			r.Comment = "the question was closed without an answer"
		}
		refused := func(e *wire.Error) { s.a.log.Warn("the daemon refused the user's answer", "err", e) }
		if err := q.Answer(r, refused); err != nil && ctx.Err() == nil {
			s.a.log.Warn("the user's answer was not sent", "err", err)
		}
	})
}

// permission returns a question with its options: this once, and each standing permission that the daemon offers.
func permission(id sdk.SessionId, m *wire.ConfirmationRequest) sdk.RequestPermissionRequest {
	args := gateway.Arguments(m.Arguments)
	command := string(m.Command)
	if command != "" {
		args["command"] = command // it is exact, and the arguments are masked
	}
	name, kind, pending := title(m.Tool, cmp.Or(command, wire.CallSubject(m.Tool, m.Arguments))), kindOf(m.Tool), sdk.ToolCallStatusPending
	risk := fmt.Sprintf("Risk: %s. %s", m.Verdict.Level, strings.Join(gateway.Reasons(&m.Verdict), "; "))
	content := []sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(risk))}
	if exact := visible.Exact(command); exact != gateway.OneLine(command) { // the title does not show all of it
		content = append([]sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(visible.Fenced("", exact)))}, content...)
	}
	switch m.Preview.Type {
	case "diff":
		content = append(content, sdk.ToolContent(sdk.TextBlock(visible.Fenced("diff", m.Preview.Content))))
	case "text":
		content = append(content, sdk.ToolContent(sdk.TextBlock(visible.Fenced("", m.Preview.Content))))
	}
	options := []sdk.PermissionOption{{Kind: sdk.PermissionOptionKindAllowOnce, Name: "Allow once", OptionId: "allow"}}
	for i, g := range m.Grants {
		options = append(options, sdk.PermissionOption{
			Kind: sdk.PermissionOptionKindAllowAlways, Name: "Always allow " + g.Covers, OptionId: sdk.PermissionOptionId("always-" + strconv.Itoa(i)),
		})
	}
	options = append(options, sdk.PermissionOption{Kind: sdk.PermissionOptionKindRejectOnce, Name: "Refuse", OptionId: "deny"})
	return sdk.RequestPermissionRequest{
		SessionId: id, Options: options,
		ToolCall: sdk.ToolCallUpdate{
			ToolCallId: sdk.ToolCallId(m.ExecutionID), Title: &name, Kind: &kind, Status: &pending, RawInput: args, Content: content,
		},
	}
}

// chosen sets the decision that an option of permission stands for. For an option that was not offered r stays as it is, which is a no.
func chosen(r *wire.ConfirmationResponse, m *wire.ConfirmationRequest, option string) {
	if option == "allow" {
		r.Decision = wire.DecisionAllow
		return
	}
	number, ok := strings.CutPrefix(option, "always-")
	i, err := strconv.Atoi(number)
	if ok && err == nil && i >= 0 && i < len(m.Grants) {
		r.Decision, r.Grant = wire.DecisionAllowAlways, &m.Grants[i]
	}
}
