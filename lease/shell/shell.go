package shell

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"sublet/lease/shell/dialect"
	"sublet/lease/shell/procs"
	"sublet/lease/shell/term"
)

// Shell is one shell that can be lent. Its methods are safe for concurrent use. It owns its goroutines; Close waits for
// them.
type Shell struct {
	o       Options
	d       *dialect.Dialect
	path    string
	version string
	files   files
	log     *slog.Logger
	workers sync.WaitGroup

	// The locks of a Shell, in the order in which they are taken. Methods that need one taken say so; …Locked means mu.
	holdLock  lock       // its holder may hold and release the line editor, and change what it is held for
	inputLock sync.Mutex // its holder may type into the terminal; Answer alone types without it
	mu        sync.Mutex

	// below: guarded by mu
	changed chan struct{} // closed, and made anew, when anything below changes
	life    life
	proc    *process
	size    Size
	nonces  nonces
	editor  editor
	records records
	command *userRun // the user's command that runs; nil = none
	run     *run     // the borrowed command that runs
	out     output
	ahead   []byte // what the user typed while the editor is held
	dir     string // see Dir
	state   State
	stale   bool  // a command ran since state was read
	jobs    []int // process groups of background jobs
}

// nonces are those that a mark may have; one with another is ignored. next is that of the command which the widget was given last:
// it becomes current with the first mark that has it, for a signal may keep the shell from learning it.
type nonces struct{ current, next string }

// lock is a mutual exclusion lock for which a caller can wait as long as a context allows. It has capacity 1.
type lock chan struct{}

func (l lock) Lock()   { l <- struct{}{} }
func (l lock) Unlock() { <-l }

// LockContext takes the lock, or returns ctx's cause if ctx ends first.
func (l lock) LockContext(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// editor is what is known of the shell's line editor. To hold it means to type the hold key, at which the script's widget
// answers and blocks until it gets a directive (package dialect). What the user types meanwhile is kept in Shell.ahead.
type editor struct {
	prompt bool // it reads a line: mark P came, and since then no command has begun
	typed  typing

	widget widget
	ack    ack    // the widget's last answer to the hold key
	done   string // the mark with which the widget has answered the last directive; "" = it has not yet
	erased bool   // what it showed, the prompt included, was erased from the screen or was kept from it
	line   string // the half-typed line that was set aside and comes back when the user has the editor again; "" = none
	cursor string // the cursor in line, as the script counts

	screen bool // a caller shows a screen of its own: from TakeScreen to the end of GiveScreen
	lease  bool // a borrower has it: from Hold to the end of Release

	unreported bool // it reads a line, and no prompt was reported: a function of the user's does, or the prompt hook was replaced
}

// widget is what the script's widget does.
type widget int

const (
	idle    widget = iota
	asked          // the hold key was typed, and its answer is awaited
	blocked        // it has answered, and waits for directives: the editor is held
	leaving        // it got a directive that ends it, other than "run", and has not reported its end
)

// userRun is a command of the user's.
type userRun struct {
	text    string
	started time.Time
	tail    term.Tail
	screen  bool // it used the alternate screen
}

func (c *userRun) add(output []byte) {
	c.tail.Add(output)
	c.screen = c.screen || bytes.Contains(output, alternateOn)
}

// process is one shell process with its terminal.
type process struct {
	pid    int
	term   *term.Terminal
	exited chan struct{} // closed once it was waited for; state may then be read
	state  *os.ProcessState
	read   sync.WaitGroup

	commandLine string // at its first prompt, by when a wrapper has run the shell itself; guarded by Shell.mu
}

// Start starts a shell and returns when its process runs; the event PromptShown follows when it is ready. The error is a
// *NoShellError, or names what could not be made or started.
func Start(o Options) (*Shell, error) {
	if o.Env == nil {
		o.Env = os.Environ()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Patience == 0 {
		o.Patience = time.Second
	}
	if o.Size.Cols <= 0 || o.Size.Rows <= 0 {
		o.Size = Size{Cols: 80, Rows: 24}
	}
	s := &Shell{
		o: o, log: o.Log, size: o.Size, life: life{exited: make(chan struct{})}, changed: make(chan struct{}), stale: true,
		holdLock: make(lock, 1), dir: o.Dir,
	}
	var err error
	if o.Path == "" {
		s.path, s.d, s.version, err = Find(o.Env)
	} else {
		s.path = o.Path
		s.d, s.version, err = Identify(o.Path)
	}
	if err != nil {
		return nil, err
	}
	if s.dir == "" {
		if s.dir, err = os.Getwd(); err != nil {
			return nil, fmt.Errorf("start the shell: %w", err)
		}
	}
	if s.files, err = makeFiles(o.Folder); err == nil {
		s.mu.Lock()
		err = s.spawnLocked("")
		s.mu.Unlock()
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// spawnLocked starts a process, which becomes the current one. restore is run before its first prompt.
func (s *Shell) spawnLocked(restore string) error {
	nonce := newNonce()
	s.nonces = nonces{nonce, nonce}
	s.editor = editor{screen: s.editor.screen, lease: s.editor.lease}
	s.out, s.records, s.command = output{}, records{}, nil
	if s.editor.screen || s.editor.lease { // as after a borrowed command: the user sees its prompt once they have it back
		s.out.route = toLater
	}
	drain(s.files.up) // records and directives of the previous process
	drain(s.files.down)
	env := append(slices.Clip(s.o.Env), EnvInside+"="+strconv.Itoa(os.Getpid()), EnvStarting+"=1") // of two with one name, exec takes the last
	l := s.d.Start(dialect.Start{
		Folder: s.files.folder, Nonce: nonce, Env: env, Private: s.o.Private, Restore: restore,
	})
	if err := s.files.write(l.File, l.Text); err != nil {
		return fmt.Errorf("start the shell: %w", err)
	}
	p, cmd, err := start(s.path, l, s.dir, s.size, s.o)
	if err != nil {
		return err
	}
	s.proc, s.life.spawned = p, time.Now()
	p.read.Go(func() { s.readTerminal(p) })
	s.workers.Go(func() {
		_ = cmd.Wait() // the state says more than the error
		p.state = cmd.ProcessState
		_ = p.term.SetReadDeadline(time.Now().Add(lastOutput))
		p.read.Wait()
		close(p.exited)
		s.restart(p)
	})
	return nil
}

// changeLocked wakes everything that waits for a change.
func (s *Shell) changeLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// await calls is with mu held, now and after each change, and returns nil once it reports true. It returns ErrClosed if the
// shell is over, and ctx's cause if ctx ends first.
func (s *Shell) await(ctx context.Context, is func() bool) error {
	return s.awaitTimed(ctx, func() (bool, time.Duration) { return is(), 0 })
}

// awaitTimed is await for a condition that time alone can change: is also returns after how long to call it again; 0 = after a
// change only.
func (s *Shell) awaitTimed(ctx context.Context, is func() (bool, time.Duration)) error {
	for {
		s.mu.Lock()
		met, wait := is()
		over, changed := s.life.over(), s.changed
		s.mu.Unlock()
		switch {
		case over:
			return ErrClosed
		case met:
			return nil
		}
		var timer <-chan time.Time
		if wait > 0 {
			timer = time.After(wait)
		}
		select {
		case <-changed:
		case <-timer:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// locked returns what get, which is called with mu held, returns.
func locked[T any](s *Shell, get func() T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return get()
}

func (s *Shell) event(e any) {
	if s.o.Event != nil {
		s.o.Event(e)
	}
}

// Version, Path and Name are those of the shell that runs: "5.2.15", "/bin/bash", "bash".
func (s *Shell) Version() string { return s.version }
func (s *Shell) Path() string    { return s.path }
func (s *Shell) Name() string    { return s.d.Name }

// Foreground returns the foreground process group of the shell's terminal: of the program that runs, or the shell's own. It is 0
// if there is none.
func (s *Shell) Foreground() int {
	return locked(s, func() *process { return s.proc }).term.Foreground()
}

// PID returns the process id of the shell; a restart changes it.
func (s *Shell) PID() int { return locked(s, func() int { return s.proc.pid }) }

// Dir returns where the shell was at its last prompt or the end of the last borrowed command.
func (s *Shell) Dir() string { return locked(s, func() string { return s.dir }) }

// Digest returns the digest of the last known State, "" before the first.
func (s *Shell) Digest() string { return locked(s, func() string { return s.state.Digest }) }

// Exited returns a channel that is closed when the user has left the shell, or it could not be started again.
func (s *Shell) Exited() <-chan struct{} { return s.life.exited }

// ExitStatus returns the shell's exit status once Exited is closed: -1 if a signal ended it, 1 if it could not be started again.
func (s *Shell) ExitStatus() int { return locked(s, func() int { return s.life.status }) }

func (s *Shell) cols() int { return locked(s, func() int { return s.size.Cols }) }

// Resize sets the terminal's size.
func (s *Shell) Resize(z Size) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size = z
	return s.proc.term.Resize(z)
}

// closeGrace is how long a shell that was hung up may take for its traps and its history.
const closeGrace = time.Second

// Close hangs the shell up as a closing terminal does, waits up to a second for its traps and its history, kills it, and
// removes its folder. In a private shell everything left in its session is killed too, except for background jobs. A borrowed
// command that runs ends with status cancelled or shell_exited. It is idempotent, and returns after the last goroutine has
// ended.
func (s *Shell) Close() error {
	s.mu.Lock()
	if s.life.closed {
		s.mu.Unlock()
		return nil
	}
	s.life.closed = true
	p := s.proc
	s.changeLocked()
	s.mu.Unlock()
	if p != nil {
		if fg := p.term.Foreground(); fg != p.pid {
			procs.SignalGroup(fg, syscall.SIGHUP)
			procs.SignalGroup(fg, syscall.SIGCONT)
		}
		_ = syscall.Kill(p.pid, syscall.SIGHUP)
		_ = syscall.Kill(p.pid, syscall.SIGCONT)
		if !within(p.exited, closeGrace) {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
		if s.o.Private {
			procs.KillSession(p.pid, s.jobGroups()...)
		}
		p.term.Close()
	}
	s.workers.Wait()
	return s.files.remove()
}

func within(done <-chan struct{}, d time.Duration) bool {
	select {
	case <-done:
		return true
	case <-time.After(d):
		return false
	}
}

func newNonce() string { return rand.Text()[:13] } // 65 bits: the shells read it a byte at a time

// Render returns what a person would have read of raw terminal output on a terminal of cols columns.
func Render(raw []byte, cols int) []byte { return term.Render(raw, cols) }

// Difference is one line of what differs between two states, "" for nothing.
func Difference(a, b State) string { return dialect.Difference(a, b) }

var errNoProcess = errors.New("the shell has ended")
