package hub

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"sublet/daemon/internal/risk"

	"sublet/lease"
	"sublet/lease/shell"
	"sublet/wire"
)

// lender is one client's shell: what is known of it, and the queue for it. It outlives the connection by LeaseGrace, so
// that a client that comes back finds its running command, and those who wait their place.
type lender struct {
	hub   *Hub
	owner owner
	pid   int // the owner's, as shown and named

	mu sync.Mutex
	// below: guarded by mu
	m        *lease.Manager
	client   *Client                 // nil while the link is down
	undoes   bool                    // the client knows RestoreShellState
	confines bool                    // the client holds commands to a reach
	queues   bool                    // the client wants ShellQueueChanged
	shown    *wire.ShellQueueChanged // the last one sent on this link; nil = nobody waits
	// Questions for who has the shell, by their nonce, and how many there were.
	jobs     bool // it starts background jobs
	tellsUse bool // the client knows them
	asked    map[uint64]chan<- *wire.ShellUseReply
	asks     uint64
	timer    *time.Timer
	grace    *time.Timer // closes the lender after a lost link
	lostAt   time.Time   // when that was lost
	closed   bool
	env      map[string]wire.OSString
	state    shell.State       // as last told, on whatever link; env may be newer
	stated   bool              // it was told
	bodies   map[string]string // of functions, by hash: a state names those of the one before, and brings the others
	// What borrowed commands that no person approved changed may decide what later ones do (T3g): suspects are the names whose
	// meaning is another than the trusted one. blame holds while the state that the client tells is such a command's work, as
	// far as the order of the messages says so; vetted are the last that a person wanted.
	trusted  trusted
	suspects []string
	blame    bool
	vetted   []wire.ExecutionID
	cwd      string
	digest   string // "" = not known yet
	known    string // the digest that aliases, functions and env are those of; "" = none
	shell    wire.ShellInfo
	typedAt  time.Time
	// A release that the client has not answered yet: what it sends before the answer is what the command left behind.
	unanswered lease.Ref
	answered   chan struct{}
	told       chan struct{} // closed when the client tells its state; then a new one
}

// settleBound is how long a look at the shell waits for the client to report its state, or what the last command changed.
const settleBound = 250 * time.Millisecond

// lenderOf returns the lender of the client's shell, a new one unless that shell was here before.
func (h *Hub) lenderOf(c *Client) *lender {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ln := h.lenders[c.owner]; ln != nil {
		return ln
	}
	ln := &lender{
		hub: h, owner: c.owner, pid: c.info.PID, m: lease.NewManager(&h.fences), typedAt: time.Now(), told: make(chan struct{}),
		asked: map[uint64]chan<- *wire.ShellUseReply{},
	}
	h.lenders[c.owner] = ln
	return ln
}

// link connects the lender with its client, new or back again, agrees with it on what is lent, sends Ready with that,
// and offers the shell to whoever waits. A connection that the client had until then ends: two would get each other's
// messages. link reports false if the lender was closed meanwhile.
func (ln *lender) link(c *Client, env *wire.EnvSnapshot, ready *wire.Ready) bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.closed {
		return false
	}
	if ln.grace != nil {
		ln.grace.Stop()
	}
	if old := ln.client; old != nil {
		old.peer.End(&wire.Error{
			Code: wire.CodeDuplicateID, Message: fmt.Sprintf("another connection lends the shell of client %d now", ln.pid),
			Hint:    "a process that lends several shells gives each a client.pid of its own",
			Details: map[string]string{"client_pid": strconv.Itoa(ln.pid)},
		})
	}
	ln.client = c
	ln.undoes = slices.Contains(env.Capabilities, wire.CapRestore)
	ln.confines = slices.Contains(env.Capabilities, wire.CapConfine)
	ln.queues, ln.shown = slices.Contains(env.Capabilities, wire.CapQueue), nil
	ln.jobs = slices.Contains(env.Capabilities, wire.CapJobs)
	ln.tellsUse = slices.Contains(env.Capabilities, wire.CapUse)
	ln.env, ln.shell = maps.Clone(env.Env), env.Shell
	ln.cwd = string(env.Cwd)
	ln.digest, ln.known = "", "" // the client tells it anew
	ln.answer()
	var refs []lease.Ref
	var executions []string
	for _, h := range env.Leases {
		refs = append(refs, lease.Ref{ID: string(h.LeaseID), Fence: h.Fence})
		executions = append(executions, string(h.ExecutionID))
	}
	adopted, effects := ln.m.Reconnect(time.Now(), refs, executions)
	if adopted != nil {
		ready.Leases = append(ready.Leases, wire.HeldLease{
			LeaseID: wire.LeaseID(adopted.ID), Fence: adopted.Fence, ExecutionID: wire.ExecutionID(adopted.Running()),
		})
	}
	c.send(ready)
	ln.apply(effects)
	return true
}

// unlink notes that the client's connection ended. A connection that was replaced already changes nothing.
func (ln *lender) unlink(c *Client) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.client != c {
		return
	}
	ln.client = nil
	ln.answer()
	ln.apply(ln.m.Disconnect(time.Now()))
	ln.lostAt = time.Now()
	ln.grace = time.AfterFunc(goneEvery, ln.lost)
}

// goneEvery is how often it is looked whether a client whose link dropped has ended: then nobody waits for it to come back.
const goneEvery = time.Second

// lost closes the lender of a client that has ended, or has not come back within the grace.
func (ln *lender) lost() {
	if ln.closeLost() {
		ln.hub.forget(ln)
	}
}

// closeLost ends every lease if the client is lost for good, else looks again later.
func (ln *lender) closeLost() bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.client != nil || ln.closed {
		return false
	}
	if left := time.Until(ln.lostAt.Add(lease.Grace)); left > 0 && !ln.owner.gone() {
		ln.grace.Reset(min(left, goneEvery))
		return false
	}
	ln.closeLocked(lease.NoShell)
	return true
}

// close ends every lease and forgets the lender.
func (ln *lender) close(outcome string) {
	ln.mu.Lock()
	ln.closeLocked(outcome)
	ln.mu.Unlock()
	ln.hub.forget(ln)
}

// forget makes room for another lender of the client, should that come back: one that is closed links nobody.
func (h *Hub) forget(ln *lender) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lenders[ln.owner] == ln {
		delete(h.lenders, ln.owner)
	}
}

func (ln *lender) closeLocked(outcome string) {
	ln.closed = true
	ln.apply(ln.m.Close(time.Now(), outcome))
	if ln.grace != nil {
		ln.grace.Stop()
	}
	ln.answer()
}

// apply carries out effects and sets the timer. Called with mu held: messages leave in the order of the decisions.
func (ln *lender) apply(effects []lease.Effect) {
	for _, e := range effects {
		var b *borrow
		if e.Lease != nil {
			b = e.Lease.Owner.(*borrow)
		}
		ref := wire.LeaseRef{LeaseID: wire.LeaseID(e.Ref.ID), Fence: e.Ref.Fence}
		switch e.Do {
		case lease.Offer:
			ln.tell(&wire.AcquireShellLease{
				LeaseRef: ref, TurnID: b.wish.turn, Agent: e.Lease.Holder, Purpose: e.Lease.Purpose,
				WaitMS: max(0, e.Lease.Wait-time.Since(e.Lease.Asked)).Milliseconds(), TermMS: e.Lease.Term.Milliseconds(),
			})
		case lease.Grant:
			ln.beginLocked(b)
			ln.hub.log.Info("lease granted", "lease", e.Ref.ID, "fence", e.Ref.Fence, "agent", e.Lease.Holder, "client", ln.pid)
		case lease.Cancel:
			ln.tell(&wire.CancelLeasedCommand{LeaseRef: ref, ExecutionID: wire.ExecutionID(e.Execution), Reason: e.Reason})
		case lease.Release:
			ln.tell(&wire.ReleaseShellLease{LeaseRef: ref, Reason: e.Reason})
			if e.Lease != nil && ln.client != nil {
				ln.answer()
				ln.unanswered, ln.answered = e.Ref, make(chan struct{})
			}
		case lease.End:
			b.outcome, b.holder, b.heldFor = e.Reason, e.Holder, e.HeldFor
			close(b.ended)
			ln.hub.log.Info("lease ended", "lease", e.Ref.ID, "outcome", e.Reason, "client", ln.pid)
		}
	}
	ln.arm()
	ln.tellQueue()
}

// tellQueue tells the client who else waits for its shell, where that is not what it was told last. A command that
// nobody queues behind costs nothing here.
func (ln *lender) tellQueue() {
	if ln.client == nil || !ln.queues || ln.m.Len() < 2 && ln.shown == nil {
		return
	}
	now := &wire.ShellQueueChanged{Waiting: []wire.LeaseWaiter{}}
	behind := 0
	for l := range ln.m.Waiting {
		if l.State == lease.Offered {
			continue // the client has it in hand
		}
		if behind++; behind > wire.ShellQueueNamed {
			break
		}
		now.Waiting = append(now.Waiting, wire.LeaseWaiter{
			LeaseID: wire.LeaseID(l.ID), Agent: l.Holder, Purpose: l.Purpose, WaitedMS: time.Since(l.Asked).Milliseconds(),
		})
	}
	if behind > wire.ShellQueueNamed { // all but the one in hand, and the named
		now.More = ln.m.Len() - 1 - wire.ShellQueueNamed
	}
	switch {
	case ln.shown == nil && len(now.Waiting) == 0:
		return
	case ln.shown != nil && ln.shown.More == now.More && slices.EqualFunc(ln.shown.Waiting, now.Waiting, sameWaiter):
		return
	}
	ln.tell(now)
	if ln.shown = now; len(now.Waiting) == 0 {
		ln.shown = nil
	}
}

func sameWaiter(a, b wire.LeaseWaiter) bool { return a.LeaseID == b.LeaseID }

// answer lets go whoever waits for the client's answer to a release.
func (ln *lender) answer() {
	if ln.answered != nil {
		close(ln.answered)
	}
	ln.unanswered, ln.answered = lease.Ref{}, nil
}

func (ln *lender) tell(m wire.Message) {
	if ln.client != nil {
		ln.client.send(m)
	}
}

// arm sets the one timer to the next deadline.
func (ln *lender) arm() {
	at, ok := ln.m.NextDeadline()
	if !ok {
		if ln.timer != nil {
			ln.timer.Stop()
		}
		return
	}
	wait := max(0, time.Until(at))
	if ln.timer == nil {
		ln.timer = time.AfterFunc(wait, ln.tick)
		return
	}
	ln.timer.Reset(wait)
}

func (ln *lender) tick() {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.apply(ln.m.Tick(time.Now()))
}

// busy reports whether anybody holds the shell or waits for it.
func (ln *lender) busy() bool {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	return ln.m.Len() > 0
}

// linked reports whether the client is there; open, whether it may still come back.
func (ln *lender) linked() (linked, open bool) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	return ln.client != nil, !ln.closed
}

// envChanged takes a later EnvSnapshot. What a connection says that was replaced is older than what is known.
func (ln *lender) envChanged(c *Client, env *wire.EnvSnapshot) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.client != c {
		return
	}
	ln.env, ln.cwd = maps.Clone(env.Env), string(env.Cwd) // newer than the last ShellState
}

// stateChanged takes what the live shell looks like now; ErrNotShellOwner from a connection that was replaced.
func (ln *lender) stateChanged(c *Client, st *wire.ShellState) error {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.client != c {
		return ErrNotShellOwner
	}
	back := ln.known == "" // on a new link
	ln.cwd, ln.digest, ln.known = string(st.Cwd), st.Digest, st.Digest
	env := maps.Clone(ln.env)
	if env == nil {
		env = map[string]wire.OSString{}
	}
	maps.Copy(env, st.Env.Set)
	for _, name := range st.Env.Unset {
		delete(env, name)
	}
	ln.env = env
	now := shell.State{
		Vars: texts(env), Aliases: texts(st.Aliases), Functions: ln.functionsOf(st), Hashed: texts(st.Hashed), Disabled: st.Disabled,
	}
	for _, name := range st.Loaded { // of an older client
		now.Hashed[name] = "a builtin that was loaded"
	}
	unapproved := slices.ContainsFunc(st.Executions, func(id wire.ExecutionID) bool { return !slices.Contains(ln.vetted, id) })
	switch {
	case !ln.stated: // a client that has just come has changed nothing
		ln.trusted.all(now)
	case unapproved || ln.blame && (back || st.Executions == nil): // what was named on the link before may be lost with it
	case st.Executions == nil && ln.undoingLocked() && len(ln.suspects) > 0: // put back, to what may have been suspect before
	default:
		ln.trusted.change(ln.state, now)
	}
	ln.state, ln.stated = now, true
	ln.suspects = ln.trusted.suspects(now)
	if back && ln.m.Current() == nil { // of a command whose lease was over before it was told
		ln.blame = false
	}
	close(ln.told)
	ln.told = make(chan struct{})
	return nil
}

func (ln *lender) undoingLocked() bool {
	l := ln.m.Current()
	return l != nil && l.Owner.(*borrow).wish.undo
}

// functionsOf are the functions of a state with their bodies, "" for one that is not known.
func (ln *lender) functionsOf(st *wire.ShellState) map[string]string {
	functions, bodies := make(map[string]string, len(st.Functions)), make(map[string]string, len(st.Functions))
	for _, f := range st.Functions {
		switch {
		case f.Body != "":
			bodies[f.Hash] = string(f.Body)
		case bodies[f.Hash] == "":
			bodies[f.Hash] = ln.bodies[f.Hash]
		}
		functions[f.Name] = bodies[f.Hash]
	}
	ln.bodies = bodies
	return functions
}

// texts is a map of a message as the rest of the daemon has it.
func texts(m map[string]wire.OSString) map[string]string {
	out := make(map[string]string, len(m))
	for name, value := range m {
		out[name] = string(value)
	}
	return out
}

// typed notes that the user typed there.
func (ln *lender) typed(at time.Time) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.typedLocked(at)
}

func (ln *lender) typedLocked(at time.Time) {
	if at.After(ln.typedAt) {
		ln.typedAt = at
	}
}

// where tells where a command would run now. It waits a moment for a client that has just come, or was just given its
// shell back, to say what its shell looks like, so that nothing is judged, let alone asked, for a state that is over.
func (ln *lender) where(ctx context.Context) (cwd, digest string) {
	bound := time.NewTimer(settleBound)
	defer bound.Stop()
	for {
		ln.mu.Lock()
		cwd, digest = ln.cwd, ln.digest
		var wait chan struct{}
		switch {
		case ln.client == nil:
		case ln.answered != nil:
			wait = ln.answered
		case ln.known == "" || ln.known != digest:
			wait = ln.told
		}
		ln.mu.Unlock()
		if wait == nil {
			return cwd, digest
		}
		select {
		case <-wait:
		case <-bound.C:
			return cwd, digest
		case <-ctx.Done():
			return cwd, digest
		}
	}
}

// environ is the live shell's environment. The map is replaced, never changed in place.
func (ln *lender) environ() map[string]wire.OSString {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	return ln.env
}

// facts is what judging a command needs of the live shell; known is false while the client has not told it for the state
// the shell is in.
func (ln *lender) facts(c *risk.Context) (known bool) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	c.Env = texts(ln.env)
	// Replaced, never changed in place.
	c.Aliases, c.Functions, c.Hashed = ln.state.Aliases, ln.state.Functions, ln.state.Hashed
	c.Disabled, c.Poisoned, c.Dialect = ln.state.Disabled, slices.Clone(ln.suspects), ln.shell.Name
	return ln.known != "" && ln.known == ln.digest
}
