package shell

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// What a wreck leads to.
const (
	stays    = "stays"    // the shell is as it was, or as the user wants it
	again    = "again"    // it is started again where it was
	leaves   = "leaves"   // it ends, for a person wanted that
	subshell = "subshell" // it never met the shell
)

// Whatever a text does to the shell it runs in, a borrower's or a person's: afterwards the shell is whole, or started again
// where it was, and who wrote it is told: a borrower by a note, a person by a line or by the reason of the new start.
func TestWrecks(t *testing.T) {
	t.Parallel()
	const reopened = "it is the terminal again"
	const mended = "it was undone"
	const anew = "started again where it was"
	cases := []struct {
		text         string
		leased, user string
		note         string // to the borrower
		says         string // to the person
	}{
		{"exit 3", subshell, leaves, "ran in a subshell because of `exit`", ""},
		{"exec /bin/true", subshell, leaves, "ran in a subshell because of `exec`", ""},
		{"kill -9 $$", again, again, "ended by SIGKILL and was " + anew, "ended by SIGKILL and was " + anew},
		{"exec <&-", stays, stays, "what `exec` set was put back", reopened},
		{"exec </dev/null", stays, stays, "what `exec` set was put back", reopened},
		{"exec >/dev/null", stays, stays, "what `exec` set was put back", reopened},
		{"exec 2>/dev/null", stays, stays, "what `exec` set was put back", reopened},
		{"exec 2>&-", stays, stays, "what `exec` set was put back", reopened},
		{"exec <&- >&- 2>&-", stays, stays, "what `exec` set was put back", reopened},
		{"exec 2>&-; exit_() { :; }; set -x; true", stays, stays, "what `exec` set was put back", ""},
		{"stty -echo raw", stays, stays, "modes changed (stty)", ""},
		{"stty -icanon -isig -opost", stays, stays, "modes changed (stty)", ""},
		{"stty inlcr igncr", stays, stays, "modes changed (stty)", ""},
		{"stty intr x quit e", stays, stays, "modes changed (stty)", ""},
		{"stty cols 20 rows 5", stays, stays, "modes changed (stty)", ""},
		{"stty 0 2>/dev/null; true", stays, stays, "modes changed (stty)", ""},
		{"trap '' INT", stays, stays, "what `trap` set was put back", ""},
		{"trap 'return 1' DEBUG; shopt -s extdebug", stays, again, "what `trap` set was put back", anew},
		{"set -e", subshell, stays, "ran in a subshell because of `set -e`", ""},
		{"set -u; set -o posix; set -n", stays, stays, "", ""},
		{"set -f -C -a -k", stays, stays, "", ""},
		{"set -r", again, again, anew, anew},
		{"IFS=0123456789e_", stays, stays, "", ""},
		{"PATH=; unset HOME", stays, stays, "", ""},
		{"alias printf=false eval=false set=false local=false return=false unset=false trap=false read=false exec=false", stays, stays, "", ""},
		{"alias if=false then=false fi=false while=false for=false do=false '[['=false", stays, stays, "", ""},
		{"alias __sublet_h=false __sublet_z=false __sublet_e=false __sublet_g=false __sublet_q=false", stays, stays, "", ""},
		{"__sublet_h() { :; }", stays, stays, "", ""},
		{"unset -f __sublet_h __sublet_z", stays, stays, "", ""},
		{"unset __sublet_dir", again, again, anew, anew},
		{`rm -rf "$__sublet_dir"`, again, again, anew, anew}, // as a cleaner of /tmp may
		{"readonly __sublet_n=x", again, again, anew, anew},
		{"readonly __sublet_w __sublet_ok __sublet_st", again, again, anew, anew},
		{"printf() { :; }; source() { :; }; history() { :; }; unset() { :; }; cd() { :; }; read() { :; }", stays, stays, "", ""},
		{"set() { :; }; local() { :; }; shopt() { :; }; return() { :; }; eval() { :; }; trap() { :; }", stays, stays, "", ""},
		{"builtin() { :; }", stays, stays, "", mended},
		{"builtin() { :; }; unset() { :; }; enable() { :; }", stays, stays, "", mended},
		{"function . { :; }; exec() { :; }", stays, stays, "", ""},
		{"enable -n printf", stays, stays, "", mended},
		{"enable -n builtin", stays, stays, "", mended},
		{"enable -n . eval return set local read history shopt unset trap declare alias", stays, stays, "", ""},
		{"shopt -u sourcepath expand_aliases promptvars", stays, stays, "", ""},
		{"unset PROMPT_COMMAND PS0", stays, stays, "", ""},
		{"readonly PS0 PROMPT_COMMAND", stays, stays, "", ""},
		{"trap 'echo R' RETURN; trap - EXIT", subshell, stays, "ran in a subshell because of `trap EXIT`", ""},
		{"ulimit -n 12", subshell, stays, "ran in a subshell because of `ulimit`", ""},
		{"umask 777", stays, stays, "", ""},
		{"sleep 100 & disown -a", stays, stays, "", ""},
		{"kill -STOP $$", stays, stays, "", ""},
		{"kill -INT $$", stays, stays, "", ""},
		{"history -c; set +o history", stays, stays, "", ""},
		{"LC_ALL=xx_YY TERM= COLUMNS=1", stays, stays, "", ""},
	}
	for _, c := range cases {
		for _, u := range []bool{false, true} {
			want := c.leased
			name := "leased " + c.text
			if u {
				name, want = "user "+c.text, c.user
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var said collector
				s := start(t, func(o *Options) { o.Unowned = said.add })
				do(t, s, user("cd /usr; export KEPT=1"))
				pid := s.PID()
				r := do(t, s, Command{Text: c.text, User: u, Output: said.add})
				if want == leaves {
					if await(t, s.Exited(), "the shell's end"); r.Status != "shell_exited" {
						t.Errorf("got %+v", r)
					}
					return
				}
				if (want == again) != r.Respawned || (s.PID() == pid) == r.Respawned || r.Respawned != strings.Contains(r.Why, anew) {
					t.Errorf("got respawned %v (%q), pid %d then %d; want it to %s", r.Respawned, r.Why, pid, s.PID(), want)
				}
				notes := strings.Join(r.Notes, "\n")
				if !u && (!strings.Contains(notes, c.note) || (c.note == "") != (notes == "")) {
					t.Errorf("the borrower is told %q, want %q", notes, c.note)
				}
				if strings.HasPrefix(c.text, "set -e") && u {
					u = false // a person's set -e ends their shell at the first failure, as in any terminal
				}
				whole(t, s, u)
				if told := said.String() + r.Why; u && !strings.Contains(told, c.says) {
					t.Errorf("the person is told %q, want %q", told, c.says)
				}
				if strings.Contains(said.String(), "{ \\__sublet") || c.says == "" && !r.Respawned && strings.Contains(said.String(), "7701;") {
					t.Errorf("our own text shows: %q", said.String())
				}
			})
		}
	}
}

// whole checks that a shell does all that one does, in /usr, with KEPT=1.
func whole(t *testing.T, s *Shell, person bool) {
	t.Helper()
	for _, u := range []bool{true, false, true} {
		for _, q := range []struct {
			text, want string
			exit       int
		}{
			{`\echo still; /bin/sh -c 'exit 4'`, "still\n", 4},
			{`x=1; \echo "$KEPT $PWD"`, "1 /usr\n", 0},
			{"/bin/echo program", "program\n", 0},
			{`/bin/sh -c 'test -t 0 && test -t 1 && test -t 2 && echo terminal'`, "terminal\n", 0},
		} {
			if !person && q.exit != 0 {
				continue
			}
			r := do(t, s, Command{Text: q.text, User: u})
			got := string(r.Output)
			got = withoutTrace(strings.TrimSuffix(got, "R\n")) // the user's own trap, and set -x
			if got != q.want || exit(r) != q.exit || r.Status != "ok" {
				t.Errorf("%q (user %v): got %s, exit %d, %q", q.text, u, r.Status, exit(r), r.Output)
			}
		}
	}
	if st, err := s.State(t.Context()); err != nil || st.Dir != "/usr" {
		t.Errorf("state: got %s, %v", st.Dir, err)
	}
	if p, err := s.Prompt(t.Context()); err != nil || !strings.Contains(p.Text, ":/usr") && !strings.Contains(p.Text, "bash") {
		t.Errorf("prompt: got %q, %v", p, err)
	}
	for end := time.Now().Add(patience); ; { // it is given up after 500 ms, which a busy machine may need
		_, cs, err := s.Complete(t.Context(), "ech", 3)
		if err == nil && len(cs) == 0 && time.Now().Before(end) {
			continue
		}
		if err != nil || len(cs) == 0 {
			t.Errorf("complete: got %v, %v", cs, err)
		}
		break
	}
	if _, err := s.History(t.Context()); err != nil {
		t.Errorf("history: %v", err)
	}
}

// A shell that loses its hook while nothing runs is replaced, too, and the person is told (nothing waits without a bound).
func TestDeafWhileIdle(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"PROMPT_COMMAND=; readonly PROMPT_COMMAND", "ulimit -f 0"} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			var said collector
			s := start(t, func(o *Options) { o.Unowned = said.add })
			do(t, s, user("cd /usr; export KEPT=1"))
			pid := s.PID()
			r := do(t, s, user(text))
			whole(t, s, true)
			// One that ends right behind the record of its command is still in that command's hands.
			told := said.String() + strings.Join(r.Notes, " ")
			if s.PID() == pid || !strings.Contains(told, "the shell ") || !strings.Contains(told, "started again where it was") {
				t.Errorf("got pid %d, was %d; told %q", s.PID(), pid, told)
			}
		})
	}
}

// A person's ERR trap sees what they type, and nothing of ours.
func TestErrTrap(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	do(t, s, user("trap 'echo E' ERR"))
	for text, want := range map[string]string{"false": "E\n", "true": "", "(exit 3)": "E\n", "echo $?": "0\n"} {
		do(t, s, user("true"))
		if r := do(t, s, user(text)); string(r.Output) != want {
			t.Errorf("%s: got %q, want %q", text, r.Output, want)
		}
	}
	do(t, s, user("(exit 3)"))
	if r := do(t, s, user("echo $?")); string(r.Output) != "3\n" {
		t.Errorf("$?: got %q", r.Output)
	}
}

// A person's exec of something that stays: it is theirs, a line says what it means, nothing of ours is typed into it, and the
// shell ends with it.
func TestExecStays(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("what a process runs is looked up in /proc")
	}
	for text, script := range map[string][]keys{
		"exec bash --norc --noprofile -i": {{"agents cannot use it", "echo in-$((1+1))\n"}, {"in-2", "exit 6\n"}},
		"exec sh -i":                      {{"agents cannot use it", "echo in-$((1+1))\n"}, {"in-2", "exit 6\n"}},
		"exec cat":                        {{"`cat` has taken the place", "one\n"}, {"one\r\none", "\x04"}},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil)
			r := drive(t, s, user(text), script)
			want := map[bool]int{true: 0, false: 6}[text == "exec cat"]
			if r.Status != "shell_exited" || exit(r) != want || strings.Contains(string(r.Output), "__sublet") {
				t.Errorf("got %s, exit %d, %q; want exit %d", r.Status, exit(r), r.Output, want)
			}
			await(t, s.Exited(), "the shell's end")
		})
	}
}
