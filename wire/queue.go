package wire

import "sync"

// queue is the encoded frames that wait for the writer, in batches of about 32 KiB. A Conn's mutex guards it.
type queue struct {
	batches [][]byte // in order; the last is still being filled
	size    int      // bytes in batches
}

// add appends the frame of m. While more than softQueue bytes wait it drops live output.
func (q *queue) add(m Message) error {
	if q.size > softQueue && Live(m) {
		return nil
	}
	if len(q.batches) == 0 || len(q.batches[len(q.batches)-1]) >= batchSize {
		q.batches = append(q.batches, (*spares.Get().(*[]byte))[:0])
	}
	last := &q.batches[len(q.batches)-1]
	at := len(*last)
	out, err := AppendFrame(*last, m)
	*last = out
	q.size += len(out) - at
	return err
}

// take removes and returns the first batch; nil if nothing waits. The caller gives it to recycle.
func (q *queue) take() []byte {
	if len(q.batches) == 0 {
		return nil
	}
	batch := q.batches[0]
	q.batches = append(q.batches[:0], q.batches[1:]...)
	q.size -= len(batch)
	return batch
}

// written removes the first n bytes of the only batch.
func (q *queue) written(n int) {
	if n > 0 {
		q.batches[0], q.size = q.batches[0][n:], q.size-n
	}
}

// spares are written batches of all connections, to be filled again.
var spares = sync.Pool{New: func() any { return new([]byte) }}

// recycle takes a written batch back, unless it grew beyond what is worth keeping.
func recycle(batch []byte) {
	if cap(batch) <= 4*batchSize {
		spares.Put(&batch)
	}
}

// Live reports whether m is a preview that may be dropped, since a later message has the content: output of what runs, or arguments as
// the model writes them. The result of a command has only both ends of a long output; a jump in CommandOutput.Offset shows the gap.
func Live(m Message) bool {
	switch m := m.(type) {
	case *CommandOutput:
		return true
	case *AgentStreamChunk:
		return m.Chunk.Type == ChunkToolOutput || m.Chunk.Type == ChunkToolCallDelta
	}
	return false
}
