package judge

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"sublet/daemon/internal/policy"
	"sublet/wire"
)

// SessionPolicy is what the user has set for one session, in memory only. The zero value has nothing set. It is safe for concurrent use.
type SessionPolicy struct {
	ShowSecrets atomic.Bool // models receive what looks like a secret unmasked

	mu sync.Mutex
	// below: guarded by mu
	mode  policy.Mode
	rules []wire.Rule // of scope session
}

// Mode returns the session's mode, or configured if none is set, so that reloaded settings do not reset it.
func (s *SessionPolicy) Mode(configured policy.Mode) policy.Mode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.mode, configured)
}

// SetMode sets the session's mode.
func (s *SessionPolicy) SetMode(m policy.Mode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mode = m
}

// Rules returns the session's rules, the oldest first.
func (s *SessionPolicy) Rules() []wire.Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rules)
}

// Add adds a rule of scope session.
func (s *SessionPolicy) Add(r wire.Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = append(s.rules, r)
}

// Revoke removes a rule, and reports whether the session had it.
func (s *SessionPolicy) Revoke(id wire.RuleID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.rules)
	s.rules = slices.DeleteFunc(s.rules, func(r wire.Rule) bool { return r.ID == id })
	return len(s.rules) < n
}
