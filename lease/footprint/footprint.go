// Package footprint gives memory back that a process needed to start and does not need while it waits.
package footprint

import "runtime/debug"

// Shrink gives freed heap back, and the pages of the program's own file that are mapped. It costs a garbage collection; what is
// needed again comes back from the page cache without a read of the disk.
func Shrink() error {
	debug.FreeOSMemory()
	return releaseText()
}
