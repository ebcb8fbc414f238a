//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package procs

// WaitsForKeys knows here only what is on the screen.
func WaitsForKeys(shell, pgid int, own bool, tty string, raw bool, asks func() bool) bool {
	return raw && !own || asks()
}

// AsksForSecret returns the program that leads the foreground group. Which file it runs cannot be told here, so none is known
// as one of the system's.
func AsksForSecret(shell, pgid int, tty string) (name string, system bool) { return Name(pgid), false }
