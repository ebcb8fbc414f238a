package wire

import "sync"

// queue is the encoded frames that wait for the writer, in batches of about 32 KiB. While more than one batch waits, it
// also keeps the message of the last frame, so that the next message of the same stream can be merged into that frame.
// A Conn's mutex guards it.
type queue struct {
	batches [][]byte // in order; the last is still being filled
	size    int      // bytes in batches
	spare   []byte   // a written batch, to be filled again

	tail   Message // the last frame's message, if it can be merged with: &chunk, &output or nil
	tailAt int     // where that frame begins in the last batch
	chunk  AgentStreamChunk
	output CommandOutput
}

const mergeMost = 8 << 10 // bytes of text or data that a merged message may hold

// add appends the frame of m, or merges m into the last frame. While more than softQueue bytes wait it drops progress
// messages.
func (q *queue) add(m Message) error {
	if q.size > softQueue && isProgress(m) {
		return nil
	}
	merged := q.size > batchSize && q.merge(m)
	if merged {
		last := &q.batches[len(q.batches)-1]
		q.size -= len(*last) - q.tailAt
		*last = (*last)[:q.tailAt]
		m = q.tail
	} else if len(q.batches) == 0 || len(q.batches[len(q.batches)-1]) >= batchSize {
		q.batches = append(q.batches, q.fresh())
	}
	last := &q.batches[len(q.batches)-1]
	at := len(*last)
	out, err := AppendFrame(*last, m)
	if err != nil {
		if at == 0 {
			q.recycle(*last)
			q.batches = q.batches[:len(q.batches)-1]
		}
		return err
	}
	*last = out
	q.size += len(out) - at
	if !merged {
		q.remember(m, at)
	}
	return nil
}

// take removes and returns the first batch; nil if nothing waits. The caller gives it back with recycle.
func (q *queue) take() []byte {
	if len(q.batches) == 0 {
		return nil
	}
	batch := q.batches[0]
	q.batches = append(q.batches[:0], q.batches[1:]...)
	q.size -= len(batch)
	if len(q.batches) == 0 {
		q.tail = nil
	}
	return batch
}

// written removes the first n bytes of the only batch. What is left of it is not merged with.
func (q *queue) written(n int) {
	if n > 0 {
		q.batches[0], q.size, q.tail = q.batches[0][n:], q.size-n, nil
	}
}

// spares are written batches of all connections, for a connection that fills several while one is written.
var spares = sync.Pool{New: func() any { return new([]byte) }}

// fresh returns an empty batch.
func (q *queue) fresh() []byte {
	batch := q.spare
	if q.spare = nil; batch == nil {
		batch = *spares.Get().(*[]byte)
	}
	return batch[:0]
}

// recycle takes a written batch back, unless it grew beyond what is worth keeping.
func (q *queue) recycle(batch []byte) {
	switch {
	case cap(batch) > 4*batchSize:
	case q.spare == nil:
		q.spare = batch
	default:
		spares.Put(&batch)
	}
}

// isProgress reports whether m may be dropped: the message that ends the command or call carries the same content.
func isProgress(m Message) bool {
	switch m := m.(type) {
	case *CommandOutput:
		return true
	case *AgentStreamChunk:
		return m.Chunk.Type == ChunkToolOutput || m.Chunk.Type == ChunkToolCallDelta
	}
	return false
}

// remember copies m, whose frame begins at offset at of the last batch, to tail if a later message can be merged into it.
func (q *queue) remember(m Message, at int) {
	q.tail, q.tailAt = nil, at
	if q.size <= batchSize {
		return
	}
	switch m := m.(type) {
	case *CommandOutput:
		if len(m.Data) <= mergeMost {
			data := append(q.output.Data[:0], m.Data...) // the sender may reuse m.Data after Send
			q.output, q.tail = *m, &q.output
			q.output.Data = data
		}
	case *AgentStreamChunk:
		if mergeable(&m.Chunk) && len(m.Chunk.Data)+len(m.Chunk.Text) <= mergeMost {
			data := append(q.chunk.Chunk.Data[:0], m.Chunk.Data...)
			q.chunk, q.tail = *m, &q.chunk
			q.chunk.Chunk.Data = data
		}
	}
}

func mergeable(c *Chunk) bool {
	switch c.Type {
	case ChunkText, ChunkToolCallDelta, ChunkToolOutput:
		return true
	case ChunkReasoning:
		return c.Signature == ""
	}
	return false
}

// merge appends the content of m to tail and reports whether it did: both must belong to one stream, without a gap, and
// have at most mergeMost bytes together.
func (q *queue) merge(m Message) bool {
	switch m := m.(type) {
	case *CommandOutput:
		t := &q.output
		if q.tail != Message(t) || t.LeaseRef != m.LeaseRef || t.ExecutionID != m.ExecutionID ||
			t.Offset+int64(len(t.Data)) != m.Offset || len(t.Data)+len(m.Data) > mergeMost {
			return false
		}
		t.Data = append(t.Data, m.Data...)
		return true
	case *AgentStreamChunk:
		t := &q.chunk
		if q.tail != Message(t) || !mergeable(&m.Chunk) || t.Agent != m.Agent ||
			t.SessionID != m.SessionID || t.TurnID != m.TurnID || t.RequestID != m.RequestID ||
			t.Chunk.Type != m.Chunk.Type || t.Chunk.ExecutionID != m.Chunk.ExecutionID || t.Chunk.Tool != m.Chunk.Tool ||
			len(t.Chunk.Text)+len(t.Chunk.Data)+len(m.Chunk.Text)+len(m.Chunk.Data) > mergeMost {
			return false
		}
		t.Seq, t.AtMS = m.Seq, m.AtMS
		t.Chunk.Text += m.Chunk.Text
		t.Chunk.Data = append(t.Chunk.Data, m.Chunk.Data...)
		return true
	}
	return false
}
