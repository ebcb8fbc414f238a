package tui

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"sublet/client/internal/tui/keys"
	"sublet/client/internal/tui/markdown"
	"sublet/client/internal/tui/paint"
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
		Options: Options{Daemon: d.d, Shell: d.sh, Lender: d.sh, Log: slog.New(slog.DiscardHandler), now: now},
		th:      *th, md: &markdown.Renderer{Profile: th.Profile},
		paint: paint.New(s, 80, 24, th), w: 80, h: 24,
		link: link{up: true}, conversation: conversation{SessionInfo: wire.SessionInfo{ID: "s1"}}, own: owner{mode: aiMode, screen: weHave, painting: true},
	}
	d.keys = &keys.Keyboard{Now: now, Answer: func(b []byte) { _ = d.sh.Answer(b) }, Shell: func(b []byte) { _ = d.sh.Keys(b) }}
	d.keys.Route(keys.ToUs)
	d.after = func(by time.Duration, f then) { d.due = append(d.due, timer{d.clock.Add(by), f}) }
	d.task = func(f func(context.Context) then) { d.tasks = append(d.tasks, f) }
	d.d.moved = func(r *wire.SessionReply) { d.send(r) }
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
