// Package footprint returns memory to the system that a process needed to start and does not need while it is idle.
package footprint

import (
	"runtime/debug"
	"runtime/metrics"
)

// Shrink returns the freed heap and the mapped pages of the executable to the system. It runs a garbage collection. Pages of
// the executable that are used again are mapped from the page cache.
func Shrink() error {
	debug.FreeOSMemory()
	return releaseText()
}

// Held returns the bytes of memory that the process has from the system and has not given back, without stopping the world for it.
func Held() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64() - sample[1].Value.Uint64())
}
