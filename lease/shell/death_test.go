package shell

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What is told of a shell that is gone says how it went: the user must know what was lost, and whose doing it was.
func TestWordsOfALostShell(t *testing.T) {
	t.Parallel()
	const lost = " and was started again where it was; its jobs, open descriptors, traps and history of this session are gone, and IFS and PROMPT_COMMAND are as the start-up file has them"
	for _, c := range []struct {
		end  string
		deaf bool
		want string
	}{
		{"exit 3", false, "the shell exited with status 3"},
		{"exit 0", false, "the shell exited with status 0"},
		{"kill -KILL $$", false, "the shell was ended by SIGKILL"},
		{"kill -SEGV $$", false, "the shell was ended by SIGSEGV"},
		{"kill -KILL $$", true, "the shell no longer told when a command ends"}, // that it was killed for it is our doing
	} {
		cmd := exec.Command("sh", "-c", c.end)
		_ = cmd.Run() // its end is what is looked at
		if got := (death{status: cmd.ProcessState, deaf: c.deaf}).why(); got != c.want+lost {
			t.Errorf("%s, deaf %v: got %q, want %q", c.end, c.deaf, got, c.want+lost)
		}
	}
}

// Behind a person's command the terminal stays as they set it, but for what a shell without a line editor cannot live with:
// raw input, and printable characters that would end, stop or rub out what is typed.
func TestMendedModes(t *testing.T) {
	t.Parallel()
	was := unix.Termios{Iflag: unix.ICRNL | unix.IXON, Oflag: unix.OPOST | unix.ONLCR, Lflag: unix.ICANON | unix.ISIG | unix.ECHO}
	was.Cc[unix.VINTR], was.Cc[unix.VERASE], was.Cc[unix.VMIN], was.Cc[unix.VTIME] = 3, 8, 1, 0
	for _, c := range []struct {
		name         string
		change, want func(*unix.Termios)
	}{
		{"nothing", func(*unix.Termios) {}, func(*unix.Termios) {}},
		{"their own", func(m *unix.Termios) { m.Iflag &^= unix.IXON; m.Lflag &^= unix.ECHO; m.Cc[unix.VINTR] = 7 }, func(m *unix.Termios) {
			m.Iflag &^= unix.IXON
			m.Lflag &^= unix.ECHO
			m.Cc[unix.VINTR] = 7
		}},
		{"raw", func(m *unix.Termios) {
			m.Iflag, m.Oflag, m.Lflag = 0, 0, 0
			m.Cc[unix.VMIN], m.Cc[unix.VERASE] = 0, 'x'
		}, func(m *unix.Termios) {
			m.Iflag = unix.ICRNL // flow control and echo are theirs to do without
			m.Lflag = unix.ICANON | unix.ISIG
		}},
		{"no line would end", func(m *unix.Termios) { m.Iflag |= unix.INLCR }, func(*unix.Termios) {}},
		{"letters that interrupt and rub out", func(m *unix.Termios) { m.Cc[unix.VINTR], m.Cc[unix.VERASE] = ' ', '~' }, func(*unix.Termios) {}},
		{"no letters", func(m *unix.Termios) { m.Cc[unix.VINTR], m.Cc[unix.VERASE] = 31, 127 }, func(m *unix.Termios) { m.Cc[unix.VINTR], m.Cc[unix.VERASE] = 31, 127 }},
		{"what is no letter though it looks like one", func(m *unix.Termios) { m.Cc[unix.VMIN], m.Cc[unix.VTIME] = 'a', 'b' }, func(m *unix.Termios) {
			m.Cc[unix.VMIN], m.Cc[unix.VTIME] = 'a', 'b'
		}},
	} {
		got, want := was, was
		c.change(&got)
		c.want(&want)
		if mendModes(&got, &was); got != want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, want)
		}
	}
}

// SIGINT in the moment in which bash begins to read cost it its input now and then, at an idle prompt: it exits then, and took
// the window with it. Behind a cancel such an end is not the person's.
func TestExitBehindACancel(t *testing.T) {
	t.Parallel()
	for _, shaky := range []bool{true, false} {
		s := start(t, nil)
		do(t, s, user("x=1; cd /usr"))
		stateOf(t, s)
		if shaky {
			s.shake()
		}
		p := s.current()
		if _, err := p.write([]byte{4}); err != nil { // ^D: bash has lost its input
			t.Fatal(err)
		}
		<-p.buried
		if !shaky {
			select {
			case <-s.Exited():
			case <-time.After(patience):
				t.Error("a shell that ended by itself was started again")
			}
			continue
		}
		if got := string(do(t, s, leased("echo $x $PWD")).Output); got != "1 /usr\n" || s.current() == p {
			t.Errorf("got %q, want what was there in a new shell", got)
		}
	}
}

// So does one that dies of it while the next command waits for it to settle.
func TestExitWhileItSettles(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	do(t, s, user("x=1"))
	stateOf(t, s)
	s.shake()
	p := s.current()
	if _, err := p.write([]byte("exit 127\n")); err != nil { // a line of which nothing is known here
		t.Fatal(err)
	}
	if got := string(do(t, s, leased("echo $x")).Output); got != "1\n" || s.current() == p {
		t.Errorf("got %q, want what was there in a new shell", got)
	}
}

// TMOUT ends a shell, and sublet with it, also where the last it got was a signal that was never seen to have settled: it was
// started again, and again, for its end counted as the signal's.
func TestLogoutBehindASignal(t *testing.T) {
	t.Parallel()
	for _, strike := range []func(s *Shell){
		func(s *Shell) { cancelled(t, s, leased("echo go; sleep 1000")) },
		func(s *Shell) {
			if _, err := s.Write([]byte{3}); err != nil {
				t.Error(err)
			}
		},
	} {
		s := start(t, func(o *Options) { o.RC = rcFile(t, "TMOUT=2") })
		pid := s.PID()
		strike(s)
		stateOf(t, s)
		select {
		case <-s.Exited():
		case <-time.After(patience):
			t.Errorf("not ended; the shell %d was %d", s.PID(), pid)
		}
	}
}

// The user's errexit is not for what is asked of their shell: a folder that is gone, a function that was made read-only.
func TestQuestionsUnderErrexit(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *Options) { o.Env = append(o.Env, "T="+o.Dir) })
	do(t, s, user("f() { echo mine; }; mkdir d; cd d"))
	before := stateOf(t, s)
	do(t, s, leased("cd /usr; f() { echo theirs; }"))
	after := stateOf(t, s)
	do(t, s, user(`rmdir "$OLDPWD"; readonly -f f; trap 'echo trapped' ERR`))
	do(t, s, user("set -eE"))
	pid := s.PID()
	if err := s.Undo(t.Context(), before, after); err == nil || !strings.Contains(err.Error(), "functions: f") {
		t.Errorf("got %v, want the function's name", err)
	}
	var dir *DirError
	if _, err := s.Run(t.Context(), Command{Text: "true", Dir: "/nonexistent"}); !errors.As(err, &dir) {
		t.Errorf("got %v, want a *DirError", err)
	}
	do(t, s, leased("mkdir \"$T/gone\"; cd \"$T/gone\"; rmdir \"$T/gone\"; exit 0"))
	if got := string(do(t, s, user("echo whole")).Output); got != "whole\n" || s.PID() != pid {
		t.Errorf("got %q; the shell %d was %d", got, s.PID(), pid)
	}
}

// Nor does that of the start-up file end a shell that is started again where something there is read-only; and what is there
// anyway is not told as lost.
func TestRespawnUnderErrexit(t *testing.T) {
	t.Parallel()
	for _, rc := range []string{"readonly PS1='rc> '; set -e", "readonly X=1; set -e", "f() { :; }; readonly -f f; set -e", "f() { :; }; readonly -f f; readonly PS1", "set -e"} {
		t.Run(rc, func(t *testing.T) {
			t.Parallel()
			var told collector
			s := start(t, func(o *Options) { o.RC, o.Unowned = rcFile(t, rc), told.add })
			do(t, s, user("x=kept; g() { echo function; }; cd /usr"))
			stateOf(t, s)
			do(t, s, user("kill -9 $$"))
			if got := string(do(t, s, user("g; echo $x $PWD")).Output); got != "function\nkept /usr\n" {
				t.Errorf("got %q", got)
			}
			if got := told.String(); strings.Contains(got, "does not take") || strings.Contains(got, "readonly variable") {
				t.Errorf("told %q", got)
			}
			if flags := string(do(t, s, user("echo $-")).Output); strings.Contains(flags, "e") != strings.Contains(rc, "set -e") {
				t.Errorf("options are %q", flags)
			}
		})
	}
}
