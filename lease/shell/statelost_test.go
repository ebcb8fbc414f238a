package shell

import (
	"os"
	"path/filepath"
	"testing"
)

// A state that could not be written down or read (a full disk) is asked for again behind the next command, whatever that is,
// with all that was to be in it.
func TestStateIsAskedForAgain(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	before := stateOf(t, s)
	files := []string{filepath.Join(s.folder, "s"), filepath.Join(s.folder, "l")}
	for _, file := range files {
		if err := os.RemoveAll(file); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(file, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	do(t, s, leased("alias ls=cat; export E=1; f() { :; }"))
	if st := stateOf(t, s); st.Digest != before.Digest {
		t.Errorf("the state is known: %v", st.Aliases)
	}
	do(t, s, user("true"))
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		write(t, file, "")
	}
	do(t, s, leased("true"))
	if st := stateOf(t, s); st.Aliases["ls"] != "cat" || st.Vars["E"] != "1" || st.Functions["f"] == "" {
		t.Errorf("got aliases %v, E=%s, functions %v", st.Aliases, st.Vars["E"], st.Functions)
	}
}

// Where the shell cannot write its state down what lies there of an earlier one is not taken for it.
func TestStateThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for _, hook := range []string{"", "PROMPT_COMMAND='n=$((n+1))'"} {
		t.Run(hook, func(t *testing.T) {
			t.Parallel()
			s := start(t, func(o *Options) { o.RC = rcFile(t, hook) })
			do(t, s, user("trap '' XFSZ; ulimit -S -f 0")) // writes to files fail, as on a full disk
			do(t, s, leased("export E=1"))
			if left, err := s.Left(t.Context()); err != nil || left.Vars["E"] != "" {
				t.Errorf("E=%q, %v: how can that be known?", left.Vars["E"], err)
			}
			s.mu.Lock()
			missed := s.missed
			s.mu.Unlock()
			if !missed {
				t.Error("an earlier state was taken for this one")
			}
			do(t, s, user("ulimit -S -f unlimited"))
			do(t, s, leased("true"))
			if st := stateOf(t, s); st.Vars["E"] != "1" {
				t.Errorf("E=%q", st.Vars["E"])
			}
		})
	}
}
