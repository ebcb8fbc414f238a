package tui

import "time"

// again is an action that a key or a command carries out only if it is repeated before until.
type again struct {
	what  string
	until time.Time
}

// armed reports whether a repetition of what at the time now would carry it out.
func (a *again) armed(what string, now time.Time) bool { return a.what == what && now.Before(a.until) }

// second reports whether what was asked for twice within the given time. The first time arms it.
func (a *again) second(what string, now time.Time, within time.Duration) bool {
	if a.armed(what, now) {
		*a = again{}
		return true
	}
	*a = again{what, now.Add(within)}
	return false
}

// other disarms the action of another key than this one. /clear stays armed, since its repetition is typed key by key.
func (a *again) other(key string) {
	if a.what != key && a.what != "/clear" {
		*a = again{}
	}
}
