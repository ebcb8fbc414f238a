package tui

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"sublet/client/internal/lender"
	"sublet/client/internal/tui/keys"
	"sublet/client/internal/tui/markdown"
	"sublet/client/internal/tui/paint"
	"sublet/client/internal/tui/question"
	"sublet/client/internal/tui/screentest"
	"sublet/wire"
)

// desk is a model in AI mode without a terminal, with a clock of its own.
type desk struct {
	*model
	clock time.Time
	d     *fakeDaemon
	sh    *fakeShell
	out   *screentest.Screen
	read  int // of what was written to it
	due   []timer
	tasks []func(context.Context) then
}

type timer struct {
	at time.Time
	f  then
}

func testQuestion() *wire.ConfirmationRequest {
	return &wire.ConfirmationRequest{
		ConfirmationID: "c1", Agent: "orchestrator", Tool: "bash", Command: "rm -rf ./dist", Verdict: wire.Verdict{Level: "critical"},
		Grants: []wire.Grant{{Scope: "session", Rule: "rm *"}, {Scope: "always", Rule: "rm -rf ./dist", Covers: "this command"}},
	}
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	s := screentest.New(80, 24)
	d := &desk{clock: time.Unix(1_000_000, 0), d: &fakeDaemon{}, sh: newFakeShell(), out: s}
	th := screentest.Theme()
	now := func() time.Time { return d.clock }
	d.model = &model{
		Options: Options{Daemon: d.d, Shell: d.sh, Log: slog.New(slog.DiscardHandler), now: now},
		th:      *th, md: &markdown.Renderer{Profile: th.Profile},
		paint: paint.New(s, 80, 24, th), w: 80, h: 24,
		link: link{up: true}, conversation: conversation{SessionInfo: wire.SessionInfo{ID: "s1"}}, own: owner{ai: true, taken: true, has: true},
	}
	d.keys = &keys.Keyboard{Now: now, Answer: func(b []byte) { _ = d.sh.Answer(b) }, Shell: func(b []byte) { _ = d.sh.Keys(b) }}
	d.keys.Route(keys.ToUs)
	d.after = func(by time.Duration, f then) { d.due = append(d.due, timer{d.clock.Add(by), f}) }
	d.task = func(f func(context.Context) then) { d.tasks = append(d.tasks, f) }
	d.paint.Take()
	return d
}

// send delivers a message and runs the tasks that it began.
func (d *desk) send(msg any) {
	d.update(msg)
	for len(d.tasks) > 0 {
		f := d.tasks[0]
		d.tasks = d.tasks[1:]
		if next := f(context.Background()); next != nil {
			d.send(next)
		}
	}
}

// key presses keys: those with a name of one character write it.
func (d *desk) key(names ...string) {
	for _, n := range names {
		k := keys.Key{Name: n}
		if utf8.RuneCountInString(n) == 1 {
			k.Text = n
		}
		d.send(&keyEvent{msg: k, done: make(chan struct{})})
	}
}

// wait lets time pass, with what has to be done when.
func (d *desk) wait(by time.Duration) {
	end := d.clock.Add(by)
	for {
		next := -1
		for i, t := range d.due {
			if !t.at.After(end) && (next < 0 || t.at.Before(d.due[next].at)) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		t := d.due[next]
		d.due = slices.Delete(d.due, next, next+1)
		if t.at.After(d.clock) {
			d.clock = t.at
		}
		d.send(t.f)
	}
	d.clock = end
}

// printed returns what is on the screen for good.
func (d *desk) printed() string {
	d.paint.Set(paint.Frame{})
	d.paint.Flush()
	return d.out.All()
}

// asked returns the question on the screen.
func (d *desk) asked() string {
	lines, _, _ := d.question().Render(&d.th, 80, 24, 1, true)
	return ansi.Strip(strings.Join(lines, "\n"))
}

func (d *desk) askTwo() {
	a, b := testQuestion(), testQuestion()
	a.Verdict.Level, b.ConfirmationID, b.Command = "high", "c2", "git push --force"
	d.send(a)
	d.send(b)
}

func (d *desk) resolve(id wire.ConfirmationID, decision string) {
	d.send(&wire.ConfirmationResolved{ConfirmationID: id, Decision: decision, By: "client sublet 1"})
}

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
	if d.ed.Text != "ls yya" {
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
		if d.ed.Text != want {
			t.Errorf("%q: the line holds %q, want %q", text, d.ed.Text, want)
		}
		d.wait(time.Second)
		d.key("enter")
		if got := d.d.answers(); len(got) != 1 || got[0].Decision != wire.DecisionDeny {
			t.Errorf("%q, a pause and Enter: got %+v, want deny", text, got)
		}
	}
	d := newDesk(t)
	d.askTwo()
	d.wait(3 * time.Second)
	d.key("a", "enter")
	if got := d.d.answers(); len(got) != 0 {
		t.Errorf("a and Enter at once allowed for good: %+v", got)
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

// A question that somebody else answered goes away; one whose answer does not get through stays.
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
	q := d.question()
	if q == nil || !strings.Contains(d.asked(), "not connected") {
		t.Fatalf("an answer that did not get through: got %+v", q)
	}
	d.d.down = false
	d.key("y")
	if len(d.d.answers()) != 0 {
		t.Error("the failed answer left the question armed")
	}
	d.compose()
	d.wait(time.Second)
	d.key("y")
	if len(d.d.answers()) != 1 {
		t.Error("the question cannot be answered again")
	}
}

// While a question is on the screen the keyboard does not go over to an agent's program, and it goes over only
// when nobody has typed for a moment.
func TestHandOverWaitsForQuestionAndTyping(t *testing.T) {
	d := newDesk(t)
	d.wait(time.Hour)
	d.send(leasedStart("x1", "sudo make install"))
	d.askTwo()
	d.send(leasedKeyboard("x1", "password"))
	if d.hand == nil || d.hand.on || d.keys.Routed() == keys.ToProgram {
		t.Fatal("the keyboard went over although a question is on the screen")
	}
	d.resolve("c1", wire.DecisionDeny)
	d.key("l")
	d.resolve("c2", wire.DecisionDeny)
	if d.hand.on || d.keys.Routed() == keys.ToProgram {
		t.Fatal("the keyboard went over in the middle of typing")
	}
	d.key("s")
	d.wait(handQuiet - time.Millisecond)
	if d.hand.on {
		t.Fatal("the keyboard went over too early")
	}
	d.wait(time.Millisecond)
	if !d.hand.on || d.keys.Routed() != keys.ToProgram {
		t.Fatal("the keyboard did not go over")
	}
	if d.ed.Text != "ls" {
		t.Errorf("line: got %q, want ls: keys typed before stay in the editor", d.ed.Text)
	}
	d.send(leasedEnd("x1", 0))
	if d.held() || d.keys.Routed() == keys.ToProgram {
		t.Error("the keyboard did not come back")
	}
}

// What reads without echo and is no program of the system's that asks for passwords is asked about first: its prompt may say
// anything. No ends the command; the answer of one program is not that of another.
func TestHandOverOfSecretsIsAsked(t *testing.T) {
	for _, key := range []string{"y", "n"} {
		d := newDesk(t)
		d.wait(time.Hour)
		d.send(leasedStart("x1", "read -rsp '[sudo] password for root: ' p"))
		d.send(lender.LeasedKeyboard{ExecutionID: "x1", Why: "secret", Who: "bash"})
		d.wait(handQuiet)
		if d.held() || d.keys.Routed() == keys.ToProgram || d.question() == nil {
			t.Fatal("the keyboard went over unasked")
		}
		if text := d.asked(); !strings.Contains(text, "bash reads without echo") {
			t.Errorf("got %q", text)
		}
		d.wait(question.ArmDelay)
		d.key(key)
		d.wait(handQuiet)
		if got := d.keys.Routed() == keys.ToProgram; got != (key == "y") || d.question() != nil {
			t.Errorf("%s: the program has the keyboard: %v", key, got)
		}
		if key == "n" {
			if !d.back {
				t.Error("no: the command was not ended")
			}
			continue
		}
		d.send(lender.LeasedKeyboard{ExecutionID: "x1", Why: "secret", Who: "bash"})
		if d.question() != nil || d.keys.Routed() != keys.ToProgram {
			t.Error("asked again about the same program")
		}
		d.send(lender.LeasedKeyboard{ExecutionID: "x1", Why: "secret", Who: "python3"})
		if d.question() == nil || d.keys.Routed() == keys.ToProgram {
			t.Error("another program was not asked about")
		}
		d.send(leasedEnd("x1", 0))
		if d.question() != nil {
			t.Error("the question outlives the command")
		}
	}
}

// A password that sudo refused was typed once more before sudo asked again: it went to the editor, with the Enter to the
// model. The keyboard stays the command's until it ends, or has asked for nothing and was typed nothing for long.
func TestHandOverLingers(t *testing.T) {
	for _, why := range []string{"password", "input", "screen"} {
		d := newDesk(t)
		var typed []byte
		d.keys.Answer = func(p []byte) { typed = append(typed, p...) }
		d.wait(time.Hour)
		d.send(leasedStart("x1", "sudo make install"))
		d.send(leasedKeyboard("x1", why))
		d.keys.Feed([]byte("one"))
		d.send(leasedKeyboard("x1", ""))
		d.wait(2 * time.Second)
		d.keys.Feed([]byte("two"))
		want := "onetwo"
		if why == "password" {
			want = "one" // it would be shown
		}
		if string(typed) != want {
			t.Errorf("%s: not asked, the program got %q", why, typed)
		}
		d.wait(handLinger - time.Second) // less than that behind the last key
		d.send(leasedKeyboard("x1", why))
		d.keys.Feed([]byte("three"))
		if string(typed) != "onetwothree" {
			t.Errorf("%s: asked again, the program got %q", why, typed)
		}
		d.wait(2 * handLinger)
		if d.hand == nil || d.keys.Routed() != keys.ToProgram {
			t.Fatalf("%s: the keyboard was taken from a program that asks", why)
		}
		d.send(leasedKeyboard("x1", ""))
		d.wait(handLinger - time.Millisecond)
		d.wait(time.Millisecond)
		if d.hand != nil || d.held() || d.keys.Routed() != keys.ToUs || d.ed.Text != "" {
			t.Errorf("%s: the keyboard did not come back: line %q", why, d.ed.Text)
		}
		d.send(leasedKeyboard("x1", "input"))
		d.wait(handLinger)
		d.send(leasedKeyboard("x1", ""))
		d.send(leasedEnd("x1", 0))
		if d.held() || d.keys.Routed() == keys.ToProgram {
			t.Errorf("%s: the command has ended, and has the keyboard", why)
		}
	}
}

// A card whose result is there before the shell said what changed keeps its place: what follows is printed after it.
func TestCardWaitsForTheShell(t *testing.T) {
	for _, said := range []bool{true, false} {
		d := newDesk(t)
		d.send(&wire.TurnStarted{Event: event(1), Agent: "orchestrator", Prompt: "go"})
		d.send(&wire.AgentStreamChunk{Event: event(2), Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkToolCall, ExecutionID: "x1", Tool: "bash", Arguments: `{"command":"cd /tmp"}`}})
		d.send(leasedStart("x1", "cd /tmp"))
		d.send(&wire.CommandResult{Event: event(3), Agent: "orchestrator", ExecutionID: "x1", Tool: "bash", Command: "cd /tmp", Status: wire.StatusSuccess, ExitCode: ptr(0), Output: []byte("[exit code 0]")})
		d.send(&wire.AgentStreamChunk{Event: event(4), Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkText, Text: "There.\n\n"}})
		d.send(&wire.AgentComplete{Event: event(5), Status: wire.StatusSuccess, DurationMS: 100})
		if printed := d.printed(); strings.Contains(printed, "There.") {
			t.Fatalf("printed before its card is:\n%s", printed)
		}
		if live := strings.Join(d.above(20), "\n"); !strings.Contains(live, "There.") || !strings.Contains(live, "cd /tmp") {
			t.Errorf("not to be seen meanwhile:\n%s", live)
		}
		if said {
			end := leasedEnd("x1", 0)
			end.Changed = "cd /tmp"
			d.send(end)
		} else {
			d.wait(reportWait)
		}
		printed := d.printed()
		card, text := strings.Index(printed, "cd /tmp"), strings.Index(printed, "There.")
		if card < 0 || text < card || strings.Contains(printed, "changed in your shell") != said || strings.Contains(printed, "[exit code") {
			t.Errorf("said %v: got\n%s", said, printed)
		}
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
			Event: wire.Event{SessionID: "s1", TurnID: "t1", Seq: seq}, Agent: agent,
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
	d.send(&wire.ConfirmationResolved{Event: wire.Event{SessionID: "s1", TurnID: "t1", Seq: 6}, ConfirmationID: "c1", Decision: wire.DecisionAllow})
	d.send(&wire.CommandResult{Event: wire.Event{SessionID: "s1", TurnID: "t1", Seq: 7}, Agent: "orchestrator", ExecutionID: "x1", Tool: "bash", Command: "rm one", Status: wire.StatusSuccess, ExitCode: ptr(0)})
	if got := shown(); !strings.Contains(got, "bash  rm two · 0s") {
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
