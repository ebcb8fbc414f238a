package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// closeGrace is how long a shell that was hung up may take for its exit traps and its history.
const closeGrace = time.Second

// errHeld tells of a shell that is not gone.
var errHeld = errors.New("the shell has not ended of SIGKILL: the system holds it, and it is gone once that lets go")

// Close hangs the shell up, waits up to a second for its traps and its history, kills it, and removes its folder. In a
// private shell everything left in its session is killed too; a person's nohup is respected, in the foreground too. A command
// that runs is interrupted and ends with status cancelled or shell_exited. Close is idempotent and returns after the last
// goroutine has ended; where the system holds the shell (a dead network disk) it returns an error within seconds, and that
// goroutine stays. An error is logged, too.
func (s *Shell) Close() error {
	s.closeOnce.Do(func() {
		if s.closeErr = s.shut(); s.closeErr != nil {
			s.log.Warn("close", "error", s.closeErr)
		}
	})
	return s.closeErr
}

func (s *Shell) shut() error {
	s.mu.Lock()
	s.closing = true
	p := s.proc
	s.mu.Unlock()
	fg := 0
	if p != nil {
		if pgid, own := p.foreground(); !own {
			fg = pgid
		}
	}
	stays := s.stays(fg)
	calm := !stays && s.calm(p)
	if p != nil {
		awaitPrograms(p.pid)
	}
	s.mu.Lock()
	s.closed = true
	p = s.proc
	freed := s.freedLocked()
	s.mu.Unlock()
	ended := true
	if p != nil {
		var killed bool
		killed, ended = p.stop(fg, !stays, closeGrace)
		if (killed || !calm && !stays) && !freed {
			hangUpSession(p.pid) // as bash would have its jobs, had it been at its prompt
		}
		if s.o.Private {
			killSession(p.pid)
		}
	}
	_, _ = s.fifo.Load().Write(lastRecord)
	if ended {
		s.workers.Wait()
	}
	s.gate.Load().Close()
	s.text.Close()
	s.next.Close()
	s.asked.Close()
	if err := os.RemoveAll(s.folder); err != nil {
		return fmt.Errorf("remove shell folder: %w", err)
	}
	if !ended {
		return errHeld
	}
	return nil
}

// freedLocked tells whether a job may have been taken off bash's list (disown), by a command or by a function it knows: bash would
// not hang that up, and which it is cannot be asked here.
func (s *Shell) freedLocked() bool {
	for _, text := range s.snap.State.Functions {
		if strings.Contains(text, "disown") {
			return true
		}
	}
	return s.freed
}

// stays tells that the foreground group is the user's, and meant to outlive the window: one of it ignores SIGHUP (nohup). It is
// hung up, as a terminal does, and neither interrupted nor killed.
func (s *Shell) stays(fg int) bool {
	s.mu.Lock()
	user := s.run != nil && s.run.c.User
	s.mu.Unlock()
	return user && !s.o.Private && fg > 1 && slices.ContainsFunc(groupMembers(fg), func(pid int) bool { return ignores(pid, syscall.SIGHUP) })
}

// lastRecord wakes the record reader also where a FIFO cannot be polled. The first NUL ends what a shell may have left
// there: hung up in the middle of a record, it ran its EXIT trap with its output still redirected.
var lastRecord = []byte("\x00X\x00")

// calmWithin is how long Close waits for the shell to come to its prompt: only there does bash save its history when it
// is hung up.
const calmWithin = 300 * time.Millisecond

// calm interrupts what runs and waits for the prompt; true when the shell is there. Not hung up: a list would go on with
// its next command.
func (s *Shell) calm(p *process) bool {
	if p == nil || s.o.Private {
		return true
	}
	s.mu.Lock()
	idle, busy := s.idle, s.run != nil
	s.mu.Unlock()
	limit, stop := Patiently(context.Background(), calmWithin)
	defer stop()
	again := time.NewTicker(calmWithin / 5)
	defer again.Stop()
	for {
		if busy {
			pgid, _ := p.foreground()
			signalGroup(pgid, syscall.SIGINT)
		}
		select {
		case <-again.C:
			continue
		case <-p.exited:
			return true
		case <-idle:
		case <-limit.Done():
		}
		if !closed(idle) {
			return false
		}
		late := 20 * time.Millisecond // it told so from its hook, a moment before
		if p.lineBuf.Load() != 0 {
			late = calmWithin // where it is seen, that costs what it takes
		}
		p.awaitRead(late)
		return true
	}
}
