package shell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The prompt was asked for behind each command, and the user's prompt hooks ran once more for that: what they print was there
// twice, and a slow one took twice its time. The shell tells the prompt with a command's end, where nothing can come of that.
func TestPromptHooksRunOnce(t *testing.T) {
	t.Parallel()
	const chroot = `${debian_chroot:+($debian_chroot)}`
	for _, c := range []struct {
		ps1, before, want string
		asked             bool
	}{
		{ps1: `\W% `, want: "~% "},
		{ps1: chroot + `\W> `, want: "~> "},
		{ps1: chroot + `\W> `, before: "debian_chroot=jail", want: "(jail)~> "},
		{ps1: `\[\e[31m\]red\[\e[m\]\n> `, want: "\x1b[31mred\x1b[m\n> "},
		{ps1: `$? $FOO> `, before: "FOO=foo", want: "3 foo> "},
		{ps1: `$UNSET> `, before: "set -u", want: "> ", asked: true},
		{ps1: `x> `, before: "set -a", want: "x> "},
		{ps1: `x> `, before: "set -ku", want: "x> ", asked: true},
		{ps1: `$HOME> `, before: "shopt -u promptvars", want: "$HOME> ", asked: true},
		{ps1: `$(echo sub)> `, want: "sub> ", asked: true},
		{ps1: "`echo sub`> ", want: "sub> ", asked: true},
		{ps1: `$((1+1))$[1+1]> `, want: "22> ", asked: true},
		{ps1: `${BAR:-none}> `, want: "none> ", asked: true},
		{ps1: `hook> `, before: `PROMPT_COMMAND+='; PS1="set by $?> "'`, want: "set by 0> "},
		{ps1: strings.Repeat("x", 1000), want: strings.Repeat("x", 1000), asked: true},
		{ps1: "", want: ""},
	} {
		t.Run(c.ps1+" "+c.before, func(t *testing.T) {
			t.Parallel()
			ran := filepath.Join(t.TempDir(), "ran")
			s := start(t, func(o *Options) { o.Env = append(o.Env, "RAN="+ran) })
			do(t, s, user("PROMPT_COMMAND='echo hook >>\"$RAN\"'; "+c.before))
			do(t, s, user("PS1="+quote(c.ps1)))
			if _, err := s.Prompt(t.Context()); err != nil { // what is told behind the next is of that
				t.Fatal(err)
			}
			runs := 2
			if c.asked {
				runs++
			}
			for _, cmd := range []Command{user("cd; (exit 3)"), leased("FOO=foo")} {
				do(t, s, user(": >\"$RAN\"; (exit 3)"))
				do(t, s, cmd)
				if p, err := s.Prompt(t.Context()); err != nil || p.Text != c.want || p.Editing != "" {
					t.Errorf("%s: got prompt %q, %q, %v, want %q", cmd.Text, p.Text, p.Editing, err, c.want)
				}
				if err := s.awaitIdle(t.Context()); err != nil {
					t.Fatal(err)
				}
				raw, err := os.ReadFile(ran)
				if n := strings.Count(string(raw), "hook\n"); err != nil || n != runs {
					t.Errorf("%s: the hooks ran %d times behind two commands, %v", cmd.Text, n, err)
				}
			}
		})
	}
}

// Asked for without a command, as behind an empty line, it is what the hooks make of it now.
func TestPromptBehindHooks(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	do(t, s, user(`n=0; PROMPT_COMMAND='PS1="$((++n))> "'`))
	for _, want := range []string{"1> ", "2> ", "3> "} {
		if p, err := s.Prompt(t.Context()); err != nil || p.Text != want {
			t.Errorf("got prompt %q, %v, want %q", p.Text, err, want)
		}
	}
	do(t, s, user("true"))
	if p, err := s.Prompt(t.Context()); err != nil || p.Text != "4> " {
		t.Errorf("got prompt %q, %v, want the fourth", p.Text, err)
	}
	if _, _, err := s.Complete(t.Context(), "ec", 2); err != nil { // a prompt passes with it
		t.Error(err)
	}
	if p, err := s.Prompt(t.Context()); err != nil || p.Text != "6> " {
		t.Errorf("got prompt %q, %v, want one of now", p.Text, err)
	}
}
