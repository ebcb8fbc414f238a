package tui

import "time"

// again is what the next press of the same key, or the same command, does for good.
type again struct {
	what  string
	until time.Time
}

// armed reports whether what was asked for within its time, and not done since.
func (a *again) armed(what string, now time.Time) bool { return a.what == what && now.Before(a.until) }

// second reports whether this is the second time within a while, and remembers the first.
func (a *again) second(what string, now time.Time, within time.Duration) bool {
	if a.armed(what, now) {
		*a = again{}
		return true
	}
	*a = again{what, now.Add(within)}
	return false
}

// other forgets what another key than this one would do.
func (a *again) other(key string) {
	if a.what != key && a.what != "/clear" {
		*a = again{}
	}
}
