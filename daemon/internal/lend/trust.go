package lend

import (
	"maps"
	"slices"

	"sublet/lease/shell"
	"sublet/wire"
)

// trust records which meanings of a lent shell's names (of variables, aliases, functions and so on) are the user's. Those that a borrowed
// command set which no person approved are suspect, since they may decide what later commands do.
type trust struct {
	trusted
	byPerson []wire.ExecutionID // the newest commands that a person wanted
}

// maxByPerson bounds byPerson: a client names far fewer commands in a state that it reports late.
const maxByPerson = 64

// wanted notes that a person wants the command of that execution.
func (t *trust) wanted(id wire.ExecutionID) {
	t.byPerson = append(t.byPerson[max(0, len(t.byPerson)-maxByPerson+1):], id)
}

// changedBy trusts what differs between two states, unless one of the executions that may have changed it was not wanted by a person. nil:
// the client does not report which.
func (t *trust) changedBy(by []wire.ExecutionID, before, now shell.State) {
	unwanted := func(id wire.ExecutionID) bool { return !slices.Contains(t.byPerson, id) }
	if !t.begin(now) && by != nil && !slices.ContainsFunc(by, unwanted) {
		t.change(before, now)
	}
}

// trusted is what the names of a shell meant when a person last stood behind it: at its start, and after each change of the
// user's own or of a command that a person wanted. What differs from it may decide what later commands do.
type trusted struct{ state shell.State } // its maps are nil until all or begin was called

// begin trusts a state as it is, if nothing was trusted yet, and reports whether that is so.
func (t *trusted) begin(now shell.State) bool {
	if t.state.Vars != nil {
		return false
	}
	t.all(now)
	return true
}

// all trusts a state as it is.
func (t *trusted) all(now shell.State) {
	t.state = shell.State{
		Vars: copied(now.Vars), Aliases: copied(now.Aliases), Functions: copied(now.Functions), Hashed: copied(now.Hashed),
		Disabled: slices.Clone(now.Disabled),
	}
}

// change trusts what differs between two states. What differed before stays suspect. begin must have been called before.
func (t *trusted) change(before, now shell.State) {
	t.changeNamed(before, now, func(string) bool { return true })
}

// accept trusts what has one of the names and still is what was shown, or all of the state where there are no names.
func (t *trusted) accept(names []string, shown, now shell.State) {
	if len(names) == 0 {
		t.all(now)
		return
	}
	changed := differences(shown, now)
	t.changeNamed(t.state, now, func(name string) bool { return slices.Contains(names, name) && !slices.Contains(changed, name) })
}

func (t *trusted) changeNamed(before, now shell.State, is func(name string) bool) {
	for _, m := range []struct{ trusted, before, now map[string]string }{
		{t.state.Vars, before.Vars, now.Vars},
		{t.state.Aliases, before.Aliases, now.Aliases},
		{t.state.Functions, before.Functions, now.Functions},
		{t.state.Hashed, before.Hashed, now.Hashed},
	} {
		for _, name := range changed(m.before, m.now) {
			if !is(name) {
				continue
			}
			if value, ok := m.now[name]; ok {
				m.trusted[name] = value
			} else {
				delete(m.trusted, name)
			}
		}
	}
	for _, name := range differ(before.Disabled, now.Disabled) {
		if !is(name) {
			continue
		}
		t.state.Disabled = slices.DeleteFunc(t.state.Disabled, func(s string) bool { return s == name })
		if slices.Contains(now.Disabled, name) {
			t.state.Disabled = append(t.state.Disabled, name)
		}
	}
}

// suspects lists the names that mean something else now, sorted; none before begin.
func (t *trusted) suspects(now shell.State) []string {
	if t.state.Vars == nil {
		return nil
	}
	return differences(t.state, now)
}

// differences lists the names that mean something else in one state than in the other, sorted.
func differences(before, now shell.State) []string {
	names := slices.Concat(
		changed(before.Vars, now.Vars), changed(before.Aliases, now.Aliases), changed(before.Functions, now.Functions),
		changed(before.Hashed, now.Hashed), differ(before.Disabled, now.Disabled),
	)
	slices.Sort(names)
	return slices.Compact(names)
}

// copied returns a copy of m, never nil.
func copied(m map[string]string) map[string]string {
	own := make(map[string]string, len(m))
	maps.Copy(own, m)
	return own
}

// changed lists the names whose values differ.
func changed(before, now map[string]string) []string {
	var names []string
	for name, value := range now {
		if old, ok := before[name]; !ok || old != value {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, ok := now[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}

// differ lists what is in one list only.
func differ(before, now []string) []string {
	var names []string
	for _, lists := range [][2][]string{{before, now}, {now, before}} {
		for _, name := range lists[0] {
			if !slices.Contains(lists[1], name) {
				names = append(names, name)
			}
		}
	}
	return names
}
