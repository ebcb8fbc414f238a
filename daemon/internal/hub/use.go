package hub

import (
	"context"
	"time"

	"sublet/daemon/internal/mask"
	"sublet/wire"
	"sublet/wire/visible"
)

// usage is what a client said of who has its shell. nil: it was not asked; one without a reply: it did not answer.
type usage struct{ reply *wire.ShellUseReply }

// askUses asks all clients together who has their shells, as far as that is theirs to know, and waits for the answers,
// wire.ShellUseBound at most.
func askUses(ctx context.Context, lenders []*lender) map[*lender]*usage {
	bound, cancel := context.WithTimeout(ctx, wire.ShellUseBound)
	defer cancel()
	asked := map[*lender]<-chan *wire.ShellUseReply{}
	for _, ln := range lenders {
		if answer, forget := ln.askUse(); answer != nil {
			defer forget()
			asked[ln] = answer
		}
	}
	uses := map[*lender]*usage{}
	for ln, answer := range asked {
		uses[ln] = &usage{}
		select {
		case uses[ln].reply = <-answer:
		case <-bound.Done():
			select { // it may have been there first
			case uses[ln].reply = <-answer:
			default:
			}
		}
	}
	return uses
}

// askUse asks the client who has its shell; nil where it cannot be asked, or somebody has the shell or waits for it: then
// that is known.
func (ln *lender) askUse() (answer <-chan *wire.ShellUseReply, forget func()) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.client == nil || !ln.tellsUse || ln.m.Len() > 0 {
		return nil, nil
	}
	ln.asks++
	nonce, c := ln.asks, make(chan *wire.ShellUseReply, 1)
	ln.asked[nonce] = c
	ln.tell(&wire.ShellUseRequest{Nonce: nonce})
	return c, func() {
		ln.mu.Lock()
		delete(ln.asked, nonce)
		ln.mu.Unlock()
	}
}

// SecretTyped has what the user typed without echo hidden from now on.
func (c *Client) SecretTyped(m *wire.SecretTyped) error {
	if c.lender == nil {
		return ErrNotShellOwner
	}
	mask.KeepTyped(string(m.Value))
	return nil
}

// ShellUse takes a client's answer, or that its user has just begun a command. An answer that comes too late changes nothing.
func (c *Client) ShellUse(m *wire.ShellUseReply) error {
	ln := c.lender
	if ln == nil {
		return ErrNotShellOwner
	}
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.client != c {
		return nil
	}
	if m.Nonce == 0 && m.Holder == "user" {
		ln.typedLocked(time.Now())
	}
	if answer := ln.asked[m.Nonce]; answer != nil {
		delete(ln.asked, m.Nonce)
		m.Holder, m.HeldMS = visible.Exact(cut(m.Holder, 64)), max(0, m.HeldMS)
		answer <- m
	}
	return nil
}
