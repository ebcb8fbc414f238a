package shell

import (
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/charmbracelet/x/vt"
)

// A prompt in the first row of a tmux, after ^L, was in its scrollback once more for each lease and each way to AI mode: tmux keeps what is
// erased from the top left corner, but not blank rows.
func TestRowsAreErasedFirst(t *testing.T) {
	for name, want := range map[string]string{
		"bash": "\r\x1b[K\x1b[A\x1b[K\x1b[J",
		"fish": "\r\x1b[K\x1b[A\x1b[K\x1b[J",
		"zsh":  "\r\x1b[K\x1b[A\x1b[K\x1b[B", // and what zle erases
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newSession(t, name, languages[name].rows)
			before := len(u.scr.String())
			if err := u.TakeScreen(t.Context()); err != nil {
				t.Fatal(err)
			}
			if shown := u.scr.String()[before:]; !strings.Contains(shown, want) {
				t.Errorf("got %q, want %q in it", shown, want)
			}
		})
	}
}

// Of a line that was painted over and over only the first 16 KiB were kept, and the rows that they end in were erased.
func TestPaintedIncomplete(t *testing.T) {
	var p painted
	for range 100 {
		p.add([]byte(strings.Repeat("x", 1000) + "\r\n"))
	}
	if rows := p.rows(80); rows != 0 {
		t.Errorf("got %d rows, want none", rows)
	}
}

// What is above the prompt is the user's, also where a line feed in the text of the prompt makes no row.
func TestRowsAboveThePromptStay(t *testing.T) {
	for name, row := range map[string]struct {
		prompt string
		up     int
	}{
		"condition":    {"PS1=$'%(?..failed\\n)%# '", 0},
		"substitution": {"setopt prompt_subst; PS1=$'$(echo a;\\necho -n b)%# '", 0},
		"alternative":  {"setopt prompt_subst; PS1=$'${none:+a\\n}%# '", 0},
		"old form":     {"setopt prompt_subst; PS1=$'`echo a;\\necho -n b`%# '", 0},
		"colours":      {"PS1=$'%F{blue}%~%f\\n%{\\e[1m%}%K{black}%#%k%{\\e[m%} '", 1},
		"both":         {"PS1=$'%(?..failed\\n)a\\nb\\n%# '", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newSession(t, "zsh", row.prompt)
			before := len(u.scr.String())
			if err := u.TakeScreen(t.Context()); err != nil {
				t.Fatal(err)
			}
			shown := u.scr.String()[before:]
			if want := "\r\x1b[K" + strings.Repeat("\x1b[A\x1b[K", row.up) + strings.Repeat("\x1b[B", row.up); !strings.Contains(shown, want) || strings.Count(shown, "\x1b[A\x1b[K") != row.up {
				t.Errorf("got %q, want %q in it", shown, want)
			}
		})
	}
}

// While another screen is shown, the shell's prompt and half-typed line are not on it, whatever runs meanwhile; afterwards they are below
// what was shown.
func TestTakenScreen(t *testing.T) {
	for name, l := range languages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newSession(t, name, l.rows)
			keys(t, u.Shell, "\x1b[200~echo 'a\n"+strings.Repeat("long ", 30)+"'\x1b[201~")
			u.scr.shows(t, "'")
			if err := u.TakeScreen(t.Context()); err != nil {
				t.Fatal(err)
			}
			if shown := strings.TrimSpace(emulated(u.scr)); shown != "" {
				t.Errorf("with the screen taken it shows %q", shown)
			}
			for range 2 {
				if err := u.Hold(t.Context()); err != nil {
					t.Fatal(err)
				}
				u.do("echo lent", "lent\n", 0)
				u.look()
				if err := u.Release(); err != nil {
					t.Fatal(err)
				}
			}
			u.do("sh -c 'exit 3'", "", 3) // it holds and releases the editor by itself
			if err := u.Resize(Size{Cols: 80, Rows: 20}); err != nil {
				t.Fatal(err)
			}
			u.look()
			u.scr.output([]byte("answer 1\r\nanswer 2\r\n"))
			if err := u.GiveScreen(t.Context()); err != nil {
				t.Fatal(err)
			}
			u.scr.await(t, "the half-typed line", func() bool { return strings.Contains(emulate(u.scr.b), "long '") })
			if shown := emulated(u.scr); !regexp.MustCompile(`^answer 1 *\nanswer 2 *\ntop *\n0# echo 'a`).MatchString(shown) {
				t.Errorf("the screen is\n%s", shown)
			}
			u.enter("")

			// Without a half-typed line a key takes the screen, also after a ^C, which brings no prompt in fish, and another line can be
			// run instead.
			keys(t, u.Shell, "\x03")
			shown := len(u.scr.String())
			u.scr.until(t, "the editor", func() bool { // a busy machine takes longer than a key may
				ok, err := u.HoldIfEmpty(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return ok
			})
			u.do("true", "", 0)
			if err := u.GiveScreen(t.Context()); err != nil {
				t.Fatal(err)
			}
			u.scr.await(t, "a fresh prompt", func() bool { return strings.Contains(string(u.scr.b[shown:]), "# ") })
			if err := u.TakeScreen(t.Context()); err != nil {
				t.Fatal(err)
			}
			n := len(events[UserEnded](u.scr))
			if err := u.RunLine(t.Context(), "echo given; echo 日本"); err != nil {
				t.Fatal(err)
			}
			if e := u.ended(n + 1); string(e.Output) != "given\n日本\n" {
				t.Errorf("the inserted line printed %q", e.Output)
			}
			if strings.Contains(u.scr.String(), "__sublet") {
				t.Errorf("screen %q", u.scr.String())
			}
		})
	}
}

// The prompt between two commands of a borrower is never shown: who erased it erased lines above, which the user saw.
func TestPromptBetweenCommands(t *testing.T) {
	for name, l := range languages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newSession(t, name, l.rows)
			u.enter("echo above")
			if err := u.Hold(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				u.do("true", "", 0)
				u.look()
			}
			if err := u.Release(); err != nil {
				t.Fatal(err)
			}
			want := regexp.MustCompile(`^top *\n0# echo above *(right)?\s*\nabove *\ntop *\n0# *(right)?\s*$`)
			u.scr.until(t, "a prompt below", func() bool { return want.MatchString(emulated(u.scr)) })
		})
	}
}

// A shell that crashes is started again where it was, with what its State has and another shell can have. EnvStarting is set for its
// start-up files alone, both times.
func TestCrash(t *testing.T) {
	for name := range languages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newSession(t, name, `echo "x$SUBLET_STARTING" >>~/starting`)
			u.do("cd /usr; export X='a b'; alias hh='echo hh'", "", 0)
			u.look()
			if err := syscall.Kill(u.PID(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			u.scr.until(t, "another shell", func() bool { return len(events[Restarted](u.scr)) == 1 })
			u.do("pwd; echo $X; hh", "/usr\na b\nhh\n", 0)
			u.do(`cat ~/starting; echo "x$SUBLET_STARTING"`, "x1\nx1\nx\n", 0)
		})
	}
}

// Fish sets the window's title by the user's function, but not to the borrowed line.
func TestFishTitle(t *testing.T) {
	u := newSession(t, "fish", "function fish_title; echo title of $argv; end")
	before := u.look()
	u.do("true", "", 0)
	if d := Difference(before, u.look()); d != "" {
		t.Errorf("changed: %s", d)
	}
	u.enter("echo mine")
	if raw := u.scr.String(); !strings.Contains(raw, "\x1b]0;title of echo mine\a") || strings.Contains(raw, "title of true") || strings.Contains(raw, "__sublet") {
		t.Errorf("the terminal got %q", raw)
	}
}

// A shell whose line editor does not answer is not lent, and keeps nothing of the key: what the user types next is read. Fish loses
// what it writes while the window's size changes (fish-shell#12496).
func TestLostAnswer(t *testing.T) {
	for _, row := range []struct{ shell, name, line string }{
		{"zsh", "lost", `functions[kept]=$functions[__sublet_report]; __sublet_report() { if [[ $1 == A ]] { kept "$@" >/dev/null } else { kept "$@" } }`},
		{"fish", "lost", "functions -c __sublet_mark kept; function __sublet_mark; test $argv[1] = A; or kept $argv; end"},
		{"bash", "unbound", `for map in emacs vi-insert vi-command; do bind -m $map -r '\eO~'; done`},
		{"zsh", "unbound", `for map in emacs viins vicmd; do bindkey -M $map -r '\eO~'; done`},
		{"fish", "unbound", "bind --erase --all"},
	} {
		t.Run(row.shell+" "+row.name, func(t *testing.T) {
			t.Parallel()
			u := newSession(t, row.shell, "")
			u.enter(row.line)
			var broken *BrokenError
			if err := u.Hold(t.Context()); !errors.As(err, &broken) {
				t.Fatalf("got %v", err)
			}
			if e := u.enter("echo alive"); e.Text != "echo alive" || string(e.Output) != "alive\n" {
				t.Errorf("then %q printed %q", e.Text, e.Output)
			}
			if row.name == "lost" {
				u.answersLate()
			}
		})
	}
}

// answersLate has the widget answer when nobody waits any more, with a mark that is lost, as ^C makes the terminal drop it: the
// user's next keys must be read.
func (u *session) answersLate() {
	if err := syscall.Kill(u.PID(), syscall.SIGSTOP); err != nil {
		u.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(u.t.Context())
	held := make(chan error, 1)
	go func() { held <- u.Hold(ctx) }()
	u.scr.until(u.t, "the hold key", func() bool { return !u.proc.term.InputEmpty() })
	cancel()
	if err := <-held; err == nil {
		u.t.Error("it is held")
	}
	if err := syscall.Kill(u.PID(), syscall.SIGCONT); err != nil {
		u.t.Fatal(err)
	}
	shown, typed := len(u.scr.String()), 0
	u.scr.until(u.t, "a key", func() bool {
		if typed++; typed < 1000 { // more, unread, would fill the terminal's queue
			keys(u.t, u.Shell, "x")
		}
		return strings.Contains(u.scr.String()[shown:], "x")
	})
}

// last returns the last event of a kind.
func last[E any](scr *screen) (e E) {
	for _, e = range events[E](scr) {
	}
	return e
}

// events returns those of one type.
func events[E any](scr *screen) (list []E) {
	scr.mu.Lock()
	defer scr.mu.Unlock()
	for _, event := range scr.events {
		if e, ok := event.(E); ok {
			list = append(list, e)
		}
	}
	return list
}

func emulated(scr *screen) string { return emulate([]byte(scr.String())) }

// emulate returns what a terminal of 80 columns shows.
func emulate(b []byte) string {
	e := vt.NewEmulator(80, 100)
	defer e.InputPipe().(io.Closer).Close()
	e.Write(b) //nolint:errcheck // it cannot fail
	return e.String()
}

// A borrowed command left fish_history as it was, but no longer exported.
func TestFishHistoryStaysExported(t *testing.T) {
	t.Parallel()
	u := newSession(t, "fish", "set -gx fish_history private")
	u.do("true", "", 0)
	u.do("env | string match 'fish_history=*'", "fish_history=private\n", 0)
	if e := u.enter("env | string match 'fish_history=*'"); string(e.Output) != "fish_history=private\n" {
		t.Errorf("got %q", e.Output)
	}
}
