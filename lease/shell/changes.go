package shell

import (
	"context"
	"slices"
	"strings"

	"sublet/lease/shell/dialect"
)

// Changes are what borrowed commands changed in a shell's state, for undo. The zero value is empty. It is for one goroutine.
type Changes struct {
	first State // before the first of them
	list  []change
}

// change holds only what differs between before and after: a state may be a megabyte, and a session has many of them.
type change struct {
	by            string
	before, after State
}

// Add records what a command changed.
func (c *Changes) Add(by string, before, after State) {
	if len(c.list) == 0 {
		c.first = before
	}
	before, after = differing(before, after)
	c.list = append(c.list, change{by, before, after})
}

// PutBack undoes the newest change or, with all, every change from the newest back. What has changed again since is left as it is.
// by lists the commands whose changes were undone, with an error too. changed describes in one line what that did, "" for
// nothing. left is what still differs: the names that could not be put back or, when no change remains, the difference from the
// state before the first. After an error PutBack can be called again for the rest.
func (c *Changes) PutBack(ctx context.Context, sh interface {
	State(ctx context.Context) (State, error)
	Undo(ctx context.Context, before, after State) (left []string, err error)
}, all bool,
) (by []string, changed, left string, err error) {
	if len(c.list) == 0 {
		return nil, "", "", nil
	}
	was, err := sh.State(ctx)
	if err != nil {
		return nil, "", "", err
	}
	var names []string
	for len(c.list) > 0 && (all || len(by) == 0) {
		last := c.list[len(c.list)-1]
		kept, err := sh.Undo(ctx, last.before, last.after)
		if err != nil {
			return by, "", "", err
		}
		c.list = slices.Delete(c.list, len(c.list)-1, len(c.list))
		by, names = append(by, last.by), append(names, kept...)
	}
	now, err := sh.State(ctx)
	if err != nil {
		return by, "", "", err
	}
	slices.Sort(names)
	left = strings.Join(slices.Compact(names), ", ")
	if len(c.list) == 0 {
		left = Difference(c.first, now)
		c.first = State{}
	}
	return by, Difference(was, now), left, nil
}

// differing returns both states without the entries that are the same in both.
func differing(a, b State) (State, State) {
	for _, m := range [][2]*map[string]string{
		{&a.Vars, &b.Vars}, {&a.Aliases, &b.Aliases}, {&a.Functions, &b.Functions}, {&a.Hashed, &b.Hashed}, {&a.Local, &b.Local},
	} {
		*m[0], *m[1] = without(*m[0], *m[1]), without(*m[1], *m[0])
	}
	for _, l := range [][2]*[]string{{&a.Options, &b.Options}, {&a.Disabled, &b.Disabled}} {
		*l[0], *l[1] = dialect.Without(*l[0], *l[1]), dialect.Without(*l[1], *l[0])
	}
	return a, b
}

// without returns the entries of m that are not in other. Its strings are copies: those of a state are parts of one text.
func without(m, other map[string]string) map[string]string {
	rest := map[string]string{}
	for name, value := range m {
		if old, ok := other[name]; !ok || old != value {
			rest[strings.Clone(name)] = strings.Clone(value)
		}
	}
	return rest
}
