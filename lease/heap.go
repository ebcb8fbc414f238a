package lease

// The heap of those who wait, by when their patience ends. Written out because container/heap costs an interface call
// for each comparison, and because entries leave from the middle whenever a borrower gives up.

func (m *Manager) push(l *Lease) {
	l.heap = len(m.bounds)
	m.bounds = append(m.bounds, l)
	m.up(l.heap)
}

// drop takes l out, if it is in.
func (m *Manager) drop(l *Lease) {
	i, last := l.heap, len(m.bounds)-1
	if i < 0 {
		return
	}
	if i != last {
		m.bounds[i] = m.bounds[last]
		m.bounds[i].heap = i
	}
	m.bounds[last] = nil
	m.bounds = m.bounds[:last]
	l.heap = -1
	if i != last && !m.down(i) {
		m.up(i)
	}
}

func (m *Manager) up(i int) {
	for i > 0 {
		p := (i - 1) / 2
		if !m.bounds[i].bound.Before(m.bounds[p].bound) {
			return
		}
		m.swap(i, p)
		i = p
	}
}

func (m *Manager) down(i int) bool {
	start := i
	for {
		c := 2*i + 1
		if c >= len(m.bounds) {
			break
		}
		if r := c + 1; r < len(m.bounds) && m.bounds[r].bound.Before(m.bounds[c].bound) {
			c = r
		}
		if !m.bounds[c].bound.Before(m.bounds[i].bound) {
			break
		}
		m.swap(i, c)
		i = c
	}
	return i != start
}

func (m *Manager) swap(i, j int) {
	m.bounds[i], m.bounds[j] = m.bounds[j], m.bounds[i]
	m.bounds[i].heap, m.bounds[j].heap = i, j
}
