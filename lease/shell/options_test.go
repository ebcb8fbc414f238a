package shell

import (
	"strings"
	"testing"
)

// Whatever options and traps the user has set in their shell, a borrower's command works, nothing of it ends the shell, and
// nothing of ours shows beyond what the table says; afterwards the options are theirs again.
func TestOptionsOfTheUser(t *testing.T) {
	t.Parallel()
	const look = `echo "$-"; shopt -s; set -o; trap -p`
	cases := []struct {
		set   string
		exact bool // nothing but the command's own output is in it
	}{
		{set: "set -e", exact: true},
		{set: "set -eE; trap 'echo E' ERR"},
		{set: "set -u", exact: true},
		{set: "set -o pipefail", exact: true},
		{set: "set -euo pipefail", exact: true},
		{set: "set -f", exact: true},
		{set: "set -n", exact: true}, // an interactive bash ignores it
		{set: "set -x"},
		{set: "set -v"},
		{set: "set -xv"},
		{set: "set -C", exact: true},
		{set: "set -a", exact: true},
		{set: "set -k", exact: true},
		{set: "set -o posix", exact: true},
		{set: "set +m", exact: true},
		{set: "set +h", exact: true},
		{set: "set -P", exact: true},
		{set: "set +B", exact: true},
		{set: "shopt -s extdebug", exact: true},
		{set: "shopt -s failglob nullglob dotglob nocaseglob"},
		{set: "set +m; shopt -s lastpipe"},
		{set: "shopt -s inherit_errexit; set -e"},
		{set: "set -T; trap 'dbg=1' DEBUG; trap 'ret=1' RETURN", exact: true},
		{set: "set -E; trap 'err=1' ERR", exact: true},
		{set: "set -eET; trap 'err=1' ERR; trap 'dbg=1' DEBUG; trap 'ret=1' RETURN", exact: true},
		{set: "shopt -s extdebug; trap 'dbg=1; true' DEBUG"},
		{set: "shopt -u expand_aliases; shopt -s xpg_echo"},
		{set: "shopt -u interactive_comments; set +o interactive-comments"},
	}
	commands := []struct {
		text, out string
		exit      int
	}{
		{"false", "", 1},
		{"grep -q x /dev/null", "", 1},
		{"true | false", "", 1},
		{"false || echo else", "else\n", 0},
		{"f() { false; }; f", "", 1},
		{"y=2; false; echo after", "after\n", 0},
		{"cat /nonexistent 2>/dev/null; x=1; false", "", 1},
		{"if", "syntax error", 2},
		{"echo a; )", "syntax error", 2},
		{"echo one; echo two >&2; cd .", "one\ntwo\n", 0},
		{"sh -c 'exit 3'", "", 3},
		{"echo $((1+1)) | cat", "2\n", 0},
		{"x=; echo \"${x:-unset}\"; [[ a == b ]]", "unset\n", 1},
		{"((0))", "", 1},
		{"let 0", "", 1},
		{"set -e; echo in; false; echo no", "in\n", 1},
		{"(exit 7)", "", 7},
	}
	for _, c := range cases {
		t.Run(c.set, func(t *testing.T) {
			t.Parallel()
			var said collector
			s := start(t, func(o *Options) { o.Unowned = said.add })
			do(t, s, user(c.set))
			before := string(do(t, s, user(look)).Output)
			pid := s.PID()
			for _, cmd := range commands {
				r := do(t, s, leased(cmd.text))
				out := string(r.Output)
				if !strings.Contains(withoutTrace(out), cmd.out) || c.exact && out != cmd.out && !strings.Contains(out, "syntax") {
					t.Errorf("%s: got %q, want %q", cmd.text, out, cmd.out)
				}
				if strings.Contains(out, "__sublet") {
					t.Errorf("%s: ours shows: %q", cmd.text, out)
				}
				if s.PID() != pid {
					t.Fatalf("%s: the shell ended: %+v", cmd.text, r)
				}
				if exit(r) != cmd.exit {
					t.Errorf("%s: exit %d, want %d: %q", cmd.text, exit(r), cmd.exit, out)
				}
			}
			after := string(do(t, s, user(look)).Output)
			if after != before {
				t.Errorf("options: %q, were %q", after, before)
			}
			if u := said.String(); u != "" && (c.exact || strings.Contains(u, "sublet")) {
				t.Errorf("between commands: %q", u)
			}
		})
	}
}

// set -x and set -v show what runs, and nothing of ours: a person's line as bash shows it, a borrower's as one that is sourced.
func TestTraces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ set, user, leased string }{
		{"set -x", "+ echo hi\nhi\n", "++ echo hi\nhi\n"},
		{"set -v", "echo hi\nhi\n", "echo hi\nhi\n"},
		{"set -o xtrace -o verbose", "echo hi\n+ echo hi\nhi\n", "echo hi\n++ echo hi\nhi\n"},
		{"PS4='@$LINENO '; set -x", "@1 echo hi\nhi\n", "@@1 echo hi\nhi\n"},
	} {
		t.Run(c.set, func(t *testing.T) {
			t.Parallel()
			var said collector
			s := start(t, func(o *Options) { o.Unowned = said.add })
			if r := do(t, s, user(c.set)); len(r.Output) > 0 {
				t.Errorf("%s: got %q", c.set, r.Output)
			}
			for range 5 {
				for _, q := range []struct {
					c    Command
					want string
				}{
					{user("echo hi"), c.user},
					{leased("echo hi"), c.leased},
					{user("\necho hi\n"), "\n" + c.leased},
					{leased("\necho hi\n"), "\n" + c.leased},
				} {
					if got := string(do(t, s, q.c).Output); strings.TrimLeft(got, "\n") != strings.TrimLeft(q.want, "\n") && !strings.HasPrefix(c.set, "PS4") {
						t.Errorf("%q (user %v): got %q, want %q", q.c.Text, q.c.User, got, q.want)
					} else if strings.Contains(got, "sublet") {
						t.Errorf("%q (user %v): got %q", q.c.Text, q.c.User, got)
					}
				}
			}
			if u := said.String(); u != "" {
				t.Errorf("between commands: %q", u)
			}
			for range 5 { // a question is a bare newline, which set -v prints
				if _, err := s.Prompt(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			do(t, s, user("echo hi"))
			if u := said.String(); u != "" {
				t.Errorf("after questions: %q", u)
			}
		})
	}
}

// Under set -a no more of ours comes to the programs that run than two flags, which PS0 and PROMPT_COMMAND set at the top level,
// and afterwards nothing of it: `set -a`, `. .env` and `set +a` are a habit.
func TestAllexportLeavesOursAlone(t *testing.T) {
	t.Parallel()
	look := "env | grep __sublet | grep -vx '__sublet_w=2' | grep -vx '__sublet_ok='; true"
	s := start(t, nil)
	do(t, s, user("set -a"))
	for _, c := range []Command{user(look), leased(look), leased("x=1; " + look), leased("y=1; " + look), user(look)} {
		if got := string(do(t, s, c).Output); got != "" {
			t.Errorf("%q (user %v) under set -a: got %q", c.Text, c.User, got)
		}
	}
	do(t, s, user("set +a"))
	look = "env | grep __sublet; true"
	for _, c := range []Command{user(look), leased(look), leased("x=2; " + look), user(look)} {
		if got := string(do(t, s, c).Output); got != "" {
			t.Errorf("%q (user %v) after set +a: got %q", c.Text, c.User, got)
		}
	}
	if got := string(do(t, s, user(`echo "$x"; bash -c 'echo "$x"'`)).Output); got != "2\n2\n" {
		t.Errorf("a variable assigned under set -a: got %q", got)
	}
}
