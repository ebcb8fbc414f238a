//go:build linux && (amd64 || arm64)

//lint:file-ignore U1000 The assembly reads these.

package main

// The Go runtime reserves its memory and starts its threads before any Go code runs, and where a limit forbids that it
// prints a stack trace. So the linker is told to begin the program at sublet_entry (-E sublet_entry, see the Makefile),
// which looks at two limits in assembly, writes the message here if one is too low, and else goes on to the runtime.
var (
	// leastSpace is the address space that a Go program with this one's heap needs, in bytes: the runtime's tables take
	// 600 MB of it, unused.
	leastSpace uint64 = 1 << 30
	noSpace           = "sublet: error: this shell limits the address space of programs to less than 1 GiB (ulimit -v)\n" +
		"sublet: hint: `ulimit -v unlimited` lifts the limit where it is yours; it counts reserved memory, not used memory\n"

	// leastTasks is how many processes and threads window, daemon and shell have together, with some to spare. The kernel
	// counts all of the user's, and none of root's: getrlimit(2), RLIMIT_NPROC.
	leastTasks uint64 = 32
	noTasks           = "sublet: error: this shell limits your processes and threads to fewer than 32 (ulimit -u)\n" +
		"sublet: hint: `ulimit -u 1000` raises the limit where it is yours\n"
)
