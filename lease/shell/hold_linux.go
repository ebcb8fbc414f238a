package shell

import (
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// holder holds processes: they do nothing until they are let go. Who waits for them does not see it, as SIGSTOP would be, and
// they are killed where this process is. It is their tracer, ptrace(2), which is one thread. Where it may not be, which is so
// with no ptrace for descendants (Yama's scope 2, a sandbox), nothing is held.
type holder struct {
	do     chan func()
	ended  chan struct{}
	struck map[int][]syscall.Signal // by process: signals that it was about to take when it was held
}

// holdWithin is what one may take to stand still: it does so when it has the processor next.
const holdWithin = time.Second

// callStop is what one stops by where a system call begins or ends (PTRACE_O_TRACESYSGOOD).
const callStop = syscall.SIGTRAP | 0x80

// newHolder starts one; end ends it.
func newHolder() *holder {
	h := &holder{do: make(chan func()), ended: make(chan struct{}), struck: make(map[int][]syscall.Signal)}
	go func() {
		defer close(h.ended)
		runtime.LockOSThread() // for good: the thread ends with this
		for f := range h.do {
			f()
		}
	}()
	return h
}

func (h *holder) call(f func()) {
	done := make(chan struct{})
	h.do <- func() {
		defer close(done)
		f()
	}
	<-done
}

// hold returns those that it holds now.
func (h *holder) hold(pids ...int) (held []int) {
	h.call(func() {
		for _, pid := range pids {
			if unix.PtraceSeize(pid) == nil && unix.PtraceInterrupt(pid) == nil {
				held = append(held, pid)
			}
		}
		h.stand(held...)
	})
	return held
}

// stand waits until they stand still or are gone; false where that takes too long.
func (h *holder) stand(pids ...int) bool {
	moving := slices.Clone(pids)
	return until(holdWithin, stopLook, func() bool {
		moving = slices.DeleteFunc(moving, func(pid int) bool {
			still, gone := h.look(pid)
			return still || gone
		})
		return len(moving) == 0
	})
}

// stepsMost bounds stepOut, in system calls; it takes 2 or 3.
const stepsMost = 50

// stepOut has one that does not wait for a child yet go on to a system call that is no sigaction. Bash notes the handler that it
// replaces behind that call: struck by SIGINT in between, its own sends itself the signal again, for good, deaf to all but
// SIGKILL (wait_sigint_handler and wait_for in its jobs.c). And where a call ends is where one that runs is held.
func (h *holder) stepOut(pid int) {
	for range stepsMost {
		c, ok := syscallOf(pid, pid)
		if ok && c.nr == unix.SYS_WAIT4 || unix.PtraceSyscall(pid, 0) != nil {
			return
		}
		if !h.stand(pid) { // it computes
			_ = unix.PtraceInterrupt(pid)
			h.stand(pid)
			return
		}
		if c, ok = syscallOf(pid, pid); ok && c.nr != unix.SYS_RT_SIGACTION {
			return
		}
	}
}

// letGo sends one a signal and has it go on.
func (h *holder) letGo(pid int, sig syscall.Signal) {
	h.call(func() {
		if sig == syscall.SIGINT {
			h.stepOut(pid)
		}
		for _, struck := range h.struck[pid] {
			_ = syscall.Kill(pid, struck)
		}
		_ = syscall.Kill(pid, sig)
		until(waitWithin, stopLook, func() bool {
			if unix.PtraceDetach(pid) == nil {
				return true
			}
			_, gone := h.look(pid)
			return gone // killed: its parent is told once it was taken in here
		})
	})
}

// look takes in what became of one: it may stand still since the last look, or be gone.
func (h *holder) look(pid int) (still, gone bool) {
	var is unix.WaitStatus
	got, err := unix.Wait4(pid, &is, unix.WNOHANG|unix.WALL, nil)
	if err != nil || got != pid {
		return false, err == unix.ECHILD
	}
	if !is.Stopped() {
		return false, true
	}
	if sig := is.StopSignal(); int(is)>>16 != unix.PTRACE_EVENT_STOP && sig != callStop {
		h.struck[pid] = append(h.struck[pid], sig)
	}
	_ = unix.PtraceSetOptions(pid, unix.PTRACE_O_EXITKILL|unix.PTRACE_O_TRACESYSGOOD)
	return true, false
}

// end waits for the end of the thread.
func (h *holder) end() {
	close(h.do)
	<-h.ended
}
