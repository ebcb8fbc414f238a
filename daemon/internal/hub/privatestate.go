package hub

import (
	"context"
	"slices"
	"sync"

	"sublet/daemon/internal/risk"

	"sublet/lease/shell"
)

// privateState is what a private shell's state was when a person last stood behind it.
type privateState struct {
	mu sync.Mutex
	// below: guarded by mu
	trusted trusted
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
		p.trusted.all(now)
	}
}

// accept trusts what the last command changed. What an earlier one changed stays suspect.
func (p *privateState) accept(now shell.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trusted.change(p.before, now)
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
	c.Env, c.Aliases, c.Functions, c.Poisoned = now.Vars, now.Aliases, now.Functions, p.trusted.suspects(now)
	c.Hashed, c.Disabled, c.Dialect = now.Hashed, now.Disabled, sh.Name()
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
