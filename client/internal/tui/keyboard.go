package tui

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sys/unix"
)

const (
	// maxAhead bounds what is typed while nobody can have it, in bytes: a terminal's own input queue holds as much
	// (N_TTY_BUF_SIZE).
	maxAhead = 4 << 10
	// Nobody types longRead bytes at once, or the next key within longRest: what comes then is the rest of a paste.
	longRead = 64
	longRest = 30 * time.Millisecond
)

// keyboard is the one reader of standard input. In command mode every byte goes to the shell untouched, but for the keys that
// switch to AI mode, which it is asked about first. While the screen is the program's, keys are decoded and delivered to the
// event loop one by one, and the loop has dealt with each before the next byte is looked at: a key that gives the screen away
// takes what was typed after it along, and a key that answers a question takes nothing along. The screen asks the terminal
// nothing, so no answer of the terminal's can end up in a program; answers to a program's own questions are the program's.
type keyboard struct {
	in   *os.File
	stop *os.File // the other end of wake
	wake *os.File // reading it ends run
	// key returns once the event loop dealt with the message, and whether the shell is to have its bytes. ok is false when
	// the loop has ended.
	key    func(msg tea.Msg) (pass, ok bool)
	shell  func([]byte)
	answer func([]byte) // to the borrowed command that has the terminal
	// enter asks the shell for the screen: true where it is the program's now.
	enter     func(chunk []byte) bool
	switchKey []byte // chosen by the user; nil = none
	bracketed func() bool
	now       func() time.Time

	mu sync.Mutex
	// Guarded by mu.
	to      receiver
	ahead   []byte // typed for a program that has not asked again
	lastKey time.Time
	muted   time.Time // what is typed before is dropped

	decoder
	long time.Time // when the last long read was delivered
}

// receiver is who gets what is typed.
type receiver int

const (
	toShell   receiver = iota // command mode
	toUs                      // the event loop; these two may have a key that switches
	toProgram                 // the borrowed command that has the terminal
	toAgain                   // that command, once it asks again: see pause
)

// signalKeys are ^C, ^Z and ^\.
const signalKeys = "\x03\x1a\x1c"

// end has run return. It may be called once run no longer matters to anybody.
func (k *keyboard) end() { _, _ = k.stop.Write([]byte{0}) }

// route sends what is typed from now on to r. A program that asks has the user's attention: nothing is dropped any more.
func (k *keyboard) route(r receiver) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.to, k.ahead = r, nil
	if r == toProgram {
		k.muted = time.Time{}
	}
}

func (k *keyboard) routed() receiver {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.to
}

// pause keeps what is typed from now on until begin: the program asked for a secret, and may ask once more. Typed too early
// the secret would be shown, and be output. What interrupts or stops the program goes to it at once.
func (k *keyboard) pause() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.to == toProgram {
		k.to = toAgain
	}
}

// begin gives the program what was typed ahead: it asks again.
func (k *keyboard) begin() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.to == toAgain {
		k.to = toProgram
		if len(k.ahead) > 0 {
			k.answer(k.ahead) // at most maxAhead, which a terminal takes at once
			k.ahead = nil
		}
	}
}

// mute drops what is typed within d.
func (k *keyboard) mute(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.muted = k.now().Add(d)
}

// last is when a key was typed last.
func (k *keyboard) last() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lastKey
}

// run reads until the terminal is gone, wake is written to or closed, or key reports the loop's end. The error is nil
// unless the terminal went away.
func (k *keyboard) run() error {
	buf := make([]byte, 4096)
	for {
		wait := -1
		if len(k.pending) > 0 && k.paste == nil { // a paste may be slow
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
		if !k.feed(buf[:n]) {
			return nil
		}
	}
}

// feed takes bytes as they were read.
func (k *keyboard) feed(p []byte) bool {
	k.mu.Lock()
	now := k.now()
	quiet, muted := now.Sub(k.lastKey), now.Before(k.muted)
	k.lastKey = now
	k.mu.Unlock()
	switch {
	case muted:
		k.forget()
		return true
	case len(k.pending) > 0 || k.paste != nil:
	case k.routed() <= toUs && k.switches(p, now) && k.enter(p), k.forOthers(p):
		if len(p) >= longRead {
			k.long = k.now()
		}
		return true
	}
	if k.paste != nil && len(p) == 1 && p[0] == 0x03 && quiet > time.Second {
		k.forget() // the end of the paste was lost: ^C by itself gives it up
	}
	k.pending = append(k.pending, p...)
	return k.decode(false)
}

// switches reports whether a chunk is a key that may switch to AI mode.
func (k *keyboard) switches(p []byte, now time.Time) bool {
	return now.Sub(k.long) > longRest && (len(p) == 1 && (p[0] == '\t' || p[0] == '?') || len(p) > 0 && bytes.Equal(p, k.switchKey))
}

// decode delivers what pending holds. expired: nothing more is coming. A paste belongs to whoever its beginning did.
func (k *keyboard) decode(expired bool) bool {
	for len(k.pending) > 0 {
		if k.paste == nil && k.forOthers(k.pending) { // the key before this gave the screen away
			break
		}
		n, msg := k.next(k.pending, expired)
		if n == 0 {
			return true
		}
		raw := k.pending[:n:n]
		k.pending = k.pending[n:]
		if msg == nil {
			continue
		}
		if len(k.switchKey) > 0 && bytes.Equal(raw, k.switchKey) {
			msg = switchAsked{}
		}
		if len(k.pending) > 0 && len(raw) == 1 && raw[0] == '\t' {
			msg = tea.KeyPressMsg{Code: tea.KeyTab, Text: "\t"} // not by itself: of a paste, perhaps
		}
		pass, ok := k.key(msg)
		if !ok {
			return false
		}
		if p, ok := msg.(paste); ok {
			raw = p.raw
			if p.bracketed && k.bracketed() {
				raw = bytes.Join([][]byte{pasteStart, raw, pasteEnd}, nil)
			}
		}
		if pass {
			k.shell(raw)
		}
	}
	k.pending = nil
	return true
}

// forOthers gives bytes to whoever they are for, or keeps them for the program; false: they are the event loop's.
func (k *keyboard) forOthers(p []byte) bool {
	k.mu.Lock()
	to := k.to
	if to == toAgain {
		if at := bytes.LastIndexAny(p, signalKeys); at >= 0 {
			k.ahead = nil // as a terminal forgets it
			k.answer(p[at : at+1])
			p = p[at+1:]
		}
		k.ahead = append(k.ahead, p[:min(len(p), max(0, maxAhead-len(k.ahead)))]...)
	}
	k.mu.Unlock()
	switch to {
	case toShell:
		k.shell(p)
	case toProgram:
		k.answer(p)
	}
	return to != toUs
}
