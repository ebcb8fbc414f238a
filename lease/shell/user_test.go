package shell

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sublet/lease/shell/procs"
	"sublet/wire/citest"
)

func keys(t *testing.T, s *Shell, text string) {
	t.Helper()
	if err := s.Keys([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

// What the user runs is reported with its text, status and output; a long text is cut.
func TestUserCommand(t *testing.T) {
	for name := range languages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newSession(t, name, "")
			if e := u.enter("echo  'seen  it'; sh -c 'exit 3'"); e.Text != "echo  'seen  it'; sh -c 'exit 3'" || e.ExitCode != 3 || string(e.Output) != "seen  it\n" || e.Dir != u.home {
				t.Errorf("got %+v, output %q", e, e.Output)
			}
			long := "echo " + strings.Repeat("0123456789", 500)
			if e := u.enter("\x1b[200~" + long + "\x1b[201~"); len(e.Text) < 2900 || len(e.Text) > 3000 || !strings.HasPrefix(long, e.Text) {
				t.Errorf("%d bytes were reported as %d: %q", len(long), len(e.Text), e.Text)
			}
		})
	}
}

// Commands that end before the terminal's output is read are each reported with their own text and status: those of the last
// were taken for all.
func TestUserCommandsBehindTheReader(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	var typed atomic.Bool
	s, scr := start2(t, func(o *Options) {
		output := o.Output
		o.Output = func(p []byte) {
			output(p)
			for end := time.Now().Add(patience); typed.Load() && len(read(t, ran)) == 0 && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
		}
	})
	scr.prompts(t, 1)
	lines := []string{"(exit 3)", "7() { :; }; 7", "echo all >" + ran}
	typed.Store(true)
	keys(t, s, strings.Join(lines, "\r")+"\r")
	scr.prompts(t, 4)
	for i, status := range []int{3, 0, 0} {
		if e := events[UserEnded](scr)[i]; e.Text != lines[i] || e.ExitCode != status {
			t.Errorf("%q ended with %d and was reported as %+v", lines[i], status, e)
		}
	}
}

// A borrower waits while a program of the user's runs, and in a search, a menu and a continuation line; Busy returns the reason.
func TestBusy(t *testing.T) {
	const inALine = "the user is in the middle of a line"
	for name, c := range map[string]struct {
		shell, startup string
		typed          []string
		why, free      string
	}{
		"program":       {"bash", "", []string{"sleep 100\r"}, "sleep is running", "\x03"},
		"search":        {"bash", "", []string{"\x12ec"}, inALine, "\x03"},
		"after a paste": {"bash", "", []string{"\x1b[200~pasted\x1b[20", "1~\x12ec"}, inALine, "\x03"},
		"continuation":  {"bash", "", []string{"for x in 1 2\r"}, inALine, "\x03"},
		"open quote":    {"bash", "", []string{"echo 'a\r"}, inALine, "\x03"},
		// What follows can only be known from the widget: the keys are plain, or were typed before the prompt.
		"continuation typed ahead":        {"bash", "", []string{"sleep 0.1\rfor x in 1 2\r"}, inALine, "\x03"},
		"here-document typed ahead":       {"bash", "", []string{"sleep 0.1\rcat <<E\r"}, inALine, "\x03"},
		"continuation typed ahead in zsh": {"zsh", "", []string{"sleep 0.1\rfor x in 1 2; do\r"}, inALine, "\x03"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newSession(t, c.shell, c.startup)
			for _, p := range c.typed {
				keys(t, u.Shell, p)
			}
			ctx, cancel := context.WithTimeout(t.Context(), holdBound+time.Second)
			defer cancel()
			if _, err := u.Run(ctx, Command{Text: "echo lent"}); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("ran: %v", err)
			}
			if why := u.Busy(); why != c.why {
				t.Errorf("it waited because %q, want %q", why, c.why)
			}
			keys(t, u.Shell, c.free)
			u.do("echo lent", "lent\n", 0)
		})
	}
}

// A search in the history or a menu that an arrow key has opened ends with a borrowed command; the line that it found comes back.
func TestLentInASearch(t *testing.T) {
	for shell, startup := range map[string]string{
		"bash": "", "fish": "",
		"zsh": "autoload -Uz compinit; compinit -u; zmodload zsh/complist; zstyle ':completion:*' menu select; bindkey '\\e[B' menu-complete",
	} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			u := newSession(t, shell, startup)
			writeFiles(t, u.home, map[string]string{"one1": "", "one2": ""})
			u.enter("echo found")
			u.enter("true")
			keys(t, u.Shell, "\x1b[A\x1b[A")
			u.scr.shows(t, "found")
			u.holds("echo found", func() { u.do("echo lent", "lent\n", 0) })
			if shell != "zsh" {
				return
			}
			keys(t, u.Shell, "\x15echo one\x1b[B\x1b[B")
			u.do("echo lent", "lent\n", 0)
			if e := u.enter(""); !strings.HasPrefix(string(e.Output), "one") {
				t.Errorf("%q printed %q", e.Text, e.Output)
			}
		})
	}
}

// A background program that switches bracketed paste off and on is not a line editor at a continuation line: Release went on asking
// for 5 s, without a pause.
func TestPasteModeOfAJob(t *testing.T) {
	t.Parallel()
	u := newSession(t, "bash", "")
	keys(t, u.Shell, "echo half\x1b[D\x1b[D")
	u.holds("echo half", func() {
		u.run(t.Context(), Command{Text: `while printf '\e[?2004l\e[?2004h'; do sleep 0.01; done & sleep 0.1`})
	})
	keys(t, u.Shell, "X\rkill %1\r")
	u.scr.until(t, "the end of both lines", func() bool { return len(events[UserEnded](u.scr)) == 2 })
	if e := events[UserEnded](u.scr)[0]; !strings.HasPrefix(string(e.Output), "haXlf\n") {
		t.Errorf("the line printed %q", e.Output)
	}
}

// In fish no prompt follows a ^C, and in tmux it asks for reports of the terminal's focus: a borrower does not wait for an Enter
// after them.
func TestFreeInFish(t *testing.T) {
	t.Parallel()
	u := newSession(t, "fish", "")
	for _, p := range []string{"echo half", "\x1b[O"} {
		keys(t, u.Shell, p)
		u.do("echo lent", "lent\n", 0)
	}
	keys(t, u.Shell, "\x1b[IZ")
	u.scr.shows(t, "Z") // it reads: ^C would end its widget
	prompts, polls := len(events[PromptShown](u.scr)), 0
	u.scr.until(t, "an empty line", func() bool {
		if polls++; polls%100 == 1 { // fish does not notice a ^C that comes while it paints
			keys(t, u.Shell, "\x03")
		}
		return len(events[PromptShown](u.scr)) > prompts
	})
	u.do("echo lent", "lent\n", 0)
	keys(t, u.Shell, "\x03")
	u.do("echo lent", "lent\n", 0)
	if e := u.enter("echo own"); string(e.Output) != "own\n" {
		t.Errorf("the user's line printed %q", e.Output)
	}
}

// However much is pasted while a borrower has the editor, Keys does not wait: the next key may be the ^C that takes it back.
func TestKeysDoNotWait(t *testing.T) {
	s, scr := start2(t, nil)
	scr.prompts(t, 1)
	if err := s.Hold(t.Context()); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		var err error
		for range 17 {
			err = errors.Join(err, s.Keys(make([]byte, 64<<10)))
		}
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("it waits")
		_ = s.Close() // ends Keys
	}
}

// A command runs in a folder whatever its name.
func TestFolderOfAnyName(t *testing.T) {
	s, scr := start2(t, nil)
	scr.prompts(t, 1)
	dir := filepath.Join(t.TempDir(), "it's\na folder ")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if res, err := s.Run(t.Context(), Command{Text: "pwd", Dir: dir}); err != nil || res.Dir != dir || string(res.Output) != dir+"\n" {
		t.Errorf("ran in %q: %q, %v", res.Dir, res.Output, err)
	}
	const gone = "/a\n[exit code 0]\x1b[2J"
	if _, err := s.Run(t.Context(), Command{Text: "pwd", Dir: gone}); err == nil || strings.ContainsAny(err.Error(), "\n\x1b") {
		t.Errorf("in a folder that is not there: %q", err)
	}
}

// A shell that a borrowed command ends, or that crashes, is started again where it was.
func TestRestart(t *testing.T) {
	s, scr := start2(t, nil)
	scr.prompts(t, 1)
	dir := t.TempDir()
	do(t, s, "cd "+dir+"; export KEPT=1")
	if _, err := s.State(t.Context()); err != nil {
		t.Fatal(err)
	}
	res, err := s.Run(t.Context(), Command{Text: "kill -9 $$"})
	if err != nil || res.Status != "shell_exited" || !res.Changes {
		t.Fatalf("got %+v, %v", res, err)
	}
	if res := do(t, s, "echo $KEPT; pwd"); string(res.Output) != "1\n"+dir+"\n" {
		t.Errorf("got %q", res.Output)
	}
	if !strings.Contains(strings.Join(res.Notes, ""), "its unexported variables are gone") {
		t.Errorf("what is gone: %q", res.Notes)
	}
	if res := do(t, s, "exit 3"); *res.ExitCode != 3 || res.Changes || len(res.Notes) == 0 {
		t.Errorf("exit: %+v", res)
	}
}

// The prompt of a shell that was started again under another screen is not on that screen, and a line that is inserted then runs.
func TestRestartUnderAScreen(t *testing.T) {
	s, scr := start2(t, nil)
	scr.prompts(t, 1)
	if err := s.TakeScreen(t.Context()); err != nil {
		t.Fatal(err)
	}
	shown := scr.String()
	if err := s.Hold(t.Context()); err != nil {
		t.Fatal(err)
	}
	if res, err := s.Run(t.Context(), Command{Text: "kill -9 $$"}); err != nil || !res.Changes {
		t.Fatalf("got %+v, %v", res, err)
	}
	if _, err := s.State(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Release(); err != nil {
		t.Fatal(err)
	}
	if more := strings.TrimPrefix(scr.String(), shown); more != "" {
		t.Errorf("on the screen taken: %q", more)
	}
	if err := s.RunLine(t.Context(), "echo al''ive"); err != nil {
		t.Fatal(err)
	}
	scr.shows(t, "alive")
}

// GPG_TTY from the login files of the window named the window's terminal, on which a pinentry then drew.
func TestOwnTerminalForGPG(t *testing.T) {
	for name := range languages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := start2(t, func(o *Options) {
				home(t, o, name, "")
				o.Env = append(o.Env, "GPG_TTY=/dev/outer")
			})
			if r := do(t, s, "echo $GPG_TTY; tty"); strings.Count(string(r.Output), s.proc.term.Name+"\n") != 2 {
				t.Errorf("got %q in %s", r.Output, s.proc.term.Name)
			}
		})
	}
}

// While the program reads a secret the keyboard is the user's, and the command's time stands still. On a slow machine that time may pass
// before the keyboard is the user's: the command then has twice the time.
func TestKeyboard(t *testing.T) {
	s, _ := start2(t, nil)
	for limit := time.Second / 2; limit < patience; limit *= 2 {
		asked, done := make(chan string, 8), make(chan Result, 1)
		go func() {
			res, err := s.Run(t.Context(), Command{
				Text: "read -rsp 'secret: ' x; echo; echo got $x", Timeout: limit, Keyboard: func(why, who string) { asked <- why + " " + who },
			})
			if err != nil {
				t.Error(err)
			}
			done <- res
		}()
		var res Result
		select {
		case res = <-done:
		case why := <-asked:
			if why != "secret "+procs.Name(s.PID()) { // the shell itself is not a program that asks for passwords
				t.Fatalf("wants %q", why)
			}
			time.Sleep(limit)
			if err := s.Answer([]byte("abc\r")); err != nil {
				t.Fatal(err)
			}
			res = <-done
		}
		if res.Status == "timeout" {
			continue
		}
		if res.Status != "ok" || string(res.Output) != "secret: \ngot abc\n" {
			t.Errorf("got %+v %q", res, res.Output)
		}
		return
	}
	t.Error("its time passes while the keyboard is the user's")
}

// Under the user's errexit nothing is lent, and the error says what to do.
func TestErrexit(t *testing.T) {
	for _, name := range []string{"bash", "zsh"} {
		path := citest.Program(t, name)
		s, scr := start2(t, func(o *Options) { o.Path = path })
		scr.prompts(t, 1)
		keys(t, s, "set -e\r")
		scr.prompts(t, 2)
		var broken *BrokenError
		if _, err := s.Run(t.Context(), Command{Text: "false"}); !errors.As(err, &broken) || broken.Hint() != "set +e" {
			t.Fatalf("%s: got %v", name, err)
		}
		keys(t, s, "set +e\r")
		scr.prompts(t, 3)
		do(t, s, "false")
	}
}

// A shell that another program replaced is not typed into.
func TestExecOfAnotherShell(t *testing.T) {
	s, scr := start2(t, nil)
	scr.prompts(t, 1)
	keys(t, s, "exec sh\r")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := s.Run(ctx, Command{Text: "echo lent"}); err == nil {
		t.Fatal("ran")
	}
	keys(t, s, "echo $((40+2))\r")
	scr.shows(t, "42")
	if strings.Contains(scr.String(), "lent") || strings.Contains(scr.String(), "O~") {
		t.Errorf("screen %q", scr.String())
	}
	_ = syscall.Kill(s.PID(), syscall.SIGKILL)
}

// A borrowed command, and a held editor, left the name of a function of the integration in $_, which a user's next line may use (cd $_).
func TestLastArgument(t *testing.T) {
	for _, name := range []string{"bash", "zsh"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newSession(t, name, "")
			for what, does := range map[string]func(){"a borrowed command": func() { u.do("echo other things", "other things\n", 0) }, "a hold": func() { u.look() }} {
				u.enter("echo last 'two words'")
				does()
				does()
				if e := u.enter("echo $_"); string(e.Output) != "two words\n" {
					t.Errorf("after %s: got %q", what, e.Output)
				}
			}
		})
	}
}

// Where the user's set-up has replaced the prompt hook nothing is lent. The error names the cause and the way back: an Enter.
func TestReplacedHooks(t *testing.T) {
	for name, replace := range map[string]string{"bash": "PROMPT_COMMAND='echo mine'", "zsh": "precmd_functions=()"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := citest.Program(t, name)
			s, scr := start2(t, func(o *Options) { o.Path = path })
			scr.prompts(t, 1)
			keys(t, s, replace+"\r")
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var broken *BrokenError
			if _, err := s.Run(ctx, Command{Text: "echo lent"}); !errors.As(err, &broken) || !strings.Contains(broken.Hint(), "press Enter") {
				t.Fatalf("got %v", err)
			}
			keys(t, s, "\r")
			scr.prompts(t, 2)
			if res := do(t, s, "echo lent"); string(res.Output) != "lent\n" {
				t.Errorf("got %q", res.Output)
			}
		})
	}
}

// A function of the user's that reads a line with the line editor is a program of theirs, for which a borrower waits. It was taken
// for a prompt whose hook was replaced.
func TestUserReadsALine(t *testing.T) {
	for name, read := range map[string]string{"bash": "ask() { read -e answer; }; ask", "zsh": "ask() { vared -c answer; }; ask"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := citest.Program(t, name)
			s, scr := start2(t, func(o *Options) { o.Path = path })
			scr.prompts(t, 1)
			keys(t, s, read+"\r")
			scr.until(t, "the second line", func() bool { return strings.Count(scr.String(), string(pasteModeOn)) == 2 })
			keys(t, s, "ye")
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := s.Run(ctx, Command{Text: "echo lent"}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			if why := s.Busy(); why != "the user's command is running" {
				t.Errorf("it is busy because %q", why)
			}
			keys(t, s, "s\r")
			if res := do(t, s, "echo $answer"); string(res.Output) != "yes\n" {
				t.Errorf("got %q", res.Output)
			}
			if strings.Contains(scr.String(), "sublet") {
				t.Errorf("screen %q", scr.String())
			}
		})
	}
}

// After exec of another shell, or of another one of the same kind, nothing is lent, and the reason is returned at once. It took 6 s, and the
// reason was that the line editor is being asked.
func TestReplacedShell(t *testing.T) {
	for name := range languages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newSession(t, name, "")
			shown := strings.Count(u.scr.String(), string(pasteModeOn))
			keys(t, u.Shell, "exec "+name+"\r")
			u.scr.until(t, "the other shell", func() bool { return strings.Count(u.scr.String(), string(pasteModeOn)) > shown })
			for range 2 {
				ctx, cancel := context.WithTimeout(t.Context(), holdBound)
				defer cancel()
				var broken *BrokenError
				if _, err := u.Run(ctx, Command{Text: "true"}); !errors.As(err, &broken) || !strings.Contains(err.Error(), "has replaced it") {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

// Nothing is typed into what runs after a function of the user's has read a line without Enter.
func TestUserReadAKey(t *testing.T) {
	s, scr := start2(t, nil)
	scr.prompts(t, 1)
	keys(t, s, "ask() { read -e -n1 answer; echo be''gun; read -s; echo en''ded; }; ask\r")
	scr.until(t, "the second line", func() bool { return strings.Count(scr.String(), string(pasteModeOn)) == 2 })
	keys(t, s, "y")
	scr.shows(t, "begun")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, err := s.Run(ctx, Command{Text: "echo lent"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	keys(t, s, "\r")
	scr.shows(t, "ended")
	if res := do(t, s, "echo ${#REPLY}"); string(res.Output) != "0\n" {
		t.Errorf("it read %q", res.Output)
	}
}

// A signal that ends the widget of bash ends the hold, and a command that the widget was given is not run later. The shell was
// killed, as one that does not run what it was given.
func TestInterruptedHold(t *testing.T) {
	s, scr := start2(t, nil)
	scr.prompts(t, 1)
	pid := s.PID()
	for n := range 20 {
		if err := s.Hold(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			scr.prompts(t, 2)
		}
		res, err := s.Run(t.Context(), Command{Text: "echo lent"})
		if (n == 0 || !errors.Is(err, errNoBegin)) && (err != nil || res.Signal == "" && string(res.Output) != "lent\n") {
			t.Errorf("got %+v %q, %v", res, res.Output, err)
		}
		if err := s.Release(); err != nil {
			t.Fatal(err)
		}
		if res := do(t, s, "echo $$"); strings.TrimSpace(string(res.Output)) != strconv.Itoa(pid) {
			t.Errorf("then %+v %q, want %d", res, res.Output, pid)
		}
	}
}
