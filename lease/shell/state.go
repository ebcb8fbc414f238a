package shell

import (
	"context"
	"fmt"
	"os"
)

// State returns the state that commands have left behind. It asks the shell only if a command ran since it last did, and then
// holds the editor unless that is held already. The maps belong to the Shell: do not change them.
func (s *Shell) State(ctx context.Context) (State, error) {
	s.mu.Lock()
	stale, state := s.stale, s.state
	s.mu.Unlock()
	if !stale {
		return state, nil
	}
	release, err := s.ensureHeld(ctx)
	if err != nil {
		return State{}, err
	}
	defer release()
	return s.readState(ctx)
}

// readState makes the widget write the state to its file, and reads that. The editor is held afterwards. The caller has holdLock.
func (s *Shell) readState(ctx context.Context) (State, error) {
	if err := s.takeAgain(ctx); err != nil {
		return State{}, err
	}
	if err := s.direct(ctx, "state", markState); err != nil {
		return State{}, fmt.Errorf("read the shell's state: %w", err)
	}
	text, err := os.ReadFile(s.files.path("state"))
	if err != nil {
		return State{}, fmt.Errorf("read the shell's state: %w", err)
	}
	st, err := s.d.ReadState(text)
	if err != nil {
		return State{}, fmt.Errorf("read the shell's state: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Dir = s.dir
	st.Digest = st.Sum()
	s.state, s.stale = st, false
	return st, nil
}

// Undo undoes what differs between before and after, except for what has another value now. left names what the shell cannot
// put back.
func (s *Shell) Undo(ctx context.Context, before, after State) (left []string, err error) {
	now, err := s.State(ctx)
	if err != nil {
		return nil, err
	}
	text, left := s.d.Restore(before, after, now)
	if text == "" {
		return left, nil
	}
	res, err := s.Run(ctx, Command{Text: text})
	switch {
	case err != nil:
		return left, err
	case res.Status != "ok":
		return left, fmt.Errorf("the shell did not put everything back: %s", res.Status)
	}
	return left, nil
}
