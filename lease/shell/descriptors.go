package shell

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
)

// opening is what is to be looked at of the open files once the shell is idle.
type opening struct {
	p      *process          // whose
	before map[string]string // as a borrower's text found them; nil where no such text may have opened any
	named  bool              // the text names what opens and closes them
	seen   map[string]bool   // those at the text's end, before the user's prompt hooks; nil where that cannot be told, as under set -f

	bare, loaded []string // see plan.bare; behind the text
}

// tidy closes what a borrower's text left open in the shell (`exec 7>file`, `{fd}>file`), and notes what is open: a
// descriptor goes on to whatever the user starts. What a coprocess is spoken to by stays, for bash does not hand that on. Where
// only something the text ran may have opened any (eval, a file), that is not looked for but before the next command. It has
// builtins listed that were not. The caller has the turn and the shell is idle.
func (s *Shell) tidy(ctx context.Context, next bool) (err error) {
	s.mu.Lock()
	o := s.opened
	if o == nil || o.p != s.proc || !next && !o.named && !o.unlisted() {
		s.mu.Unlock()
		return nil
	}
	s.opened = nil
	s.mu.Unlock()
	defer func() {
		if err != nil { // another time
			s.mu.Lock()
			defer s.mu.Unlock()
			s.opened = cmp.Or(s.opened, o)
		}
	}()
	if o.unlisted() {
		if err := s.listBuiltins(ctx, o); err != nil {
			return err
		}
	}
	now := descriptors(o.p.pid)
	if now == nil {
		return nil
	}
	if o.before != nil {
		var script strings.Builder
		for _, n := range slices.Sorted(maps.Keys(now)) {
			if _, had := o.before[n]; !had && (o.seen == nil || o.seen[n]) { // else a prompt hook of the user opened it
				script.WriteString("\\exec " + strings.TrimPrefix(n, "descriptor ") + ">&-\n")
				delete(now, n)
			}
		}
		if script.Len() > 0 {
			if _, _, err := s.askShell(ctx, inHook, script.String()+"\\builtin :"); err != nil {
				return err
			}
			if err := s.awaitIdle(ctx); err != nil {
				return err
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = nil
	s.snap.State.files = now
	return nil
}
