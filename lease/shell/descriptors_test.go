package shell

import (
	"runtime"
	"strings"
	"testing"
)

// What a borrower's text opens in the shell is closed behind it, whichever way it was opened and whatever options it set; the
// user's own stay, and so does what speaks to a coprocess. What it closes of theirs is told.
func TestDescriptors(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only /proc tells the open files of another process")
	}
	const look = `for f in /proc/$$/fd/*; do [[ $(readlink $f) == *.file ]] && echo ${f##*/}; done`
	for _, rc := range []string{"", "PROMPT_COMMAND='n=$((n+1))'", "PROMPT_COMMAND='exec 30>&-; exec 30>hook.file'; set -f -u -C; failglob=1"} {
		for _, c := range []struct{ text, told string }{
			{"exec 7>|x.file", ""},
			{"exec 7>|x.file 20>&7 3<x.file", ""},
			{"exec {v}>|x.file", "set v"},
			{": {v}>|x.file", "set v"},
			{"eval 'exec 7>|x.file; set -f; shopt -s failglob'", ""},
			{"f() { exec 7>|x.file; }; f", "defined function f"},
			{"echo 'exec 7>|x.file' >|s; . ./s", ""},
			{"exec 7>|x.file; set -e; false", ""},
			{"exec 7>|x.file; kill -INT $$; sleep 10", ""},
			{"exec 9>&-", "closed descriptor 9, cannot be put back: descriptor 9"},
			{"exec 9>|x.file", "sent elsewhere descriptor 9, cannot be put back: descriptor 9"},
		} {
			t.Run(rc+c.text, func(t *testing.T) {
				t.Parallel()
				s := start(t, func(o *Options) { o.RC = rcFile(t, rc) })
				do(t, s, user("exec 9>my.file"))
				mine := string(do(t, s, user("set +f; "+look)).Output)
				before := stateOf(t, s)
				do(t, s, leased(c.text))
				left, err := s.Left(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				told := Difference(before, left)
				if rc == "" && told != c.told || rc != "" && told != "" && told != c.told {
					t.Errorf("told %q, want %q", told, c.told)
				}
				if c.text == "exec 9>&-" {
					mine = strings.ReplaceAll(mine, "9\n", "")
				}
				if got := string(do(t, s, user("set +f; "+look)).Output); got != mine {
					t.Errorf("open are %q, were %q", got, mine)
				}
			})
		}
	}
	t.Run("coprocess", func(t *testing.T) {
		t.Parallel()
		s := start(t, nil)
		do(t, s, leased("coproc cat; exec 7>x.file"))
		r := do(t, s, leased(`echo back >&${COPROC[1]}; read x <&${COPROC[0]}; echo $x; kill $COPROC_PID; wait $COPROC_PID 2>/dev/null; `+look))
		if string(r.Output) != "back\n" {
			t.Errorf("got %q", r.Output)
		}
	})
	t.Run("a prompt hook's", func(t *testing.T) {
		t.Parallel()
		s := start(t, func(o *Options) {
			o.RC = rcFile(t, "PROMPT_COMMAND='[[ ! $h ]] || : >&$h || gone=1; exec {h}>hook.file'")
		})
		for range 3 {
			do(t, s, leased("exec 7>x.file"))
			if r := do(t, s, user("echo $gone; echo >&7")); exit(r) == 0 || !strings.HasPrefix(string(r.Output), "\n") {
				t.Errorf("got %q, want the hook's open and the borrower's closed", r.Output)
			}
		}
	})
	t.Run("the user's", func(t *testing.T) {
		t.Parallel()
		s := start(t, nil)
		for range 2 {
			do(t, s, user("exec {v}>my.file 7>other.file"))
			do(t, s, leased("eval true"))
			if r := do(t, s, user(look)); strings.Count(string(r.Output), "\n") < 2 {
				t.Errorf("open are %q", r.Output)
			}
		}
	})
}
