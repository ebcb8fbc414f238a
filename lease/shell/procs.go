package shell

import (
	"strings"
	"syscall"
	"time"
)

// killSession kills what is left of a session whose leader is gone.
func killSession(session int) {
	eachProcess(func(st procStat) {
		if st.session == session {
			_ = syscall.Kill(st.pid, syscall.SIGKILL)
		}
	})
}

// hangUpSession tells what is left of a session that its terminal is gone.
func hangUpSession(session int) {
	eachProcess(func(st procStat) {
		if st.session == session {
			_ = syscall.Kill(st.pid, syscall.SIGHUP)
			_ = syscall.Kill(st.pid, syscall.SIGCONT)
		}
	})
}

// settledLeftovers gives children that the shell has forked but that are not yet their program a moment to become it.
func settledLeftovers(shell int, from time.Time) []Process {
	list := leftovers(shell, from)
	for _, p := range list {
		if strings.Contains(p.Command, "--noediting --rcfile") {
			time.Sleep(20 * time.Millisecond)
			return leftovers(shell, from)
		}
	}
	return list
}
