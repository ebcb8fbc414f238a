package shell

import (
	"slices"
	"testing"
)

// twoBuiltins is a library with a builtin of its own name and one that takes the place of bash's (enable -f).
const twoBuiltins = `
#include <stdio.h>
struct builtin { char *name; int (*function)(void *); int flags; char *const *long_doc; const char *short_doc; char *handle; };
static int run(void *list) { (void)list; puts("from the library"); fflush(stdout); return 0; }
static char *doc[] = { "x", 0 };
struct builtin zz_struct = { "zz", run, 1, doc, "zz", 0 };
struct builtin times_struct = { "times", run, 1, doc, "times", 0 };
`

// A builtin that a text loads from a file is told and taken away again, whatever text does it, and where prompt hooks run
// behind it; under the name of one of bash's own it is told, too (T3h).
func TestLoadedBuiltins(t *testing.T) {
	t.Parallel()
	file := compiled(t, t.TempDir(), twoBuiltins, "-shared", "-fPIC")
	for _, rc := range []string{"", "PROMPT_COMMAND='n=$((n+1))'\n"} {
		s := start(t, func(o *Options) { o.RC = rcFile(t, rc) })
		do(t, s, leased("eval 'x=1'")) // the first one's end is like all others
		for _, c := range []struct{ text, want string }{
			{"enable -f " + quote(file) + " zz", "loaded builtin zz, loaded " + file + ", cannot be put back: " + file + ", look at zz: it decides what later commands run"},
			{"load='enable -f " + file + " zz'; eval \"$load\"; unset load", "loaded builtin zz, loaded " + file + ", cannot be put back: " + file + ", look at zz: it decides what later commands run"},
			{"load='enable -f " + file + " times'; eval \"$load\"; unset load", "loaded " + file + ", cannot be put back: " + file},
		} {
			before := stateOf(t, s)
			do(t, s, leased(c.text))
			after := leftBehind(t, s)
			if got := Difference(before, after); got != c.want {
				t.Errorf("%q behind %q:\n got %q\nwant %q", c.text, rc, got, c.want)
			}
			if r := do(t, s, leased("zz; times")); len(after.Loaded) == 1 && string(r.Output) == "" {
				t.Errorf("%q: it was not loaded", c.text)
			}
			if err := s.Undo(t.Context(), before, after); err != nil {
				t.Fatal(err)
			}
			if st := stateOf(t, s); len(st.Loaded) > 0 {
				t.Errorf("%q undone: got %v, want none", c.text, st.Loaded)
			}
			do(t, s, leased("enable -d times 2>/dev/null"))
		}
	}
}

// Where one is loaded already, all are listed behind each text that may do anything: one more of the same file would not be
// seen otherwise, nor that one goes.
func TestLoadedBuiltinsOfOneFile(t *testing.T) {
	t.Parallel()
	file := compiled(t, t.TempDir(), twoBuiltins, "-shared", "-fPIC")
	s := start(t, nil)
	do(t, s, user("enable -f "+file+" times zz"))
	before := stateOf(t, s)
	if !slices.Equal(before.Loaded, []string{"zz"}) {
		t.Fatalf("got %v, want zz", before.Loaded)
	}
	do(t, s, leased("drop='enable -d zz'; eval \"$drop\"; unset drop"))
	if got, want := Difference(before, leftBehind(t, s)), "removed builtin zz"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// leftBehind is the state that the last command left behind, as soon as it is known.
func leftBehind(t *testing.T, s *Shell) State {
	t.Helper()
	st, err := s.Left(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return st
}
