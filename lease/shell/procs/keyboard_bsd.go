//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package procs

// WaitsForKeys can only go by what is on the screen here.
func WaitsForKeys(shell, pgid int, own bool, tty string, raw bool, asks func() bool) bool {
	return raw && !own || asks()
}
