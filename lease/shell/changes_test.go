package shell

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// shelf is a shell that notes what it is asked to put back.
type shelf struct {
	state State
	calls [][2]State
	left  []string
	err   error
}

func (s *shelf) State(context.Context) (State, error) { return s.state, nil }

func (s *shelf) Undo(_ context.Context, before, after State) ([]string, error) {
	if s.err != nil {
		return nil, s.err
	}
	s.calls = append(s.calls, [2]State{before, after})
	s.state.Dir = before.Dir
	return s.left, nil
}

// Changes are put back one after the other, the last first, and hold no more of a state than what differs.
func TestChanges(t *testing.T) {
	states := []State{
		{Dir: "/", Vars: map[string]string{"A": "1", "B": "1", "GONE": "1"}, Options: []string{"x", "y"}, Disabled: []string{"kill"}},
		{Dir: "/", Vars: map[string]string{"A": "1", "B": "2", "NEW": "1"}, Options: []string{"y", "z"}, Functions: map[string]string{"f": "f"}},
		{Dir: "/tmp", Vars: map[string]string{"A": "1", "B": "2", "NEW": "1"}, Options: []string{"y", "z"}, Functions: map[string]string{"f": "f"}},
	}
	var c Changes
	sh := &shelf{left: []string{"B"}}
	add := func() {
		c.Add("one", states[0], states[1])
		c.Add("two", states[1], states[2])
		sh.state = states[2]
	}
	undo := func(all bool, wantBy, wantChanged, wantLeft string, wantErr error) {
		t.Helper()
		by, changed, left, err := c.PutBack(t.Context(), sh, all)
		if got := strings.Join(by, " "); got != wantBy || changed != wantChanged || left != wantLeft || !errors.Is(err, wantErr) {
			t.Errorf("got %q %q, left %q, %v; want %q %q, left %q, %v", got, changed, left, err, wantBy, wantChanged, wantLeft, wantErr)
		}
	}
	const still = "set NEW, changed B, unset GONE, defined function f, switched on builtin kill, switched on z, switched off x"
	undo(false, "", "", "", nil)
	add()
	sh.err = errors.New("busy")
	undo(true, "", "", "", sh.err)
	sh.err = nil
	undo(false, "two", "moved to /", "B", nil)
	undo(false, "one", "", still, nil)
	undo(true, "", "", "", nil)
	none := map[string]string{}
	want := [][2]State{
		{
			{Dir: "/", Vars: none, Aliases: none, Functions: none, Hashed: none, Local: none},
			{Dir: "/tmp", Vars: none, Aliases: none, Functions: none, Hashed: none, Local: none},
		},
		{
			{Dir: "/", Vars: map[string]string{"B": "1", "GONE": "1"}, Aliases: none, Functions: none, Hashed: none, Local: none, Options: []string{"x"}, Disabled: []string{"kill"}},
			{Dir: "/", Vars: map[string]string{"B": "2", "NEW": "1"}, Aliases: none, Functions: map[string]string{"f": "f"}, Hashed: none, Local: none, Options: []string{"z"}},
		},
	}
	if got, want := fmt.Sprintf("%+v", sh.calls), fmt.Sprintf("%+v", want); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	add()
	undo(true, "two one", "moved to /", still, nil)
	undo(true, "", "", "", nil)
}
