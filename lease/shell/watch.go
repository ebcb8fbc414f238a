package shell

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sublet/lease/shell/procs"
)

// A program that has printed nothing for lookAfter is examined, and again less and less often, at least every lookMost. That
// costs 0.2 to 0.5 ms each time.
const (
	lookAfter = 200 * time.Millisecond
	lookMost  = 400 * time.Millisecond
	// lookAgain is when a wait for keys is examined once more before it is reported: the shell, which reads its next line, is taken
	// for the command until the command's end has been read.
	lookAgain = 100 * time.Millisecond
)

// Why a program wants the keyboard: see Command.Keyboard.
const (
	wantsPassword = "password"
	wantsSecret   = "secret"
	wantsScreen   = "screen"
	wantsInput    = "input"
)

// watcher notices that a borrowed command's program wants the keyboard. It is used by one goroutine (follow), which calls examine
// at each tick.
type watcher struct {
	s    *Shell
	r    *run
	why  string // as reported last: see Command.Keyboard
	who  string
	sure bool          // the last examination saw a wait for keys
	wait time.Duration // until the next one
	due  time.Time     // when the timer was to end
	t    *time.Timer
}

// examine examines the program, reports a change, and sets the timer again. A wait for keys (wantsInput) is reported only if the last
// examination saw one too: see lookAgain.
func (w *watcher) examine() {
	if time.Since(w.due) > lookAfter { // this process was stopped, or starved: what was printed meanwhile is still to be read
		w.r.printed.Store(time.Now().UnixNano())
	}
	silent := time.Since(time.Unix(0, w.r.printed.Load())) >= lookAfter
	why, who := w.wants(silent)
	certain := w.sure || why != wantsInput
	if w.sure = why == wantsInput; certain {
		w.report(why, who)
	}
	switch {
	case !certain:
		w.wait = lookAgain
	case silent && why == "":
		w.wait = min(2*w.wait, lookMost)
	default:
		w.wait = lookAfter
	}
	w.due = time.Now().Add(w.wait)
	w.t.Reset(w.wait)
}

// report calls Command.Keyboard if why or who is another than before.
func (w *watcher) report(why, who string) {
	if why == w.why && who == w.who || w.r.command.Keyboard == nil {
		return
	}
	w.why, w.who = why, who
	w.r.command.Keyboard(why, who)
}

// wants returns why the foreground program wants the keyboard, "" if it does not, and who asks for a secret. A program
// that prints (not silent) keeps the last answer, unless it uses the alternate screen or has switched echo off.
func (w *watcher) wants(silent bool) (why, who string) {
	w.s.mu.Lock()
	p, began := w.s.proc, w.r.began()
	w.s.mu.Unlock()
	if !began || w.r.command.Keyboard == nil {
		return "", ""
	}
	if w.r.out.UsesAlternate() {
		return wantsScreen, ""
	}
	m, err := p.term.Modes()
	if err != nil {
		return "", ""
	}
	if m.Lflag&(unix.ECHO|unix.ICANON) == unix.ICANON {
		who, system := procs.AsksForSecret(p.pid, p.term.Foreground(), p.term.Name)
		switch {
		case system:
			return wantsPassword, who
		case who == "" && (w.why == wantsPassword || !silent):
			return w.why, w.who // nobody reads at this moment
		}
		return wantsSecret, who
	}
	if !silent {
		return w.why, w.who
	}
	asks := sync.OnceValue(w.r.out.Asks)
	if procs.WaitsForKeys(p.pid, p.term.Foreground(), p.term.Name, m.Lflag&unix.ICANON == 0, asks) {
		return wantsInput, ""
	}
	return "", ""
}

// clock limits the time of a command, without that in which the user has the keyboard. It is used by one goroutine (follow).
type clock struct {
	t      *time.Timer // nil before begin
	due    time.Time
	paused time.Time // since when; zero = it runs
}

func (c *clock) begin(limit time.Duration) {
	c.due, c.t = time.Now().Add(limit), time.NewTimer(limit)
}

func (c *clock) tick() <-chan time.Time {
	if c.t == nil {
		return nil
	}
	return c.t.C
}

// pause stops the clock if on, else lets it go on.
func (c *clock) pause(on bool) {
	if c.t == nil || on == !c.paused.IsZero() {
		return
	}
	if on {
		c.t.Stop()
		c.paused = time.Now()
		return
	}
	c.due, c.paused = c.due.Add(time.Since(c.paused)), time.Time{}
	c.t.Reset(time.Until(c.due))
}
