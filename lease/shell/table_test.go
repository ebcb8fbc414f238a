package shell

import (
	"bytes"
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// fidelity is one command that must do the same typed by a person into bash on a terminal, as a user's command and as a
// borrower's. after is a user's command that shows what it left behind.
type fidelity struct {
	text  string
	after string
	exit  int
	// differs says why the ways need not agree; those named are left out: "typed" for what a person would type on
	// several lines or could not type at all, "leased" for what a guard keeps from the shell.
	differs string
	only    string // the one way it is run in; "" = all three
	out     string // what must be in the output of each way; "" = only that they agree
}

// TestFidelity is the table of T1: every construct, run in three ways, each in a fresh shell.
// P7: a text is run as it stands; there is nothing to escape.
func TestFidelity(t *testing.T) {
	t.Parallel()
	for _, c := range fidelityTable {
		t.Run(label(c.text), func(t *testing.T) {
			t.Parallel()
			c.check(t, &ways{t: t})
		})
	}
}

// TestFidelityOfMany runs more of the table in shells that live through a whole group: what one leaves behind the next
// meets, in each way the same.
func TestFidelityOfMany(t *testing.T) {
	t.Parallel()
	n := len(fidelityTable)
	for name, group := range fidelityGroups {
		n += len(group)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &ways{t: t}
			for _, c := range group {
				t.Run(label(c.text), func(t *testing.T) { c.check(t, w) })
			}
		})
	}
	if n < 250 {
		t.Errorf("the table has %d commands, want at least 250", n)
	}
}

// ways are the shells commands are run in: each is started at its first use and lives as long as t.
type ways struct {
	t    *testing.T
	bash *baseline
	lent map[string]*Shell
}

func (w *ways) typed() *baseline {
	if w.bash == nil {
		w.bash = startBaseline(w.t)
	}
	return w.bash
}

func (w *ways) shell(way string) *Shell {
	if w.lent[way] == nil {
		if w.lent == nil {
			w.lent = make(map[string]*Shell)
		}
		w.lent[way] = start(w.t, nil)
	}
	return w.lent[way]
}

func (c fidelity) check(t *testing.T, w *ways) {
	typed, typedAfter, typedExit := "", "", 0
	if !strings.Contains(c.differs, "typed") && c.only == "" {
		b := w.typed()
		typed, typedExit = b.run(t, c.text)
		if c.after != "" {
			typedAfter, _ = b.run(t, c.after)
		}
		if typedExit != c.exit {
			t.Errorf("typed into bash: got exit %d, want %d", typedExit, c.exit)
		}
	}
	for _, way := range []string{"user", "leased"} {
		if c.only != "" && c.only != way {
			continue
		}
		s := w.shell(way)
		var live collector
		res := do(t, s, Command{Text: c.text, User: way == "user", Output: live.add})
		if res.Status != "ok" || exit(res) != c.exit {
			t.Errorf("%s: got status %s, exit %d, want ok, %d\n%s", way, res.Status, exit(res), c.exit, res.Output)
		}
		if c.out != "" && !strings.Contains(string(res.Output), c.out) {
			t.Errorf("%s: got output %q, want %q in it", way, res.Output, c.out)
		}
		if strings.Contains(live.String(), "__sublet") || strings.Contains(strings.ReplaceAll(live.String(), "7701;E;00", ""), "7701") {
			t.Errorf("%s: our own text shows: %q %q", way, res.Output, live.String())
		}
		if got := string(Render([]byte(live.String()), 80)); got != string(res.Output) {
			t.Errorf("%s: live %q, rendered %q", way, got, res.Output)
		}
		if c.only != "" || strings.Contains(c.differs, "typed") || strings.Contains(c.differs, way) {
			continue
		}
		if got, want := plain(string(res.Output)), plain(typed); got != want {
			t.Errorf("%s: got output %q, typed into bash %q", way, got, want)
		}
		if c.after != "" {
			r := do(t, s, user(c.after))
			if got, want := plain(string(r.Output)), plain(typedAfter); got != want {
				t.Errorf("%s: afterwards got %q, typed into bash %q", way, got, want)
			}
		}
	}
}

func label(text string) string {
	if len(text) > 40 {
		text = text[:40]
	}
	return text
}

var (
	jobLine  = regexp.MustCompile(`(?m)^\[\d+\] \d+$`)
	lineNo   = regexp.MustCompile(`bash: (eval: )?line \d+: `)
	testDirs = regexp.MustCompile(`/tmp/(?:Test|Fuzz)[^ \n'"]*/\d+`)
	shellPID = regexp.MustCompile(`\b\d{4,7}\b`)
)

// plain takes out what differs from run to run.
func plain(s string) string {
	s = jobLine.ReplaceAllString(s, "[job]")
	s = lineNo.ReplaceAllString(s, "bash: ")
	s = testDirs.ReplaceAllString(s, "DIR")
	s = shellPID.ReplaceAllString(s, "PID")
	return strings.TrimRight(s, "\n")
}

// baseline is bash as a person uses it, without anything of ours.
type baseline struct {
	master *os.File
	out    chan []byte
	buf    []byte
	ended  func() // waits until it is gone
}

const baselinePrompt = "@@PROMPT@@"

func startBaseline(t *testing.T) *baseline {
	t.Helper()
	b := startBash(t, t.TempDir(), "--norc")
	b.run(t, "export -n PS1 PS2")
	return b
}

// startBash starts one in a home of its own and waits for its prompt.
func startBash(t *testing.T, home string, args ...string) *baseline {
	t.Helper()
	master, slave, err := openTerminal(Size{Cols: 80, Rows: 24}, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(cmp.Or(os.Getenv(envBash), "bash"), append(append([]string{"--noediting"}, args...), "-i")...)
	cmd.Args[0] = "bash"
	cmd.Env = append(withoutEnv(testEnv(t), "HOME"), "HOME="+home, "PS1="+baselinePrompt, "PS2=")
	cmd.Dir = t.TempDir()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := startUnignored(cmd); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	b := &baseline{master: master, out: make(chan []byte, 1024)}
	b.ended = sync.OnceFunc(func() { _ = cmd.Wait() })
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(b.out)
		for {
			p := make([]byte, 4096)
			n, err := master.Read(p)
			if n > 0 {
				b.out <- p[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		killSession(cmd.Process.Pid)
		master.Close()
		for range b.out {
		}
		<-done
		b.ended()
	})
	b.until(t, baselinePrompt)
	return b
}

func (b *baseline) until(t *testing.T, mark string) string {
	t.Helper()
	timer := time.NewTimer(20 * time.Second)
	defer timer.Stop()
	for {
		if i := bytes.Index(b.buf, []byte(mark)); i >= 0 {
			got := string(b.buf[:i])
			b.buf = b.buf[i+len(mark):]
			return got
		}
		select {
		case p, ok := <-b.out:
			if !ok {
				t.Fatalf("bash ended; got %q", b.buf)
			}
			b.buf = append(b.buf, p...)
		case <-timer.C:
			t.Fatalf("no %q; got %q", mark, b.buf)
		}
	}
}

// run types a line and returns what it printed, rendered, and its status.
func (b *baseline) run(t *testing.T, text string) (string, int) {
	t.Helper()
	if _, err := b.master.WriteString(text + "\n"); err != nil {
		t.Fatal(err)
	}
	raw := b.until(t, baselinePrompt)
	if _, rest, ok := strings.Cut(raw, text+"\r\n"); ok {
		raw = rest
	}
	if _, err := b.master.WriteString(" __st=$?; printf '@@%s@@' $__st; (exit $__st)\n"); err != nil {
		t.Fatal(err)
	}
	b.until(t, "\n@@")
	code := b.until(t, "@@")
	b.until(t, baselinePrompt)
	n := 0
	for _, d := range code {
		n = n*10 + int(d-'0')
	}
	return string(Render([]byte(raw), 80)), n
}

// A person's command that is typed keeps PIPESTATUS, $_ and $?; a sourced one only $?; a borrower's keeps theirs.
func TestWhatTypingKeeps(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	if r := do(t, s, user(`echo "$_"`)); strings.Contains(string(r.Output), "sublet") {
		t.Errorf("$_ at first: got %q", r.Output)
	}
	do(t, s, user("false | true | (exit 3)"))
	if r := do(t, s, user(`echo "${PIPESTATUS[*]}"`)); string(r.Output) != "1 0 3\n" {
		t.Errorf("PIPESTATUS: got %q", r.Output)
	}
	do(t, s, user("echo one two"))
	if r := do(t, s, user(`echo "$_"`)); string(r.Output) != "two\n" {
		t.Errorf("$_: got %q", r.Output)
	}
	// Questions of ours leave no trace.
	do(t, s, user("false | true | (exit 3)"))
	if _, err := s.Prompt(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Complete(t.Context(), "ech", 3); err != nil {
		t.Fatal(err)
	}
	if _, err := s.History(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := do(t, s, user(`echo "$? ${PIPESTATUS[*]}"`)); string(r.Output) != "3 1 0 3\n" {
		t.Errorf("after questions: got %q", r.Output)
	}
	for _, text := range []string{"(exit 7)", "x=1; (exit 7)", "set -e; exit 7", "set -f; trap : ERR; (exit 7)"} {
		do(t, s, user("(exit 5)\n:; (exit 5)"))
		if r := do(t, s, leased(text)); exit(r) != 7 {
			t.Errorf("%q: got exit %d", text, exit(r))
		}
		if r := do(t, s, user(`echo "$?"`)); string(r.Output) != "5\n" {
			t.Errorf("$? after a borrower's %q: got %q", text, r.Output)
		}
	}
}

// A text of a megabyte runs whole (T1: a typed line is cut at 4,095 bytes without a word).
func TestMegabyteText(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	text := "x='" + strings.Repeat("0123456789abcde\n", 64<<10) + "'; echo ${#x}; exit_code() { return 9; }; exit_code"
	for _, u := range []bool{true, false} {
		r := do(t, s, Command{Text: text, User: u})
		if string(r.Output) != "1048576\n" || exit(r) != 9 {
			t.Errorf("user %v: got %q, exit %d", u, r.Output, exit(r))
		}
	}
	long := "echo " + strings.Repeat("y", 5000) + "; (exit 7)"
	if r := do(t, s, user(long)); exit(r) != 7 || len(r.Output) != 5001 {
		t.Errorf("5000 bytes: got %d bytes, exit %d", len(r.Output), exit(r))
	}
}

// Control bytes in the text are text (T1: ^U typed would have emptied the line).
func TestControlBytes(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, u := range []bool{true, false} {
		r := do(t, s, Command{Text: "printf %s 'a\x15\x03\x04b' | od -An -c | tr -d ' '", User: u})
		if string(r.Output) != "a025003004b\n" {
			t.Errorf("user %v: got %q", u, r.Output)
		}
	}
}

// A text that is not UTF-8, and a name that is not.
func TestInvalidUTF8(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	name := filepath.Join(s.Dir(), "n\xff")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := do(t, s, leased("test -e n\xff && echo there"))
	if string(r.Output) != "there\n" {
		t.Errorf("got %q", r.Output)
	}
}
