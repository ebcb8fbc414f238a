package hub

import (
	"context"
	"maps"
	"slices"
	"sync"

	"sublet/daemon/internal/risk"
	"sublet/lease/shell"
)

// privateState is what a private shell's state was when a person last stood behind it: at its start, and after each
// command that a person allowed. What differs from it since may decide what later commands do (T3g).
type privateState struct {
	mu sync.Mutex
	// below: guarded by mu
	trusted shell.State
	before  shell.State // as the command that runs found it
	known   bool        // trusted is set
}

// begin notes the state that a command finds.
func (p *privateState) begin(now shell.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.startLocked(now)
	p.before = now
}

func (p *privateState) startLocked(now shell.State) {
	if !p.known {
		p.known = true
		p.trusted = shell.State{
			Vars: copied(now.Vars), Aliases: copied(now.Aliases), Functions: copied(now.Functions), Hashed: copied(now.Hashed),
			Disabled: slices.Clone(now.Disabled), Loaded: slices.Clone(now.Loaded),
		}
	}
}

// copied is a map of its own, never nil.
func copied(m map[string]string) map[string]string {
	own := make(map[string]string, len(m))
	maps.Copy(own, m)
	return own
}

// accept trusts what the last command changed. What an earlier one changed stays suspect.
func (p *privateState) accept(ctx context.Context, sh *shell.Shell) {
	now, err := sh.State(ctx)
	if err != nil {
		return // the shell is gone, or does not tell: nothing is trusted
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range []struct{ trusted, before, now map[string]string }{
		{p.trusted.Vars, p.before.Vars, now.Vars},
		{p.trusted.Aliases, p.before.Aliases, now.Aliases},
		{p.trusted.Functions, p.before.Functions, now.Functions},
		{p.trusted.Hashed, p.before.Hashed, now.Hashed},
	} {
		for _, name := range changed(m.before, m.now) {
			if value, ok := m.now[name]; ok {
				m.trusted[name] = value
			} else {
				delete(m.trusted, name)
			}
		}
	}
	p.trusted.Disabled = trusting(p.trusted.Disabled, p.before.Disabled, now.Disabled)
	p.trusted.Loaded = trusting(p.trusted.Loaded, p.before.Loaded, now.Loaded)
}

// trusting is a trusted list after a change from before to now that is trusted too.
func trusting(trusted, before, now []string) []string {
	for _, name := range differ(before, now) {
		trusted = slices.DeleteFunc(trusted, func(s string) bool { return s == name })
		if slices.Contains(now, name) {
			trusted = append(trusted, name)
		}
	}
	return trusted
}

// acceptAll trusts the state as it is.
func (p *privateState) acceptAll(ctx context.Context, sh *shell.Shell) {
	now, err := sh.State(ctx)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = false
	p.startLocked(now)
}

// facts is what judging a command needs of the shell in the state with this digest; false where it is in another, or
// does not tell in time.
func (p *privateState) facts(ctx context.Context, sh *shell.Shell, digest string, c *risk.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, settleBound)
	defer cancel()
	now, err := sh.State(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		now = p.before // a command runs: if it changes the state, whatever is judged now is judged again
	}
	if now.Digest != digest {
		return false
	}
	p.startLocked(now)
	suspect := changed(p.trusted.Vars, now.Vars)
	suspect = append(suspect, changed(p.trusted.Aliases, now.Aliases)...)
	suspect = append(suspect, changed(p.trusted.Functions, now.Functions)...)
	suspect = append(suspect, changed(p.trusted.Hashed, now.Hashed)...)
	suspect = append(suspect, differ(p.trusted.Disabled, now.Disabled)...)
	suspect = append(suspect, differ(p.trusted.Loaded, now.Loaded)...)
	slices.Sort(suspect)
	c.Env, c.Aliases, c.Functions, c.Poisoned = now.Vars, now.Aliases, now.Functions, slices.Compact(suspect)
	c.Hashed, c.Disabled, c.Loaded = now.Hashed, now.Disabled, now.Loaded
	return true
}

// keepShell remembers a shell that the turn started, for what its commands would mean there.
func (t *turn) keepShell(p *privateShell) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shells = slices.DeleteFunc(append(t.shells, p), (*privateShell).gone)
}

// privateFacts describes the private shell in which a command was planned, by the digest of its state: shells with the
// same one mean the same by every command. It is false where there is no such shell any more.
func (t *turn) privateFacts(ctx context.Context, digest string, c *risk.Context) (known bool) {
	t.mu.Lock()
	shells := slices.Clone(t.shells)
	t.mu.Unlock()
	if p := t.s.ownShell(); p != nil {
		shells = append(shells, p)
	}
	for _, p := range shells {
		suspects := c.Poisoned
		if p.sh.Digest() == digest && p.state.facts(ctx, p.sh, digest, c) {
			known = true
			c.Poisoned = append(c.Poisoned, suspects...) // one of them is meant: what either may have changed counts
		}
	}
	return known
}
