package lend

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"

	"sublet/lease/procstat"
)

// Owner is the process that lends a shell, on whichever connection. The pid that the client reports is not enough: it belongs to
// the client's namespace, and pids are reused.
type Owner struct {
	reported int   // the pid that the client sent
	pid      int   // of the connection's other end, from the kernel; 0 = not known
	started  int64 // when that process started, in clock ticks since boot; 0 without /proc
}

// OwnerOf returns the process at the other end of a connection, by the pid that it reported and the kernel's.
func OwnerOf(reported, pid int) Owner {
	o := Owner{reported: reported, pid: pid}
	if st, err := procstat.Read(pid); err == nil {
		o.started = st.Start
	}
	return o
}

// PID returns the process that the kernel reported; 0 or less if it reported none.
func (o Owner) PID() int { return o.pid }

// gone reports whether the process has ended, so that it cannot come back. It is false if the kernel did not report
// the process.
func (o Owner) gone() bool {
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

// Unidentified is the pid of a peer that the kernel does not name, such as one of another PID namespace. 0 is one that
// came over no socket.
const Unidentified = -1

// agentSessions are the shells that agents use or used, by the session (setsid(2)) that each began: what a shell started may outlive it,
// and have another parent by then.
type agentSessions struct {
	mu sync.Mutex
	// below: guarded by mu
	started map[int]int64 // when the process that began a session did; there are no more of them than process ids
	lent    map[int]int   // the shell last seen of a process that lends one
}

// remember records the session that the shell with that pid leads, by the shell's start time, and reports whether it leads one.
func (a *agentSessions) remember(pid int) bool {
	st, err := procstat.Read(pid)
	if err != nil || st.Session != pid {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.started[pid] = st.Start
	return true
}

// rememberShellsOf remembers the shells of the process that lends them.
func (a *agentSessions) rememberShellsOf(lender int) {
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
		if a.remember(pid) {
			shell = pid
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lent[lender] = shell
}

// mark marks a shell in which agents run unconfined commands. Processes inherit the mark, so one that has left its parents and
// its session is still recognised.
func (s *Shells) mark(pid int) {
	if err := procstat.Mark(pid); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.ESRCH) {
		s.log.Warn("a shell that agents use could not be marked", "err", err)
	}
}

// markShellsOf marks the shells that the process lender has started, and remembers their sessions: see mark and remember.
func (s *Shells) markShellsOf(lender int) {
	if lender <= 0 {
		return
	}
	children, _ := procstat.Children(lender) // where the kernel lists none, ancestry alone counts
	for _, pid := range children {
		if s.agentSessions.remember(pid) {
			s.mark(pid)
		}
	}
}

// contains reports whether a shell that agents use began the session of that id, even if that shell has ended since.
func (a *agentSessions) contains(session int) bool {
	a.mu.Lock()
	started, known := a.started[session]
	a.mu.Unlock()
	if !known {
		return false
	}
	leader, err := procstat.Read(session)
	return err != nil || leader.Start == started // no new process gets the id while one of the session is left
}

// Own lists the processes that no agent is to end: the daemon, windows, and the shells that agents use.
func (s *Shells) Own() []int {
	pids := []int{os.Getpid()}
	for _, ln := range s.all(0) {
		pids = append(pids, ln.owner.pid, ln.owner.reported)
	}
	s.agentSessions.mu.Lock()
	defer s.agentSessions.mu.Unlock()
	for pid, started := range s.agentSessions.started {
		if st, err := procstat.Read(pid); err == nil && st.Start == started { // else it has ended, and another may have its number
			pids = append(pids, pid)
		}
	}
	return pids
}

// Inside returns why a process may not do what only a person may: it runs in a shell that agents use, by its ancestry, its
// session (which is that of its controlling terminal) or its mark, or it cannot be known any more. Nil where there is no /proc.
func (s *Shells) Inside(o Owner) error {
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
	if s.agentSessions.contains(st.Session) {
		return ErrInside
	}
	if marked, err := procstat.Marked(o.pid); marked || err != nil {
		return ErrInside
	}
	above := []int{os.Getpid()} // private shells, MCP servers
	for _, ln := range s.all(0) {
		above = append(above, ln.owner.pid)
	}
	// A process that has left its parents is still in the session that one of them began. What is above the session's leader
	// counts, not the leader itself, which may be a window.
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
