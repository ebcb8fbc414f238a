package shell

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A borrower never ends or bends the user's shell (design section 5, guards; T1: exit 3, exec x, set -e; false).
func TestGuards(t *testing.T) {
	t.Parallel()
	const look = `echo "$-|$SHELLOPTS|$BASHOPTS|$(printf %q "$IFS")|$(trap -p)|$(umask)|$({ ulimit -Sa; ulimit -Ha; } | cksum)"; test -t 0 -a -t 1 -a -t 2 && echo ttys`
	cases := []struct {
		name, text string
		exit       int
		out        string // in its output
		stays      string // a user's command, and what it prints, that shows what was kept
		prints     string
		note       string // in the notes
		respawned  bool
	}{
		{name: "exit", text: "cd /usr; export KEPT=1; exit 3", exit: 3, stays: "echo $PWD $KEPT", prints: "/usr 1", note: "subshell"},
		{name: "exit in a function", text: "die() { echo dying; exit 4; }; die; echo no", exit: 4, out: "dying\n", stays: "type die | head -1", prints: "die is a function", note: "subshell"},
		{name: "exit in a pipeline", text: "echo x | { cat; exit 2; }", exit: 2, out: "x\n"},
		{name: "limits", text: "ulimit -v 4000000; ulimit -S -t 60; ulimit -Sv; cd /usr", out: "4000000\n", stays: "pwd", prints: "/usr", note: "because of `ulimit`"},
		{name: "limits shown", text: "ulimit -n >/dev/null; ulimit -Ha >/dev/null; x=kept", stays: "echo $x", prints: "kept", note: ""},
		{name: "limits by eval", text: "cd /usr; eval 'ulimit -Sn' 100; ulimit -Sn", out: "100\n", stays: "pwd", prints: "/usr", note: "because of `ulimit`"},
		{name: "exit by eval", text: "cd /usr; eval 'eval \"exit 3\"'", exit: 3, stays: "pwd", prints: "/usr", note: "because of `exit`"},
		{name: "errexit by eval", text: "eval 'set -e; false'; echo no", exit: 1, note: "because of `set -e`"},
		{name: "limits in an unfinished text", text: "ulimit -v 4000000\n(", exit: 2, out: "syntax error"},
		// Bash 5.2.15 damages its memory where a sourced text ends within an assigned $( ).
		{name: "unfinished", text: "x=$(grep foo", exit: 2, out: "unexpected EOF", note: "because of `unfinished syntax`"},
		{name: "unfinished behind a quote", text: "cd /usr\nx=\"$(foo \"bar)\"", exit: 2, out: "unexpected EOF", stays: "pwd", prints: "/usr", note: "because of `unfinished syntax`"},
		{name: "exec", text: "exec echo replaced", out: "replaced\n", note: "subshell"},
		{name: "exec of a missing program", text: "exec /nonexistent/x", exit: 126 + 1},
		{name: "builtin exit", text: "builtin exit 5", exit: 5, note: "subshell"},
		{name: "command exit", text: "command exit 6", exit: 6, note: "subshell"},
		{name: "the commonest prologue", text: "set -euo pipefail\ncd /etc\nfalse\necho no", exit: 1, stays: "pwd", prints: "/etc", note: "subshell"},
		{name: "errexit by name", text: "set -o errexit; false; echo no", exit: 1},
		{name: "unset variable", text: "set -u; echo $NOSUCH; echo no", exit: 1, out: "unbound variable"},
		{name: "trap EXIT runs at its end", text: "trap 'echo bye' EXIT; echo hi", out: "hi\nbye\n"},
		{name: "trap EXIT with exit", text: "trap 'echo bye' EXIT; exit 3", exit: 3, out: "bye\n"},
		{name: "trap INT", text: "trap '' INT; trap 'echo d' DEBUG; trap 'echo e' ERR; trap 'echo r' RETURN; true"},
		{name: "trap of every signal", text: "for i in {1..64}; do trap ': x' $i 2>/dev/null; done; unset i"},
		{name: "IFS", text: "IFS=,; x=a,b; echo $x", out: "a b"},
		{name: "IFS unset", text: "unset IFS"},
		{name: "exec redirection", text: "exec >/dev/null 2>&1 </dev/null; echo hidden"},
		{name: "closed descriptors", text: "exec <&- >&- 2>&-"},
		{name: "options", text: "set -f -C -x -v -o physical; shopt -s extdebug nullglob; shopt -u expand_aliases"},
		{name: "keyword", text: "set -k; shopt -s lastpipe"},
		{name: "noglob and posix", text: "set -o posix; set -f"},
		{name: "set -e by a file", text: "echo 'set -e; set -u' > g.sh; . ./g.sh; rm g.sh; false", exit: 1},
		{name: "return at the top", text: "echo a; return 7; echo b", exit: 7, out: "a\n"},
		{name: "break and continue", text: "break; continue; echo on", out: "on"},
		{name: "exit by a file", text: "echo 'exit 9' > bye.sh; cd /usr; . \"$OLDPWD/bye.sh\"", exit: 9, note: "started again", respawned: true},
		{name: "kill -9", text: "cd /var; kill -9 $$", exit: -1, note: "started again", respawned: true},
		{name: "kill -TERM", text: "kill -TERM $$; echo deaf", out: "deaf"},
		{name: "kill -HUP", text: "kill -HUP $$; sleep 1", exit: -1, note: "started again", respawned: true},
		{name: "suspend", text: "suspend; echo resumed", out: "resumed"},
		{name: "PROMPT_COMMAND unset", text: "unset PROMPT_COMMAND PS0; echo x", out: "x"},
		{name: "PROMPT_COMMAND set", text: "PROMPT_COMMAND='false; true'; echo x", out: "x"},
		{name: "PROMPT_COMMAND array", text: "PROMPT_COMMAND=('false' 'true')", stays: "echo ok", prints: "ok"},
		{name: "stty", text: "stty raw -echo; echo x", out: "x"},
		{name: "stty of the size", text: "stty cols 200 rows 5; tput cols", out: "200", stays: "stty size", prints: "24 80"},
		{name: "function named like a builtin", text: "printf() { echo fake; }; printf x; unset -f printf", out: "fake"},
		{name: "integer _", text: "declare -i _; cd /usr", exit: 1, note: "because of `declare _`"},
		{name: "read-only _", text: "readonly _", out: "readonly variable", note: "because of `readonly _`"},
		{name: "aliases named like reserved words", text: "alias {=echo }=echo [[=false !=false\n:"},
		{name: "alias named like a builtin", text: "alias printf=false; alias echo=false"},
		{name: "history", text: "history -c; history -s forged; fc -l >/dev/null"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil)
			do(t, s, user("FOO=before"))
			before := string(do(t, s, user(look)).Output)
			if !strings.Contains(before, "ttys") {
				t.Fatalf("look: got %q", before)
			}
			modes := sttyOf(t, s)
			pid := s.PID()
			res := do(t, s, leased(c.text))
			if res.Status != "ok" && !c.respawned || exit(res) != c.exit {
				t.Errorf("got status %s, exit %d, want exit %d; %q", res.Status, exit(res), c.exit, res.Output)
			}
			if !strings.Contains(string(res.Output), c.out) {
				t.Errorf("got %q, want %q in it", res.Output, c.out)
			}
			if strings.Contains(string(res.Output), "__sublet") {
				t.Errorf("our own text shows: %q", res.Output)
			}
			if notes := strings.Join(res.Notes, "\n"); !strings.Contains(notes, c.note) {
				t.Errorf("got notes %q, want %q", notes, c.note)
			}
			if res.Respawned != c.respawned || (s.PID() != pid) != c.respawned {
				t.Errorf("got respawned %v (pid %d, was %d), want %v", res.Respawned, s.PID(), pid, c.respawned)
			}
			do(t, s, user("unalias printf echo 2>/dev/null")) // an alias is state the borrower may leave
			if r := do(t, s, user("builtin echo $FOO")); string(r.Output) != "before\n" {
				t.Errorf("variable: got %q", r.Output)
			}
			after := string(do(t, s, user(look)).Output)
			if after != before {
				t.Errorf("the shell was bent:\nbefore %q\nafter  %q", before, after)
			}
			if m := sttyOf(t, s); m != modes {
				t.Errorf("terminal: got %s, want %s", m, modes)
			}
			if c.stays != "" {
				if r := do(t, s, user(c.stays)); string(r.Output) != c.prints+"\n" {
					t.Errorf("%s: got %q, want %q", c.stays, r.Output, c.prints)
				}
			}
		})
	}
}

func sttyOf(t *testing.T, s *Shell) string {
	return string(do(t, s, user("stty -g")).Output)
}

// The user's own exit ends the shell with its status; so does the end of what they exec'ed.
func TestUserExit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"exit 3": 3, "exit": 0, "exec true": 0, "exec sh -c 'exit 8'": 8, "set -e; false": 1} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil)
			res := do(t, s, user(text))
			if res.Status != "shell_exited" || exit(res) != want {
				t.Errorf("got %s, exit %d", res.Status, exit(res))
			}
			await(t, s.Exited(), "the shell's end")
			if s.ExitStatus() != want {
				t.Errorf("got exit status %d, want %d", s.ExitStatus(), want)
			}
			if _, err := s.Run(t.Context(), user("true")); err != ErrClosed {
				t.Errorf("got %v, want ErrClosed", err)
			}
			if _, err := s.Write([]byte("x")); err != ErrClosed {
				t.Errorf("got %v, want ErrClosed", err)
			}
		})
	}
}

func await(t testing.TB, c <-chan struct{}, what string) {
	t.Helper()
	timer := time.NewTimer(10 * time.Second)
	defer timer.Stop()
	select {
	case <-c:
	case <-timer.C:
		t.Fatalf("waited 10 s for %s", what)
	}
}

// A crash of the shell, also an idle one, starts another where it was (T1a: shell exit shows as a wait status).
func TestRespawn(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	do(t, s, user("cd /usr; export KEPT='a b'; alias hi='echo alias'; f() { echo function; }; ARR=(1 '2 3'); shopt -s nullglob; plain=5"))
	if _, err := s.State(t.Context()); err != nil {
		t.Fatal(err)
	}
	res := do(t, s, user("kill -9 $$"))
	if res.Status != "shell_exited" || !res.Respawned || res.Signal != "SIGKILL" || res.ExitCode != nil || res.Dir != "/usr" {
		t.Errorf("got %+v", res)
	}
	check := func() {
		t.Helper()
		r := do(t, s, user(`echo "$PWD|$KEPT|$(hi)|$(f)|${ARR[1]}|$plain"; shopt -q nullglob && echo on`))
		if got, want := string(r.Output), "/usr|a b|alias|function|2 3|5\non\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	check()
	pid := s.PID()
	if err := exec.Command("kill", "-9", itoa(pid)).Run(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); s.PID() == pid; {
		if time.Now().After(deadline) {
			t.Fatal("not respawned")
		}
		time.Sleep(5 * time.Millisecond) // only the kernel can tell when the shell is reaped
	}
	check()
	select {
	case <-s.Exited():
		t.Error("a crash closed Exited")
	default:
	}
}

func itoa(n int) string {
	var b []byte
	for ; n > 0; n /= 10 {
		b = append([]byte{byte('0' + n%10)}, b...)
	}
	return string(b)
}

// A command's directory is entered, and stays; one that cannot be entered is told before anything runs.
func TestDir(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	r := do(t, s, Command{Text: "pwd", Dir: "/usr"})
	if string(r.Output) != "/usr\n" || r.Dir != "/usr" || s.Dir() != "/usr" {
		t.Errorf("got %q in %s", r.Output, r.Dir)
	}
	odd := filepath.Join(t.TempDir(), "a 'b'\n$(touch pwned)")
	if err := os.Mkdir(odd, 0o700); err != nil {
		t.Fatal(err)
	}
	r = do(t, s, Command{Text: "pwd", Dir: odd})
	if string(r.Output) != odd+"\n" || r.Dir != odd {
		t.Errorf("got %q in %q", r.Output, r.Dir)
	}
	_, err := s.Run(t.Context(), Command{Text: "touch /tmp/should-not-run", Dir: "/nonexistent"})
	if de, ok := err.(*DirError); !ok || de.Dir != "/nonexistent" {
		t.Errorf("got %v, want *DirError", err)
	}
	if r := do(t, s, user("echo $?")); string(r.Output) != "0\n" {
		t.Errorf("got %q", r.Output)
	}
}

// What a command makes of PWD is not where the shell is: the next one would be judged for another folder than it runs in.
func TestDirIsWhereTheShellIs(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only /proc tells the folder of another process")
	}
	for _, text := range []string{
		"cd /etc; PWD=/usr", "cd /etc; read PWD <<< /usr", "cd /etc; PWD=/nonexistent; true", "declare -n PWD=mine; cd /etc; mine=/usr",
		"readonly PWD; cd /etc", "declare -u PWD; cd /etc", "cd /etc; unset PWD", "set -e; cd /etc; PWD=/usr",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			for _, u := range []bool{false, true} {
				s := start(t, func(o *Options) { o.Dir = "/usr" })
				want := "/etc"
				if strings.HasPrefix(text, "set -e") && !u {
					want = "/usr" // so the subshell handed it back, and there the shell went
				}
				r := do(t, s, Command{Text: text, User: u})
				if st := stateOf(t, s); r.Dir != want || s.Dir() != want || st.Dir != want {
					t.Errorf("user %v: told %s, then %s, then %s, want %s", u, r.Dir, s.Dir(), st.Dir, want)
				}
				if r := do(t, s, leased("readlink /proc/$$/cwd")); string(r.Output) != want+"\n" {
					t.Errorf("user %v: it is in %s, want %s", u, r.Output, want)
				}
			}
		})
	}
	// The way there may lead through a link, and a folder may be gone.
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/etc", link); err != nil {
		t.Fatal(err)
	}
	s := start(t, nil)
	for _, c := range [][2]string{{"cd " + link, link}, {"x=1", link}, {"mkdir " + dir + "/d; cd " + dir + "/d; rmdir ../d", dir + "/d"}, {"cd /", "/"}} {
		if r := do(t, s, leased(c[0])); r.Dir != c[1] || stateOf(t, s).Dir != c[1] {
			t.Errorf("%s: told %s, then %s", c[0], r.Dir, stateOf(t, s).Dir)
		}
	}
}

// What a borrower takes from the shell's own commands is there again for the next one, and no state is lost over it.
func TestNeededBuiltins(t *testing.T) {
	t.Parallel()
	for _, rc := range []string{"", "PROMPT_COMMAND=:"} {
		s := start(t, func(o *Options) { o.RC = rcFile(t, "f() { :; }; alias a=b; "+rc) })
		before := stateOf(t, s)
		for _, text := range []string{
			"function . { echo fake; }",
			"function exec { echo fake; }",
			"enable -n declare compgen alias umask hash read printf builtin",
			"eval 'enable -n .; function . { echo fake; }'",
		} {
			do(t, s, leased(text))
			if got := Difference(before, stateOf(t, s)); got != "" {
				t.Errorf("%q: %s: told %q", rc, text, got)
			}
			if r := do(t, s, leased("echo hi")); string(r.Output) != "hi\n" {
				t.Errorf("%q: %s: the next command printed %q", rc, text, r.Output)
			}
		}
	}
}

// A read-only IFS hides no function.
func TestFunctionsUnderReadOnlyIFS(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	do(t, s, user("f() { :; }; IFS=x; readonly IFS"))
	do(t, s, leased("g() { :; }"))
	if st := stateOf(t, s); len(st.Functions) != 2 || st.Functions["g"] != "g () \n{ \n    :\n}" {
		t.Errorf("got %q", st.Functions)
	}
}
