package shell

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// more is what few commands change: it is asked for where functions may have changed, too. Seen by Difference and put back by
// Undo only.
type more struct {
	exported []string          // functions that programs inherit
	specs    map[string]string // completions: name, or -D, -E, -I, to the statement that makes it
	stack    []string          // the directory stack below the directory itself

	// What the borrower's command before it did, and cannot be undone.
	history  int      // lines that it added to the history, or took out
	loaded   []string // files whose code the shell runs since (enable -f): of builtins, which may have the names of others
	disowned []string // jobs it found and took off the list while they run, by process
}

// readMore reads what more in rc/state.bash writes: lines of `declare -Fx`, `jobs -p`, `dirs -l -p` and `complete -p`;
// what is open; by how many lines the history grew.
func (sn *snapshot) readMore(list, open, grew string) {
	m := &sn.State.more
	m.specs = make(map[string]string)
	for dirs := 0; list != "" && !strings.HasPrefix(list, "complete "); {
		line, rest, _ := strings.Cut(list, "\n")
		list = rest
		if name, ok := strings.CutPrefix(line, "declare -f"); ok {
			_, name, _ = strings.Cut(name, " ")
			m.exported = append(m.exported, name)
		} else if _, err := strconv.Atoi(line); err == nil {
			sn.jobs = append(sn.jobs, line)
		} else if dirs++; dirs > 1 {
			m.stack = append(m.stack, line)
		}
	}
	for text := list; strings.HasPrefix(text, "complete "); {
		end, name := len("complete"), ""
		for end < len(text) && text[end] == ' ' {
			word, n := readWord(text[end+1:])
			name = word
			end += 1 + n
		}
		m.specs[name] = text[:end]
		text = strings.TrimPrefix(text[end:], "\n")
	}
	for _, n := range descriptorPath.FindAllStringSubmatch(open, -1) {
		if sn.seen == nil {
			sn.seen = make(map[string]bool)
		}
		sn.seen["descriptor "+n[1]] = true
	}
	var err error
	m.history, err = strconv.Atoi(grew)
	sn.guarded = err == nil
}

var descriptorPath = regexp.MustCompile(`/dev/fd/(\d+)`)

// disowns tells whether the text that ran last may have taken jobs off the list.
func (s *Shell) disowns() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.disowned
}

// foundJobs are the jobs that the last borrower's text found.
func (s *Shell) foundJobs() string {
	raw, err := os.ReadFile(filepath.Join(s.folder, "j"))
	if err != nil {
		s.log.Warn("shell jobs", "error", err)
	}
	return string(raw)
}

// disown notes which of the jobs that a borrower's text found are on the list no more, although they run.
func (sn *snapshot) disown(found string) {
	for _, pid := range without(strings.Fields(found), sn.jobs) {
		if n, err := strconv.Atoi(pid); err == nil && syscall.Kill(n, 0) == nil {
			sn.State.more.disowned = append(sn.State.more.disowned, "process "+pid)
		}
	}
}

// carried is what is still so where nothing of it was asked for.
func (m more) carried() more {
	m.history, m.disowned, m.loaded = 0, nil, nil
	return m
}

// readOnly are the variables that cannot be assigned any more.
func (st State) readOnly() (names []string) {
	for name, flags := range st.marks {
		if strings.Contains(flags, "r") {
			names = append(names, name)
		}
	}
	for name, statement := range st.kept {
		if strings.Contains(attributes(statement), "r") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// tellMore tells in words what is different, and what of that cannot be put back.
func tellMore(a, b State, say func(verb string, names []string)) (lost []string) {
	fixed := slices.DeleteFunc(without(b.readOnly(), a.readOnly()), func(name string) bool { return !b.owns(name) })
	say("made read-only", fixed)
	if a.more.specs == nil || b.more.specs == nil {
		return fixed
	}
	added, changed, removed := compare(a.more.specs, b.more.specs, nil)
	say("set the completion of", slices.Concat(added, changed))
	say("removed the completion of", removed)
	say("exported function", without(b.more.exported, a.more.exported))
	say("no longer exports function", slices.DeleteFunc(without(a.more.exported, b.more.exported), func(name string) bool {
		_, is := b.Functions[name]
		return !is
	}))
	if !slices.Equal(a.more.stack, b.more.stack) {
		say("changed", []string{"the directory stack"})
	}
	switch n := b.more.history; {
	case n > 0:
		say("added", []string{countLines(n) + " to the history"})
	case n < 0:
		say("took", []string{"lines out of the history"}) // in a full list the numbers do not begin with 1
		lost = append(lost, "the history")
	}
	say("loaded", b.more.loaded)
	say("disowned", b.more.disowned)
	return slices.Concat(fixed, lost, b.more.loaded, b.more.disowned)
}

func countLines(n int) string {
	if n == 1 {
		return "one line"
	}
	return strconv.Itoa(n) + " lines"
}

// without is what were so, had what led from before to after not happened.
func (m more) without(before, after more) more {
	if before.specs == nil || after.specs == nil {
		return m
	}
	m.specs = reversed(m.specs, before.specs, after.specs, func(string) bool { return true })
	m.exported = reversedList(m.exported, before.exported, after.exported)
	if slices.Equal(m.stack, after.stack) {
		m.stack = before.stack
	}
	return m
}

// writeMore leads from one to the other; functions and the directory are as they should be.
func writeMore(b *strings.Builder, now, want more) {
	for _, name := range slices.Sorted(maps.Keys(now.specs)) {
		if _, ok := want.specs[name]; !ok {
			if slices.Contains([]string{"-D", "-E", "-I"}, name) {
				fmt.Fprintf(b, "\\builtin complete -r %s\n", name)
			} else {
				fmt.Fprintf(b, "\\builtin complete -r -- %s\n", quote(name))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want.specs)) {
		if now.specs[name] != want.specs[name] {
			b.WriteString("\\builtin " + want.specs[name] + "\n")
		}
	}
	for _, name := range without(now.exported, want.exported) {
		fmt.Fprintf(b, "\\builtin export -fn -- %s 2>/dev/null\n", quote(name))
	}
	for _, name := range without(want.exported, now.exported) {
		fmt.Fprintf(b, "\\builtin export -f -- %s 2>/dev/null\n", quote(name))
	}
	if !slices.Equal(now.stack, want.stack) {
		b.WriteString("\\builtin dirs -c\n")
		for _, dir := range slices.Backward(want.stack) {
			fmt.Fprintf(b, "\\builtin pushd -n -- %s >/dev/null\n", quote(dir))
		}
	}
}

// writeMarks takes from exported variables the attributes they should not have, or gives them those they should. Read-only is
// for good.
func writeMarks(b *strings.Builder, from, in State, sign string) {
	for _, name := range slices.Sorted(maps.Keys(from.marks)) {
		if _, ok := in.Vars[name]; !ok {
			continue
		}
		for _, flag := range from.marks[name] {
			if !strings.ContainsRune(in.marks[name]+"rx", flag) {
				fmt.Fprintf(b, "\\builtin declare -g %s%c %s 2>/dev/null\n", sign, flag, name)
			}
		}
	}
}
