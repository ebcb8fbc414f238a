// Package footprint returns memory to the system that a process needed to start and does not need while it is idle.
package footprint

import (
	"runtime"
	"runtime/debug"
)

// Shrink returns the freed heap and the mapped pages of the executable to the system. It runs a garbage collection. Pages of
// the executable that are used again are mapped from the page cache.
func Shrink() error {
	debug.FreeOSMemory()
	return releaseText()
}

// Held returns the bytes of memory that the process has from the system and has not given back.
func Held() int64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.Sys - stats.HeapReleased)
}
