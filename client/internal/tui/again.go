package tui

import "time"

// again is an action that a key or a command carries out only if it is repeated before until.
type again struct {
	what  string
	until time.Time
}

// armed reports whether what, if repeated at the time now, is carried out.
func (a *again) armed(what string, now time.Time) bool { return a.what == what && now.Before(a.until) }

// second reports whether this is the repetition of what. If not, it arms what for the given time.
func (a *again) second(what string, now time.Time, within time.Duration) bool {
	if a.armed(what, now) {
		*a = again{}
		return true
	}
	*a = again{what, now.Add(within)}
	return false
}

// disarmUnless disarms the action unless key carries it out. /clear stays armed, since its repetition is typed key by key.
func (a *again) disarmUnless(key string) {
	if a.what != key && a.what != "/clear" {
		*a = again{}
	}
}
