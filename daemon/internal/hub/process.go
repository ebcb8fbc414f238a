package hub

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"

	"sublet/lease/procstat"
	"sublet/wire"
	"sublet/wire/visible"
)

// owner is the process that lends a shell, whichever of its connections it is on. The client's own word for its pid is not
// enough: it is one of the client's namespace, and pids are used again.
type owner struct {
	says    int   // the pid by the client's own word
	pid     int   // as the kernel tells of the connection's other end; 0 where it does not
	started int64 // when that process was, in clock ticks since boot; 0 where there is no /proc
}

// ownerOf names the process at the other end of a connection.
func ownerOf(says, pid int) owner {
	o := owner{says: says, pid: pid}
	if st, err := procstat.Read(pid); err == nil {
		o.started = st.Start
	}
	return o
}

// gone reports whether the process has ended, so that it cannot come back. It is false where the kernel did not tell which
// process it is.
func (o owner) gone() bool {
	if o.pid <= 0 {
		return false
	}
	if st, err := procstat.Read(o.pid); err == nil {
		return st.Start != o.started || st.State == 'Z' || st.State == 'X'
	}
	return errors.Is(syscall.Kill(o.pid, 0), syscall.ESRCH)
}

// ErrInside refuses what only a person may do to a process that runs in a shell that agents use: what it says may be an
// agent's doing.
var ErrInside = errors.New("this is called from inside a shell that agents use")

// Elsewhere is the hint of ErrInside.
const Elsewhere = "do it in the window itself (/mode, /rules, /accept), or in a terminal of your own"

// Unidentified is the pid of a peer that the kernel does not name, such as one of another PID namespace. 0 is one that
// came over no socket.
const Unidentified = -1

// agentShells remembers the shells that agents use, by their session: what a shell started may outlive it, and have another
// parent by then.
type agentShells struct {
	mu sync.Mutex
	// below: guarded by mu
	started map[int]int64 // when the process that began a session did
	order   []int         // of started, the oldest first
	lent    map[int]int   // the shell last seen of a process that lends one
}

// maxAgentShells bounds the sessions that are remembered.
const maxAgentShells = 4096

// saw remembers the session that the shell with that pid began, and reports whether it began one.
func (a *agentShells) saw(pid int) bool {
	st, err := procstat.Read(pid)
	if err != nil || st.Session != pid {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.started == nil {
		a.started = map[int]int64{}
	}
	if _, known := a.started[pid]; !known {
		if a.order = append(a.order, pid); len(a.order) > maxAgentShells {
			delete(a.started, a.order[0])
			a.order = a.order[1:]
		}
	}
	a.started[pid] = st.Start
	return true
}

// sawBelow remembers the shells of the process that lends them.
func (a *agentShells) sawBelow(lender int) {
	if lender <= 0 {
		return
	}
	a.mu.Lock()
	shell := a.lent[lender]
	a.mu.Unlock()
	if st, err := procstat.Read(shell); err == nil && st.Parent == lender {
		return
	}
	children, _ := procstat.Children(lender) // where the kernel lists none, ancestry alone counts
	for _, pid := range children {
		if a.saw(pid) {
			shell = pid
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lent == nil || len(a.lent) >= maxAgentShells {
		a.lent = map[int]int{}
	}
	a.lent[lender] = shell
}

// mark has the kernel mark a shell in which agents run what is not held, with all that it starts from now on: what leaves its
// parents and its session is known by that.
func (h *Hub) mark(pid int) {
	if err := procstat.Mark(pid); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.ESRCH) {
		h.log.Warn("a shell that agents use could not be marked", "err", err)
	}
}

// markBelow marks the shells of the process that lends them.
func (h *Hub) markBelow(lender int) {
	if lender <= 0 {
		return
	}
	children, _ := procstat.Children(lender) // where the kernel lists none, ancestry alone counts
	for _, pid := range children {
		if h.shells.saw(pid) {
			h.mark(pid)
		}
	}
}

// began reports whether a shell of agents began the session of that id.
func (a *agentShells) began(session int) bool {
	a.mu.Lock()
	started, known := a.started[session]
	a.mu.Unlock()
	if !known {
		return false
	}
	leader, err := procstat.Read(session)
	return err != nil || leader.Start == started // the number is used again only after the session's last process
}

// own lists the processes that no agent is to end: the daemon, windows, and the shells that agents use.
func (h *Hub) own() []int {
	h.mu.Lock()
	pids := []int{os.Getpid()}
	for of := range h.lenders {
		pids = append(pids, of.pid, of.says)
	}
	h.mu.Unlock()
	h.shells.mu.Lock()
	defer h.shells.mu.Unlock()
	return append(pids, h.shells.order...)
}

// inside returns why a process may not do what only a person may: it runs in a shell that agents use, by its ancestry, its
// session (which is that of its controlling terminal) or its mark, or it cannot be known any more. Nil where there is no /proc.
func (h *Hub) inside(o owner) error {
	if o.pid == 0 {
		return nil
	}
	if _, err := procstat.Read(os.Getpid()); err != nil {
		return nil
	}
	st, err := procstat.Read(o.pid)
	if o.pid < 0 || err != nil || st.Start != o.started {
		return fmt.Errorf("%w, or by a process that has ended", ErrInside)
	}
	if h.shells.began(st.Session) {
		return ErrInside
	}
	if marked, err := procstat.Marked(o.pid); marked || err != nil {
		return ErrInside
	}
	h.mu.Lock()
	above := []int{os.Getpid()} // private shells, MCP servers
	for of := range h.lenders {
		above = append(above, of.pid)
	}
	h.mu.Unlock()
	parents, err := procstat.Ancestors(o.pid)
	if !slices.Contains(parents, st.Session) {
		leaders, _ := procstat.Ancestors(st.Session) // it may have ended
		parents = append(parents, leaders[min(1, len(leaders)):]...)
	}
	if slices.ContainsFunc(above, func(pid int) bool { return pid != o.pid && slices.Contains(parents, pid) }) {
		return ErrInside
	}
	if err != nil {
		return fmt.Errorf("%w, or its parents have just ended", ErrInside)
	}
	return nil
}

// person returns nil if the client may do what only a person may: confirm, change policy, revoke or run leases. Once its
// process was inside a shell that agents use it stays so.
func (c *Client) person() error {
	if c.within.Load() {
		return ErrInside
	}
	err := c.hub.inside(c.owner)
	if err != nil {
		c.within.Store(true)
	}
	return err
}

// ErrAgent refuses what only a person may do to a process that a known agent of another program started.
var ErrAgent = errors.New("this is called by an agent of another program")

// mayDecide returns nil if the client may confirm, change policy or bounds, or take a shell back: a person does, and neither
// what runs in a shell that agents use nor what an agent of another program started.
func (c *Client) mayDecide() error {
	if err := c.person(); err != nil {
		return err
	}
	if c.startedBy != nil {
		if of := c.startedBy(); of.Name != "" {
			return fmt.Errorf("%w, %s", ErrAgent, of.Name)
		}
	}
	return nil
}

// announce sends a notice of a changed policy to every client that can confirm, except the one that changed it.
func (c *Client) announce(format string, args ...any) {
	n := &wire.Notice{Level: "info", Text: visible.Exact(cut(fmt.Sprintf(format, args...), 1024)) + ", by " + c.who()}
	c.hub.mu.Lock()
	clients := make([]*Client, 0, len(c.hub.clients))
	for other := range c.hub.clients {
		if other != c && other.confirm {
			clients = append(clients, other)
		}
	}
	c.hub.mu.Unlock()
	for _, other := range clients {
		other.send(n)
	}
}
