package shell

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// opening is what is to be looked at of the open files once the shell is idle.
type opening struct {
	p      *process          // whose
	before map[string]string // as a borrower's text found them; nil where no such text may have opened any
}

// tidy closes what a borrower's text left open in the shell (`exec 7>file`, `{fd}>file`), and notes what is open: a
// descriptor goes on to whatever the user starts. What a coprocess is spoken to by stays, for bash does not hand that on. The
// caller has the turn and the shell is idle.
func (s *Shell) tidy(ctx context.Context) error {
	s.mu.Lock()
	o := s.opened
	s.opened = nil
	s.mu.Unlock()
	if o == nil || o.p != s.current() {
		return nil
	}
	now := descriptors(o.p.pid)
	if now == nil {
		return nil
	}
	if o.before != nil {
		var script strings.Builder
		seen := s.seenAtEnd()
		for _, n := range slices.Sorted(maps.Keys(now)) {
			if _, had := o.before[n]; !had && (seen == nil || seen[n]) { // else a prompt hook of the user opened it
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

// seenAtEnd are the descriptors that were open at a text's end, before the user's prompt hooks ran (guard in rc.bash); nil where
// that cannot be told, as under the user's set -f.
func (s *Shell) seenAtEnd() map[string]bool {
	raw, err := os.ReadFile(filepath.Join(s.folder, "x"))
	if err != nil {
		s.log.Warn("shell descriptors", "error", err)
		return nil
	}
	seen := make(map[string]bool)
	for path := range strings.SplitSeq(string(raw), "\x00") {
		if n, err := strconv.Atoi(filepath.Base(path)); err == nil {
			seen["descriptor "+strconv.Itoa(n)] = true
		}
	}
	if len(seen) == 0 {
		return nil
	}
	return seen
}
