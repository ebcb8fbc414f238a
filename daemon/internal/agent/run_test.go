package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/tool"
	"sublet/wire"
)

func TestTurnRunsToolsUntilDone(t *testing.T) {
	cost := 0.5
	model := newModel(
		step{reasoning: "hm", text: "Let me look. ", calls: []provider.ToolCall{calling("c1", "sh", `{"command":"ls"}`)}, usage: provider.Usage{Input: 10, Output: 5, CostUSD: &cost}},
		step{text: "There are two files.", usage: provider.Usage{Input: 30, Output: 7, CacheRead: 4, CostUSD: &cost}},
	)
	sh := &stubTool{name: "sh", run: func(_ context.Context, _ tool.Action, live func([]byte)) (tool.Result, error) {
		live([]byte("a\nb\n"))
		zero := 0
		return tool.Result{Content: "a\nb\n", ExitCode: &zero, Cwd: "/next", FilesModified: []string{"/f"}}, nil
	}}
	rec := &recorder{}
	o := rec.play(t.Context(), Turn{Model: model, Prompt: "what is here?", Tools: []tool.Tool{sh}, Env: tool.Env{Cwd: "/w"}})
	if o.Status != wire.StatusSuccess || o.StopReason != "end_turn" || o.Summary != "There are two files." || o.Err != nil {
		t.Errorf("got %+v", o)
	}
	if o.Usage.Input != 40 || o.Usage.Output != 12 || o.Usage.Total != 56 || *o.Usage.CostUSD != 1 || o.Context.Used != 41 || o.Context.Window != 100_000 {
		t.Errorf("got usage %+v, context %+v", o.Usage, o.Context)
	}
	if !slices.Equal(o.ToolsExecuted, []string{"sh"}) || o.Model != "stub/one" {
		t.Errorf("got %+v", o)
	}
	res := rec.results()
	if len(res) != 1 || string(res[0].Output) != "a\nb\n" || res[0].Status != wire.StatusSuccess || res[0].Command != "ls" || res[0].Cwd != "/next" || len(res[0].FilesModified) != 1 {
		t.Errorf("got results %+v", res)
	}
	// One id joins delta, call, live output, CommandResult and result (G3).
	id := res[0].ExecutionID
	for _, kind := range []string{wire.ChunkToolCallDelta, wire.ChunkToolCall, wire.ChunkToolOutput, wire.ChunkToolResult} {
		if c := rec.chunks(kind, Orchestrator); len(c) != 1 || c[0].ExecutionID != id {
			t.Errorf("%s: got %+v, want one with id %s", kind, c, id)
		}
	}
	text := ""
	for _, c := range rec.chunks(wire.ChunkText, "") {
		text += c.Text
	}
	if text != "Let me look. There are two files." {
		t.Errorf("got text %q", text)
	}
	phases := []string{}
	for _, ev := range rec.events {
		if m, ok := ev.(*wire.AgentThinking); ok {
			phases = append(phases, m.Phase)
		}
	}
	if want := []string{"analyzing", "generating", "executing", "planning", "generating"}; !slices.Equal(phases, want) {
		t.Errorf("got phases %q, want %q", phases, want)
	}
	second := model.requests()[1]
	mustBeValid(t, second.Messages)
	if p := second.Messages[1].Parts[0]; p.Reasoning == nil || p.Reasoning.Signature != "sig" {
		t.Error("got the model's reasoning lost within the turn")
	}
	if second.Facts.Cwd != "/next" {
		t.Errorf("got cwd %q, want it to follow the shell", second.Facts.Cwd)
	}
}

// A model that has learned another program's tools may write their names with a capital. The events and the model's next request
// have the tool's own name.
func TestNameWithACapital(t *testing.T) {
	sh := &stubTool{name: "sh"}
	model := newModel(call1("Sh", `{"command":"ls"}`), step{text: "done"})
	rec := &recorder{}
	rec.play(t.Context(), Turn{Model: model, Prompt: "go", Tools: []tool.Tool{sh}})
	if got := rec.results()[0]; got.Tool != "sh" || got.Status != wire.StatusSuccess {
		t.Errorf("got %s %s: %s", got.Tool, got.Status, got.Output)
	}
}

// A call whose JSON could be repaired runs, and was shown to the model afterwards as {"invalid_arguments":…}.
func TestRepairedCallIsReplayedRepaired(t *testing.T) {
	for _, args := range []string{`{"command":"ls",}`, "```json\n{\"command\":\"ls\"}\n```", `"{\"command\":\"ls\"}"`} {
		model := newModel(call1("sh", args), step{text: "done"})
		rec := &recorder{}
		rec.play(t.Context(), Turn{Model: model, Prompt: "go", Tools: []tool.Tool{&stubTool{name: "sh"}}})
		for where, messages := range map[string][]provider.Message{"request": model.requests()[1].Messages, "history": History(rec.events).Messages()} {
			var got string
			for _, p := range messages[1].Parts {
				if p.ToolCall != nil {
					got += strings.ReplaceAll(string(p.ToolCall.Arguments), " ", "")
				}
			}
			if got != `{"command":"ls"}` {
				t.Errorf("%s: got %s in the %s", args, got, where)
			}
		}
	}
}

// G9, G12: a call that cannot be run is answered with an error, and the turn continues; nothing is judged or run in its place.
func TestBadCallsGoBackToTheModel(t *testing.T) {
	judged := 0
	for _, tc := range []struct{ name, args, want string }{
		{"sh", `{"command":`, "not a JSON object"},
		{"sh", `"ls"`, "not a JSON object"},
		{"sh", `[1]`, "not a JSON object"},
		{"sh", `null`, "got null"},
		{"sh", `{"command":7}`, "cannot unmarshal number"},
		{"nope", `{}`, `there is no tool "nope"; you have: sh`},
		{"secret", `{}`, "not in this agent's allow-list; you have: sh"},
		{"sh\x1b[31m", `{}`, "there is no tool"},
	} {
		sh, secret := &stubTool{name: "sh"}, &stubTool{name: "secret"}
		model := newModel(call1(tc.name, tc.args), step{text: "sorry"})
		rec := &recorder{}
		o := rec.play(t.Context(), Turn{
			Model: model, Prompt: "go", Tools: []tool.Tool{sh, secret}, Options: wire.RequestOptions{Tools: []string{"sh"}},
			Approver: approverFunc(func(context.Context, Question) (Decision, error) { judged++; return Decision{Allowed: true}, nil }),
		})
		if n := notices(rec); n != "" {
			t.Errorf("got notices %q, and the one allowed tool exists", n)
		}
		got := string(rec.results()[0].Output)
		if o.Status != wire.StatusSuccess || !strings.Contains(got, tc.want) || rec.results()[0].Status != wire.StatusError {
			t.Errorf("%s %s: got %s, %q; want %q", tc.name, tc.args, o.Status, got, tc.want)
		}
		if len(sh.ran())+len(secret.ran())+judged != 0 {
			t.Errorf("%s %s: got %v %v run and %d judged", tc.name, tc.args, sh.ran(), secret.ran(), judged)
		}
		if tc.name == "secret" && (len(o.Refused) != 1 || o.Refused[0].Tool != "secret") {
			t.Errorf("got refused %+v", o.Refused)
		}
		mustBeValid(t, model.requests()[1].Messages)
		mustBeValid(t, History(rec.events).Messages())
		if len(model.requests()[0].Tools) != 1 {
			t.Errorf("got %d tools offered, want the allowed one", len(model.requests()[0].Tools))
		}
	}
}

// H11: denied does not run, the model is told why with the user's words, and the turn goes on.
func TestDeniedCallsDoNotRun(t *testing.T) {
	sh := &stubTool{name: "sh"}
	model := newModel(call1("sh", `{"command":"rm -rf x"}`), step{text: "fine"})
	rec := &recorder{}
	o := rec.play(t.Context(), Turn{
		Model: model, Prompt: "clean", Tools: []tool.Tool{sh},
		Approver: approverFunc(func(_ context.Context, q Question) (Decision, error) {
			if q.Action.Command != "rm -rf x" || q.Tool != "sh" || q.Agent != Orchestrator {
				t.Errorf("got question %+v", q)
			}
			return Decision{Reason: "the user said no", Comment: "use git clean"}, nil
		}),
	})
	if len(sh.ran()) != 0 || o.Status != wire.StatusSuccess || len(o.Refused) != 1 || o.Refused[0].Reason != "the user said no" || len(o.ToolsExecuted) != 0 {
		t.Errorf("got %v run, %+v", sh.ran(), o)
	}
	res := rec.results()[0]
	if res.Status != wire.StatusDenied || !strings.Contains(string(res.Output), "use git clean") {
		t.Errorf("got %s %q", res.Status, res.Output)
	}
	// An approver that cannot decide means no, too.
	sh = &stubTool{name: "sh"}
	rec = &recorder{}
	rec.play(t.Context(), Turn{
		Model: newModel(call1("sh", `{"command":"x"}`), step{text: "ok"}), Prompt: "x", Tools: []tool.Tool{sh},
		Approver: approverFunc(func(context.Context, Question) (Decision, error) {
			return Decision{Allowed: true}, errors.New("store is gone")
		}),
	})
	if len(sh.ran()) != 0 || rec.results()[0].Status != wire.StatusDenied {
		t.Errorf("got %v run, status %s", sh.ran(), rec.results()[0].Status)
	}
}

// what changed between judgement and execution is planned and judged again, at most five times.
func TestChangedWorldIsJudgedAgain(t *testing.T) {
	for _, changes := range []int{1, 4, 99} {
		left, state := changes, 0
		sh := &stubTool{name: "sh"}
		sh.plan = func(json.RawMessage) (tool.Action, error) {
			state++
			return tool.Action{Command: "make", StateDigest: fmt.Sprint(state)}, nil
		}
		sh.run = func(_ context.Context, a tool.Action, _ func([]byte)) (tool.Result, error) {
			if a.StateDigest != fmt.Sprint(state) {
				t.Errorf("got state %s run, want the one just judged", a.StateDigest)
			}
			if left > 0 {
				left--
				return tool.Result{}, tool.ErrChanged
			}
			return tool.Result{Content: "made"}, nil
		}
		var judged []string
		rec := &recorder{}
		o := rec.play(t.Context(), Turn{
			Model: newModel(call1("sh", `{}`), step{text: "ok"}), Prompt: "go", Tools: []tool.Tool{sh},
			Approver: approverFunc(func(_ context.Context, q Question) (Decision, error) {
				judged = append(judged, q.Action.StateDigest)
				return Decision{Allowed: true}, nil
			}),
		})
		res := rec.results()[0]
		if changes < maxReplans {
			if string(res.Output) != "made" || len(judged) != changes+1 {
				t.Errorf("%d changes: got %q after judging %v", changes, res.Output, judged)
			}
		} else if len(judged) != maxReplans || res.Status != wire.StatusError || len(o.ToolsExecuted) != 0 {
			t.Errorf("%d changes: got %+v after judging %v", changes, res, judged)
		}
	}
}

func TestEditedCommandRunsAsEdited(t *testing.T) {
	sh := &stubTool{name: "sh"}
	edited := "rm -i x"
	rec := &recorder{}
	rec.play(t.Context(), Turn{
		Model: newModel(call1("sh", `{"command":"rm x","note":1}`), step{text: "ok"}), Prompt: "go", Tools: []tool.Tool{sh},
		Approver: approverFunc(func(context.Context, Question) (Decision, error) {
			return Decision{Allowed: true, EditedCommand: &edited, Comment: "careful"}, nil
		}),
	})
	res := rec.results()[0]
	if !slices.Equal(sh.ran(), []string{edited}) || string(res.Command) != edited {
		t.Errorf("got %q run, %q told", sh.ran(), res.Command)
	}
	for _, want := range []string{"changed the command to: rm -i x", "ran rm -i x", "the user says: careful"} {
		if !strings.Contains(string(res.Output), want) {
			t.Errorf("got %q, want %q in it", res.Output, want)
		}
	}
}

func TestReadOnlyCallsRunSideBySideOthersInOrder(t *testing.T) {
	meet := make(chan struct{})
	look := &stubTool{name: "look", readOnly: true, run: func(context.Context, tool.Action, func([]byte)) (tool.Result, error) {
		select { // both at once, or this never ends
		case meet <- struct{}{}:
		case <-meet:
		}
		return tool.Result{Content: "seen"}, nil
	}}
	var order []string
	write := &stubTool{name: "write", run: func(_ context.Context, a tool.Action, _ func([]byte)) (tool.Result, error) {
		order = append(order, a.Command) // the race detector says if two of them overlap
		return tool.Result{Content: "wrote"}, nil
	}}
	model := newModel(step{calls: []provider.ToolCall{
		calling("1", "look", `{}`), calling("2", "look", `{}`), calling("3", "write", `{"command":"a"}`), calling("4", "write", `{"command":"b"}`),
		calling("", "write", `{"command":"c"}`), calling("4", "write", `{"command":"d"}`), // servers that send no or the same id
	}}, step{text: "ok"})
	rec := &recorder{}
	if o := rec.play(t.Context(), Turn{Model: model, Prompt: "go", Tools: []tool.Tool{look, write}}); o.Err != nil {
		t.Fatal(o.Err)
	}
	if !slices.Equal(order, []string{"a", "b", "c", "d"}) {
		t.Errorf("got order %v", order)
	}
	mustBeValid(t, model.requests()[1].Messages)
	mustBeValid(t, History(rec.events).Messages())
	if n := len(model.requests()[1].Messages[2].Parts); n != 6 {
		t.Errorf("got %d results, want 6", n)
	}
}

func TestAToolThatPanicsIsAFailedTool(t *testing.T) { // G9
	boom := &stubTool{name: "boom", run: func(context.Context, tool.Action, func([]byte)) (tool.Result, error) { panic("boom") }}
	rec := &recorder{}
	o := rec.play(t.Context(), Turn{Model: newModel(call1("boom", `{}`), step{text: "ok"}), Prompt: "go", Tools: []tool.Tool{boom}})
	if o.Status != wire.StatusSuccess || rec.results()[0].Status != wire.StatusError || !strings.Contains(string(rec.results()[0].Output), "broke down") {
		t.Errorf("got %+v, %s", o, rec.results()[0].Output)
	}
}

// a stream that breaks off is an error, what it said stays, and what ran is not run again.
func TestBrokenStreamIsAnError(t *testing.T) {
	broken := &provider.Error{Kind: provider.ErrBroken, Provider: "stub", Message: "the stream broke off", HintText: "try again"}
	sh := &stubTool{name: "sh"}
	model := newModel(call1("sh", `{"command":"deploy"}`), step{text: "It is dep", err: broken})
	rec := &recorder{}
	o := rec.play(t.Context(), Turn{Model: model, Prompt: "go", Tools: []tool.Tool{sh}})
	if o.Status != wire.StatusError || !errors.Is(o.Err, broken) || o.Summary != "It is dep" {
		t.Errorf("got %+v", o)
	}
	if f := o.Failure(); f.Code != wire.CodeProvider || f.Hint != "try again" {
		t.Errorf("got %+v", f)
	}
	if len(sh.ran()) != 1 || len(model.requests()) != 2 {
		t.Errorf("got %d runs and %d requests, want 1 and 2", len(sh.ran()), len(model.requests()))
	}
	msgs := History(rec.events).Messages()
	mustBeValid(t, msgs)
	if s := show(msgs); !strings.Contains(s, "It is dep") || !strings.Contains(s, "this turn failed") {
		t.Errorf("got history\n%s", s)
	}
}

func TestStopReasonsAreHonoured(t *testing.T) {
	sh := &stubTool{name: "sh"}
	long := step{text: "and then ", stop: provider.MaxTokens}
	cut := step{calls: []provider.ToolCall{calling("c", "sh", `{"command":"half"}`)}, stop: provider.MaxTokens}
	for _, tc := range []struct {
		name         string
		steps        []step
		status, stop string
		code         string
		answers      int
	}{
		{"cut text", []step{{text: "and th", stop: provider.MaxTokens}, {text: "en"}}, wire.StatusSuccess, "end_turn", "", 2},
		{"text cut for ever", []step{long, long, long, long, long}, wire.StatusSuccess, "max_tokens", "", 4},
		{"refusal", []step{{text: "no", stop: provider.Refusal}}, wire.StatusError, "refusal", wire.CodeModel, 1},
		{"cut call", []step{cut, {text: "in parts"}}, wire.StatusSuccess, "end_turn", "", 2},
		{"cut calls for ever", []step{cut, cut, cut, cut, cut}, wire.StatusError, "max_tokens", wire.CodeModel, 4},
		{"empty once", []step{{reasoning: "hm"}, {text: "now"}}, wire.StatusSuccess, "end_turn", "", 2},
		{"empty twice", []step{{text: " "}, {}}, wire.StatusError, "error", wire.CodeModel, 2},
		{"empty after work", []step{call1("sh", `{"command":"true"}`), {}, {text: "done"}}, wire.StatusSuccess, "end_turn", "", 3},
	} {
		model := newModel(tc.steps...)
		rec := &recorder{}
		o := rec.play(t.Context(), Turn{Model: model, Prompt: "go", Tools: []tool.Tool{sh}})
		if o.Status != tc.status || o.StopReason != tc.stop || len(model.requests()) != tc.answers {
			t.Errorf("%s: got %s, %s after %d answers; want %s, %s, %d", tc.name, o.Status, o.StopReason, len(model.requests()), tc.status, tc.stop, tc.answers)
		}
		if f := o.Failure(); (f == nil) != (tc.code == "") || f != nil && (f.Code != tc.code || f.Hint == "") {
			t.Errorf("%s: got failure %+v, want code %q", tc.name, f, tc.code)
		}
		mustBeValid(t, History(rec.events).Messages())
	}
	if ran := sh.ran(); !slices.Equal(ran, []string{"true"}) {
		t.Errorf("got %v run, want no call whose arguments may be cut", ran)
	}
}

// How often an answer was continued, or was empty, did not count anew for the answer to a prompt that was added to the turn.
func TestAnswerToSteeringIsContinued(t *testing.T) {
	long := step{text: "and then ", stop: provider.MaxTokens}
	model := newModel(step{}, long, long, long, step{text: "end."}, step{}, long, long, long, step{text: "End."})
	rec := &recorder{}
	turn := Turn{Model: model, Prompt: "go", Env: tool.Env{Cwd: "/w"}}
	taken := 0
	turn.Steering = func() (added []*wire.TurnSteered) {
		if taken++; taken == 1 {
			added = []*wire.TurnSteered{{Prompt: "more"}}
			rec.emit(added[0])
		}
		return added
	}
	if o := rec.play(t.Context(), turn); o.StopReason != "end_turn" || !strings.HasSuffix(o.Summary, "End.") {
		t.Errorf("got %+v after %d requests", o, len(model.requests()))
	}
}

// What broke off was shown, is marked, and is in no conversation: not within the turn, not afterwards. What was said before it
// stays, also within one answer that is continued.
func TestVoidIsNeverSentBack(t *testing.T) {
	model := newModel(
		step{void: "The ans", text: "One ", stop: provider.MaxTokens}, step{void: "broken tail", text: "two."},
		step{text: "next"},
	)
	rec := &recorder{}
	o := rec.play(t.Context(), Turn{Model: model, Prompt: "go"})
	if o.Status != wire.StatusSuccess || o.Summary != "One two." {
		t.Fatalf("got %+v", o)
	}
	voids := rec.chunks(wire.ChunkVoid, "")
	if len(voids) != 2 || voids[0].Text != "it broke off" || voids[0].FromSeq <= 1 || voids[1].FromSeq <= voids[0].FromSeq {
		t.Errorf("got %+v", voids)
	}
	rec.play(t.Context(), Turn{Model: model, Prompt: "and now?"})
	for i, req := range model.requests() {
		mustBeValid(t, req.Messages)
		if s := show(req.Messages); strings.Contains(s, "The ans") || strings.Contains(s, "broken tail") || strings.Contains(s, "void") {
			t.Errorf("request %d has what was void:\n%s", i, s)
		}
	}
	if s := show(model.requests()[1].Messages); !strings.Contains(s, "assistant: \"One \"\nuser: \"[Your answer was cut off") {
		t.Errorf("the continuation was asked for with\n%s", s)
	}
	if s := show(model.requests()[2].Messages); !strings.Contains(s, `assistant: "One two."`) || strings.Contains(s, "cut off") {
		t.Errorf("got history\n%s", s)
	}
}

// A bound that the request sets is kept.
func TestOwnBoundIsNotContinued(t *testing.T) {
	limit := 10
	model := newModel(step{text: "cut", stop: provider.MaxTokens})
	o := (&recorder{}).play(t.Context(), Turn{Model: model, Prompt: "go", Options: wire.RequestOptions{MaxTokens: &limit}})
	if o.Status != wire.StatusSuccess || o.StopReason != "max_tokens" || len(model.requests()) != 1 {
		t.Errorf("got %+v after %d requests", o, len(model.requests()))
	}
}

func TestStepLimit(t *testing.T) {
	sh := &stubTool{name: "sh"}
	model := newModel(call1("sh", `{}`), call1("sh", `{}`), call1("sh", `{}`), call1("sh", `{}`))
	rec := &recorder{}
	o := rec.play(t.Context(), Turn{Model: model, Prompt: "go", Tools: []tool.Tool{sh}, Bounds: Bounds{MaxSteps: 3}})
	if o.Status != wire.StatusError || o.StopReason != "tool_use" || !errors.Is(o.Err, ErrStepLimit) || len(sh.ran()) != 3 {
		t.Errorf("got %+v after %d runs", o, len(sh.ran()))
	}
	if n := rec.chunks(wire.ChunkNotice, ""); len(n) != 1 || !strings.Contains(n[0].Text, "go on") {
		t.Errorf("got notices %+v", n)
	}
	if f := o.Failure(); f == nil || f.Hint == "" {
		t.Errorf("got %+v, want a hint", f)
	}
	mustBeValid(t, History(rec.events).Messages())
}

// Cancel reaches model, question and tool at once, and every open call has a result afterwards.
func TestCancelAnywhereLeavesAValidHistory(t *testing.T) {
	stop := errors.New("stopped by user")
	for _, where := range []string{"model", "question", "tool", "before"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		two := step{text: "Doing. ", calls: []provider.ToolCall{calling("1", "sh", `{"command":"a"}`), calling("2", "sh", `{"command":"b"}`)}}
		sh := &stubTool{name: "sh"}
		turn := Turn{Prompt: "go", Tools: []tool.Tool{sh}}
		switch where {
		case "before":
			cancel(stop)
		case "model":
			two.before = func(ctx context.Context, _ provider.Request) error {
				cancel(stop)
				<-ctx.Done()
				return context.Cause(ctx)
			}
		case "question":
			turn.Approver = approverFunc(func(ctx context.Context, _ Question) (Decision, error) {
				cancel(stop)
				<-ctx.Done()
				return Decision{}, context.Cause(ctx)
			})
		case "tool":
			sh.run = func(ctx context.Context, _ tool.Action, _ func([]byte)) (tool.Result, error) {
				cancel(stop)
				<-ctx.Done()
				return tool.Result{Content: "half", Status: wire.StatusCancelled}, nil
			}
		}
		turn.Model = newModel(two, step{text: "never"})
		rec := &recorder{}
		o := rec.play(ctx, turn)
		cancel(nil)
		if o.Status != wire.StatusCancelled || o.StopReason != wire.StatusCancelled || !errors.Is(o.Err, stop) {
			t.Errorf("%s: got %+v", where, o)
		}
		if f := o.Failure(); f.Code != wire.CodeCancelled {
			t.Errorf("%s: got code %s", where, f.Code)
		}
		res := rec.results()
		if where == "question" || where == "tool" {
			if len(res) != 2 || res[0].Status != wire.StatusCancelled || res[1].Status != wire.StatusCancelled {
				t.Errorf("%s: got results %+v, want both cancelled", where, res)
			}
			if len(sh.ran()) > 1 {
				t.Errorf("%s: got %v run", where, sh.ran())
			}
		}
		mustBeValid(t, History(rec.events).Messages())
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 0, fmt.Errorf("over: %w", context.DeadlineExceeded))
	defer cancel()
	<-ctx.Done()
	if o := (&recorder{}).play(ctx, Turn{Model: newModel(), Prompt: "go"}); o.Status != wire.StatusTimeout || o.Failure().Code != wire.CodeTimeout {
		t.Errorf("got %+v", o)
	}
}

func TestRunTool(t *testing.T) {
	sh := &stubTool{name: "sh"}
	rec := &recorder{}
	turn := complete(Turn{Tools: []tool.Tool{sh}, Emit: rec.emit})
	o := RunTool(t.Context(), turn, "sh", json.RawMessage(`{"command":"ls"}`))
	if o.Status != wire.StatusSuccess || o.Summary != "ran ls" || !slices.Equal(o.ToolsExecuted, []string{"sh"}) {
		t.Errorf("got %+v", o)
	}
	if len(rec.results()) != 1 || len(rec.chunks(wire.ChunkToolCall, "")) != 1 {
		t.Errorf("got events %+v", rec.events)
	}
	turn.Approver = approverFunc(func(context.Context, Question) (Decision, error) { return Decision{Reason: "rule r1"}, nil })
	o = RunTool(t.Context(), turn, "sh", json.RawMessage(`{"command":"ls"}`))
	if f := o.Failure(); o.Status != wire.StatusError || f.Code != wire.CodePermissionDenied || !strings.Contains(f.Message, "rule r1") {
		t.Errorf("got %+v, %+v", o, f)
	}
	if o := RunTool(t.Context(), turn, "none", nil); o.Failure().Code != wire.CodeToolFailed {
		t.Errorf("got %+v", o.Failure())
	}
}

// A secret that the pieces of an answer cut in two leaves masked: each piece is stored by itself. What was held back comes
// before a call's arguments and before the end, also where the stream breaks off.
func TestSecretCutByPieces(t *testing.T) {
	for name, last := range map[string]step{
		"end": {}, "call": {calls: []provider.ToolCall{calling("c1", "sh", `{"command":"ls"}`)}}, "broken": {err: errors.New("broke off")},
	} {
		t.Run(name, func(t *testing.T) {
			last.text = "Set DB_PASSWORD = hunter22!x and then login with a token"
			steps := []step{last}
			if name == "call" {
				steps = append(steps, step{text: "Done."})
			}
			rec := &recorder{}
			rec.play(t.Context(), Turn{Model: newModel(steps...), Prompt: "go", Tools: []tool.Tool{&stubTool{name: "sh"}}, Env: tool.Env{Cwd: "/w"}})
			text := ""
			for _, ev := range rec.events {
				c, ok := ev.(*wire.AgentStreamChunk)
				if !ok {
					continue
				}
				if c.Chunk.Type == wire.ChunkToolCallDelta {
					break
				}
				if c.Chunk.Type == wire.ChunkText {
					text += c.Chunk.Text
				}
			}
			if strings.Contains(text, "hunter22") || !strings.HasPrefix(text, "Set DB_PASSWORD = [masked:secret:") || !strings.HasSuffix(strings.TrimSuffix(text, "Done."), " and then login with a token") {
				t.Errorf("got %q", text)
			}
		})
	}
}
