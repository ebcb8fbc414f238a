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

// meanings are what the names of a shell mean: its variables, aliases, functions, hashed commands and disabled builtins.
type meanings [5]map[string]string

func meaningsOf(s shell.State) meanings {
	disabled := map[string]string{}
	for _, name := range s.Disabled {
		disabled[name] = ""
	}
	return meanings{s.Vars, s.Aliases, s.Functions, s.Hashed, disabled}
}

// trusted is what the names of a shell meant when a person last stood behind it: at its start, and after each change of the
// user's own or of a command that a person wanted. What differs from it may decide what later commands do.
type trusted struct{ state meanings } // its maps are nil until all or begin was called

// begin trusts a state as it is, if nothing was trusted yet, and reports whether that is so.
func (t *trusted) begin(now shell.State) bool {
	if t.state[0] != nil {
		return false
	}
	t.all(now)
	return true
}

// all trusts a state as it is.
func (t *trusted) all(now shell.State) {
	for i, m := range meaningsOf(now) {
		t.state[i] = map[string]string{}
		maps.Copy(t.state[i], m)
	}
}

// change trusts what differs between two states. What differed before stays suspect. begin must have been called before.
func (t *trusted) change(before, now shell.State) {
	t.changeNamed(meaningsOf(before), meaningsOf(now), func(string) bool { return true })
}

// accept trusts what has one of the names and still is what was shown, or all of the state where there are no names.
func (t *trusted) accept(names []string, shown, now shell.State) {
	if len(names) == 0 {
		t.all(now)
		return
	}
	changed := differences(meaningsOf(shown), meaningsOf(now))
	t.changeNamed(t.state, meaningsOf(now), func(name string) bool { return slices.Contains(names, name) && !slices.Contains(changed, name) })
}

// changeNamed trusts the change from before to now of each name for which is returns true.
func (t *trusted) changeNamed(before, now meanings, is func(name string) bool) {
	for i := range now {
		for _, name := range changed(before[i], now[i]) {
			if !is(name) {
				continue
			}
			if value, ok := now[i][name]; ok {
				t.state[i][name] = value
			} else {
				delete(t.state[i], name)
			}
		}
	}
}

// suspects lists the names that mean something else now, sorted; none before begin.
func (t *trusted) suspects(now shell.State) []string {
	if t.state[0] == nil {
		return nil
	}
	return differences(t.state, meaningsOf(now))
}

// differences lists the names that mean something else in one state than in the other, sorted.
func differences(before, now meanings) (names []string) {
	for i := range now {
		names = append(names, changed(before[i], now[i])...)
	}
	slices.Sort(names)
	return slices.Compact(names)
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
