package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/creack/pty"
)

// startFiles are what the shells read when they start: each prompt is "ready" and a number that grows.
var startFiles = map[string]struct{ name, text string }{
	"bash": {".bashrc", "PS1='ready$((++n))> '\n"},
	"zsh":  {".zshrc", "setopt prompt_subst; PS1='ready$((++n))> '\n"},
	"fish": {".config/fish/config.fish", "set -g fish_greeting\nfunction fish_prompt; set -g n (math $n + 1); echo -n \"ready$n> \"; end\n"},
}

// writeStartFiles writes start-up files with a plain prompt to home.
func writeStartFiles(home, shell string) error {
	for name, text := range map[string]string{
		startFiles[shell].name: startFiles[shell].text,
		// fish begins to read every manual page where this folder is missing.
		".local/share/fish/generated_completions/none.fish": "",
	} {
		name = filepath.Join(home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			return err
		}
	}
	return nil
}

// terminal is a program on a PTY, and what it printed since it was last asked.
type terminal struct {
	cmd  *exec.Cmd
	ptmx *os.File
	work sync.WaitGroup // what reads it

	mu      sync.Mutex
	changed *sync.Cond
	// below: guarded by mu
	seen   []byte // the end of it
	last   time.Time
	ended  bool
	prompt int // the number of the newest prompt
}

// keptOutput is how much a terminal remembers: more than anything that is waited for.
const keptOutput = 4096

// openTerminal starts a program on a terminal of 80 by 24.
func openTerminal(cmd *exec.Cmd) (*terminal, error) {
	ptmx, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 80, Rows: 24})
	if err != nil {
		return nil, err
	}
	t := &terminal{cmd: cmd, ptmx: ptmx}
	t.changed = sync.NewCond(&t.mu)
	t.work.Go(t.read)
	return t, nil
}

// read ends when no program has the terminal any more.
func (t *terminal) read() {
	buf := make([]byte, 64<<10)
	for {
		n, err := t.ptmx.Read(buf)
		t.mu.Lock()
		t.seen = append(t.seen, buf[max(0, n-keptOutput):n]...)
		t.seen = t.seen[max(0, len(t.seen)-keptOutput):]
		t.last, t.ended = time.Now(), err != nil
		if i := bytes.LastIndex(t.seen, []byte("ready")); i >= 0 {
			if number, _, whole := bytes.Cut(t.seen[i+5:], []byte("> ")); whole {
				t.prompt, _ = strconv.Atoi(string(number)) // 0 where it is the text of a start-up file
			}
		}
		t.changed.Broadcast()
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// react types keys and returns the milliseconds until ok holds of what is printed behind them and the number of the newest
// prompt.
func (t *terminal) react(keys string, ok func(seen []byte, prompt int) bool) (float64, error) {
	begun := time.Now()
	timer := time.AfterFunc(time.Minute, func() { _ = t.cmd.Process.Kill() }) // ends read, and so the wait
	defer timer.Stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	if keys != "" {
		t.seen = t.seen[:0]
		if _, err := io.WriteString(t.ptmx, keys); err != nil {
			return 0, err
		}
	}
	for !ok(t.seen, t.prompt) {
		if t.ended {
			return 0, fmt.Errorf("the terminal ended after %.40q; it showed %q", keys, t.seen)
		}
		t.changed.Wait()
	}
	return float64(time.Since(begun).Nanoseconds()) / 1e6, nil
}

// settle waits until nothing was printed for 30 ms, which is more than a shell pauses while it draws its line.
func (t *terminal) settle() {
	const silence = 30 * time.Millisecond
	for {
		t.mu.Lock()
		silent := time.Since(t.last)
		t.mu.Unlock()
		if silent > silence {
			return
		}
		time.Sleep(silence - silent)
	}
}

// passThrough is the least that a program around a shell does: it copies bytes from one terminal to the other.
func passThrough(shell string) error {
	ptmx, err := pty.StartWithSize(exec.Command(shell), &pty.Winsize{Cols: 80, Rows: 24})
	if err != nil {
		return err
	}
	if _, err := term.MakeRaw(os.Stdin.Fd()); err != nil { // the terminal goes with this process
		return err
	}
	go func() { _, _ = io.Copy(ptmx, os.Stdin) }() // ends with the process
	buf := make([]byte, 32<<10)
	for {
		n, err := ptmx.Read(buf)
		if n > 0 {
			if _, err := os.Stdout.Write(buf[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return nil // the shell has ended
		}
	}
}

// echo returns the milliseconds from a key to the character on the terminal, the median of many.
func (t *terminal) echo() (float64, error) {
	typed := 0
	return quantile(0.5, 60, func() (float64, error) {
		keys := "z"
		if typed++; typed%20 == 0 {
			keys = "\x15z" // kills the line before
		}
		t.settle()
		return t.react(keys, func(seen []byte, _ int) bool { return bytes.IndexByte(seen, 'z') >= 0 })
	})
}

// enter returns the milliseconds from Enter to the next prompt, the median of many. The line before it is killed.
func (t *terminal) enter() (float64, error) {
	if _, err := t.ptmx.WriteString("\x15"); err != nil {
		return 0, err
	}
	return quantile(0.5, 30, func() (float64, error) {
		t.settle()
		t.mu.Lock()
		old := t.prompt
		t.mu.Unlock()
		return t.react("\r", func(_ []byte, prompt int) bool { return prompt > old })
	})
}

// output returns the milliseconds that a command takes which prints much.
func (t *terminal) output(command string) (float64, error) {
	t.settle()
	return t.react(command+"; echo printed 'al'l\r", func(seen []byte, _ int) bool { return bytes.Contains(seen, []byte("\nprinted all\r\n")) })
}

func (t *terminal) close() error {
	_ = t.cmd.Process.Signal(syscall.SIGHUP) // as a closed window does; it may have ended
	_ = t.cmd.Wait()                         // ended by that
	t.work.Wait()
	return t.ptmx.Close()
}

// firstPrompt returns the milliseconds from the start of a program to its first prompt, the median of some.
func firstPrompt(start func() (*terminal, error)) (float64, error) {
	return quantile(0.5, 5, func() (float64, error) {
		begun := time.Now()
		t, err := start()
		if err != nil {
			return 0, err
		}
		_, err = t.react("", func(_ []byte, prompt int) bool { return prompt > 0 })
		took := float64(time.Since(begun).Nanoseconds()) / 1e6
		t.settle()
		return took, errors.Join(err, t.close())
	})
}

// terminalRows measure on the outer terminal what the user has of the window's shell, beside that shell alone on a terminal.
func terminalRows(w *window) ([]row, error) {
	big := filepath.Join(w.dir, "big")
	if err := os.WriteFile(big, bytes.Repeat([]byte("a line of a large file, as long as lines of text are in the mean\n"), 100_000_000/65), 0o600); err != nil {
		return nil, err
	}
	letter, alone := w.shell[:1], w.shell+" alone"
	first := func(program string) func() (float64, error) {
		return func() (float64, error) { return firstPrompt(func() (*terminal, error) { return w.start(program) }) }
	}
	output := func(t *terminal, command string) func() (float64, error) {
		return func() (float64, error) { return t.output(command) }
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	barest := func() (took float64, err error) {
		t, err := w.start(self, "-through", w.path)
		if err != nil {
			return 0, err
		}
		if _, err = t.react("", func(_ []byte, prompt int) bool { return prompt > 0 }); err == nil {
			took, err = t.output("cat " + big)
		}
		return took, errors.Join(err, t.close())
	}
	return []row{
		{"T1" + letter, "key to echo, " + w.shell, "+ms", alone, 0.3, 5, w.outer.echo, w.bare.echo},
		{"T2" + letter, "Enter to prompt, " + w.shell, "+ms", alone, 1, 5, w.outer.enter, w.bare.enter},
		{"T3" + letter, "first prompt, a daemon runs, " + w.shell, "+ms", alone, 20, 5, first(w.binary), first(w.path)},
		{"T4" + letter, "seq 1 2000000, " + w.shell, "ms", alone, 1.1, 3, output(w.outer, "seq 1 2000000"), output(w.bare, "seq 1 2000000")},
		{"T5" + letter, "cat of 100 MB, " + w.shell, "ms", alone, 1.1, 3, output(w.outer, "cat "+big), output(w.bare, "cat "+big)},
		{"T6" + letter, "the window's resident memory, " + w.shell, "MB", "the 20 MB it may have", 1, 1, func() (float64, error) {
			kb, err := procField(w.outer.cmd.Process.Pid, "VmRSS:")
			return kb / 1024, err
		}, fixed(20)},
		{"T7" + letter, "cat of 100 MB, " + w.shell, "ms", "the barest pass-through around " + w.shell, 1.1, 3, output(w.outer, "cat "+big), barest},
	}, nil
}
