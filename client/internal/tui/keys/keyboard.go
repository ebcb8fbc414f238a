// Package keys reads what is typed and gives it to the shell, to a borrowed program, or as keys and pastes to the event loop.
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
	// maxAhead bounds what is typed while nobody can have it, in bytes: a terminal's own input queue holds as much
	// (N_TTY_BUF_SIZE).
	maxAhead = 4 << 10
	// Nobody types longChunk bytes at once, or the next key within longRest: what comes then is the rest of a paste.
	longChunk = 64
	longRest  = 30 * time.Millisecond
)

// Keyboard is the one reader of standard input. In command mode every byte goes to the shell untouched, but for the keys that
// switch to AI mode, which it is asked about first. While the screen is the program's, keys are decoded and delivered to the
// event loop one by one, and the loop has dealt with each before the next byte is looked at: a key that gives the screen away
// takes what was typed after it along, and a key that answers a question takes nothing along. The screen asks the terminal
// nothing, so no answer of the terminal's can end up in a program; answers to a program's own questions are the program's.
type Keyboard struct {
	// Deliver returns once the event loop dealt with a Key, Paste, TooLong or Switch, and whether the shell is to have its bytes.
	// ok is false when the loop has ended.
	Deliver func(msg any) (pass, ok bool)
	Shell   func([]byte)
	Answer  func([]byte) // to the borrowed command that has the terminal
	// Enter asks the shell for the screen: true where it is the program's now.
	Enter     func(chunk []byte) bool
	Switch    []byte // a key chosen by the user; nil = none
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
	ahead   []byte // typed for a program that has not asked again
	lastKey time.Time
	muted   time.Time // what is typed before is dropped
}

// New returns the keyboard of a terminal. Its functions are set before Run.
func New(in *os.File) (*Keyboard, error) {
	wake, stop, err := os.Pipe()
	return &Keyboard{in: in, wake: wake, stop: stop}, err
}

// Receiver is who gets what is typed.
type Receiver int

const (
	ToShell   Receiver = iota // command mode
	ToUs                      // the event loop; these two may have a key that switches
	ToProgram                 // the borrowed command that has the terminal
	toAgain                   // that command, once it asks again: see pause
)

// signalKeys are ^C, ^Z and ^\.
const signalKeys = "\x03\x1a\x1c"

// End has run return. It may be called once run no longer matters to anybody.
func (k *Keyboard) End() { _, _ = k.stop.Write([]byte{0}) }

// Route sends what is typed from now on to r. A program that asks has the user's attention: nothing is dropped any more.
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

// Pause keeps what is typed from now on until begin: the program asked for a secret, and may ask once more. Typed too early
// the secret would be shown, and be output. What interrupts or stops the program goes to it at once.
func (k *Keyboard) Pause() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.to == ToProgram {
		k.to = toAgain
	}
}

// Begin gives the program what was typed ahead: it asks again.
func (k *Keyboard) Begin() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.to == toAgain {
		k.to = ToProgram
		if len(k.ahead) > 0 {
			k.Answer(k.ahead) // at most maxAhead, which a terminal takes at once
			k.ahead = nil
		}
	}
}

// Mute drops what is typed within d.
func (k *Keyboard) Mute(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.muted = k.Now().Add(d)
}

// Last is when a key was typed last.
func (k *Keyboard) Last() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lastKey
}

// Run reads until the terminal is gone, wake is written to or closed, or key reports the loop's end. The error is nil
// unless the terminal went away.
func (k *Keyboard) Run() error {
	defer k.wake.Close()
	defer k.stop.Close()
	buf := make([]byte, 4096)
	for {
		wait := -1
		if len(k.decoder.pending) > 0 && k.decoder.paste == nil { // a paste may be slow
			wait = int(escWait / time.Millisecond)
		}
		fds := []unix.PollFd{
			{Fd: int32(k.in.Fd()), Events: unix.POLLIN},
			{Fd: int32(k.wake.Fd()), Events: unix.POLLIN},
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
		n, err = unix.Read(int(k.in.Fd()), buf)
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

// Feed takes bytes as they were read.
func (k *Keyboard) Feed(p []byte) bool {
	k.mu.Lock()
	now := k.Now()
	quiet, muted := now.Sub(k.lastKey), now.Before(k.muted)
	k.lastKey = now
	k.mu.Unlock()
	switch {
	case muted:
		k.decoder.forget()
		return true
	case len(k.decoder.pending) > 0 || k.decoder.paste != nil:
	case k.Routed() <= ToUs && k.switches(p, now) && k.Enter(p), k.forOthers(p):
		if len(p) >= longChunk {
			k.longRead = k.Now()
		}
		return true
	}
	if k.decoder.paste != nil && len(p) == 1 && p[0] == 0x03 && quiet > time.Second {
		k.decoder.forget() // the end of the paste was lost: ^C by itself gives it up
	}
	k.decoder.pending = append(k.decoder.pending, p...)
	return k.decode(false)
}

// switches reports whether a chunk is a key that may switch to AI mode.
func (k *Keyboard) switches(p []byte, now time.Time) bool {
	return now.Sub(k.longRead) > longRest && (len(p) == 1 && (p[0] == '\t' || p[0] == '?') || len(p) > 0 && bytes.Equal(p, k.Switch))
}

// decode delivers what pending holds. expired: nothing more is coming. A paste belongs to whoever its beginning did.
func (k *Keyboard) decode(expired bool) bool {
	for len(k.decoder.pending) > 0 {
		if k.decoder.paste == nil && k.forOthers(k.decoder.pending) { // the key before this gave the screen away
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
			msg = Key{"tab", "\t"} // not by itself: of a paste, perhaps
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

// forOthers gives bytes to whoever they are for, or keeps them for the program; false: they are the event loop's.
func (k *Keyboard) forOthers(p []byte) bool {
	k.mu.Lock()
	to := k.to
	if to == toAgain {
		if at := bytes.LastIndexAny(p, signalKeys); at >= 0 {
			k.ahead = nil // as a terminal forgets it
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
