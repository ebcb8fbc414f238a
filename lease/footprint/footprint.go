// Package footprint returns memory to the system that a process needed to start and does not need while it is idle.
package footprint

import "runtime/debug"

// Shrink returns the freed heap and the mapped pages of the executable to the system. It runs a garbage collection. Pages of
// the executable that are used again are mapped from the page cache.
func Shrink() error {
	debug.FreeOSMemory()
	return releaseText()
}
