//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package procs

// WaitsForKeys reports whether a program in the foreground group switched canonical mode off (raw), or asks reports a question on
// the screen: nothing shows here what a process waits for.
func WaitsForKeys(shell, pgid int, tty string, raw bool, asks func() bool) bool {
	return raw && pgid != shell || asks()
}

// AsksForSecret returns the program that leads the foreground group. Nothing shows here which file it runs, so none is known as one
// of the system's.
func AsksForSecret(shell, pgid int, tty string) (name string, system bool) { return Name(pgid), false }
