// Package keys reads the terminal's input and passes it to the shell, to a borrowed command, or as keys and pastes to the event
// loop.
package keys

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxAhead bounds the input that waits for a program to ask again, in bytes. A terminal's input queue holds as much
	// (N_TTY_BUF_SIZE).
	maxAhead = 4 << 10
	// Nobody types longChunk bytes at once, or the next key within longRest: what comes then is the rest of a paste.
	longChunk = 64
	longRest  = 30 * time.Millisecond
	// lostPaste is how long no more of a paste must have come for ^C by itself to end it: its end was lost.
	lostPaste = time.Second
)

// Keyboard is the only reader of standard input. In command mode every byte goes to the shell unchanged; only the keys that
// switch to AI mode are delivered first. While this program has the screen, keys are decoded and delivered to the event loop
// one by one. The loop handles each before the next is decoded, so that the keys after one that gives the screen away go to the
// new owner. This program sends the terminal no queries, so any reply in the input belongs to the program that sent the query.
type Keyboard struct {
	// Deliver returns when the event loop has handled an Enter, Key, Paste or Switch. pass reports that the shell has given
	// the screen up for an Enter, or gets the bytes of another message. ok is false when the loop has ended.
	Deliver   func(msg any) (pass, ok bool)
	Shell     func([]byte)
	Answer    func([]byte) // to the borrowed command that has the terminal
	Switch    []byte       // a key chosen by the user; nil = none
	Bracketed func() bool
	Now       func() time.Time

	in       *os.File
	wake     *os.File // reading it ends Run
	stop     *os.File // the other end of wake
	decoder  decoder
	longRead time.Time // when the last long read was delivered

	mu sync.Mutex
	// Guarded by mu.
	to      Receiver
	ahead   []byte // input for a program that has not asked again; see Pause
	lastKey time.Time
	muted   time.Time // input before this time is dropped
}

// New returns the keyboard of a terminal. The caller sets its functions before Run.
func New(in *os.File) (*Keyboard, error) {
	wake, stop, err := os.Pipe()
	return &Keyboard{in: in, wake: wake, stop: stop}, err
}

// Receiver is who gets the input.
type Receiver int

const (
	ToShell   Receiver = iota // command mode
	ToUs                      // the event loop
	ToProgram                 // the borrowed command that has the terminal
	toAgain                   // that command, when it asks again: see Pause
)

// signalKeys are ^C, ^Z and ^\.
const signalKeys = "\x03\x1a\x1c"

// End makes Run return.
func (k *Keyboard) End() { _, _ = k.stop.Write([]byte{0}) }

// Route sends the input from now on to r. ToProgram ends Mute, because the user types for a program that asks.
func (k *Keyboard) Route(r Receiver) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.to, k.ahead = r, nil
	if r == ToProgram {
		k.muted = time.Time{}
	}
}

func (k *Keyboard) Routed() Receiver {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.to
}

// Pause keeps the input for the program until Resume: it has read a secret and may ask once more, and what it receives before it
// has switched echo off would be shown. ^C, ^Z and ^\ are passed on at once.
func (k *Keyboard) Pause() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.to == ToProgram {
		k.to = toAgain
	}
}

// Resume passes the input that Pause kept to the program, which asks again.
func (k *Keyboard) Resume() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.to == toAgain {
		k.to = ToProgram
		if len(k.ahead) > 0 {
			k.Answer(k.ahead) // at most maxAhead, which a terminal accepts at once
			k.ahead = nil
		}
	}
}

// Mute drops the input of the next d.
func (k *Keyboard) Mute(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.muted = k.Now().Add(d)
}

// Last returns when the last input came.
func (k *Keyboard) Last() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lastKey
}

// Run reads until the terminal is gone, End is called, or Deliver reports that the loop has ended. The error is nil unless the
// terminal is gone.
func (k *Keyboard) Run() error {
	defer k.wake.Close()
	defer k.stop.Close()
	buf := make([]byte, 4096)
	fds := []unix.PollFd{
		{Fd: int32(k.in.Fd()), Events: unix.POLLIN},
		{Fd: int32(k.wake.Fd()), Events: unix.POLLIN},
	}
	for {
		wait := -1
		if len(k.decoder.pending) > 0 && k.decoder.paste == nil { // the rest of a paste may take longer
			wait = int(escWait / time.Millisecond)
		}
		n, err := unix.Poll(fds, wait)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case fds[1].Revents != 0:
			return nil
		case n == 0:
			if !k.decode(true) {
				return nil
			}
			continue
		}
		n, err = unix.Read(int(fds[0].Fd), buf)
		switch {
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return err
		case n == 0:
			return io.EOF
		}
		if !k.Feed(buf[:n]) {
			return nil
		}
	}
}

// Feed handles bytes as they were read. It returns false when the event loop has ended.
func (k *Keyboard) Feed(p []byte) bool {
	k.mu.Lock()
	now := k.Now()
	quiet, muted := now.Sub(k.lastKey), now.Before(k.muted)
	k.lastKey = now
	k.mu.Unlock()
	if muted {
		k.decoder.forget()
		return true
	}
	if len(k.decoder.pending) == 0 && k.decoder.paste == nil {
		to := k.Routed() // ToUs also in command mode, while this program prints something
		key := p
		if len(p) < longChunk && bytes.HasPrefix(p, []byte("?")) { // a question typed fast, or over a slow link; no command begins so
			key = p[:1]
		}
		if (to == ToShell || to == ToUs) && k.switches(key, now) && k.enters(key) {
			if p = p[len(key):]; len(p) == 0 {
				return true
			}
		} else if k.forOthers(p) {
			if len(p) >= longChunk {
				k.longRead = k.Now()
			}
			return true
		}
	}
	if k.decoder.paste != nil && len(p) == 1 && p[0] == 0x03 && quiet > lostPaste {
		k.decoder.forget()
	}
	k.decoder.pending = append(k.decoder.pending, p...)
	return k.decode(false)
}

// switches reports whether a chunk is a key that may switch to AI mode.
func (k *Keyboard) switches(p []byte, now time.Time) bool {
	return now.Sub(k.longRead) > longRest && (len(p) == 1 && (p[0] == '\t' || p[0] == '?') || len(p) > 0 && bytes.Equal(p, k.Switch))
}

// enters delivers such a key and reports whether the shell gave the screen up for it.
func (k *Keyboard) enters(p []byte) bool {
	taken, _ := k.Deliver(Enter(p))
	return taken
}

// decode delivers what pending holds. expired means that nothing more followed within escWait. A paste goes to whoever got its
// beginning. It returns false when the event loop has ended.
func (k *Keyboard) decode(expired bool) bool {
	for len(k.decoder.pending) > 0 {
		if k.decoder.paste == nil && k.forOthers(k.decoder.pending) { // the previous key gave the screen away
			break
		}
		n, msg := k.decoder.next(k.decoder.pending, expired)
		if n == 0 {
			return true
		}
		raw := k.decoder.pending[:n:n]
		k.decoder.pending = k.decoder.pending[n:]
		if msg == nil {
			continue
		}
		if len(k.Switch) > 0 && bytes.Equal(raw, k.Switch) {
			msg = Switch{}
		}
		if len(k.decoder.pending) > 0 && len(raw) == 1 && raw[0] == '\t' {
			msg = Key{"tab", "\t"} // bytes follow it, so it may be part of a paste
		}
		pass, ok := k.Deliver(msg)
		if !ok {
			return false
		}
		if p, ok := msg.(Paste); ok {
			raw = p.raw
			if p.bracketed && k.Bracketed() {
				raw = bytes.Join([][]byte{pasteStart, raw, pasteEnd}, nil)
			}
		}
		if pass {
			k.Shell(raw)
		}
	}
	k.decoder.pending = nil
	return true
}

// forOthers passes bytes on to the shell or the program, or keeps them for the program. It returns false if they are for the
// event loop.
func (k *Keyboard) forOthers(p []byte) bool {
	k.mu.Lock()
	to := k.to
	if to == toAgain {
		if at := bytes.LastIndexAny(p, signalKeys); at >= 0 {
			k.ahead = nil // as a terminal discards its input queue
			k.Answer(p[at : at+1])
			p = p[at+1:]
		}
		k.ahead = append(k.ahead, p[:min(len(p), max(0, maxAhead-len(k.ahead)))]...)
	}
	k.mu.Unlock()
	switch to {
	case ToShell:
		k.Shell(p)
	case ToProgram:
		k.Answer(p)
	}
	return to != ToUs
}
