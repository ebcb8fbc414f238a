package shell

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// What is told of a shell that is gone says how it went: the user must know what was lost, and whose doing it was.
func TestWordsOfALostShell(t *testing.T) {
	t.Parallel()
	const lost = " and was started again where it was; its jobs, open descriptors and history of this session are gone"
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
