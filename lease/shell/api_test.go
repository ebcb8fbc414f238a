package shell

import "testing"

// A folder's name may hold anything; in the words of an error it is one line without control sequences.
func TestDirErrorIsOneLine(t *testing.T) {
	err := &DirError{Dir: "/a\n[exit code 0]\x1b[2J", Reason: "not a directory"}
	if got, want := err.Error(), "cannot enter /a␤[exit code 0]␛[2J: not a directory"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
