package tui

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"golang.org/x/sys/unix"
)

const (
	// escWait is how long an escape byte may stay alone before it is the Escape key.
	escWait = 40 * time.Millisecond
	// maxPaste bounds a paste, in bytes. Of a longer one nothing is taken: half of a command is another command.
	maxPaste = 4 << 20
	// maxAhead bounds what is typed while nobody can have it, in bytes: a terminal's own input queue holds as much
	// (N_TTY_BUF_SIZE).
	maxAhead = 4 << 10
	// pasteRun is the number of printable characters read at once that can only be a paste, by a terminal without
	// bracketed paste. They are delivered as one, and so can never answer a question.
	pasteRun = 32
)

// keyboard is the one reader of standard input. A byte goes either to the program that has the terminal, untouched, or
// through the decoder to the event loop. Keys are delivered one by one and the loop has dealt with each before the next
// byte is looked at, so a key that hands the terminal to a program takes all that was typed after it along, and a key
// that answers a question takes nothing along (T2g). The screen asks the terminal nothing, so no late answer of the
// terminal's can end up in a program (pitfall 2, T6b); answers to a program's own questions are the program's.
type keyboard struct {
	in      *os.File
	stop    *os.File           // the other end of wake
	wake    *os.File           // reading it ends run
	key     func(tea.Msg) bool // returns once the event loop dealt with the message; false: it is over
	program func([]byte) error // writes to the program that has the terminal
	now     func() time.Time

	mu sync.Mutex
	// Guarded by mu.
	to      receiver
	ahead   []byte // typed for whom cannot have it yet
	lastKey time.Time

	cooked  int // bytes that were typed before raw mode: the terminal made their Enter a line feed
	dec     uv.EventDecoder
	pending []byte // an incomplete sequence
	paste   []byte // nil: no bracketed paste is open
	pasted  int    // its length so far, also of what is not kept
}

// pasteTooLong is a paste of which nothing was taken.
type pasteTooLong struct{ bytes int }

// receiver is who gets what is typed.
type receiver int

const (
	toEditor  receiver = iota
	toSoon             // a program that does not run yet: what is typed waits for begin
	toProgram          // the program that has the terminal
	toAgain            // that program, once it asks again: see pause
	toLater            // the editor, once the event loop knows that the program is done
)

// signalKeys are ^C, ^Z and ^\.
const signalKeys = "\x03\x1a\x1c"

// What is written to wake.
const (
	wakeStop  = 's'
	wakeDrain = 'd'
)

// end has run return. It may be called once run no longer matters to anybody.
func (k *keyboard) end() { _, _ = k.stop.Write([]byte{wakeStop}) }

// route sends what is typed from now on to the program that gets the terminal, once begin is called, or to the editor.
func (k *keyboard) route(program bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.to, k.ahead = toEditor, nil
	if program {
		k.to = toSoon
	}
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

// begin says that the program runs, or asks again, and gives it what was typed ahead: had it come earlier, the shell would
// have read it in place of the command.
func (k *keyboard) begin() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.to == toSoon || k.to == toAgain {
		k.to = toProgram
		if len(k.ahead) > 0 {
			_ = k.program(k.ahead) // at most maxAhead, which a terminal takes at once
			k.ahead = nil
		}
	}
}

// park says that the program is done: what is typed from now on waits for unpark, behind what the program left unread.
func (k *keyboard) park(unread []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	// The terminal made Enter a line feed; to the editor it is Enter again.
	k.to, k.ahead = toLater, append(bytes.ReplaceAll(unread, []byte{'\n'}, []byte{'\r'}), k.ahead...)
}

// unpark gives the editor the keyboard, and, if keep, what waited: as if it were typed now.
func (k *keyboard) unpark(keep bool) {
	k.mu.Lock()
	k.to = toEditor
	if !keep {
		k.ahead = nil
	}
	drain := len(k.ahead) > 0
	k.mu.Unlock()
	if drain {
		_, _ = k.stop.Write([]byte{wakeDrain}) // run decodes; the event loop must not wait for itself
	}
}

// routed tells that what is typed is not for the editor now.
func (k *keyboard) routed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.to != toEditor
}

// last is when a key was typed last.
func (k *keyboard) last() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lastKey
}

// run reads until the terminal is gone, wake is written to or closed, or key says that it is over. The error is nil
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
			var b [1]byte
			if n, _ := unix.Read(int(k.wake.Fd()), b[:]); n != 1 || b[0] != wakeDrain || !k.drain() {
				return nil
			}
			continue
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
		if m := min(n, k.cooked); m > 0 {
			k.cooked -= m
			copy(buf, bytes.ReplaceAll(buf[:m], []byte{'\n'}, []byte{'\r'}))
		}
		if !k.feed(buf[:n]) {
			return nil
		}
	}
}

// feed takes bytes as they were read.
func (k *keyboard) feed(p []byte) bool {
	k.mu.Lock()
	before := k.lastKey
	k.lastKey = k.now()
	quiet := k.lastKey.Sub(before)
	k.mu.Unlock()
	if k.forOthers(p) {
		return true
	}
	if k.paste != nil && len(p) == 1 && p[0] == 0x03 && quiet > time.Second {
		k.paste, k.pending = nil, nil // the end of the paste was lost: ^C by itself gives it up
	}
	if !k.drain() {
		return false
	}
	k.pending = append(k.pending, p...)
	return k.decode(false)
}

// drain decodes what waited for the editor.
func (k *keyboard) drain() bool {
	k.mu.Lock()
	if k.to != toEditor || len(k.ahead) == 0 {
		k.mu.Unlock()
		return true
	}
	k.pending = append(k.pending, k.ahead...)
	k.ahead = nil
	k.mu.Unlock()
	return k.decode(false)
}

// decode delivers what pending holds. expired: nothing more is coming.
func (k *keyboard) decode(expired bool) bool {
	for len(k.pending) > 0 {
		if k.forOthers(k.pending) { // the key before this handed the terminal over
			break
		}
		n, msg := k.next(k.pending, expired)
		if n == 0 {
			return true
		}
		k.pending = k.pending[n:]
		if msg != nil && !k.key(msg) {
			return false
		}
	}
	k.pending = nil
	return true
}

var (
	pasteStart = []byte("\x1b[200~")
	pasteEnd   = []byte("\x1b[201~")
)

// next reads one message at the start of b: 0 when b may be the beginning of a longer sequence. The message is nil for
// what nobody wants.
func (k *keyboard) next(b []byte, expired bool) (int, tea.Msg) {
	if k.paste != nil {
		end := bytes.Index(b, pasteEnd)
		if end >= 0 {
			k.addPaste(b[:end])
			text := k.paste
			k.paste = nil
			if k.pasted > maxPaste {
				return end + len(pasteEnd), pasteTooLong{k.pasted}
			}
			return end + len(pasteEnd), tea.PasteMsg{Content: pasted(text)}
		}
		keep := 0 // the end may have begun
		for i := min(len(pasteEnd)-1, len(b)); i > 0; i-- {
			if bytes.HasSuffix(b, pasteEnd[:i]) {
				keep = i
				break
			}
		}
		k.addPaste(b[:len(b)-keep])
		return len(b) - keep, nil
	}
	if bytes.HasPrefix(b, pasteStart) {
		k.paste, k.pasted = []byte{}, 0
		return len(pasteStart), nil
	}
	if n := printableRun(b); n >= pasteRun {
		return n, tea.PasteMsg{Content: string(b[:n])}
	}
	if !expired && incomplete(b) {
		return 0, nil
	}
	n, ev := k.dec.Decode(b)
	if n <= 0 {
		n = 1
	}
	switch ev := ev.(type) {
	case uv.UnknownEvent:
		if !expired && b[0] == 0x1b && len(b) < 256 && n == len(b) {
			return 0, nil
		}
		return n, nil
	case uv.KeyPressEvent:
		return n, tea.KeyPressMsg(ev)
	}
	return n, nil
}

func (k *keyboard) addPaste(b []byte) {
	k.pasted += len(b)
	if room := maxPaste - len(k.paste); room < len(b) {
		b = b[:max(0, room)]
	}
	k.paste = append(k.paste, b...)
}

// pasted makes a paste's line ends line feeds; terminals send carriage returns.
func pasted(b []byte) string {
	s := strings.ToValidUTF8(string(b), "\ufffd")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.ReplaceAll(s, "\r", "\n")
}

// incomplete tells that b begins with a part of a sequence or character whose rest may still come.
func incomplete(b []byte) bool {
	if b[0] != 0x1b {
		return b[0] >= 0xc0 && !utf8.FullRune(b)
	}
	if len(b) == 1 {
		return true
	}
	switch b[1] {
	case '[':
		for _, c := range b[2:] {
			if c >= 0x40 && c <= 0x7e {
				return false
			}
		}
		return len(b) < 64
	case 'O':
		return len(b) == 2
	case ']', 'P', '_', '^', 'X': // strings, ended by BEL or ST
		return len(b) < 4096 && !bytes.ContainsAny(b[2:], "\a\x9c") && !bytes.Contains(b[2:], []byte("\x1b\\"))
	case 0x1b:
		return len(b) == 2
	}
	return !utf8.FullRune(b[1:])
}

// printableRun is how many bytes at the start of b are printable characters without a control among them.
func printableRun(b []byte) int {
	n := 0
	for n < len(b) {
		r, size := utf8.DecodeRune(b[n:])
		if r < 0x20 || r == 0x7f || (r == utf8.RuneError && size == 1) {
			break
		}
		n += size
	}
	return n
}

// forOthers gives bytes to the program that has the terminal, or keeps them for whom they will be; false: they are the
// editor's.
func (k *keyboard) forOthers(p []byte) bool {
	k.mu.Lock()
	switch k.to {
	case toEditor:
		k.mu.Unlock()
		return false
	case toProgram:
		k.mu.Unlock()
		_ = k.program(p) // a program that is gone needs no keys
		return true
	}
	if at := bytes.LastIndexAny(p, signalKeys); at >= 0 && k.to == toAgain {
		k.ahead = nil // as a terminal forgets it
		_ = k.program(p[at : at+1])
		p = p[at+1:]
	}
	k.ahead = append(k.ahead, p[:min(len(p), max(0, maxAhead-len(k.ahead)))]...)
	k.mu.Unlock()
	return true
}
