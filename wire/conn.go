package wire

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Limits of a Conn.
const (
	batchSize  = 32 << 10         // a batch is up to this many bytes of queued frames, or one frame that is longer
	writePiece = 256 << 10        // a longer batch takes several writes of this many bytes
	softQueue  = 4 << 20          // queued bytes over which progress messages are dropped
	hardQueue  = 64 << 20         // queued bytes at which the peer is cut off at once
	slowAfter  = 30 * time.Second // how long one write may take before the peer is cut off
	closeAfter = 2 * time.Second  // how long Close waits for the peer to accept what is queued
)

// Conn sends and receives messages over a byte stream. Send and Close may be called from any goroutine, Receive from one
// at a time. A Conn owns one goroutine, its writer, which runs until Close: each Conn must be closed.
type Conn struct {
	rw       io.ReadWriteCloser
	r        *bufio.Reader
	head     [4]byte // buffer of Receive for the length of a frame
	maxFrame int64   // of Receive

	wake    chan struct{} // capacity 1: something is queued, or closing was set
	done    chan struct{} // closed when err is set
	writer  sync.WaitGroup
	rwClose sync.Once

	stallTimer *time.Timer // cuts the peer off; runs during a write

	socket    syscall.RawConn // of rw, where that is one; else nil
	answering atomic.Bool     // a message was received since Send wrote one itself

	mu      sync.Mutex
	out     queue
	idle    chan struct{} // closed when all is written; nil while no Flush waits
	writing bool
	closing bool  // no more Sends; the writer ends when the queue is empty
	err     error // why the connection ended; nil while it has not
}

// NewConn makes a connection of rw, which it owns from now on, and starts its writer.
func NewConn(rw io.ReadWriteCloser) *Conn {
	c := &Conn{
		rw: rw, r: bufio.NewReaderSize(rw, batchSize), maxFrame: MaxFrame,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if s, ok := rw.(*net.UnixConn); ok {
		c.socket, _ = s.SyscallConn() // nil where rw is closed already
	}
	c.stallTimer = time.AfterFunc(time.Hour, func() { c.fail(ErrSlow) })
	c.stallTimer.Stop()
	c.writer.Go(c.write)
	return c
}

// SetMaxFrame sets the longest payload that Receive accepts, in bytes; it is MaxFrame at first. Only the goroutine that receives may
// call it.
func (c *Conn) SetMaxFrame(n int) { c.maxFrame = int64(n) }

// Send queues m and returns; it never waits for the peer. m is encoded before Send returns, so the caller may reuse it. While
// more than 4 MiB wait, progress messages (CommandOutput, tool_output, tool_call_delta) are dropped. Nothing else is: a peer that
// accepts nothing for 30 s, or falls 64 MiB behind, is cut off, and Send returns ErrSlow.
func (c *Conn) Send(m Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	if c.closing {
		return ErrClosed
	}
	before := c.out.size
	if err := c.out.add(m); err != nil {
		return err
	}
	if c.out.size > hardQueue {
		c.failLocked(ErrSlow)
		return ErrSlow
	}
	if c.writing || before == 0 && c.socket != nil && c.answering.Swap(false) && c.writeNowLocked() {
		return nil // the writer takes m after what it writes now, or m has been written
	}
	c.signal()
	return nil
}

// writeNowLocked writes the queue's only batch without blocking, which saves a single reply or request the switch to the writer goroutine.
// It reports whether all was written; else the rest stays queued, and the writer writes it. Its error is left to the writer, which gets it
// too. It is not for a stream of messages: the writer writes several of those at once.
func (c *Conn) writeNowLocked() bool {
	batch := c.out.batches[0]
	var n int
	_ = c.socket.Write(func(fd uintptr) bool {
		n, _ = syscall.Write(int(fd), batch)
		return true
	})
	if n == len(batch) {
		recycle(c.out.take())
		return true
	}
	c.out.written(n)
	return false
}

// signal wakes the writer.
func (c *Conn) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Flush waits until everything queued so far has been handed to the transport. A sender of a long history calls it between
// pages, so that a slow reader is not cut off. If ctx ends first it returns context.Cause(ctx), and if the connection
// ends, Err().
func (c *Conn) Flush(ctx context.Context) error {
	c.mu.Lock()
	if c.err == nil && c.out.size == 0 && !c.writing {
		c.mu.Unlock()
		return nil
	}
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	idle := c.idle
	c.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-c.done:
		return c.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// write is the writer goroutine: it writes one batch after the other and sleeps when nothing is queued. It never delays
// a message to collect more.
func (c *Conn) write() {
	for {
		batch, more := c.next()
		if !more {
			return
		}
		for piece := range slices.Chunk(batch, writePiece) { // a slow peer needs more than slowAfter for a long frame
			c.stallTimer.Reset(slowAfter)
			_, err := c.rw.Write(piece)
			c.stallTimer.Stop()
			if err != nil {
				c.writeFailed(fmt.Errorf("write to peer: %w", err))
				return
			}
		}
		recycle(batch)
	}
}

// next waits for the next batch; more is false when there will be none, since the connection is closed. When the
// queue is empty it does what waits for that: it wakes Flush, and ends the connection after Close.
func (c *Conn) next() (batch []byte, more bool) {
	for {
		c.mu.Lock()
		batch = c.out.take()
		c.writing = batch != nil
		if batch != nil {
			c.mu.Unlock()
			return batch, true
		}
		if c.idle != nil {
			close(c.idle)
			c.idle = nil
		}
		closing := c.closing
		c.mu.Unlock()
		if closing {
			c.fail(ErrClosed)
			return nil, false
		}
		<-c.wake
	}
}

// Receive returns the next message. An error for which Recoverable returns an answer concerns one message: send the answer and
// call Receive again. Every other error ends the connection, and Close must follow: io.EOF (wrapped) where the peer closed
// between two frames, ErrClosed after Close, *Error for a frame whose length is over the limit or zero, to which Receive has queued
// that Error as the answer.
func (c *Conn) Receive() (Message, error) {
	if _, err := io.ReadFull(c.r, c.head[:]); err != nil {
		return nil, c.readError(err, err == io.EOF)
	}
	n := int64(binary.BigEndian.Uint32(c.head[:]))
	if n == 0 || n > c.maxFrame { // no message is empty
		answer := tooLarge(n, c.maxFrame)
		if n == 0 {
			answer = &Error{Code: CodeInvalidMessage, Message: "a frame of length zero"}
		}
		_ = c.Send(answer) // the connection ends in any case
		return nil, answer
	}
	payload, err := c.payload(int(n))
	if err != nil {
		return nil, c.readError(err, false)
	}
	c.answering.Store(true)
	return Unmarshal(payload)
}

// payload reads n bytes. The buffer grows as they arrive, from 256 KiB to at most eight times what has arrived, so that an
// announced length alone allocates little.
func (c *Conn) payload(n int) ([]byte, error) {
	const first, step = 256 << 10, 8
	p := make([]byte, min(n, first))
	read := 0
	for {
		if _, err := io.ReadFull(c.r, p[read:]); err != nil {
			return nil, err
		}
		if read = len(p); read == n {
			return p, nil
		}
		longer := make([]byte, min(n, step*read))
		copy(longer, p)
		p = longer
	}
}

// readError returns the error that Receive reports for a failed read; boundary is true for io.EOF between two frames.
func (c *Conn) readError(err error, boundary bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil:
		return c.err
	case c.closing:
		return ErrClosed
	case boundary:
		return fmt.Errorf("peer closed the connection: %w", io.EOF)
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read from peer: %w", err)
}

// Close sends what is queued, for at most 2 s, closes the transport and waits for the writer.
// It is safe to call more than once, and from the goroutine that receives.
func (c *Conn) Close() error {
	c.mu.Lock()
	c.closing = true
	c.signal()
	c.mu.Unlock()
	bound := time.AfterFunc(closeAfter, func() { c.fail(ErrClosed) })
	c.writer.Wait()
	bound.Stop()
	c.closeTransport() // still open after a failed write
	return nil
}

// Done is closed when the connection can send no more; Err then returns why.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns why the connection ended: ErrClosed, ErrSlow or the error of the transport; nil while it has not.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *Conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failLocked(err)
}

// failLocked ends the connection; only the first err is kept. Closing the transport unblocks its reader and its writer.
func (c *Conn) failLocked(err error) {
	if c.err == nil {
		c.endLocked(err)
		c.closeTransport()
	}
}

// writeFailed is fail for an error of a write. It leaves the transport open, so that Receive still gets what the peer sent before it
// closed.
func (c *Conn) writeFailed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.endLocked(err)
	}
}

func (c *Conn) endLocked(err error) {
	c.err = err
	c.out = queue{}
	close(c.done)
}

func (c *Conn) closeTransport() {
	c.rwClose.Do(func() { c.rw.Close() })
}
