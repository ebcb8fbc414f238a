package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
)

// startFiles are what the shells read when they start: each prompt is "ready" and a number that grows.
var startFiles = map[string]struct{ name, text string }{
	"bash": {".bashrc", "PS1='ready$((++n))> '\n"},
	"zsh":  {".zshrc", "setopt prompt_subst; PS1='ready$((++n))> '\n"},
	"fish": {".config/fish/config.fish", "set -g fish_greeting\nfunction fish_prompt; set -g n (math $n + 1); echo -n \"ready$n> \"; end\n"},
}

// writeStartFiles writes start-up files with a plain prompt to home.
func writeStartFiles(home, shell string) {
	for name, text := range map[string]string{
		startFiles[shell].name: startFiles[shell].text,
		// fish begins to read every manual page where this folder is missing.
		".local/share/fish/generated_completions/none.fish": "",
	} {
		name = filepath.Join(home, name)
		check(os.MkdirAll(filepath.Dir(name), 0o700))
		check(os.WriteFile(name, []byte(text), 0o600))
	}
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
func openTerminal(cmd *exec.Cmd) *terminal {
	t := &terminal{cmd: cmd, ptmx: must(pty.StartWithSize(cmd, &pty.Winsize{Cols: 80, Rows: 24}))}
	t.changed = sync.NewCond(&t.mu)
	t.work.Go(t.read)
	return t
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

// react types keys and returns the time until ok holds of what is printed behind them and the number of the newest prompt.
func (t *terminal) react(keys string, ok func(seen []byte, prompt int) bool) float64 {
	begun := time.Now()
	timer := time.AfterFunc(time.Minute, func() { _ = t.cmd.Process.Kill() }) // ends read, and so the wait
	defer timer.Stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	if keys != "" {
		t.seen = t.seen[:0]
		must(t.ptmx.WriteString(keys))
	}
	for !ok(t.seen, t.prompt) {
		if t.ended {
			check(fmt.Errorf("the terminal ended after %.40q; it showed %q", keys, t.seen))
		}
		t.changed.Wait()
	}
	return since(begun)
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

// echo measures the time from a key to the character on the terminal.
func (t *terminal) echo() measure {
	typed := 0
	return median(60, func() float64 {
		keys := "z"
		if typed++; typed%20 == 0 {
			keys = "\x15z" // kills the line before
		}
		t.settle()
		return t.react(keys, func(seen []byte, _ int) bool { return bytes.IndexByte(seen, 'z') >= 0 })
	})
}

// enter returns the time from Enter to the next prompt. A line before it is killed.
func (t *terminal) enter() float64 {
	must(t.ptmx.WriteString("\x15"))
	t.settle()
	t.mu.Lock()
	old := t.prompt
	t.mu.Unlock()
	return t.react("\r", func(_ []byte, prompt int) bool { return prompt > old })
}

// output returns the time that a command takes which prints much.
func (t *terminal) output(command string) float64 {
	t.settle()
	return t.react(command+"; echo printed 'al'l\r", func(seen []byte, _ int) bool { return bytes.Contains(seen, []byte("\nprinted all\r\n")) })
}

func (t *terminal) close() error {
	_ = t.cmd.Process.Signal(syscall.SIGHUP) // as a closed window does; it may have ended
	_ = t.cmd.Wait()                         // ended by that
	t.work.Wait()
	return t.ptmx.Close()
}
