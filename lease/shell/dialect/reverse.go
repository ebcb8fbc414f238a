package dialect

import "slices"

// Reverse calls set or unset for each name whose value differs between before and after, in their order, unless now has
// another value than after: then somebody has changed it since.
func Reverse(before, after, now map[string]string, unset func(name string), set func(name, value string)) {
	c := Compare(before, after, nil)
	for _, name := range slices.Sorted(slices.Values(slices.Concat(c.Added, c.Changed, c.Removed))) {
		current, here := now[name]
		if result, left := after[name]; here != left || current != result {
			continue
		}
		if value, had := before[name]; had {
			set(name, value)
		} else {
			unset(name)
		}
	}
}

// ReverseList calls on or off for each name that is in only one of before and after, unless now differs from after.
func ReverseList(before, after, now []string, on, off func(name string)) {
	for _, name := range Without(after, before) {
		if slices.Contains(now, name) {
			off(name)
		}
	}
	for _, name := range Without(before, after) {
		if !slices.Contains(now, name) {
			on(name)
		}
	}
}
