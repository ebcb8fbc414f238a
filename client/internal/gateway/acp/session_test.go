package acp

import (
	"errors"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

// Every end of a turn has one of the protocol's stop reasons, or is an error that says what to do.
func TestStopReason(t *testing.T) {
	for _, c := range []struct {
		status, stop string
		want         sdk.StopReason
	}{
		{wire.StatusSuccess, "end_turn", sdk.StopReasonEndTurn},
		{wire.StatusSuccess, "", sdk.StopReasonEndTurn},
		{wire.StatusSuccess, "max_tokens", sdk.StopReasonMaxTokens},
		{wire.StatusSuccess, "tool_use", sdk.StopReasonMaxTurnRequests},
		{wire.StatusSuccess, "refusal", sdk.StopReasonRefusal},
		{wire.StatusCancelled, "cancelled", sdk.StopReasonCancelled},
	} {
		r, err := response(&gateway.Turn{End: &wire.AgentComplete{Status: c.status, StopReason: c.stop}})
		if err != nil || r.StopReason != c.want || r.Validate() != nil {
			t.Errorf("%s %s: got %v, %v, want %s", c.status, c.stop, r.StopReason, err, c.want)
		}
	}
	if r, err := response(&gateway.Turn{Problem: &wire.Error{Code: wire.CodeCancelled}}); err != nil || r.StopReason != sdk.StopReasonCancelled {
		t.Errorf("cancelled before it began: %v, %v", r, err)
	}
	for _, j := range []*gateway.Turn{
		{Problem: &wire.Error{Code: wire.CodeModel, Message: "no such model", Hint: "name another"}},
		{End: &wire.AgentComplete{Status: wire.StatusError}, Problem: &wire.Error{Code: wire.CodeModel, Message: "no such model", Hint: "name another"}},
		{End: &wire.AgentComplete{Status: wire.StatusTimeout}},
	} {
		_, err := response(j)
		e, ok := errors.AsType[*sdk.RequestError](err)
		if !ok || e.Code != -32603 {
			t.Fatalf("got %v", err)
		}
		if data, _ := e.Data.(map[string]any); j.Problem != nil && (e.Message != "no such model" || data["hint"] != "name another" || data["code"] != wire.CodeModel) {
			t.Errorf("got %+v", e)
		}
	}
}

// What the user is to approve cannot end the code that it is shown as.
func TestPermissionShowsPreviewAsCode(t *testing.T) {
	for kind, want := range map[string]string{"diff": "````diff\n+```\n+*x*\n````", "text": "````\n+```\n+*x*\n````"} {
		p := permission("s", &wire.ConfirmationRequest{Preview: wire.Preview{Type: kind, Content: "+```\n+*x*\n"}})
		if got := p.ToolCall.Content[1].Content.Content.Text.Text; got != want {
			t.Errorf("%s: got %q, want %q", kind, got, want)
		}
	}
}

// The option chosen is the permission that stood there; one that was not offered is a no.
func TestChosen(t *testing.T) {
	m := &wire.ConfirmationRequest{Grants: []wire.Grant{{Rule: "one"}, {Rule: "two"}}}
	for option, want := range map[string]string{
		"allow": "allow ", "deny": "deny ", "always-0": "allow_always one", "always-1": "allow_always two", "always-2": "deny ", "always--1": "deny ", "always-": "deny ", "": "deny ",
	} {
		r := &wire.ConfirmationResponse{Decision: wire.DecisionDeny}
		chosen(r, m, option)
		got := r.Decision + " "
		if r.Grant != nil {
			got += r.Grant.Rule
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", option, got, want)
		}
	}
}

// A question shows the command that would run, whole, and not what its arguments say, in which secrets are masked.
func TestPermissionShowsTheCommand(t *testing.T) {
	command := "echo " + strings.Repeat("a", 300) + "\n\nrm -rf build"
	p := permission("s", &wire.ConfirmationRequest{Tool: "bash", Command: wire.OSString(command), Arguments: `{"command":"echo ***","why":"x"}`})
	args, _ := p.ToolCall.RawInput.(map[string]any)
	if args["command"] != command || args["why"] != "x" {
		t.Errorf("got input %v", args)
	}
	if len(p.ToolCall.Content) != 2 || !strings.Contains(p.ToolCall.Content[0].Content.Content.Text.Text, command) {
		t.Errorf("the title is %s, and the content %+v", *p.ToolCall.Title, p.ToolCall.Content)
	}
	if p := permission("s", &wire.ConfirmationRequest{Tool: "bash", Command: "make", Arguments: "{}"}); *p.ToolCall.Title != "`make`" || len(p.ToolCall.Content) != 1 {
		t.Errorf("got %s, %+v", *p.ToolCall.Title, p.ToolCall.Content)
	}
}
