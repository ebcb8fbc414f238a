package lease

// A binary heap of the waiting leases by waitUntil. It does not use container/heap because that makes an interface call for
// each comparison.

func (m *Manager) addToHeap(l *Lease) {
	l.heap = len(m.waitHeap)
	m.waitHeap = append(m.waitHeap, l)
	m.up(l.heap)
}

// removeFromHeap removes l from the heap, if it is in it.
func (m *Manager) removeFromHeap(l *Lease) {
	i, last := l.heap, len(m.waitHeap)-1
	if i < 0 {
		return
	}
	if i != last {
		m.waitHeap[i] = m.waitHeap[last]
		m.waitHeap[i].heap = i
	}
	m.waitHeap[last] = nil
	m.waitHeap = m.waitHeap[:last]
	l.heap = -1
	if i != last && !m.down(i) {
		m.up(i)
	}
}

// up restores the heap order from index i towards the root.
func (m *Manager) up(i int) {
	for i > 0 {
		p := (i - 1) / 2
		if !m.waitHeap[i].waitUntil.Before(m.waitHeap[p].waitUntil) {
			return
		}
		m.swap(i, p)
		i = p
	}
}

// down restores the heap order from index i towards the leaves, and reports whether the entry moved.
func (m *Manager) down(i int) bool {
	start := i
	for {
		c := 2*i + 1
		if c >= len(m.waitHeap) {
			break
		}
		if r := c + 1; r < len(m.waitHeap) && m.waitHeap[r].waitUntil.Before(m.waitHeap[c].waitUntil) {
			c = r
		}
		if !m.waitHeap[c].waitUntil.Before(m.waitHeap[i].waitUntil) {
			break
		}
		m.swap(i, c)
		i = c
	}
	return i != start
}

func (m *Manager) swap(i, j int) {
	m.waitHeap[i], m.waitHeap[j] = m.waitHeap[j], m.waitHeap[i]
	m.waitHeap[i].heap, m.waitHeap[j].heap = i, j
}
