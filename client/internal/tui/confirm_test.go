package tui

import (
	"cmp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"sublet/client/internal/tui/question"
	"sublet/wire"
)

// What was typed before or right after the question came is no answer, and is not lost.
func TestTypeAheadIsNoAnswer(t *testing.T) {
	d := newDesk(t)
	d.wait(time.Hour)
	d.key("l", "s", " ")
	d.wait(100 * time.Millisecond)
	d.askTwo()
	d.key("y", "enter", "y", "esc", "tab", "a")
	if got := d.d.answers(); len(got) != 0 {
		t.Fatalf("type-ahead answered: %+v", got)
	}
	if d.ed.Text != "ls y\nya" { // Enter asks nothing, but the lines stay two
		t.Errorf("line: got %q, want what was typed", d.ed.Text)
	}
	if q := d.question(); q == nil || q.Back() {
		t.Errorf("type-ahead moved in the question: %+v", q)
	}
	d.wait(question.ArmDelay - time.Millisecond)
	d.key("y")
	if got := d.d.answers(); len(got) != 0 {
		t.Fatalf("answered %v after the last key", question.ArmDelay-time.Millisecond)
	}
	d.wait(question.ArmDelay)
	d.key("y")
	if got := d.d.answers(); len(got) != 1 || got[0].Decision != wire.DecisionAllow || got[0].ConfirmationID != "c1" {
		t.Fatalf("an armed yes: got %+v, want c1 allowed", got)
	}
	// One at a time: the second is armed anew, the key that answered the first is no answer to it.
	d.resolve("c1", wire.DecisionAllow)
	d.key("y")
	if got := d.d.answers(); len(got) != 1 {
		t.Fatalf("the second question was answered by type-ahead: %+v", got)
	}
	if q := d.question(); q == nil || q.ConfirmationID != "c2" {
		t.Fatalf("the second question is not asked: %+v", q)
	}
}

// While somebody types below a question that takes no key yet, one timer is set for it, not one for each key.
func TestOneTimerArmsAQuestion(t *testing.T) {
	d := newDesk(t)
	d.wait(time.Hour)
	d.send(testQuestion())
	set := len(d.due)
	for range 5 {
		d.key("x")
		d.wait(100 * time.Millisecond)
		if len(d.due) > set {
			t.Fatalf("got %d timers, want at most %d", len(d.due), set)
		}
	}
	d.wait(2 * question.ArmDelay)
	if len(d.due) >= set {
		t.Errorf("got %d timers for a question that takes keys, want less than %d", len(d.due), set)
	}
}

// A sentence that somebody begins to type at a question is no answer either, whatever letters it has: its first key made each
// further one an answer, and "what is that?" allowed for good.
func TestSentenceIsNoAnswer(t *testing.T) {
	for text, want := range map[string]string{
		"why is it needed?": "why is it needed?", "what is that?": "what is that?", "maybe, say": "maybe, say",
		"are you sure, aye": "re you sure, aye", "always": "lways", "all day": "ll day",
	} {
		d := newDesk(t)
		d.askTwo()
		d.wait(3 * time.Second)
		for _, r := range text {
			d.key(string(r))
			d.wait(120 * time.Millisecond)
		}
		d.key("enter")
		if got := d.d.answers(); len(got) != 0 {
			t.Errorf("%q answered: %+v", text, got)
		}
		if d.ed.Text != want+"\n" {
			t.Errorf("%q: the line holds %q, want %q", text, d.ed.Text, want)
		}
		d.wait(time.Second)
		d.key("enter")
		if got := d.d.answers(); len(got) != 1 || got[0].Decision != wire.DecisionDeny {
			t.Errorf("%q, a pause and Enter: got %+v, want deny", text, got)
		}
	}
	d := newDesk(t)
	d.ed.Set("before")
	d.askTwo()
	d.wait(3 * time.Second)
	d.key("a", "enter")
	if got := d.d.answers(); len(got) != 0 {
		t.Errorf("a and Enter at once allowed for good: %+v", got)
	}
	if d.ed.Text != "before" {
		t.Errorf("Enter at the list came into the line: %q", d.ed.Text)
	}
	d.wait(question.ArmDelay)
	d.key("enter")
	if got := d.d.answers(); len(got) != 1 || got[0].Decision != wire.DecisionAllowAlways {
		t.Errorf("Enter on what could be read: got %+v, want it allowed for good", got)
	}
}

// A typed yes is one answer and leaves nothing in the line; what is typed right after it is the next question, and
// not a letter of it is lost (it was swallowed for as long as the typing went on).
func TestTypedRightAfterAnAnswer(t *testing.T) {
	for _, tc := range []struct {
		keys []string
		want string
	}{
		{[]string{"y", "e", "s", "enter", "l", "s"}, "ls"},
		{[]string{"y", "l", "s"}, "ls"},
		{[]string{"n", "o", "enter", "a"}, "a"},
		{[]string{"n", "e", "x", "t"}, "ext"},
	} {
		d := newDesk(t)
		d.wait(time.Hour)
		q := testQuestion()
		d.send(q)
		d.wait(question.ArmDelay)
		d.key(tc.keys[0])
		d.resolve(q.ConfirmationID, wire.DecisionAllow)
		d.key(tc.keys[1:]...)
		if d.ed.Text != tc.want {
			t.Errorf("%q: the line holds %q, want %q", tc.keys, d.ed.Text, tc.want)
		}
	}
}

// The preselected answer is no; Enter and Esc are no (Q6).
func TestDefaultIsNo(t *testing.T) {
	for _, k := range []string{"enter", "esc", "n"} {
		d := newDesk(t)
		d.askTwo()
		d.wait(time.Second)
		d.key(k)
		if got := d.d.answers(); len(got) != 1 || got[0].Decision != wire.DecisionDeny {
			t.Errorf("%s: got %+v, want deny", k, got)
		}
	}
}

func TestAnswers(t *testing.T) {
	for _, tc := range []struct {
		keys  []string
		want  string
		check func(*wire.ConfirmationResponse) bool
	}{
		{[]string{"right", "enter"}, wire.DecisionAllow, nil},
		{[]string{"a", "down", "enter"}, wire.DecisionAllowAlways, func(r *wire.ConfirmationResponse) bool {
			return r.Grant != nil && *r.Grant == testQuestion().Grants[1]
		}},
		{[]string{"a", "esc", "enter"}, wire.DecisionDeny, nil}, // back, and the choice is no again
		{[]string{"c", "n", "o", "t", "enter"}, wire.DecisionDeny, func(r *wire.ConfirmationResponse) bool { return r.Comment == "not" }},
		{[]string{"e", "ctrl+u", "l", "s", "enter"}, wire.DecisionAllow, func(r *wire.ConfirmationResponse) bool {
			return r.EditedCommand != nil && *r.EditedCommand == "ls"
		}},
		{[]string{"e", "esc", "n"}, wire.DecisionDeny, nil},
		{[]string{"c", "ctrl+c", "n"}, wire.DecisionDeny, func(r *wire.ConfirmationResponse) bool { return r.Comment == "" }},
	} {
		d := newDesk(t)
		d.askTwo()
		d.wait(time.Second)
		d.key(tc.keys...)
		got := d.d.answers()
		if len(got) != 1 || got[0].Decision != tc.want || (tc.check != nil && !tc.check(got[0])) {
			t.Errorf("%v: got %+v, want %s", tc.keys, got, tc.want)
		}
	}
}

// ^C at a question is no answer to it: it ends the turn.
func TestInterruptAtAQuestion(t *testing.T) {
	d := newDesk(t)
	d.send(&wire.TurnStarted{Event: wire.Event{SessionID: "s1", TurnID: "t1"}, Prompt: "x"})
	d.askTwo()
	d.key("ctrl+c")
	if len(d.d.answers()) != 0 || len(d.d.cancelled) != 1 || *d.d.cancelled[0].TurnID != "t1" {
		t.Errorf("got answers %v, cancelled %v; want the turn cancelled", d.d.answers(), d.d.cancelled)
	}
}

// ^C at a question of another session is no: there is no turn of this window's to end, and the key did nothing.
func TestInterruptAtAQuestionOfAnother(t *testing.T) {
	d := newDesk(t)
	d.send(&wire.TurnStarted{Event: wire.Event{SessionID: "s1", TurnID: "t1"}, Prompt: "x"})
	q := testQuestion()
	q.SessionID, q.Borrower.Name = "s9", "codex"
	d.send(q)
	d.key("ctrl+c")
	d.key("ctrl+c") // the answer is on its way
	if got := d.d.answers(); len(got) != 1 || got[0].Decision != wire.DecisionDeny || len(d.d.cancelled) != 0 {
		t.Errorf("got answers %v, cancelled %v; want one no", got, d.d.cancelled)
	}
}

// A question that somebody else answered goes away. An answer that does not get through is reported.
func TestQuestionElsewhere(t *testing.T) {
	d := newDesk(t)
	d.askTwo()
	d.resolve("c1", wire.DecisionDeny)
	if q := d.question(); q == nil || q.ConfirmationID != "c2" {
		t.Fatalf("got %+v, want the second question", q)
	}
	d.compose()
	d.wait(time.Second)
	d.d.down = true
	d.key("y")
	if text := d.printed(); d.question() == nil || !strings.Contains(text, "the answer did not reach the daemon") {
		t.Errorf("an answer that did not get through: printed %q", text)
	}
}

// A question that starts a new daemon, and with it a new session, is printed once.
func TestQuestionSurvivesANewSession(t *testing.T) {
	d := newDesk(t)
	d.ask("why?", true)
	d.send(&wire.Ready{Session: wire.SessionInfo{ID: "s2"}})
	e := wire.Event{SessionID: "s2", TurnID: "t", RequestID: d.waiting[0].RequestID, Seq: 1}
	d.send(&wire.TurnStarted{Event: e, Prompt: "why?"})
	if n := strings.Count(d.printed(), "why?"); n != 1 {
		t.Errorf("printed %d times, want once", n)
	}
}

// What waits behind a question has not begun, and must not look as if it ran: an agent's calls of bash run one by one.
func TestWhatWaitsDoesNotRun(t *testing.T) {
	d := newDesk(t)
	call := func(seq int64, id wire.ExecutionID, agent, command string) {
		d.send(&wire.AgentStreamChunk{
			Event: wire.Event{SessionID: "s1", TurnID: "t1", Seq: seq, AtMS: d.clock.UnixMilli()}, Agent: agent,
			Chunk: wire.Chunk{Type: wire.ChunkToolCall, ExecutionID: id, Tool: "bash", Arguments: `{"command":"` + command + `"}`},
		})
	}
	d.send(&wire.TurnStarted{Event: wire.Event{SessionID: "s1", TurnID: "t1", Seq: 1}, Agent: "orchestrator", Prompt: "go"})
	call(2, "x1", "orchestrator", "rm one")
	call(3, "x2", "orchestrator", "rm two")
	call(4, "x3", "engineer-1", "make")
	shown := func() string { return ansi.Strip(strings.Join(d.picture().Lines, "\n")) }
	if got := shown(); !strings.Contains(got, "bash  rm one · 0s") || !strings.Contains(got, "○ bash  rm two · waits") || !strings.Contains(got, "make · 0s") {
		t.Errorf("got\n%s", got)
	}
	d.send(&wire.ConfirmationRequest{Event: wire.Event{SessionID: "s1", TurnID: "t1", Seq: 5}, ConfirmationID: "c1", ExecutionID: "x1", Agent: "orchestrator", Tool: "bash", Command: "rm one"})
	if got := shown(); !strings.Contains(got, "○ bash  rm two · waits") || !strings.Contains(got, "make · 0s") {
		t.Errorf("behind the question:\n%s", got)
	}
	d.wait(40 * time.Second)
	d.send(&wire.ConfirmationResolved{Event: wire.Event{SessionID: "s1", TurnID: "t1", Seq: 6, AtMS: d.clock.UnixMilli()}, ConfirmationID: "c1", Decision: wire.DecisionAllow})
	if got := shown(); !strings.Contains(got, "bash  rm one · 0s") { // another window's shell runs it: only the daemon's events are seen here
		t.Errorf("allowed after 40 s:\n%s", got)
	}
	d.send(&wire.CommandResult{Event: wire.Event{SessionID: "s1", TurnID: "t1", Seq: 7}, Agent: "orchestrator", ExecutionID: "x1", Tool: "bash", Command: "rm one", Status: wire.StatusSuccess, ExitCode: ptr(0)})
	if got := shown(); !strings.Contains(got, "bash  rm two · ") || strings.Contains(got, "waits") {
		t.Errorf("its turn:\n%s", got)
	}
}

// A question about the command of an agent of another program comes from a session of its own. It is asked here all the same,
// with whose it is, and stays when the window goes to another session; of a session that was left nothing is.
func TestQuestionOfAForeignAgent(t *testing.T) {
	d := newDesk(t)
	q := func(id wire.ConfirmationID, session wire.SessionID, from wire.Borrower) *wire.ConfirmationRequest {
		return &wire.ConfirmationRequest{
			Event: wire.Event{SessionID: session, Seq: 700}, ConfirmationID: id, Agent: cmp.Or(from.Name, "orchestrator"), Tool: "bash",
			Command: "rm -rf build", Verdict: wire.Verdict{Level: "high"}, Borrower: from,
		}
	}
	d.send(q("left", "s0", wire.Borrower{}))
	d.send(q("codex", "s9", wire.Borrower{Name: "codex", Executable: "/opt/\x1b[31mcodex", PID: 4242}))
	if len(d.questions) != 1 {
		t.Fatalf("%d questions", len(d.questions))
	}
	d.forget()
	text := d.asked()
	if !strings.Contains(text, "codex wants to run this") || !strings.Contains(text, "asked by /opt/") || !strings.Contains(text, "pid 4242") {
		t.Errorf("shown:\n%s", text)
	}
	d.send(&wire.ConfirmationResolved{Event: wire.Event{SessionID: "s9"}, ConfirmationID: "codex", Decision: wire.DecisionDeny, By: "expiry"})
	if len(d.questions) != 0 {
		t.Error("it is still asked")
	}
}

// What an agent of another program asks is answered by the key of a choice, or in words.
func TestQuestionWithChoices(t *testing.T) {
	d := newDesk(t)
	for i, c := range []struct {
		keys []string
		want wire.ConfirmationResponse
	}{
		{[]string{"2"}, wire.ConfirmationResponse{Decision: wire.DecisionAllow, Comment: "right"}},
		{[]string{"c", "u", "p", "enter"}, wire.ConfirmationResponse{Decision: wire.DecisionAllow, Comment: "up"}},
		{[]string{"n"}, wire.ConfirmationResponse{Decision: wire.DecisionDeny}},
	} {
		id := wire.ConfirmationID(strconv.Itoa(i))
		d.send(&wire.ConfirmationRequest{
			Event: wire.Event{SessionID: "s9"}, ConfirmationID: id, Agent: "codex", Tool: wire.ToolAskUser,
			Arguments: `{"question":"Which one?","choices":["left","right"]}`, Verdict: wire.Verdict{Level: "low"}, Borrower: wire.Borrower{Name: "codex"},
		})
		if text := d.asked(); !strings.Contains(text, "Which one?") || !strings.Contains(text, "[2] right") || strings.Contains(text, "risk") {
			t.Errorf("shown:\n%s", text)
		}
		d.wait(time.Hour)
		d.key(c.keys...)
		got := d.d.answers()[len(d.d.answers())-1]
		if got.Decision != c.want.Decision || got.Comment != c.want.Comment {
			t.Errorf("%v: got %+v, want %+v", c.keys, got, c.want)
		}
		d.send(&wire.ConfirmationResolved{Event: wire.Event{SessionID: "s9"}, ConfirmationID: id, Decision: c.want.Decision})
	}
}

// A plan is shown with its steps and edited as a text; once it is accepted the line below shows the mode that holds then.
func TestPlanQuestion(t *testing.T) {
	for _, c := range []struct {
		keys   []string
		want   string // decision
		edited string
	}{
		{[]string{"y"}, "allow", ""},
		{[]string{"enter"}, "deny", ""},
		{[]string{"e", "enter"}, "allow", ""},
		{[]string{"e", "!", "enter"}, "allow", "1. look\n2. mend!"},
	} {
		d := newDesk(t)
		d.policy = "plan"
		d.send(&wire.ConfirmationRequest{
			Event: wire.Event{SessionID: "s1"}, ConfirmationID: "p", Agent: "orchestrator", Tool: wire.ToolPlan, Arguments: `{"items":["look","mend"]}`,
			Verdict: wire.Verdict{Level: "low"}, Preview: wire.Preview{Type: "text", Content: "1. look\n2. mend"},
		})
		if text := d.asked(); strings.Count(text, "2. mend") != 1 || strings.Contains(text, "items") || strings.Contains(text, "risk") {
			t.Errorf("shown:\n%s", text)
		}
		d.wait(time.Hour)
		d.key(c.keys...)
		if len(d.d.confirmed) != 1 {
			t.Fatalf("%v: %d answers", c.keys, len(d.d.confirmed))
		}
		got, edited := d.d.confirmed[0], ""
		if got.EditedCommand != nil {
			edited = string(*got.EditedCommand)
		}
		if got.Decision != c.want || edited != c.edited {
			t.Errorf("%v: got %s %q", c.keys, got.Decision, edited)
		}
		d.resolve("p", c.want)
		if mode := map[string]string{"allow": "ask", "deny": "plan"}[c.want]; d.policy != mode {
			t.Errorf("%v: the mode shown is %s", c.keys, d.policy)
		}
	}
}

// A question of an agent that this session has in the background is asked here; one of a session that was left is not.
func TestQuestionOfAnAgentInTheBackground(t *testing.T) {
	for parent, want := range map[wire.SessionID]int{"s1": 1, "s0": 0, "": 0} {
		d := newDesk(t)
		d.send(&wire.ConfirmationRequest{Event: wire.Event{SessionID: "s9"}, ConfirmationID: "q", Agent: "engineer-1", Tool: "write", Parent: parent})
		if got := len(d.questions); got != want {
			t.Errorf("parent %q: %d questions, want %d", parent, got, want)
		}
	}
}
