package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sublet/compaction"
	"sublet/daemon/config"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/tool"
	"sublet/wire"
)

// numbered gives events the numbers a store would.
func numbered(events ...wire.EventMessage) []wire.EventMessage {
	for i, ev := range events {
		ev.Meta().Seq = int64(i + 1)
	}
	return events
}

func in(turn wire.TurnID) wire.Event { return wire.Event{TurnID: turn} }

func started(turn wire.TurnID, prompt string) *wire.TurnStarted {
	return &wire.TurnStarted{Event: in(turn), Agent: Orchestrator, Prompt: prompt, Model: "m"}
}

func said(turn wire.TurnID, agent, text string) *wire.AgentStreamChunk {
	return &wire.AgentStreamChunk{Event: in(turn), Agent: agent, Chunk: wire.Chunk{Type: wire.ChunkText, Text: text}}
}

func called(turn wire.TurnID, agent, id string) *wire.AgentStreamChunk {
	return &wire.AgentStreamChunk{Event: in(turn), Agent: agent, Chunk: wire.Chunk{Type: wire.ChunkToolCall, ExecutionID: wire.ExecutionID(id), Tool: "bash", Arguments: `{"command":"x"}`}}
}

func result(turn wire.TurnID, agent, id, output string) *wire.CommandResult {
	return &wire.CommandResult{Event: in(turn), Agent: agent, ExecutionID: wire.ExecutionID(id), Tool: "bash", Command: "x", Status: wire.StatusSuccess, Output: []byte(output)}
}

func ended(turn wire.TurnID, status string) *wire.AgentComplete {
	return &wire.AgentComplete{Event: in(turn), Agent: Orchestrator, Status: status}
}

func TestHistoryIsDerivedFromEvents(t *testing.T) {
	one := 1
	events := numbered(
		started("t1", "first"),
		&wire.AgentThinking{Event: in("t1"), Agent: Orchestrator, Phase: wire.PhaseAnalyzing},
		said("t1", Orchestrator, "Let me "), said("t1", Orchestrator, "look."),
		called("t1", Orchestrator, "a"), called("t1", Orchestrator, "b"),
		result("t1", Orchestrator, "b", "out b"), said("t1", "engineer-1", "sub talk"), called("t1", "engineer-1", "z"), result("t1", "engineer-1", "z", "sub out"),
		result("t1", Orchestrator, "a", "out a"), result("t1", Orchestrator, "a", "again"),
		said("t1", Orchestrator, "Done."), ended("t1", wire.StatusSuccess),
		&wire.CommandResult{Command: "make", ExitCode: &one, OutputTail: []byte("boom")},
		&wire.TurnStarted{Event: in("t2"), Agent: Orchestrator, Prompt: "read x"}, // a tool without a model
		called("t2", Orchestrator, "r"), result("t2", Orchestrator, "r", "content of x"), ended("t2", wire.StatusSuccess),
		started("t3", "second"), said("t3", Orchestrator, "half an ans"), &wire.Error{Event: in("t3"), Message: "the stream broke off"}, ended("t3", wire.StatusError),
		started("t4", "third"), called("t4", Orchestrator, "c"), called("t4", Orchestrator, "d"), result("t4", Orchestrator, "c", "out c"), ended("t4", wire.StatusCancelled),
		started("t5", "fourth"), called("t5", Orchestrator, "e"), // the daemon died here
		started("t6", "fifth"),
	)
	got := History(events).Messages()
	mustBeValid(t, got)
	want := `user: "first"
assistant: "Let me look." call(bash {"command":"x"}) call(bash {"command":"x"})
user: result(out a) result(out b)
assistant: "Done."
user: "second" "Since the last prompt, in their shell:\nThe user ran ` + "`make`" + ` (exit code 1):\nboom\nThe user ran the tool bash: content of x"
assistant: "half an ans" "[this turn failed: the stream broke off]"
user: "third"
assistant: call(bash {"command":"x"}) call(bash {"command":"x"})
user: result(out c) result(interrupted: no result was recorded)
assistant: "[this turn ended early: cancelled]"
user: "fourth"
assistant: call(bash {"command":"x"})
user: result(interrupted: no result was recorded)
assistant: "[this turn ended early: interrupted]"
user: "fifth"
assistant: "[this turn ended early: interrupted]"
`
	if s := show(got); s != want {
		t.Errorf("got\n%s\nwant\n%s", s, want)
	}
}

// The plan of a session is that of the newest call that set it and succeeded, also after a compaction.
func TestPlanOfASession(t *testing.T) {
	plan := func(id, args string) *wire.AgentStreamChunk {
		return &wire.AgentStreamChunk{Event: in("t1"), Agent: Orchestrator, Chunk: wire.Chunk{Type: wire.ChunkToolCall, ExecutionID: wire.ExecutionID(id), Tool: "todo", Arguments: args}}
	}
	listed := func(id, output string) *wire.CommandResult {
		m := result("t1", Orchestrator, id, output)
		m.Tool = "todo"
		return m
	}
	failed := listed("b", "status: got x")
	failed.Status = wire.StatusError
	events := numbered(
		started("t1", "go"), plan("a", `{"todos":[{"text":"one","status":"in_progress"}]}`), listed("a", "[>] one"),
		plan("b", `{"todos":[{"text":"two","status":"x"}]}`), failed, plan("c", `{}`), listed("c", "[>] one"),
		said("t1", Orchestrator, "ok"), ended("t1", wire.StatusSuccess),
		&wire.CompactionComplete{Status: wire.StatusSuccess, FirstSeq: 1, LastSeq: 9, Summary: "s"},
	)
	if got := History(events).plan; !slices.Equal(got, []tool.TodoItem{{Text: "one", Status: "in_progress"}}) {
		t.Errorf("got %+v", got)
	}
	if got := History(events[:1]).plan; got != nil {
		t.Errorf("without a call: got %+v", got)
	}
}

// anyEvents are events in any order that a crash can leave.
func anyEvents(t *rapid.T) []wire.EventMessage {
	var events []wire.EventMessage
	turn, id := wire.TurnID("t0"), 0
	for range rapid.IntRange(0, 40).Draw(t, "n") {
		name := rapid.SampledFrom([]string{Orchestrator, Orchestrator, "engineer-1"}).Draw(t, "agent")
		switch rapid.IntRange(0, 8).Draw(t, "kind") {
		case 7:
			events = append(events, &wire.TurnSteered{Event: in(turn), Prompt: rapid.StringN(0, 5, -1).Draw(t, "word")})
		case 8:
			events = append(events, &wire.AgentStreamChunk{Event: in(turn), Agent: name, Chunk: wire.Chunk{Type: wire.ChunkContext, Text: "told"}})
		case 0:
			turn = wire.TurnID(fmt.Sprint("t", len(events)))
			events = append(events, started(turn, rapid.StringN(0, 5, -1).Draw(t, "prompt")))
		case 1:
			events = append(events, said(turn, name, rapid.StringN(0, 5, -1).Draw(t, "text")))
		case 2:
			id++
			events = append(events, called(turn, name, fmt.Sprint("c", id)))
		case 3, 4:
			events = append(events, result(turn, name, fmt.Sprint("c", rapid.IntRange(1, id+1).Draw(t, "of")), "out"))
		case 5:
			events = append(events, ended(turn, rapid.SampledFrom([]string{wire.StatusSuccess, wire.StatusError}).Draw(t, "status")))
		case 6:
			if rapid.Bool().Draw(t, "the user's own") {
				events = append(events, &wire.CommandResult{Command: wire.OSString(fmt.Sprint("cmd", len(events)))})
				continue
			}
			first := rapid.Int64Range(1, 40).Draw(t, "first")
			events = append(events, &wire.CompactionComplete{
				Status:   rapid.SampledFrom([]string{wire.StatusSuccess, CompactionUndone}).Draw(t, "compaction"),
				FirstSeq: first, LastSeq: first + rapid.Int64Range(0, 20).Draw(t, "span"), Summary: "s",
			})
		}
	}
	return numbered(events...)
}

// A history derived from any prefix and any order a crash can leave is one that providers accept.
func TestHistoryIsAlwaysValid(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		entries := History(anyEvents(rt)).entries
		msgs := render(entries)
		err := validate(msgs)
		if err == nil {
			err = acceptable(t.Context(), provider.Request{Messages: render(append(entries, promptEntry("go on", nil, 0)))})
		}
		if err != nil {
			rt.Fatalf("%v in\n%s", err, show(msgs))
		}
	})
}

// long is a session of several turns with much output.
func long(t *testing.T, rec *recorder, turns int) {
	t.Helper()
	for i := range turns {
		sh := &stubTool{name: "bash"}
		model := newModel(call1("bash", fmt.Sprintf(`{"command":"go test ./p%d"}`, i)), step{text: fmt.Sprintf("Part %d is done. %s", i, strings.Repeat("prose ", 200))})
		o := rec.play(t.Context(), Turn{Model: model, Prompt: fmt.Sprintf("Do part %d. Never touch file%d.go.", i, i), Tools: []tool.Tool{sh}})
		if o.Err != nil {
			t.Fatal(o.Err)
		}
	}
}

func TestCompactAndUndo(t *testing.T) {
	rec := &recorder{}
	long(t, rec, 8)
	before := show(History(rec.events).Messages())
	asked := newModel(step{text: "Parts 0 to 5 went well.\n## Open tasks\n- part 9"})
	var begun *wire.CompactionStarted
	preview, err := compact(t, Compaction{
		Conversation: History(rec.events), Model: asked, Instructions: "keep the names", Preview: true,
		Started: func(m *wire.CompactionStarted) { begun = m },
	})
	if err != nil || preview.Status != CompactionPreview || begun == nil || begun.Events == 0 {
		t.Fatalf("got %+v, %v, started %+v", preview, err, begun)
	}
	if s := show(asked.requests()[0].Messages); !strings.Contains(s, "Summarise") {
		t.Errorf("got %s", s)
	}
	// It shows what the model would get; without a summary, for want of a model, the lists that are kept, and why.
	if s := preview.Summary; !strings.Contains(s, "Parts 0 to 5 went well.\n\n") || !strings.Contains(s, "\n- go test ./p1") {
		t.Errorf("the preview is %q", s)
	}
	said := ""
	lists, err := compact(t, Compaction{Conversation: History(rec.events), Model: newModel(), Preview: true, Waiting: func(text string) { said += text }})
	if s := lists.Summary; err != nil || !strings.Contains(s, "\n- go test ./p1") || !strings.Contains(said, "no summary could be written: stub: no step left") {
		t.Errorf("without a model the preview is %q, %v, said %q", s, err, said)
	}
	rec.emit(preview)
	if got := show(History(rec.events).Messages()); got != before {
		t.Errorf("got the conversation changed by a preview")
	}
	done, err := compact(t, Compaction{Conversation: History(rec.events), Model: newModel(step{text: "It went well.\n## Open tasks\n- part 9"})})
	if err != nil || done.Status != wire.StatusSuccess || done.TokensAfter >= done.TokensBefore || done.FirstSeq < 2 {
		t.Fatalf("got %+v, %v", done, err)
	}
	rec.emit(done)
	msgs := History(rec.events).Messages()
	mustBeValid(t, msgs)
	text := show(msgs) + fmt.Sprint(msgs[0].Parts)
	for _, want := range []string{"Do part 0", "It went well.", "Never touch file3.go.", "- part 9", "go test ./p3 # ran", "Part 7 is done"} {
		if !strings.Contains(text, want) {
			t.Errorf("got\n%s\nwant %q in it", text, want)
		}
	}
	// The conversation goes on, is folded once more, and each fold can be taken back.
	long(t, rec, 6)
	again, err := compact(t, Compaction{Conversation: History(rec.events), Model: newModel(step{text: "Still well."})})
	if err != nil || again.Status != wire.StatusSuccess || again.FirstSeq > done.FirstSeq || again.LastSeq < done.LastSeq {
		t.Fatalf("got %+v, %v", again, err)
	}
	if !slices.Contains(again.Ledger.Limits, "Never touch file3.go.") { // through two compactions
		t.Errorf("got limits %q", again.Ledger.Limits)
	}
	rec.emit(again)
	mustBeValid(t, History(rec.events).Messages())
	for _, want := range []int64{again.FirstSeq, done.FirstSeq} {
		undo := UndoCompaction(rec.events)
		if undo.Status != CompactionUndone || undo.FirstSeq != want {
			t.Errorf("got %+v, want the one from %d undone", undo, want)
		}
		rec.emit(undo)
	}
	if got := show(History(rec.events).Messages()); !strings.HasPrefix(got, before) {
		t.Errorf("got\n%s\nwant it to begin as before:\n%s", got, before)
	}
	if undo := UndoCompaction(rec.events); undo.Status != CompactionNothing {
		t.Errorf("got %+v, want nothing to undo", undo)
	}
}

// What the user said when asked is a decision that a fold keeps, in the turn and after a restart alike.
func TestDecisionsSurviveAFold(t *testing.T) {
	rec := &recorder{}
	sh := &stubTool{name: "bash"}
	rec.play(t.Context(), Turn{Model: newModel(step{text: "hi"}), Prompt: "hello"})
	rec.play(t.Context(), Turn{
		Model: newModel(call1("bash", `{"command":"rm x"}`), step{text: "fine"}), Prompt: "clean", Tools: []tool.Tool{sh},
		Approver: approverFunc(func(_ context.Context, q Question) (Decision, error) {
			rec.emit(&wire.ConfirmationRequest{ConfirmationID: "q1", ExecutionID: q.ExecutionID})
			rec.emit(&wire.ConfirmationResolved{ConfirmationID: "q1", Decision: wire.DecisionDeny, Comment: "use git clean"})
			return Decision{Comment: "use git clean"}, nil
		}),
	})
	long(t, rec, 8)
	got, err := compact(t, Compaction{Conversation: History(rec.events), Model: newModel(step{text: "ok"})})
	if want := []string{"the user on `rm x`: use git clean"}; err != nil || !slices.Equal(got.Ledger.Decisions, want) {
		t.Errorf("got %q, %v; want %q", got.Ledger.Decisions, err, want)
	}
}

// A ledger has what was answered and changed in the shell, and which commands became jobs.
func TestLedgerHasTheState(t *testing.T) {
	zero := 0
	ran := func(id, name, command, output string, exit *int) []wire.EventMessage {
		c, r := called("t1", Orchestrator, id), result("t1", Orchestrator, id, output)
		c.Chunk.Tool, r.Tool, r.Command, r.ExitCode = name, name, wire.OSString(command), exit
		if name == "edit" {
			c.Chunk.Arguments = `{"path":"a.go"}`
		}
		return []wire.EventMessage{c, r}
	}
	asked := func(id, by, decision string, events []wire.EventMessage) []wire.EventMessage {
		q := wire.ConfirmationID("q" + id)
		return []wire.EventMessage{
			events[0], &wire.ConfirmationRequest{Event: in("t1"), ConfirmationID: q, ExecutionID: wire.ExecutionID(id)},
			&wire.ConfirmationResolved{Event: in("t1"), ConfirmationID: q, By: by, Decision: decision}, events[1],
		}
	}
	events := numbered(slices.Concat(
		[]wire.EventMessage{started("t1", "go")},
		asked("a", "client ann 1", wire.DecisionAllow, ran("a", "bash", "export PORT=8081 && make", "ok\n[changed in the shell: set FAKE]\n[changed in the shell: set PORT]", &zero)),
		asked("b", "client ann 1", wire.DecisionDeny, ran("b", "bash", "rm -r out", "Denied", nil)),
		asked("c", "client ann 1", wire.DecisionAllowAlways, ran("c", "edit", "", "done", nil)),
		asked("d", "rule 3", wire.DecisionAllow, ran("d", "bash", ". ./env.sh", "[no output]\n[changed in the shell: set DATABASE, PATH, set alias ll, look at PATH: it decides what later commands run]", &zero)),
		ran("e", "bash", "node a.js", "[job j1 was started in a private bash, process 7. It goes on by itself; its output goes to /x]", nil),
		ran("h", "bash", "node c.js", "up\n[it goes on as the job j3: wait for it]", nil),
		ran("k", "read", "", "[changed in the shell: set FAKE]", nil),
		ran("g", "bash", "(export LOST=1)", "[no output]", &zero),
		[]wire.EventMessage{
			ended("t1", wire.StatusSuccess),
			started("t2", WakeHead+"job j2 (node b.js) ended with exit code 3. Look at it with the jobs tool and go on with what waited for it."),
			said("t2", Orchestrator, "ok"), ended("t2", wire.StatusSuccess),
		},
	)...)
	items := toItems(History(events).entries)
	first := compaction.Build("", items[:len(items)-2])
	got := compaction.Build("", append([]compaction.Item{{Kind: compaction.Summary, Ledger: &compaction.Ledger{Ledger: first.Ledger}}}, items[len(items)-2:]...)).Text()
	for _, want := range []string{
		"\nThe user allowed: `export PORT=8081 && make`; `edit a.go`\nThe user refused: `rm -r out`\n",
		"\nChanged in the shell: set PORT; set DATABASE, PATH, set alias ll\n",
		"\n- . ./env.sh\n",
		"\n- node a.js # … [job j1 was started in a private bash",
		"\n- node c.js # up [it goes on as the job j3: wait for it]",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant in it\n%s", got, want)
		}
	}
}

func TestCompactNothing(t *testing.T) {
	for _, turns := range []int{0, 1} {
		rec := &recorder{}
		long(t, rec, turns)
		got, err := compact(t, Compaction{Conversation: History(rec.events), Model: newModel(step{text: "x"})})
		if err != nil || got.Status != CompactionNothing && turns == 0 {
			t.Errorf("%d turns: got %+v, %v", turns, got, err)
		}
	}
}

// a model that fails does not keep a session from being compacted.
func TestCompactWithoutAModelThatWorks(t *testing.T) {
	rec := &recorder{}
	long(t, rec, 8)
	offline := newModel()
	offline.info.Kind = config.KindOffline
	for name, m := range map[string]*stubModel{
		"broken": newModel(step{err: &provider.Error{Kind: provider.ErrBroken, Provider: "x", Message: "broken"}}), "offline": offline,
	} {
		got, err := compact(t, Compaction{Conversation: History(rec.events), Model: m})
		if err != nil || got.Status != wire.StatusSuccess || len(got.Ledger.Answers) < 4 || !strings.HasPrefix(got.Ledger.Answers[3], "Part 3 is done.") {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
	if n := len(offline.requests()); n != 0 {
		t.Errorf("got the offline model asked %d times, want never", n)
	}
}

func TestAutomaticCompaction(t *testing.T) {
	rec := &recorder{}
	long(t, rec, 10)
	size := 0
	for _, m := range History(rec.events).Messages() {
		size += len(messageText(m)) / 4
	}
	sh := &stubTool{name: "bash"}
	model := newModel(step{text: "Summary of the parts."}, call1("bash", `{"command":"ls"}`), step{text: "ok"})
	model.info.ContextWindow = size
	o := rec.play(t.Context(), Turn{Model: model, Prompt: "Go on with part 11.", Tools: []tool.Tool{sh}})
	if o.Err != nil {
		t.Fatal(o.Err)
	}
	var done *wire.CompactionComplete
	starts := 0
	for _, ev := range rec.events {
		switch m := ev.(type) {
		case *wire.CompactionStarted:
			starts++
		case *wire.CompactionComplete:
			done = m
		}
	}
	if starts != 1 || done == nil || done.Status != wire.StatusSuccess || done.TokensAfter >= done.TokensBefore {
		t.Fatalf("got %d starts, %+v", starts, done)
	}
	first := model.requests()[1]
	mustBeValid(t, first.Messages)
	// What the running turn goes on with is what a later turn derives from the events.
	derived := History(rec.events).Messages()
	if got, want := show(derived[:len(first.Messages)]), show(first.Messages); got != want {
		t.Errorf("got derived\n%s\nwant as in the turn\n%s", got, want)
	}
}

// a turn folded in its own middle still has its request, and a provider's "too long" is mended once more (J4: no
// error reaches the user).
func TestTooLongIsMendedWithinTheTurn(t *testing.T) {
	long := &provider.Error{Kind: provider.ErrContextTooLong, Provider: "x", Message: "too long"}
	var steps []step
	for i := range 12 {
		steps = append(steps, call1("bash", fmt.Sprintf(`{"command":"step %d %s"}`, i, strings.Repeat("x", 3000))))
	}
	steps = append(steps, step{err: long}, step{text: "Twelve steps are done."}, step{text: "finished"})
	sh := &stubTool{name: "bash"}
	rec := &recorder{}
	rec.play(t.Context(), Turn{Model: newModel(step{text: "hi"}), Prompt: "hello"})
	model := newModel()
	model.steps["hello"] = steps
	model.steps[""] = []step{{text: "Twelve steps are done."}}
	o := rec.play(t.Context(), Turn{Model: model, Prompt: "Rename foo. Do not commit.", Tools: []tool.Tool{sh}})
	if o.Err != nil || len(sh.ran()) != 12 {
		t.Fatalf("got %v after %d runs", o.Err, len(sh.ran()))
	}
	reqs := model.requests()
	last := reqs[len(reqs)-1]
	mustBeValid(t, last.Messages)
	if prompt, after := provider.LastPrompt(last.Messages); prompt != "Rename foo. Do not commit." || len(after) == 0 {
		t.Errorf("got newest prompt %q in\n%s", prompt, show(last.Messages))
	}
	mustBeValid(t, History(rec.events).Messages())
	if got, want := show(History(rec.events).Messages()[:len(last.Messages)]), show(last.Messages); got != want {
		t.Errorf("got derived\n%s\nwant as in the turn\n%s", got, want)
	}

	// One that stays too long ends, with the code that says so.
	model = newModel(step{err: long}, step{err: long}, step{err: long}, step{err: long}, step{err: long})
	o = (&recorder{}).play(t.Context(), Turn{Model: model, Prompt: strings.Repeat("x", 1000)})
	if f := o.Failure(); f == nil || f.Code != wire.CodeTokenLimit || f.Hint == "" {
		t.Errorf("got %+v", f)
	}
}
