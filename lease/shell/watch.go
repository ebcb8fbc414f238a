package shell

import (
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// silence is how long a program prints nothing before it is looked at; while nothing changes the looks become rarer. One
// costs 0.2 to 0.5 ms, so a silent command has a thousandth of a processor spent on it; a question is seen within silenceMax.
const (
	silence    = 200 * time.Millisecond
	silenceMax = 400 * time.Millisecond
)

// watcher notices, while a command runs, that a program wants the keyboard (section 5, hand-over; T6a), and that the
// shell prompts although its hook was taken away. It has a timer only while a command runs.
type watcher struct {
	s    *Shell
	p    *process
	r    *run
	why  string // last told
	wait time.Duration
	t    *time.Timer
	seen int64 // activity at the last look
	puts int   // how often the hook was put back
	gone bool  // another program has taken the shell's place (exec), and that was told
}

func newWatcher(s *Shell, p *process, r *run) *watcher {
	return &watcher{s: s, p: p, r: r, wait: silence, t: time.NewTimer(silence)}
}

func (w *watcher) tick() <-chan time.Time { return w.t.C }

func (w *watcher) stop() { w.t.Stop() }

// look is called at the timer.
func (w *watcher) look() {
	last := w.s.activity.Load()
	quiet := max(0, time.Since(time.Unix(0, last))) // the clock may have been set back
	if quiet < silence {
		w.wait = silence
		w.tell(w.wants(false))
		w.t.Reset(silence - quiet)
		return
	}
	if last != w.seen {
		w.seen, w.wait = last, silence
	}
	w.rescue()
	w.tell(w.wants(true))
	w.t.Reset(w.wait)
	w.wait = min(2*w.wait, silenceMax)
	if w.why != "" {
		w.wait = silence // to notice soon that it is over
	}
}

// wants tells why the foreground program wants the keyboard; "" where it does not.
func (w *watcher) wants(quiet bool) string {
	if w.r.c.Keyboard == nil {
		return ""
	}
	alt := false
	w.p.stream.do(func() { alt = w.r.out.alt })
	if alt {
		return "screen"
	}
	m, err := w.p.modes()
	if err != nil {
		return ""
	}
	if hidden(m, w.r.modes) {
		return "password"
	}
	if !quiet {
		return w.why
	}
	pgid, own := w.p.foreground()
	asks := sync.OnceValue(func() (asks bool) {
		w.p.stream.do(func() { asks = w.r.out.scr.asks() })
		return asks
	})
	if waitsForKeys(w.p.pid, pgid, own, w.p.tty, m.Lflag&unix.ICANON == 0, asks) {
		return "input"
	}
	return ""
}

// hidden tells whether a program has echo off for a line; where it was off before, the user wants it so.
func hidden(m, was *unix.Termios) bool {
	return m.Lflag&(unix.ECHO|unix.ICANON) == unix.ICANON && (was == nil || was.Lflag&unix.ECHO != 0)
}

// hides tells so of the program that runs.
func (p *process) hides(was *unix.Termios) bool {
	m, err := p.modes()
	return err == nil && hidden(m, was)
}

func (w *watcher) tell(why string) {
	if why == w.why || w.r.c.Keyboard == nil {
		return
	}
	w.why = why
	if why == "input" || why == "password" || why == "screen" {
		w.r.out.asked = true
	}
	w.p.stream.do(func() { w.r.c.Keyboard(why) })
}

// over ends the watch: the keyboard is given back.
func (w *watcher) over() {
	w.tell("")
	if w.r.out.asked {
		w.s.note(w.r, "the program asked for the keyboard, and the user may have answered it")
	}
}

// rescue mends a prompt hook that was taken away, where the system lets us see that the shell reads a line: the fixed
// line that does it tells the end, too.
func (w *watcher) rescue() {
	_, own := w.p.foreground()
	if w.gone || own && w.replaced() {
		return
	}
	if !w.r.frozen && stopped(w.p.pid) {
		_ = syscall.Kill(w.p.pid, syscall.SIGCONT) // `suspend`, or a child: there is no shell above this one to go back to
		return
	}
	if !own {
		return
	}
	if w.r.unfinished() && !w.s.shaky.Load() {
		return // the rest is the user's to type, or ^C
	}
	// Where it cannot be seen, after a ^C no builtin reads any more.
	waits, seen := w.p.waits()
	if !waits || !seen && !w.s.shaky.Load() || !w.s.takeRecords(w.p) {
		return
	}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if w.r.ended || w.s.proc != w.p {
		return
	}
	if w.puts++; seen && w.puts > 2 {
		w.s.replaceLocked(w.p)
		return
	}
	w.s.log.Info("prompt hook was taken away and is put back")
	const line = ` { \__sublet_hook "$?" tail; \__sublet_plain; \__sublet_g; \__sublet_again; } 2>/dev/null`
	w.r.mended = time.Now()
	w.p.stream.retype(line)
	_, _ = w.p.write([]byte(line + "\n"))
}

// unfinished tells of a line that has not begun where the shell reads on: an alias can make it a part of a command. Not where
// history expansion made something of it: bash drops some of those and reads on (:p), and refuseHistory has the rest.
func (r *run) unfinished() bool { return !r.sourced && !r.plan.bang && !r.hasBegun() }

// replaced tells whether another program has taken the shell's place, and says so once: it is the user's, nothing of ours
// may be typed into it, and what it ends with the shell ends with.
func (w *watcher) replaced() bool {
	name := imageOf(w.p.pid)
	if name == "" || forked(name) || !w.r.c.User {
		return false
	}
	w.gone = true
	name, _, _ = strings.Cut(name, " ")
	text := "sublet: `" + printable(name) + "` has taken the place of the shell that is lent: agents cannot use it, and sublet ends with it\r\n"
	w.p.stream.do(func() {
		if !w.r.out.alt { // its screen is its own
			w.r.out.write([]byte("\r\n" + text))
		}
	})
	return true
}

func (p *process) modes() (*unix.Termios, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	return getModes(p.master)
}
