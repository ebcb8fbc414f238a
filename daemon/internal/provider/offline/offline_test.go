package offline_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/provider/offline"
	"sublet/daemon/internal/provider/providertest"
	"sublet/daemon/internal/tool"
)

// A shell that cannot be had is no reason to give up: the same question goes to a shell of the agent's own.
func TestTakesItsOwnShellWhereTheUsersIsGone(t *testing.T) {
	m := offline.Open(provider.Config{})
	req := provider.Request{Tools: []provider.ToolSpec{{Name: "bash"}}, Messages: []provider.Message{{Role: provider.User, Parts: []provider.Part{{Text: "what changed?"}}}}}
	step := func() provider.Response {
		t.Helper()
		resp, err := m.Stream(t.Context(), req, func(provider.Delta) {})
		if err != nil {
			t.Fatal(err)
		}
		req.Messages = append(req.Messages, resp.Message)
		return resp
	}
	answer := func(call *provider.ToolCall, content string, isError bool) {
		req.Messages = append(req.Messages, provider.Message{Role: provider.User, Parts: []provider.Part{{ToolResult: &provider.ToolResult{CallID: call.ID, Content: content, IsError: isError}}}})
	}
	first := step().Message.Parts[0].ToolCall
	if strings.Contains(string(first.Arguments), "private") {
		t.Fatalf("got %s, want the user's shell first", first.Arguments)
	}
	answer(first, tool.ErrNoShell.Error()+`; set "private": true to run it in a shell of your own instead`, true)
	second := step().Message.Parts[0].ToolCall
	if second == nil || !strings.Contains(string(second.Arguments), `"private":true`) || !strings.Contains(string(second.Arguments), "git status") || second.ID == first.ID {
		t.Fatalf("got %+v", second)
	}
	answer(second, "## main", false)
	if got := step(); got.StopReason != provider.EndTurn || !strings.Contains(got.Message.Parts[0].Text, "nothing changed") {
		t.Errorf("got %+v", got)
	}
}

// What overtook a call is told as it is.
func TestStoppedCalls(t *testing.T) {
	m := offline.Open(provider.Config{})
	for content, want := range map[string]string{
		"stopped: the turn was cancelled":     "It was cancelled",
		"interrupted: no result was recorded": "That was interrupted",
		"half\n[ended: it was cut off]":       "It was cancelled",
		"Denied: all of it.\n[exit code 1]":   "That failed", // A program's words, not the agent's
		"half\n[exit code 7]\n[denied by its reach, read: writing /x; the reach project would allow it]":                    "exit code 7",
		"half\n[ended: it was cut off]\n[the user's window was lost while it ran; whether it came to its end is not known]": "It was cancelled",
		"half\n[ended: it ran longer than 2m0s]": "took too long",
		"half\n[it goes on as the job j1: wait]": "goes on as a background job",
	} {
		req := provider.Request{Tools: []provider.ToolSpec{{Name: "bash"}}, Messages: []provider.Message{{Role: provider.User, Parts: []provider.Part{{Text: "biggest files"}}}}}
		resp, err := m.Stream(t.Context(), req, func(provider.Delta) {})
		if err != nil {
			t.Fatal(err)
		}
		req.Messages = append(req.Messages, resp.Message, provider.Message{Role: provider.User, Parts: []provider.Part{{ToolResult: &provider.ToolResult{CallID: resp.Message.Parts[0].ToolCall.ID, Content: content, IsError: true}}}})
		if resp, err = m.Stream(t.Context(), req, func(provider.Delta) {}); err != nil || !strings.Contains(resp.Message.Parts[0].Text, want) {
			t.Errorf("%s: got %+v, %v, want %q", content, resp, err, want)
		}
	}
}

func TestPlanWithoutAPerson(t *testing.T) {
	call := provider.ToolCall{ID: "1", Name: "plan", Arguments: []byte(`{"items":["run ` + "`make`" + `"]}`)}
	req := provider.Request{Tools: []provider.ToolSpec{{Name: "bash"}, {Name: "plan"}}, Messages: []provider.Message{
		{Role: provider.User, Parts: []provider.Part{{Text: "commit this"}}},
		{Role: provider.Assistant, Parts: []provider.Part{{ToolCall: &call}}},
		{Role: provider.User, Parts: []provider.Part{{ToolResult: &provider.ToolResult{CallID: "1", IsError: true, Content: "The plan was not accepted: nobody is attached who could accept it."}}}},
	}}
	if resp, err := offline.Open(provider.Config{}).Stream(t.Context(), req, func(provider.Delta) {}); err != nil || !strings.Contains(resp.Message.Parts[0].Text, "I would run `make`.") {
		t.Errorf("got %+v, %v", resp, err)
	}
}

// What a pipe into `sublet ask` gave is what "this" means.
func TestWhyOfAnAttachment(t *testing.T) {
	m := offline.Open(provider.Config{})
	for output, want := range map[string]string{"x\nbash: gti: command not found": "no program `gti`", "panic: boom\nmain.go:3": "main.go:3"} {
		req := provider.Request{Messages: []provider.Message{{Role: provider.User, Parts: []provider.Part{
			{Text: "why does this fail?"}, {Text: "Attached file /tmp/standard-input.txt:\n" + output},
		}}}}
		if resp, err := m.Stream(t.Context(), req, func(provider.Delta) {}); err != nil || !strings.Contains(resp.Message.Parts[0].Text, want) {
			t.Errorf("%s: got %+v, %v, want %q", output, resp, err, want)
		}
	}
}

// A commit is named as code also where its short hash happens to have only digits.
func TestHashOfDigits(t *testing.T) {
	m := offline.Open(provider.Config{})
	req := provider.Request{Tools: []provider.ToolSpec{{Name: "bash"}}, Messages: []provider.Message{{Role: provider.User, Parts: []provider.Part{{Text: "commit this"}}}}}
	for _, output := range []string{"## main\n?? a.txt", "[main 3782259] Add a.txt"} {
		resp, err := m.Stream(t.Context(), req, func(provider.Delta) {})
		if err != nil || resp.Message.Parts[0].ToolCall == nil {
			t.Fatalf("got %+v, %v", resp, err)
		}
		req.Messages = append(req.Messages, resp.Message, provider.Message{Role: provider.User, Parts: []provider.Part{{ToolResult: &provider.ToolResult{CallID: resp.Message.Parts[0].ToolCall.ID, Content: output}}}})
	}
	if resp, err := m.Stream(t.Context(), req, func(provider.Delta) {}); err != nil || !strings.HasPrefix(resp.Message.Parts[0].Text, "Committed as `3782259` on `main`") {
		t.Errorf("got %+v, %v", resp, err)
	}
}

// How a real model is connected was repeated in the answer to each question that is not understood.
func TestAdviceOnce(t *testing.T) {
	m := offline.Open(provider.Config{})
	req := provider.Request{}
	for _, c := range []struct {
		prompt string
		want   bool
	}{{"what is love?", true}, {"what is hate?", false}, {"who are you?", false}, {"how do I connect a real model?", true}} {
		req.Messages = append(req.Messages, providertest.Prompt(c.prompt).Messages...)
		resp, _, err := providertest.Ask(t, m, req)
		if err != nil || strings.Contains(resp.Message.Parts[0].Text, "ANTHROPIC_API_KEY") != c.want {
			t.Errorf("%s: got %+v, %v", c.prompt, resp, err)
		}
		req.Messages = append(req.Messages, resp.Message)
	}
}

func TestCancelled(t *testing.T) {
	cause := errors.New("stopped by user")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, err := offline.Open(provider.Config{}).Stream(ctx, provider.Request{Messages: []provider.Message{{Role: provider.User, Parts: []provider.Part{{Text: "help"}}}}}, func(provider.Delta) {})
	if !errors.Is(err, cause) {
		t.Errorf("got %v, want the cause", err)
	}
}

// Images are not looked at, and that is said where it is not seen otherwise.
func TestImagesAreNotLookedAt(t *testing.T) {
	m := offline.Open(provider.Config{})
	req := providertest.Pictured()
	req.Messages = req.Messages[:1]
	resp, _, err := providertest.Ask(t, m, req)
	if err != nil || !strings.Contains(resp.Message.Parts[0].Text, "cannot look at images: `a.png (PNG, 3×2)`") {
		t.Errorf("got %+v, %v", resp, err)
	}
	req.Messages = append(req.Messages, resp.Message, providertest.Prompt("hello").Messages[0])
	if resp, _, err = providertest.Ask(t, m, req); err != nil || strings.Contains(resp.Message.Parts[0].Text, "images") {
		t.Errorf("the next turn: got %+v, %v", resp, err)
	}
}
