package shell

import (
	"context"
	"slices"
)

// Builtins that a text loaded from a file (enable -f).

// unlisted tells whether the text may have loaded a builtin, and none were listed behind it.
func (o *opening) unlisted() bool { return o.bare != nil && !slices.Equal(o.bare, o.loaded) }

// bareLibraries are what the idle shell runs code of, where it has loaded no builtin; nil where it may have.
func (s *Shell) bareLibraries() []string {
	s.mu.Lock()
	p, none := s.proc, len(s.snap.State.Loaded) == 0
	s.mu.Unlock()
	if now := libraries(p.pid); none && slices.Equal(now, p.libraries) {
		return now
	}
	return nil
}

// listBuiltins has the shell list them, behind a text that may have loaded some. The caller has the turn and the shell is idle.
func (s *Shell) listBuiltins(ctx context.Context, o *opening) error {
	s.mu.Lock()
	was := s.snap.State
	s.mu.Unlock()
	if _, _, err := s.askShell(ctx, topLine, "\\builtin :"); err != nil {
		return err
	}
	if err := s.awaitIdle(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snap.State.own = was.own
	more := &s.snap.State.more
	more.history, more.disowned, more.loaded = was.more.history, was.more.disowned, without(o.loaded, o.bare)
	return nil
}
