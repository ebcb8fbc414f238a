package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// terminal is a program on a PTY.
type terminal struct {
	t   *testing.T
	pty *os.File

	mu   sync.Mutex
	seen bytes.Buffer
	more chan struct{}
	done chan struct{}
}

func openTerminal(t *testing.T, cmd *exec.Cmd, typedAhead string) *terminal {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := master.WriteString(typedAhead); err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = sessionOnTerminal()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	term := &terminal{t: t, pty: master, more: make(chan struct{}, 1), done: make(chan struct{})}
	go func() { // ends when the last program on the terminal does
		defer close(term.done)
		p := make([]byte, 4096)
		for {
			n, err := master.Read(p)
			term.mu.Lock()
			term.seen.Write(p[:n])
			term.mu.Unlock()
			select {
			case term.more <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	return term
}

func (term *terminal) text() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.seen.String()
}

func (term *terminal) await(want string) {
	term.t.Helper()
	bound := time.After(30 * time.Second)
	for !strings.Contains(term.text(), want) {
		select {
		case <-term.more:
		case <-bound:
			term.t.Fatalf("waited 30 s for %q, have %q", want, term.text())
		}
	}
}

// On a terminal ask asks. No is the default, and what was typed before the question stood there is no answer.
func TestAskAsksOnATerminal(t *testing.T) {
	for _, c := range []struct {
		name, ahead, answer string
		status              int
		runs                bool
	}{
		{"yes", "", "y\n", 0, true},
		{"no", "", "n\n", exitDenied, false},
		{"Enter", "", "\n", exitDenied, false},
		{"yes typed ahead", "y\nyes\n", "\n", exitDenied, false},
		{"a comment", "", "use make clean\n", exitDenied, false},
		{"interrupted", "", "\x03", exitCancelled, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			root, err := os.MkdirTemp("/tmp", "sl")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(root)
			file := filepath.Join(root, "made")
			write := func(name, text string) {
				if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("config.toml", "model = \"test/m\"\n[provider.test]\nkind = \"scripted\"\nscript = \""+root+"/script.json\"\n")
			write("script.json", `[{"match": "make", "steps": [{"tool_calls": [{"name": "bash", "arguments": {"command": "touch `+file+`"}}]}, {"text": "that was it"}]}]`)
			env := append(os.Environ(), "HOME="+root, "SHELL=/bin/bash", "TERM=xterm", "SUBLET_RUNTIME_DIR="+root+"/run", "SUBLET_STATE_DIR="+root+"/state",
				"SUBLET_CONFIG="+root+"/config.toml")
			defer func() {
				stop := exec.Command("sublet", "daemon", "stop", "--drain", "0s")
				stop.Env = env
				if out, err := stop.CombinedOutput(); err != nil {
					t.Errorf("stop: %v: %s", err, out)
				}
			}()
			cmd := exec.Command("sublet", "ask", "make", "it")
			cmd.Env = env
			term := openTerminal(t, cmd, c.ahead)
			term.await("Allow this once? [y/N] ")
			if text := term.text(); !strings.Contains(text, "touch "+file) || !strings.Contains(text, "risk: ") {
				t.Errorf("the question does not show what it is about: %q", text)
			}
			if _, err := term.pty.WriteString(c.answer); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			<-term.done
			term.pty.Close()
			if got := cmd.ProcessState.ExitCode(); got != c.status {
				t.Errorf("exit status: got %d, want %d; screen: %q", got, c.status, term.text())
			}
			if _, err := os.Stat(file); (err == nil) != c.runs {
				t.Errorf("ran: got %v, want %v", err == nil, c.runs)
			}
		})
	}
}

func sessionOnTerminal() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
}
