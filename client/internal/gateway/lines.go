package gateway

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// MaxLine is the default limit of a message in a foreign protocol, in bytes without its newline. It fits into one frame of the
// native protocol.
const MaxLine = 10 << 20

// A LineTooLongError reports a line over the limit. The line was discarded, and the next one can be read.
type LineTooLongError struct{ Limit int }

func (e *LineTooLongError) Error() string {
	return fmt.Sprintf("message is over the limit of %d bytes", e.Limit)
}

// LineReader reads newline-delimited messages.
type LineReader struct {
	r   *bufio.Reader
	max int
	buf []byte
}

// NewLineReader reads lines of at most most bytes from r.
func NewLineReader(r io.Reader, most int) *LineReader {
	return &LineReader{r: bufio.NewReaderSize(r, 32<<10), max: most}
}

// Next returns the next line that is not blank, without its end (\n or \r\n); it is valid until the next call. Errors are
// *LineTooLongError, after which Next may be called again, and those of the reader. A last line without a newline counts.
func (l *LineReader) Next() ([]byte, error) {
	for {
		line, err := l.line()
		if line = bytes.TrimSpace(line); len(line) > 0 && (err == nil || errors.Is(err, io.EOF)) {
			return line, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// Each calls line for each line, and long for one over the limit, until one of them returns an error, or the reader ends (nil) or
// fails.
func (l *LineReader) Each(line func([]byte) error, long func(*LineTooLongError) error) error {
	for {
		text, err := l.Next()
		if over, ok := errors.AsType[*LineTooLongError](err); ok {
			err = long(over)
		} else if errors.Is(err, io.EOF) {
			return nil
		} else if err == nil {
			err = line(text)
		}
		if err != nil {
			return err
		}
	}
}

func (l *LineReader) line() ([]byte, error) {
	if cap(l.buf) > 1<<20 {
		l.buf = nil // do not keep the memory of one long message
	}
	l.buf = l.buf[:0]
	for long := false; ; {
		piece, err := l.r.ReadSlice('\n')
		if long = long || len(l.buf)+len(piece) > l.max+len("\r\n"); !long {
			l.buf = append(l.buf, piece...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case long || len(bytes.TrimRight(l.buf, "\r\n")) > l.max:
			return nil, &LineTooLongError{Limit: l.max}
		}
		return l.buf, err
	}
}

// ErrWriterClosed reports that Close was called.
var ErrWriterClosed = errors.New("the writer was closed")

// writerBound is how many bytes may wait for a client that does not read. Send then blocks, which stops the gateway and fills
// the session's inbox, so that memory is bounded.
const writerBound = 256 << 10

// Writer sends whole messages in order. Messages that arrive during a write are sent together in the next one; a single message
// is never delayed. It owns one goroutine; Close ends it.
type Writer struct {
	w       io.Writer
	changed chan struct{} // capacity 1: there is something to write, or Close was called
	done    chan struct{} // closed when the goroutine has ended

	mu sync.Mutex
	// guarded by mu
	pending []byte
	room    chan struct{} // closed and replaced when pending was taken
	err     error         // of the write that failed, or ErrWriterClosed
	closing bool
}

// NewWriter returns a Writer to w, which gets one Write for all that waits.
func NewWriter(w io.Writer) *Writer {
	o := &Writer{w: w, changed: make(chan struct{}, 1), done: make(chan struct{}), room: make(chan struct{})}
	go o.run() // Close waits for it
	return o
}

// run writes what is pending, all of it in one Write, until a write fails or nothing is pending after Close.
func (o *Writer) run() {
	defer close(o.done)
	var spare []byte // the buffer of the last write, in which the next messages are queued
	for range o.changed {
		o.mu.Lock()
		batch, over := o.pending, o.closing
		o.pending = spare[:0]
		close(o.room)
		o.room = make(chan struct{})
		o.mu.Unlock()
		if len(batch) > 0 {
			if _, err := o.w.Write(batch); err != nil {
				o.mu.Lock()
				o.err = err // also in place of ErrWriterClosed: Close returns it
				o.mu.Unlock()
				return
			}
			o.wake() // the signal just taken may also have been that of Close
		} else if over {
			return
		}
		if spare = batch; cap(spare) > 4*writerBound {
			spare = nil // do not keep the memory of one long message
		}
	}
}

func (o *Writer) wake() {
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// Send queues one message, newline included; it blocks while the client does not read. Errors are that of an earlier write,
// after which nothing is sent, ErrWriterClosed, and context.Cause(ctx). It is safe for concurrent use.
func (o *Writer) Send(ctx context.Context, message []byte) error {
	for {
		o.mu.Lock()
		err, room := o.err, o.room
		if err == nil && (len(o.pending) == 0 || len(o.pending)+len(message) <= writerBound) {
			o.pending = append(o.pending, message...)
			o.mu.Unlock()
			o.wake()
			return nil
		}
		o.mu.Unlock()
		if err != nil {
			return err
		}
		select {
		case <-room:
		case <-o.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Broken is closed when nothing can be written any more: a write failed, or Close has returned.
func (o *Writer) Broken() <-chan struct{} { return o.done }

// Close sends what waits, ends the writer, and returns the error of the write that failed, if one did. It waits for the current
// write; to leave a client that does not read, first close the connection or set a deadline. It is idempotent.
func (o *Writer) Close() error {
	o.mu.Lock()
	o.closing = true
	o.err = cmp.Or(o.err, ErrWriterClosed)
	o.mu.Unlock()
	o.wake()
	<-o.done
	o.mu.Lock()
	defer o.mu.Unlock()
	if errors.Is(o.err, ErrWriterClosed) {
		return nil
	}
	return o.err
}

// CloseWithin is Close that, once stop is closed, waits only for bound, since the client may not read. The goroutine that then still
// writes is left behind.
func (o *Writer) CloseWithin(stop <-chan struct{}, bound time.Duration) error {
	done := make(chan error, 1)
	go func() { done <- o.Close() }() // ends with the current write, or with the process
	select {
	case err := <-done:
		return err
	case <-stop:
	}
	select {
	case err := <-done:
		return err
	case <-time.After(bound):
		return errors.New("the client does not read: the last messages were not taken")
	}
}

// Line returns v as one line of JSON with its newline. v is one of our own structs, so that it cannot fail; what is not UTF-8 in it
// becomes U+FFFD, and there is no raw newline inside (A11; such rows are those of docs/conformance.md).
func Line(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("gateway: %T does not encode: %v", v, err))
	}
	return b.Bytes()
}
