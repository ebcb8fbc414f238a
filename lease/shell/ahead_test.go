package shell

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// newGate is a FIFO, open for both, that a command waits at for a line.
func newGate(t *testing.T) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// typeDuring types into a command once it has printed "go"; GATE in it is a file it can then read a line from.
func typeDuring(t *testing.T, s *Shell, c Command, keys ...string) Result {
	t.Helper()
	f := newGate(t)
	c.Text = strings.ReplaceAll(c.Text, "GATE", f.Name())
	var out collector
	typed := make(chan error, 1)
	ready := make(chan struct{})
	c.Output = func(p []byte) {
		out.add(p)
		if !closed(ready) && strings.Contains(out.String(), "go") {
			close(ready)
		}
	}
	go func() {
		<-ready
		for _, k := range keys {
			if _, err := s.Write([]byte(k)); err != nil {
				typed <- err
				return
			}
		}
		_, err := f.WriteString("\n")
		typed <- err
	}()
	r := do(t, s, c)
	if !closed(ready) {
		t.Fatalf("%q never printed go: %q", c.Text, r.Output)
	}
	if err := <-typed; err != nil {
		t.Fatal(err)
	}
	return r
}

// What is typed while a command runs, and what nobody reads, never runs by itself: it is told, byte for byte, whoever's
// command it was.
func TestTypeAhead(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789abcde\n", 3000/16)
	cases := []struct {
		name, text string
		keys       []string
		unread     string
		output     string // without the echo
	}{
		{"lines", "echo go; read -r _ <GATE", []string{"echo a\recho b\r"}, "echo a\necho b\n", ""},
		{"part of a line", "echo go; read -r _ <GATE", []string{"echo a\rech"}, "echo a\nech", ""},
		{"key by key", "echo go; read -r _ <GATE", []string{"l", "s", "\r", "p", "w"}, "ls\npw", ""},
		{"erased", "echo go; read -r _ <GATE", []string{"lx\x7fs\r", "junk\x15ok"}, "ls\nok", ""},
		{"half a character", "echo go; read -r _ <GATE", []string{"é\xc3"}, "é\xc3", ""},
		{"control bytes", "echo go; read -r _ <GATE", []string{"a\x04b\x16\x04\x1b[A\x01\r\x04"}, "a\x04b\x04\x1b[A\x01\n\x04", ""},
		{"a zero byte", "echo go; read -r _ <GATE", []string{"a\x00b\r"}, "a\x00b\n", ""},
		{"3000 bytes", "echo go; read -r _ <GATE", []string{long}, long, ""},
		{"a password that came too late", "stty -echo; echo go; read -r _ <GATE; stty echo", []string{"sec", "ret\r"}, "", ""},
		{"and what was typed before it", "echo go; read x; stty -echo; read -r _ <GATE; stty echo", []string{"one\rtwo"}, "two", ""},
		{"read takes one line", "echo go; read x; echo got $x; read -r _ <GATE", []string{"one\rtwo\rthr"}, "two\nthr", "got one"},
		{"a program took the terminal raw", "stty raw -echo; echo go; read -r _ <GATE; stty sane", []string{"q:x\r"}, "q:x\n", ""},
		{"and left it so", "stty raw -echo; echo go; read -r _ <GATE", []string{"q\rab"}, "q\nab", ""},
		{"state changes", "cd /; export AHEAD=1; echo go; read -r _ <GATE", []string{"ls\r"}, "ls\n", ""},
		{"its own exit in a subshell", "(set -e; echo go; read -r _ <GATE; false)", []string{"ls\r"}, "ls\n", ""},
		{"all is read", "echo go; read x; echo got $x", []string{"one\r"}, "", "got one"},
	}
	for _, rc := range []string{"", "PROMPT_COMMAND='sleep 0.05'"} {
		t.Run(fmt.Sprintf("rc %q", rc), func(t *testing.T) {
			t.Parallel()
			s := start(t, func(o *Options) { o.RC = rcFile(t, rc) })
			for _, c := range cases {
				for _, cmd := range []Command{user(c.text), leased(c.text)} {
					r := typeDuring(t, s, cmd, c.keys...)
					got := string(r.Unread)
					if strings.Contains(c.text, "stty") { // the modes may change before the kernel looks at the key
						got = strings.ReplaceAll(got, "\r", "\n")
					}
					if got != c.unread {
						t.Errorf("%s (user %v): unread is %q, want %q", c.name, cmd.User, got, c.unread)
					}
					if !strings.Contains(string(r.Output), c.output) {
						t.Errorf("%s (user %v): no %q in %q", c.name, cmd.User, c.output, r.Output)
					}
				}
				if r := do(t, s, user("echo next")); string(r.Output) != "next\n" || len(r.Unread) > 0 {
					t.Errorf("%s: then got %q, unread %q", c.name, r.Output, r.Unread)
				}
			}
			lines, err := s.History(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range lines {
				if l == "echo a" || l == "ls" || strings.Contains(l, "__sublet") {
					t.Errorf("in the history: %q", l)
				}
			}
		})
	}
}

// A key that comes in the moment of the end is read by the command, or told as unread, or comes with the next command's;
// never is it the shell's. One that came where a command had just brought the line editor in was waited for, a minute long.
func TestTypeAheadAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"true", "set -o vi"} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			typeAtTheEnd(t, text)
		})
	}
}

func typeAtTheEnd(t *testing.T, text string) {
	s := start(t, nil)
	for i := range 60 {
		cmd := user(text)
		cmd.User = i%2 == 0
		begun := make(chan struct{})
		cmd.Started = func() { close(begun) }
		typed := make(chan error, 1)
		go func() {
			<-begun
			time.Sleep(time.Duration(i%15) * 40 * time.Microsecond)
			_, err := s.Write([]byte("exit 7\r"))
			typed <- err
		}()
		took := stopwatch(t)
		r := do(t, s, cmd)
		if err := <-typed; err != nil || r.Status != "ok" || exit(r) != 0 || took() >= standWithin {
			t.Fatalf("%d: got %+v after %v, %v", i, r, took(), err)
		}
		got := string(r.Unread)
		if got == "" {
			got = string(do(t, s, user("echo next")).Unread)
		}
		if strings.ReplaceAll(got, "\r", "\n") != "exit 7\n" {
			t.Fatalf("%d: unread is %q", i, got)
		}
	}
}

// What is typed ahead behind a password that was read is kept.
func TestTypeAheadBehindAPassword(t *testing.T) {
	t.Parallel()
	f := newGate(t)
	s := start(t, nil)
	c := leased(`read -rsp "Password: " x; echo "${#x} letters"; read -r _ <` + f.Name())
	c.Keyboard = func(why string) {
		if why == "password" {
			if _, err := s.Write([]byte("hunter2\r")); err != nil {
				t.Error(err)
			}
		}
	}
	var out collector
	var typed sync.Once
	c.Output = func(p []byte) {
		out.add(p)
		if strings.Contains(out.String(), "7 letters") {
			typed.Do(func() {
				go func() {
					if _, err := s.Write([]byte("next\r")); err != nil {
						t.Error(err)
					}
					if _, err := f.WriteString("\n"); err != nil {
						t.Error(err)
					}
				}()
			})
		}
	}
	if r := do(t, s, c); string(r.Unread) != "next\n" || strings.Contains(string(r.Output), "hunter2") {
		t.Errorf("unread is %q, want what came behind the password; output %q", r.Unread, r.Output)
	}
}

// ^C during the wait for what was typed ahead loses neither the end nor the shell.
func TestTypeAheadAndInterrupt(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for i := range 20 {
		r := typeDuring(t, s, user("echo go; read -r _ <GATE"), "echo a\r", "\x03", "echo b\r")
		if r.Status != "ok" || strings.Contains(string(r.Output), "\nb\n") {
			t.Fatalf("%d: got %+v, output %q", i, r, r.Output)
		}
		if r := do(t, s, user("echo next")); string(r.Output) != "next\n" {
			t.Fatalf("%d: then got %q", i, r.Output)
		}
	}
}

// What is typed between the end of a command and its being told came with the next one, and was lost where that was an agent's.
func TestTypedWhileTheEndIsTold(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *Options) { o.RC = rcFile(t, "PROMPT_COMMAND='sleep 0.3'") })
	late := func() {
		awaitTrue(t, "the end", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.run == nil && s.running.Load()
		})
		if _, err := s.Write([]byte("late")); err != nil {
			t.Error(err)
		}
	}
	typed := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := user("sleep 1000")
	c.Started = func() {
		cancel()
		go func() { defer close(typed); late() }()
	}
	res, err := s.Run(ctx, c)
	if <-typed; err != nil || res.Status != "cancelled" || string(res.Unread) != "late" {
		t.Errorf("got %+v, unread %q, %v", res, res.Unread, err)
	}
	if _, err := s.Write([]byte("mine")); err != nil {
		t.Error(err)
	}
	if r := do(t, s, leased("true")); len(r.Unread) > 0 {
		t.Errorf("a borrower's command was told %q", r.Unread)
	}
	if r := do(t, s, user("true")); string(r.Unread) != "mine" {
		t.Errorf("unread is %q, want what was typed before the borrower's command", r.Unread)
	}
}
