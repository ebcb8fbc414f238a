package shell

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Undo puts back what led from before to after, two states that State returned: directory, variables, aliases, functions,
// options, what names run, umask, completions, the directory stack. What was changed once more since
// stays as it is now, as does what prompt hooks keep. ErrBusy while a command runs.
func (s *Shell) Undo(ctx context.Context, before, after State) error {
	if err := s.lockTurn(ctx, false); err != nil {
		return err
	}
	defer func() { <-s.turn }()
	if err := s.awaitIdle(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	now := s.snap.State
	s.mu.Unlock()
	want := now.without(before, after)
	lost, status, err := s.askShell(ctx, topLine, restoreScript(now, want)+"\n\\builtin :")
	if err != nil {
		return err
	}
	if status != 0 {
		return fmt.Errorf("undo: the shell answered %d", status)
	}
	if len(lost) > 0 {
		return fmt.Errorf("undo: the rest was put back, but the shell does not take these functions: %s", strings.TrimSpace(string(lost)))
	}
	if err := s.awaitIdle(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snap.State.own = changedNames(now.kept, want.kept)
	return nil
}

// without is the state as it were, had what led from before to after not happened.
func (st State) without(before, after State) State {
	always := func(string) bool { return true }
	st.Vars = reversed(st.Vars, before.Vars, after.Vars, always)
	st.Aliases = reversed(st.Aliases, before.Aliases, after.Aliases, always)
	st.Functions = reversed(st.Functions, before.Functions, after.Functions, always)
	st.Hashed = reversed(st.Hashed, before.Hashed, after.Hashed, always)
	st.kept = reversed(st.kept, before.kept, after.kept, func(name string) bool {
		was, had := before.Vars[name] // it may have been exported, or be so now
		is, has := after.Vars[name]
		return after.owns(name) || had != has || was != is
	})
	st.marks = reversed(st.marks, before.marks, after.marks, always)
	st.more = st.more.without(before.more, after.more)
	st.Options = reversedList(st.Options, before.Options, after.Options)
	st.Disabled = reversedList(st.Disabled, before.Disabled, after.Disabled)
	st.Loaded = reversedList(st.Loaded, before.Loaded, after.Loaded)
	if before.Dir != after.Dir && st.Dir == after.Dir {
		st.Dir = before.Dir
	}
	if before.umask != after.umask && st.umask == after.umask {
		st.umask = before.umask
	}
	return st
}

// reversed is now with what differs between before and after, and is for the one who asks, as before has it.
func reversed(now, before, after map[string]string, own func(name string) bool) map[string]string {
	out := make(map[string]string, len(now))
	maps.Copy(out, now)
	for name := range changedNames(before, after) {
		is, has := after[name]
		if cur, there := now[name]; there != has || cur != is || !own(name) {
			continue
		}
		if was, had := before[name]; had {
			out[name] = was
		} else {
			delete(out, name)
		}
	}
	return out
}

func reversedList(now, before, after []string) []string {
	out := without(now, without(after, before))
	return append(out, without(without(before, after), now)...)
}

// changedNames are those that one map has and the other has not, or not with the same text.
func changedNames(a, b map[string]string) map[string]bool {
	names := make(map[string]bool)
	added, changed, removed := compare(a, b, nil)
	for _, name := range slices.Concat(added, changed, removed) {
		names[name] = true
	}
	return names
}

// ownVars are the variables that a borrower's command changed, by what the shell wrote down before it; nil where that cannot
// be read. A DEBUG trap of the user is run in between, too: what it names is its own.
func (s *Shell) ownVars(left snapshot) map[string]bool {
	s.mu.Lock()
	found := s.found
	s.mu.Unlock()
	if found == nil {
		found = s.foundVars()
	}
	if found == nil {
		return nil
	}
	own := changedNames(found, left.vars)
	if traps, err := os.ReadFile(filepath.Join(s.folder, "t")); err == nil {
		for name := range s.namedBy(debugTrap(string(traps))) {
			delete(own, name)
		}
	}
	return own
}

// foundVars are the variables as a borrower's command found them; nil where they cannot be read.
func (s *Shell) foundVars() map[string]string {
	text, err := s.noted()
	if err != nil {
		s.log.Warn("shell variables", "error", err)
		return nil
	}
	var began snapshot
	began.readVars(text)
	return began.vars
}

// noted reads the variables as a borrower's command found them (note in rc/state.bash).
func (s *Shell) noted() (string, error) {
	raw, err := os.ReadFile(filepath.Join(s.folder, "v"))
	if err != nil {
		return "", fmt.Errorf("read what the shell noted: %w", err)
	}
	text, _, _ := strings.Cut(string(raw), "\x00")
	return text, nil
}

// debugTrap finds the text of the DEBUG trap in what `trap -p` prints: trap -- 'text' NAME.
func debugTrap(traps string) string {
	for len(traps) > 0 {
		rest, ok := strings.CutPrefix(traps, "trap -- ")
		if !ok {
			return ""
		}
		text, n := readWord(rest)
		name, more, _ := strings.Cut(strings.TrimPrefix(rest[n:], " "), "\n")
		if name == "DEBUG" {
			return text
		}
		traps = more
	}
	return ""
}

var wordOf = regexp.MustCompile(`[A-Za-z_][A-Za-z_0-9]*`)

// namedBy are the words of a text, and of the functions it names.
func (s *Shell) namedBy(text string) map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	words := make(map[string]bool)
	for _, word := range wordOf.FindAllString(text, -1) {
		words[word] = true
		for _, inner := range wordOf.FindAllString(s.snap.State.Functions[word], -1) {
			words[inner] = true
		}
	}
	return words
}
