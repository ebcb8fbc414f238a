package lend

import (
	"context"
	"time"

	"sublet/lease"
	"sublet/wire"
	"sublet/wire/visible"
)

// uses are the ShellUseRequests that the client has not answered yet, by their nonces.
type uses struct {
	asked map[uint64]chan<- *wire.ShellUseReply
	asks  uint64 // the newest nonce
}

// usage is a client's answer to who has its shell. nil: it was not asked; one without a reply: it did not answer.
type usage struct{ reply *wire.ShellUseReply }

// askUses asks the clients at once who has their shells, and waits for the answers for wire.ShellUseBound at most. The result lacks those
// that cannot be asked, or need not be: see askUse.
func askUses(ctx context.Context, lenders []*Lender) map[*Lender]*usage {
	bound, cancel := context.WithTimeout(ctx, wire.ShellUseBound)
	defer cancel()
	asked := map[*Lender]<-chan *wire.ShellUseReply{}
	for _, ln := range lenders {
		if answer, forget := ln.askUse(); answer != nil {
			defer forget()
			asked[ln] = answer
		}
	}
	uses := map[*Lender]*usage{}
	for ln, answer := range asked {
		uses[ln] = &usage{}
		select {
		case uses[ln].reply = <-answer:
		case <-bound.Done():
			select { // an answer that came before the bound counts, even if both were ready
			case uses[ln].reply = <-answer:
			default:
			}
		}
	}
	return uses
}

// askUse asks the client who has its shell. answer is nil if it cannot be asked, or need not: a borrower has the shell or waits for it.
// The caller calls forget once it does not wait any more.
func (ln *Lender) askUse() (answer <-chan *wire.ShellUseReply, forget func()) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.conn.window == nil || !ln.conn.can(wire.CapUse) || ln.m.Len() > 0 {
		return nil, nil
	}
	ln.uses.asks++
	nonce, c := ln.uses.asks, make(chan *wire.ShellUseReply, 1)
	ln.uses.asked[nonce] = c
	ln.send(&wire.ShellUseRequest{Nonce: nonce})
	return c, func() {
		ln.mu.Lock()
		delete(ln.uses.asked, nonce)
		ln.mu.Unlock()
	}
}

// ShellUse takes a client's answer, or that its user has just begun a command. An answer that comes too late, or from a connection
// that was replaced, changes nothing.
func (ln *Lender) ShellUse(w Window, m *wire.ShellUseReply) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.conn.window != w {
		return
	}
	if m.Nonce == 0 && m.Holder == "user" {
		ln.typedLocked(time.Now())
	}
	if answer := ln.uses.asked[m.Nonce]; answer != nil {
		delete(ln.uses.asked, m.Nonce)
		m.Holder, m.HeldMS = visible.Exact(visible.Cut(m.Holder, 64)), max(0, m.HeldMS)
		answer <- m
	}
}

// Status lists the shells that are lent or can be. With ask, the clients of those that nobody borrows or waits for are asked who has
// them: it waits for wire.ShellUseBound at most.
func (s *Shells) Status(ctx context.Context, ask bool) []wire.LeaseStatus {
	lenders := s.all(0)
	var uses map[*Lender]*usage
	if ask {
		uses = askUses(ctx, lenders)
	}
	list := []wire.LeaseStatus{}
	for _, ln := range lenders {
		if linked, _ := ln.Linked(); !linked && !ln.Busy() {
			continue // the client may come back within lease.Grace, but nobody has or wants its shell
		}
		list = append(list, ln.status(time.Now(), uses[ln]))
	}
	return list
}

func (ln *Lender) status(now time.Time, use *usage) wire.LeaseStatus {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	st := wire.LeaseStatus{ClientPID: ln.PID(), Queue: []wire.LeaseWaiter{}}
	if l := ln.m.Current(); l != nil {
		st.LeaseID, st.Holder, st.Purpose = wire.LeaseID(l.ID), l.Holder, l.Purpose
		st.HeldMS, st.TermMS = now.Sub(l.Since).Milliseconds(), l.Term.Milliseconds()
	} else if who, held := ln.m.Holder(now); who != "" { // the user, as far as somebody wanted the shell
		st.Holder, st.HeldMS = who, held.Milliseconds()
	} else if use != nil && ln.m.Len() == 0 {
		if st.Silent = use.reply == nil; !st.Silent {
			st.Holder, st.HeldMS = use.reply.Holder, use.reply.HeldMS
		}
	}
	for l := range ln.m.Waiting {
		st.Queue = append(st.Queue, waiter(l, now))
	}
	return st
}

// waiter describes who waits for a shell.
func waiter(l *lease.Lease, now time.Time) wire.LeaseWaiter {
	return wire.LeaseWaiter{
		LeaseID: wire.LeaseID(l.ID), Agent: l.Holder, Purpose: l.Purpose, WaitedMS: now.Sub(l.Asked).Milliseconds(),
	}
}
