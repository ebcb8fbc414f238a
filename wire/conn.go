package wire

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Limits of a Conn.
const (
	batchSize   = 32 << 10  // one write takes up to this many bytes of queued frames, or one frame that is longer
	writePiece  = 256 << 10 // a longer frame is written in pieces of this size, each with a time-out of its own
	softQueue   = 4 << 20   // queued bytes over which progress messages are dropped and backlogTimer runs
	hardQueue   = 64 << 20  // queued bytes at which the peer is cut off at once
	discardMost = 64 << 20  // bytes of an oversize frame that are discarded so that the peer can read the error reply
	discardTime = 5 * time.Second
)

// Options of a Conn; zero values take the defaults.
type Options struct {
	MaxFrame   int           // longest payload that is received, in bytes; 0 = MaxFrame. SetMaxFrame changes it
	SlowAfter  time.Duration // how long the peer may accept nothing before it is cut off; 0 = 30 s
	CloseAfter time.Duration // how long Close waits for the peer to accept what is queued; 0 = 2 s
}

// Conn sends and receives messages over a byte stream. Send and Close may be called from any goroutine, Receive from one
// at a time. A Conn owns one goroutine, its writer, which runs until Close: each Conn must be closed.
type Conn struct {
	rw        io.ReadWriteCloser
	r         *bufio.Reader
	head      [4]byte // buffer of Receive for the length of a frame
	maxFrame  atomic.Int64
	slowAfter time.Duration
	closeWait time.Duration

	wake    chan struct{} // capacity 1: something is queued, or closing or halfEnd was set
	done    chan struct{} // closed when err is set
	writer  sync.WaitGroup
	rwClose sync.Once

	stallTimer *time.Timer // cuts the peer off; runs during a write

	socket    syscall.RawConn // of rw, where that is one; else nil
	answering atomic.Bool     // a message was received since Send wrote one itself

	mu           sync.Mutex
	out          queue
	backlogTimer *time.Timer // cuts the peer off; runs while the queue is over softQueue

	idle    chan struct{} // closed when all is written; nil while no Flush waits
	writing bool
	closing bool  // no more Sends; the writer ends when the queue is empty
	halfEnd bool  // no more Sends; the writing side is shut when the queue is empty
	err     error // why the connection ended; nil while it has not
}

// NewConn makes a connection of rw, which it owns from now on, and starts its writer.
func NewConn(rw io.ReadWriteCloser, o Options) *Conn {
	c := &Conn{
		rw: rw, r: bufio.NewReaderSize(rw, batchSize),
		slowAfter: o.SlowAfter, closeWait: o.CloseAfter,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if c.slowAfter <= 0 {
		c.slowAfter = 30 * time.Second
	}
	if c.closeWait <= 0 {
		c.closeWait = 2 * time.Second
	}
	if s, ok := rw.(*net.UnixConn); ok {
		c.socket, _ = s.SyscallConn() // nil where rw is closed already
	}
	c.SetMaxFrame(o.MaxFrame)
	cutOff := func() { c.fail(ErrSlow) }
	c.stallTimer = time.AfterFunc(time.Hour, cutOff)
	c.stallTimer.Stop()
	c.backlogTimer = time.AfterFunc(time.Hour, cutOff)
	c.backlogTimer.Stop()
	c.writer.Go(c.write)
	return c
}

// SetMaxFrame sets the longest payload that Receive accepts, in bytes; 0 or less is MaxFrame. A daemon begins with
// MaxHandshakeFrame and raises it after the handshake.
func (c *Conn) SetMaxFrame(n int) {
	if n <= 0 || n > MaxFrame {
		n = MaxFrame
	}
	c.maxFrame.Store(int64(n))
}

// Send queues m and returns; it never waits for the peer. m is encoded before Send returns, so the caller may reuse it. While
// more than 4 MiB wait, progress messages (CommandOutput, tool_output, tool_call_delta) are dropped. Nothing else is: a peer that accepts nothing for SlowAfter, stays more than 4 MiB behind for as long, or falls
// 64 MiB behind is cut off, and Send returns ErrSlow.
func (c *Conn) Send(m Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	if c.closing || c.halfEnd {
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
	if before <= softQueue && c.out.size > softQueue {
		c.backlogTimer.Reset(c.slowAfter)
	}
	if !c.writing && !(before == 0 && c.socket != nil && c.answering.Swap(false) && c.writeNowLocked()) {
		c.signal()
	}
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
		c.out.recycle(c.out.take())
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
	if c.err != nil {
		defer c.mu.Unlock()
		return c.err
	}
	if c.out.size == 0 && !c.writing {
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

// Pending returns how many bytes are queued.
func (c *Conn) Pending() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.size
}

// write is the writer goroutine: it writes one batch after the other and sleeps when nothing is queued. It never delays
// a message to collect more.
func (c *Conn) write() {
	for {
		batch, more := c.next()
		if !more {
			return
		}
		for p := batch; len(p) > 0; {
			n := min(len(p), writePiece)
			c.stallTimer.Reset(c.slowAfter)
			_, err := c.rw.Write(p[:n])
			c.stallTimer.Stop()
			if err != nil {
				c.writeFailed(fmt.Errorf("write to peer: %w", err))
				return
			}
			p = p[n:]
		}
		c.mu.Lock()
		c.out.recycle(batch)
		c.mu.Unlock()
	}
}

// next waits for the next batch; more is false when there will be none, since the connection has failed or is closed. When the
// queue is empty it does what waits for that: it wakes Flush, shuts the writing side if refuse asked for that, and ends the connection
// after Close.
func (c *Conn) next() (batch []byte, more bool) {
	for {
		c.mu.Lock()
		batch = c.out.take()
		c.writing = batch != nil
		if c.out.size <= softQueue {
			c.backlogTimer.Stop()
		}
		if batch != nil {
			c.mu.Unlock()
			return batch, true
		}
		if c.idle != nil {
			close(c.idle)
			c.idle = nil
		}
		half, closing := c.halfEnd, c.closing
		c.mu.Unlock()
		if half {
			c.closeWrite()
		}
		if closing {
			c.fail(ErrClosed)
			return nil, false
		}
		select {
		case <-c.wake:
		case <-c.done:
			return nil, false
		}
	}
}

// closeWrite shuts the writing side, where the transport has two.
func (c *Conn) closeWrite() {
	if h, ok := c.rw.(interface{ CloseWrite() error }); ok {
		h.CloseWrite()
	}
}

// Receive returns the next message. An error for which Recoverable returns an answer concerns one message: send the answer and
// call Receive again. Every other error ends the connection, and Close must follow: io.EOF (wrapped) where the peer closed
// between two frames, ErrClosed after Close, *Error for a frame whose length is over the limit or zero. Receive has answered
// such a frame with that Error and discarded what followed, up to 64 MiB or 5 s, so that the peer reads the answer.
func (c *Conn) Receive() (Message, error) {
	if _, err := io.ReadFull(c.r, c.head[:]); err != nil {
		return nil, c.readError(err, err == io.EOF)
	}
	n := int64(binary.BigEndian.Uint32(c.head[:]))
	if limit := c.maxFrame.Load(); n > limit {
		err := tooLarge(n, limit)
		c.refuse(err, n)
		return nil, err
	}
	if n == 0 { // no message is empty: treated like a length over the limit
		reply := &Error{Code: CodeInvalidMessage, Message: "a frame of length zero"}
		c.refuse(reply, discardMost)
		return nil, reply
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

// refuse answers a frame whose payload is not read, shuts the writing side, and discards up to n bytes of what follows.
// Closing at once would reset the connection and lose the answer.
func (c *Conn) refuse(answer *Error, n int64) {
	if c.Send(answer) != nil {
		return
	}
	c.mu.Lock()
	c.halfEnd = true
	c.signal()
	c.mu.Unlock()
	bound := time.AfterFunc(discardTime, c.closeTransport)
	defer bound.Stop()
	io.CopyN(io.Discard, c.r, min(n, discardMost))
}

// Close sends what is queued, for at most Options.CloseAfter, closes the transport and waits for the writer.
// It is safe to call more than once, and from the goroutine that receives.
func (c *Conn) Close() error {
	c.mu.Lock()
	c.closing = true
	c.signal()
	c.mu.Unlock()
	bound := time.AfterFunc(c.closeWait, func() { c.fail(ErrClosed) })
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

// writeFailed is fail for an error of a write. It leaves the transport open for discardTime, unless Close is called
// first, so that Receive still gets what the peer sent before it closed.
func (c *Conn) writeFailed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.endLocked(err)
		time.AfterFunc(discardTime, c.closeTransport)
	}
}

func (c *Conn) endLocked(err error) {
	c.err = err
	c.backlogTimer.Stop()
	c.out = queue{}
	close(c.done)
}

func (c *Conn) closeTransport() {
	c.rwClose.Do(func() { c.rw.Close() })
}
