package shell

import (
	"strings"
	"testing"
)

// What the user made read-only, or gave an attribute, cannot be a local variable of ours: the prompt hook once looped for
// ever under `readonly e`, and refused each line with a `!` under `readonly HISTTIMEFORMAT` (as hardened systems have it).
func TestReadOnlyNames(t *testing.T) {
	t.Parallel()
	for _, rc := range []string{
		"readonly e=1 f=1 i=1 n=1 o=1 r=1 s=1 t=1 ours=1 user=1 now=1 was=1 so=1 bo=1 ifs=1 replaced=1 opts=1",
		"readonly cmd=1 spec=1 fn=1 rest=1 words=1 word=1 cword=1 line=1 point=1",
		"declare -i e f n s t word line; declare -n i=e o=f; declare -u user ours; shopt -s localvar_inherit 2>/dev/null",
		"readonly IFS", "readonly IFS=$' \\t\\n'",
		"readonly HISTTIMEFORMAT='%F %T ' HISTCONTROL=ignorespace HISTIGNORE HISTSIZE=500 HISTFILESIZE=500",
		"readonly PS2 PS4", "unset HISTCMD SRANDOM", "s='not a number'",
	} {
		t.Run(rc, func(t *testing.T) {
			t.Parallel()
			var said collector
			s := start(t, func(o *Options) { o.RC, o.Unowned = rcFile(t, "cd /usr; export KEPT=1\n"+rc), said.add })
			for _, c := range []struct {
				cmd  Command
				want string
			}{
				{user("echo 'a!b' && echo 'c!'"), "a!b\nc!\n"},
				{leased("set -f; a=2; echo $a"), "2\n"},
				{user("false; echo \"$a\""), "2\n"},
				{user(" echo a\necho b"), "a\nb\n"},
				{leased("set -e; a=3"), ""},
				{user("echo $a; [[ $- != *f* ]]"), "3\n"},
			} {
				if r := do(t, s, c.cmd); string(r.Output) != c.want || exit(r) != 0 {
					t.Errorf("%q: got %q, exit %d", c.cmd.Text, r.Output, exit(r))
				}
			}
			whole(t, s, true)
			got, err := s.History(t.Context())
			if err != nil || len(got) == 0 || strings.Contains(strings.Join(got, "\n"), "__sublet") || !strings.HasPrefix(got[0], "echo 'a!b'") {
				t.Errorf("history: got %q, %v", got, err)
			}
			if _, cs, err := s.Complete(t.Context(), "echo $__su", 10); err != nil || len(cs) != 0 {
				t.Errorf("our own variables are offered: %q, %v", cs, err)
			}
			if strings.Contains(said.String(), "bash:") || strings.Contains(said.String(), "sublet") {
				t.Errorf("it is said %q", said.String())
			}
		})
	}
}
