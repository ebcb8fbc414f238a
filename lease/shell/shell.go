package shell

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Shell is one bash that can be lent. Its methods are safe for concurrent use; it runs one command at a time.
// It owns its goroutines (reader, waiter, record reader); Close waits for them.
type Shell struct {
	o             Options
	path, version string
	env           []string
	inherit       string // what it takes over from its environment in its start-up file: see takenOver
	folder        string // ours, removed by Close
	log           *slog.Logger
	fifo          atomic.Pointer[os.File] // the side channel
	gate          atomic.Pointer[os.File] // what a shell that stands still waits for
	oldBash       bool                    // before 5.1
	text, next    *os.File                // the text to source; what is wanted at the end of a command
	asked         *os.File                // the question
	workers       sync.WaitGroup
	activity      atomic.Int64 // when the terminal last printed, in Unix nanoseconds

	turn    chan struct{}             // capacity 1: who has it may type
	shaky   atomic.Bool               // a cancel sent signals that may strike late; the next answered question proves that none is left
	struck  atomic.Pointer[time.Time] // when the last of those was sent; nil: none was
	keys    sync.Mutex                // held through Write
	running atomic.Bool               // a command runs (as opposed to a question of ours)

	exited chan struct{}

	closeOnce sync.Once
	closeErr  error

	mu         sync.Mutex
	proc       *process
	size       Size
	run        *run                     // the command in flight
	idle       chan struct{}            // closed while the shell waits for a line
	nonce      string                   // the one the shell will answer its next line with
	flags      string                   // what the file next holds
	ask        *question                // in flight
	prompt     string                   // as the shell told it behind the last command, until it is asked for; "" = it did not
	prompts    bool                     // a command ended, or the shell began, and that it is ready is still to be told
	edits      bool                     // the line editor is back, and must go before the next line
	taken      map[string]chan struct{} // by record: closed when it was read
	stray      []byte                   // typed when no command ran
	snap       snapshot                 // last known state
	own        map[string]bool          // the variables that the last command changed, or may have; nil: any
	found      map[string]string        // the variables as the last command found them; nil: they were not read
	hooks      bool                     // hooks of the user run: seen behind the last borrower's command
	left       chan struct{}            // closed when it is known what the last command left behind, before hooks of the user
	disowned   bool                     // the last command may have taken jobs off the list
	freed      bool                     // one of the commands may have
	opened     *opening                 // what is to be looked at of its open files; nil: nothing may have opened any
	usual      usualFile                // names that the hash table found along PATH
	kept       time.Time                // when it was last kept from TMOUT
	spawned    time.Time
	deaths     int  // in a row, soon after the start
	missed     bool // a state that the shell wrote down could not be read
	exitStatus int
	closing    bool // Close was called
	closed     bool
	gone       bool // the user's own exit
	starting   bool
}

// Start starts a shell and returns when it is ready for its first command. ctx bounds the start only; at its end, or
// when the shell dies before its first prompt, the error is a *[StartError]. Without bash it is a *[NoBashError].
func Start(ctx context.Context, o Options) (*Shell, error) {
	s := &Shell{
		o: o, path: o.Path, env: o.Env, log: o.Log, size: o.Size,
		turn: make(chan struct{}, 1), exited: make(chan struct{}), idle: make(chan struct{}),
		taken: make(map[string]chan struct{}),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.env == nil {
		s.env = os.Environ()
	}
	var err error
	if s.path == "" {
		s.path, s.version, err = Find(s.env)
	} else {
		s.version, err = bashVersion(s.path)
	}
	if err != nil {
		return nil, err
	}
	s.oldBash = o.old || !atLeast(s.version, 5, 1)
	s.inherit = takenOver(s.env)
	s.env = append(withoutEnv(s.env, EnvInside, "PROMPT_COMMAND", "PS0", "PS1", "POSIXLY_CORRECT", "SHELLOPTS"), EnvInside+"="+strconv.Itoa(os.Getpid()))
	if err := s.makeFolder(); err != nil {
		return nil, err
	}
	if err := s.startFirst(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// startFirst brings the first bash to its first prompt.
func (s *Shell) startFirst(ctx context.Context) error {
	var tail tailBuffer
	user := s.o.Unowned
	s.o.Unowned = func(p []byte) {
		tail.write(p)
		if user != nil {
			user(p)
		}
	}
	s.mu.Lock()
	s.starting = true
	p, err := s.spawnLocked("")
	idle := s.idle
	s.mu.Unlock()
	if err != nil {
		return err
	}
	look := time.NewTicker(startLook)
	defer look.Stop()
	for reads := 0; ; {
		select {
		case <-idle:
			p.stream.do(func() { p.stream.unowned = user })
			s.mu.Lock()
			s.o.Unowned, s.starting = user, false
			s.mu.Unlock()
			return nil
		case <-look.C:
			if reads++; !readsLines(p.pid) {
				reads = 0
			}
			if reads < 3 || !s.takeRecords(p) || closed(idle) {
				continue
			}
			err = errDeaf
		case <-p.exited:
			err = errors.New(describe(p.state))
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		return &StartError{Path: s.path, Output: tail.string(), Cause: err}
	}
}

// startLook is how often it is looked whether a shell that did not tell that it is ready reads lines all the same.
const startLook = 200 * time.Millisecond

// takenOver is what a start-up file does in place of variables of the environment by which bash would not read that file, or
// not as sublet needs it: in posix mode it reads none of its own, and under set -x it would show sublet's.
func takenOver(env []string) string {
	var b strings.Builder
	if options := getEnv(env, "SHELLOPTS"); options != "" {
		for o := range strings.SplitSeq(options, ":") {
			if setOption[o] && !fixedOption[o] && o != "noexec" && o != "onecmd" {
				fmt.Fprintf(&b, "\\builtin set -o %s\n", o)
			}
		}
		b.WriteString("\\builtin export SHELLOPTS\n")
	}
	if i := slices.IndexFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "POSIXLY_CORRECT=") }); i >= 0 {
		fmt.Fprintf(&b, "\\builtin export POSIXLY_CORRECT=%s\n", quote(getEnv(env, "POSIXLY_CORRECT")))
	}
	return b.String()
}

func describe(st *os.ProcessState) string {
	if st == nil {
		return "it could not be waited for"
	}
	return st.String()
}

// spawnLocked starts a bash and makes it the current one. Not ready yet: idle closes at its first prompt.
func (s *Shell) spawnLocked(restore string) (*process, error) {
	s.nonce = ""
	s.idle = make(chan struct{})
	s.ask = nil
	s.shaky.Store(false) // that was another process
	if err := s.arrangeLocked("def"); err != nil {
		return nil, err
	}
	size := s.size
	p, err := s.spawn(size, restore)
	if err != nil {
		return nil, err
	}
	s.proc, s.spawned, s.opened = p, time.Now(), &opening{p: p, named: true}
	return p, nil
}

// makeFolder makes the private folder and the files in it. They are made once and rewritten in place: a new file for
// each command costs 160 us more (perf-limits.md section 2).
func (s *Shell) makeFolder() (err error) {
	parent := s.o.Folder
	if parent == "" {
		parent = os.TempDir()
	} else if err := os.MkdirAll(parent, 0o700); err != nil {
		return fmt.Errorf("make shell folder: %w", err)
	}
	if s.folder, err = os.MkdirTemp(parent, "sh-"); err != nil { // 0700
		return fmt.Errorf("make shell folder: %w", err)
	}
	defer func() {
		if err != nil {
			os.RemoveAll(s.folder)
		}
	}()
	if s.folder, err = filepath.Abs(s.folder); err != nil {
		return fmt.Errorf("make shell folder: %w", err)
	}
	return s.furnish()
}

// furnish makes the files in the folder, opens those that stay open, and begins to read the side channel.
func (s *Shell) furnish() error {
	if err := os.Mkdir(filepath.Join(s.folder, "k"), 0o700); err != nil {
		return fmt.Errorf("make shell folder: %w", err)
	}
	create := func(name string) (*os.File, error) {
		f, err := os.OpenFile(filepath.Join(s.folder, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, fmt.Errorf("make shell file: %w", err)
		}
		return f, nil
	}
	for _, name := range []string{"s", "o", "h", "t", "u", "v", "l", "j", "k/s", "a"} {
		f, err := create(name)
		if err != nil {
			return err
		}
		f.Close()
	}
	var err error
	if s.text, err = create("c"); err != nil {
		return err
	}
	if s.next, err = create("n"); err != nil {
		return err
	}
	if s.asked, err = create("q"); err != nil {
		return err
	}
	fifo, err := makeFIFO(filepath.Join(s.folder, "fifo"))
	if err != nil {
		return err
	}
	gate, err := makeFIFO(filepath.Join(s.folder, "w"))
	if err != nil {
		fifo.Close()
		return err
	}
	s.fifo.Store(fifo)
	s.gate.Store(gate)
	s.workers.Go(func() { s.recordLoop(fifo) })
	return nil
}

// refurnishLocked makes a folder anew where ours was removed under us: what cleans /tmp knows no better. Not in the place
// of the old one, for whoever may have made the folders above it since could put another start-up file there. Only a
// shell that starts anew finds it.
func (s *Shell) refurnishLocked() error {
	if _, err := os.Lstat(filepath.Join(s.folder, "fifo")); err == nil {
		return nil
	}
	folder, err := os.MkdirTemp("", "sublet-sh-") // 0700
	if err != nil {
		return fmt.Errorf("make shell folder: %w", err)
	}
	s.log.Warn("the shell's folder was removed: it has another", "folder", s.folder, "now", folder)
	s.folder = folder
	old := []*os.File{s.fifo.Load(), s.gate.Load(), s.text, s.next, s.asked}
	if _, err := old[0].Write(lastRecord); err != nil { // it ends the reader, who closes it
		old[0].Close()
	}
	if err := s.furnish(); err != nil {
		return err
	}
	for _, f := range old[1:] {
		f.Close()
	}
	return nil
}

// makeFIFO makes a FIFO and opens it for both: the shell's open never blocks, and a closed writer is no end of file.
func makeFIFO(path string) (*os.File, error) {
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return nil, fmt.Errorf("make side channel: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open side channel: %w", err)
	}
	return f, nil
}

// arrangeLocked lays what is wanted at the end of the line that is typed next where the prompt hook looks; an empty file
// is nothing, and costs one look. Bash before 5.1 has no good random numbers: it finds its next nonce there, too.
func (s *Shell) arrangeLocked(flags string) error {
	line := ""
	switch {
	case s.oldBash:
		line = fmt.Sprintf("-%s %s\n", flags, newNonce())
	case flags != "":
		line = flags + "\n"
	case s.flags == "":
		return nil
	}
	s.flags = flags
	if err := rewrite(s.next, line); err != nil {
		return fmt.Errorf("write flags: %w", err)
	}
	return nil
}

// typeLocked types a line into an idle shell, which is no longer idle then.
func (s *Shell) typeLocked(line string) error {
	s.idle = make(chan struct{})
	_, err := s.proc.write([]byte(line + "\n"))
	if errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EIO) {
		err = ErrClosed // it has ended this moment
	}
	if err != nil {
		return fmt.Errorf("type: %w", err)
	}
	return nil
}

func (s *Shell) current() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc
}

// Version is that of the bash, as "5.2.15".
func (s *Shell) Version() string { return s.version }

// Path is the bash that runs.
func (s *Shell) Path() string { return s.path }

// PID is the process id of the shell; a respawn changes it.
func (s *Shell) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return 0
	}
	return s.proc.pid
}

// Dir is where the shell was at the end of the last command.
func (s *Shell) Dir() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snap.State.Dir
}

// Digest is that of the last known State; no round trip. State waits for the state after a command that just ended.
func (s *Shell) Digest() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snap.State.Digest
}

// Exited closes when the user's own exit ended the shell. Crashes respawn and do not close it.
func (s *Shell) Exited() <-chan struct{} { return s.exited }

// ExitStatus is the shell's, after Exited.
func (s *Shell) ExitStatus() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.exitStatus
}

// Resize sets the terminal's size; the program in it gets SIGWINCH.
func (s *Shell) Resize(z Size) error {
	s.mu.Lock()
	p := s.proc
	s.size = z
	s.mu.Unlock()
	if p == nil {
		return ErrClosed
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	return setSize(p.master, z)
}

// Foreground returns the process group that has the terminal, and whether that is the shell itself. It tells that the
// shell is busy, never that it is idle: `read`, `wait` and loops are the shell's own.
func (s *Shell) Foreground() (pgid int, shellIsForeground bool) {
	s.mu.Lock()
	p := s.proc
	s.mu.Unlock()
	if p == nil {
		return 0, false
	}
	return p.foreground()
}

func (p *process) foreground() (pgid int, shell bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return 0, false
	}
	pgid = foregroundOf(p.master)
	return pgid, pgid == p.pid
}

func newNonce() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand
	return hex.EncodeToString(b[:])
}

// quote makes one word of the shell out of any text without NUL.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func getEnv(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

func withoutEnv(env []string, names ...string) []string {
	out := make([]string, 0, len(env)+1)
next:
	for _, kv := range env {
		for _, n := range names {
			if strings.HasPrefix(kv, n+"=") {
				continue next
			}
		}
		out = append(out, kv)
	}
	return out
}

// tailBuffer keeps the last 2 KiB of what a shell printed while it started.
type tailBuffer struct {
	mu sync.Mutex
	b  []byte
}

func (t *tailBuffer) write(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if len(t.b) > 2048 {
		t.b = append(t.b[:0], t.b[len(t.b)-2048:]...)
	}
}

func (t *tailBuffer) string() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(Render(t.b, 80))
}
