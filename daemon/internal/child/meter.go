package child

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/time/rate"
)

// ErrFlood reports a program that sends lines faster than the limit allows.
var ErrFlood = errors.New("it sends without end")

// Meter counts the lines that a program sends and their lengths. After a bound is exceeded, every Read fails.
type Meter struct {
	io.ReadCloser
	limit   *rate.Limiter
	longest int
	line    int                   // bytes of the current line
	fault   atomic.Pointer[error] // the bound that was exceeded; nil: none
	ended   atomic.Bool
}

// NewMeter bounds the lines of r, in bytes and by limit.
func NewMeter(r io.ReadCloser, longest int, limit *rate.Limiter) *Meter {
	return &Meter{ReadCloser: r, limit: limit, longest: longest}
}

// Fault returns the bound that was exceeded, nil for none.
func (m *Meter) Fault() error {
	if fault := m.fault.Load(); fault != nil {
		return *fault
	}
	return nil
}

// Ended reports whether the program's output has ended or its input cannot be written any more.
func (m *Meter) Ended() bool { return m.ended.Load() }

// Input returns a program's standard input. A write that fails because the program does not read any more (EPIPE) is recorded.
func (m *Meter) Input(w io.WriteCloser) io.WriteCloser { return input{w, m} }

type input struct {
	io.WriteCloser
	meter *Meter
}

func (i input) Write(p []byte) (int, error) {
	n, err := i.WriteCloser.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		i.meter.ended.Store(true)
	}
	return n, err
}

// Read implements io.Reader.
func (m *Meter) Read(p []byte) (int, error) {
	if fault := m.fault.Load(); fault != nil {
		return 0, *fault
	}
	n, err := m.ReadCloser.Read(p)
	if err == io.EOF {
		m.ended.Store(true)
	}
	lines := bytes.Count(p[:n], []byte{'\n'})
	if m.line += n; lines > 0 {
		m.line = n - 1 - bytes.LastIndexByte(p[:n], '\n')
	}
	switch {
	case m.line > m.longest:
		err = fmt.Errorf("it sent a message of more than %d MiB", m.longest>>20)
	case lines > 0 && !m.limit.AllowN(time.Now(), lines):
		err = ErrFlood
	default:
		return n, err
	}
	m.fault.Store(&err)
	return 0, err
}
