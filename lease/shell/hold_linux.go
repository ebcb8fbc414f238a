package shell

import (
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// holder holds processes: they do nothing until they are let go. Who waits for them does not see it, as SIGSTOP would be, and
// they are killed where this process is. It is their tracer, ptrace(2), which is one thread. Where it may not be, which is so
// with no ptrace for descendants (Yama's scope 2, a sandbox), nothing is held.
type holder struct {
	do     chan func()
	ended  chan struct{}
	struck map[int]syscall.Signal // by process: a signal that it was about to take when it was held
}

// newHolder starts one; end ends it.
func newHolder() *holder {
	h := &holder{do: make(chan func()), ended: make(chan struct{}), struck: make(map[int]syscall.Signal)}
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
		moving := slices.Clone(held)
		until(waitWithin, stopLook, func() bool {
			moving = slices.DeleteFunc(moving, func(pid int) bool {
				still, gone := h.look(pid)
				return still || gone
			})
			return len(moving) == 0
		})
	})
	return held
}

// letGo sends one a signal and has it go on.
func (h *holder) letGo(pid int, sig syscall.Signal) {
	h.call(func() {
		if struck := h.struck[pid]; struck != 0 {
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
	if int(is)>>16 != unix.PTRACE_EVENT_STOP {
		h.struck[pid] = is.StopSignal()
	}
	_ = unix.PtraceSetOptions(pid, unix.PTRACE_O_EXITKILL)
	return true, false
}

// end waits for the end of the thread.
func (h *holder) end() {
	close(h.do)
	<-h.ended
}
