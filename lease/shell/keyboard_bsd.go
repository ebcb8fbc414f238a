//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package shell

// waitsForKeys cannot be told here but by what is on the screen; echo and the alternate screen still are.
func waitsForKeys(shell, pgid int, own bool, tty string, raw bool, asks func() bool) bool {
	return raw && !own || asks()
}

// lineBuffer cannot be told here.
func lineBuffer(shell int) uint64 { return 0 }

// readsLines cannot be told here.
func readsLines(shell int) bool { return false }

// busy cannot be told here.
func busy(shell int) bool { return false }

// waitsForChild cannot be told here.
func waitsForChild(shell int) (waits, seen bool) { return false, false }

// stopped cannot be told without a ps for each look; so a suspended shell is only woken by a cancel.
func stopped(pid int) bool { return false }

func showsCalls(pid int) bool { return false }
