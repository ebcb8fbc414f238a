package server_test

import (
	"cmp"
	"strings"
	"sync"

	"sublet/wire"
)

// fakeShell plays the lending side by the protocol: the user first, one holder, current fence, matching fingerprint.
// Commands: `cd DIR` moves, `block` runs until it is cancelled or finish is called, `exit N` has that exit code,
// everything else prints "ran: " and its text.
type fakeShell struct {
	p *peer

	mu sync.Mutex
	// below: guarded by mu
	cwd      string
	before   string // before the last cd
	version  int    // of the state
	hashed   map[string]wire.OSString
	user     bool
	first    bool // the user comes before the next borrowed command
	late     bool // after it was asked for
	waiting  []wire.LeaseRef
	held     *wire.LeaseRef
	running  *wire.ExecuteLeasedCommand
	commands []string // that ran
	deaf     bool     // answers nothing
	silent   bool     // does not tell its state by itself
	mute     bool     // accepts a command and sends nothing about it
	stuck    bool     // starts a command and never reports its end
	fixed    string   // its digest, whatever changed; "" = one that tells
	onExec   func(*wire.ExecuteLeasedCommand)
}

func newFakeShell(p *peer) *fakeShell { return &fakeShell{p: p, cwd: "/w"} }

func (s *fakeShell) digest() string {
	return cmp.Or(s.fixed, s.cwd+"#"+strings.Repeat("i", s.version))
}

func (s *fakeShell) send(m wire.Message) { _ = s.p.conn.Send(m) }

// announce tells the state, as after each Ready.
func (s *fakeShell) announce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tellLocked()
}

// tellLocked reports the state, which the executions by may have changed.
func (s *fakeShell) tellLocked(by ...wire.ExecutionID) {
	if !s.silent {
		s.send(&wire.ShellState{Digest: s.digest(), Cwd: wire.OSString(s.cwd), Hashed: s.hashed, Executions: append([]wire.ExecutionID{}, by...)})
	}
}

// move is the user's own cd.
func (s *fakeShell) move(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cwd = dir
	s.version++
	s.tellLocked()
}

// userRuns and userDone are the user's own command.
func (s *fakeShell) userRuns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user = true
}

func (s *fakeShell) userDone() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user = false
	s.lendLocked()
}

// userFirst is the user's command between the next grant and the start of its command: late ends the lease only once that
// command has been asked for.
func (s *fakeShell) userFirst(late bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first, s.late = true, late
}

func (s *fakeShell) comesFirstLocked(late bool) bool {
	if !s.first || s.late != late {
		return false
	}
	ref := *s.held
	s.first, s.held, s.user = false, nil, true
	s.send(&wire.ShellLeaseReleased{LeaseRef: ref, Reason: wire.ReleasedUserFirst})
	return true
}

func (s *fakeShell) lendLocked() {
	if s.user || s.held != nil || len(s.waiting) == 0 {
		return
	}
	ref := s.waiting[0]
	s.waiting = s.waiting[1:]
	s.held = &ref
	s.send(&wire.ShellLeaseAcquired{LeaseRef: ref, Cwd: wire.OSString(s.cwd), State: s.digest()})
	s.comesFirstLocked(false)
}

func (s *fakeShell) receive(m wire.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deaf {
		return
	}
	switch m := m.(type) {
	case *wire.AcquireShellLease:
		s.waiting = append(s.waiting, m.LeaseRef)
		if s.user || s.held != nil {
			s.send(&wire.ShellLeaseQueued{LeaseRef: m.LeaseRef, Holder: "user", HeldMS: 1000})
		}
		s.lendLocked()
	case *wire.ShellUseRequest:
		r := &wire.ShellUseReply{Nonce: m.Nonce}
		if s.user {
			r.Holder, r.HeldMS = "user", 1000
		}
		s.send(r)
	case *wire.ExecuteLeasedCommand:
		s.executeLocked(m)
	case *wire.RestoreShellState:
		s.restoreLocked(m)
	case *wire.CancelLeasedCommand:
		if s.running != nil && !s.stuck && s.held != nil && *s.held == m.LeaseRef && s.running.ExecutionID == m.ExecutionID {
			s.finishLocked(wire.StatusCancelled, nil)
		}
	case *wire.ReleaseShellLease:
		for i, ref := range s.waiting {
			if ref == m.LeaseRef {
				s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
				break
			}
		}
		if s.held != nil && *s.held == m.LeaseRef {
			s.held = nil
			if s.stuck {
				s.running = nil
			}
		}
		s.send(&wire.ShellLeaseReleased{LeaseRef: m.LeaseRef, Reason: wire.ReleasedReleased})
		s.lendLocked()
	}
}

// restoreLocked goes back to where the last cd came from.
func (s *fakeShell) restoreLocked(m *wire.RestoreShellState) {
	done := &wire.CommandCompleted{LeaseRef: m.LeaseRef, ExecutionID: m.ExecutionID, Status: wire.StatusOK}
	if s.held == nil || *s.held != m.LeaseRef {
		done.Status, done.Notes = wire.StatusRefused, []string{"the lease is over"}
	} else if s.before != "" {
		s.send(&wire.CommandStarted{LeaseRef: m.LeaseRef, ExecutionID: m.ExecutionID})
		s.cwd, s.before = s.before, ""
		s.version++
		s.tellLocked()
		done.Output = []byte("moved to " + s.cwd)
	}
	done.Cwd = wire.OSString(s.cwd)
	s.send(done)
}

func (s *fakeShell) executeLocked(m *wire.ExecuteLeasedCommand) {
	if s.held != nil && *s.held == m.LeaseRef && s.comesFirstLocked(true) {
		return
	}
	print := wire.Fingerprint(m.Command, m.Cwd, s.digest())
	if s.held == nil || *s.held != m.LeaseRef || m.Fingerprint != print {
		s.send(&wire.CommandCompleted{LeaseRef: m.LeaseRef, ExecutionID: m.ExecutionID, Status: wire.StatusRefused})
		return
	}
	if s.mute {
		return
	}
	s.running = m
	s.commands = append(s.commands, string(m.Command))
	s.cwd = string(m.Cwd)
	s.send(&wire.CommandStarted{LeaseRef: m.LeaseRef, ExecutionID: m.ExecutionID})
	if s.onExec != nil {
		s.onExec(m)
	}
	command := string(m.Command)
	if s.stuck || command == "block" || strings.HasPrefix(command, "block ") {
		return
	}
	code := 0
	if dir, ok := strings.CutPrefix(command, "cd "); ok {
		s.before = s.cwd
		s.cwd = dir
		s.version++
	}
	if strings.HasPrefix(command, "exit ") {
		code = int(command[5] - '0')
	}
	s.finishLocked(wire.StatusOK, &code)
}

// finish ends the blocking command by itself.
func (s *fakeShell) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	code := 0
	s.finishLocked(wire.StatusOK, &code)
}

// interrupt is the user's Ctrl-C while an agent's command runs; takeBack also revokes the lease.
func (s *fakeShell) interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finishLocked(wire.StatusCancelled, nil)
}

func (s *fakeShell) takeBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	ref := *s.held
	s.running, s.held, s.user = nil, nil, true
	s.send(&wire.ShellLeaseReleased{LeaseRef: ref, Reason: wire.ReleasedByUser})
}

func (s *fakeShell) finishLocked(status string, code *int) {
	m := s.running
	if m == nil {
		return
	}
	s.running = nil
	out := []byte("ran: " + string(m.Command) + "\n")
	s.send(&wire.CommandOutput{LeaseRef: m.LeaseRef, ExecutionID: m.ExecutionID, Data: out})
	s.send(&wire.CommandCompleted{
		LeaseRef: m.LeaseRef, ExecutionID: m.ExecutionID, Output: out, ExitCode: code, Status: status,
		Cwd: wire.OSString(s.cwd), DurationMS: 1,
	})
	switch {
	case strings.HasPrefix(string(m.Command), "cd "):
		s.tellLocked(m.ExecutionID) // before the release is answered
	case strings.HasPrefix(string(m.Command), "export "):
		s.version++
		set := map[string]wire.OSString{}
		for _, word := range strings.Fields(string(m.Command))[1:] {
			name, value, _ := strings.Cut(word, "=")
			set[name] = wire.OSString(value)
		}
		s.send(&wire.ShellState{Digest: s.digest(), Cwd: wire.OSString(s.cwd), Env: wire.EnvChange{Set: set}, Executions: []wire.ExecutionID{m.ExecutionID}})
	case strings.HasPrefix(string(m.Command), "hash -p "):
		s.version++
		words := strings.Fields(string(m.Command))
		s.hashed = map[string]wire.OSString{words[3]: wire.OSString(words[2])}
		s.tellLocked(m.ExecutionID)
	}
}

func (s *fakeShell) ran() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.commands...)
}

// free reports that nothing is lent and nobody waits.
func (s *fakeShell) free() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held == nil && s.running == nil && len(s.waiting) == 0
}
