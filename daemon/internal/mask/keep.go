package mask

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Secrets that are known by their value are masked wherever they stand, whatever they look like. A process has one set
// of them, since it has one user: they are the keys it was given to work with.
var kept struct {
	mu   sync.Mutex             // for writers
	list atomic.Pointer[[]keep] // replaced, never changed in place
}

type keep struct{ value, mask string }

const (
	minKept = 8   // bytes; shorter values stand in too many texts
	maxKept = 256 // values: a daemon is given a handful
)

// Keep makes String hide these values from now on, in every text of this process. Values shorter than eight bytes
// are left out, since they would hide more than the secret. It is safe for concurrent use.
func Keep(values ...string) {
	kept.mu.Lock()
	defer kept.mu.Unlock()
	var list []keep
	if old := kept.list.Load(); old != nil {
		list = slices.Clone(*old)
	}
	for _, v := range values {
		v = strings.TrimSpace(v)
		if len(v) < minKept || len(list) >= maxKept || slices.ContainsFunc(list, func(k keep) bool { return k.value == v }) {
			continue
		}
		list = append(list, keep{v, placeholder("key", v)})
	}
	// The longest first: one may be a part of another.
	slices.SortStableFunc(list, func(x, y keep) int { return len(y.value) - len(x.value) })
	kept.list.Store(&list)
}

// maskKept hides the values that are known.
func maskKept(s string) string {
	list := kept.list.Load()
	if list == nil {
		return s
	}
	for _, k := range *list {
		if strings.Contains(s, k.value) {
			s = strings.ReplaceAll(s, k.value, k.mask)
		}
	}
	return s
}
