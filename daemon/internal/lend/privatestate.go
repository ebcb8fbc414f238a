package lend

import (
	"context"
	"sync"

	"sublet/daemon/internal/risk"

	"sublet/lease/shell"
)

// privateState is the part of a private shell's state that is trusted: what was there at the start, and what a person approved
// since.
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

// acceptNames trusts the names as they are now, or everything where there are none.
func (p *privateState) acceptNames(ctx context.Context, sh *shell.Shell, names []string) {
	now, err := sh.State(ctx)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.startLocked(now)
	p.trusted.accept(names, now)
}

// facts adds to c what judging a command needs to know of the shell in the state with this digest. It returns false if the shell
// is in another state, or does not report its state in time.
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

// Digest returns that of the shell's state.
func (p *Private) Digest() string { return p.shell().Digest() }

// State returns what the shell looks like; a shell that does not answer has none.
func (p *Private) State(ctx context.Context) shell.State {
	st, err := p.shell().State(ctx)
	if err != nil {
		return shell.State{}
	}
	return st
}

// Facts fills in what judging a command needs of the shell in the state with this digest; false where it is in another, or does not
// answer in time.
func (p *Private) Facts(ctx context.Context, digest string, c *risk.Context) bool {
	return p.shell().Digest() == digest && p.state.facts(ctx, p.shell(), digest, c)
}

// Suspects returns the names whose meaning was changed by a command that no person approved.
func (p *Private) Suspects(ctx context.Context) []string {
	var c risk.Context
	p.Facts(ctx, p.shell().Digest(), &c)
	return c.Poisoned
}

// Accept takes what agents' commands changed in the shell for the user's own: what has one of the names, or all where there are none.
func (p *Private) Accept(ctx context.Context, names []string) {
	p.state.acceptNames(ctx, p.shell(), names)
}
