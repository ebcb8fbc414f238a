package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is one bash with its terminal. A Shell has one at a time; a respawn makes a new one.
type process struct {
	cmd    *exec.Cmd
	pid    int
	tty    string // the slave's path
	stream *stream
	exited chan struct{} // closed after the wait; state and killed may then be read
	buried chan struct{} // closed when it is decided what the death means: another may be current then
	state  *os.ProcessState
	read   sync.WaitGroup // the reader
	// lineBuf is where the shell reads its lines to, as seen once when it was idle; 0 where that cannot be seen.
	lineBuf atomic.Uint64
	hidden  bool // it cannot be seen here; like looked, for who has the turn
	looked  bool
	ready   bool // it was, once; guarded by Shell.mu
	// libraries are the files whose code it ran when it was ready first; guarded by Shell.mu.
	libraries []string
	deaf      bool // it no longer tells what it does, and is replaced; guarded by Shell.mu

	mu     sync.Mutex
	master *os.File // guarded against use after close
	closed bool
}

// spawn starts bash in its own session on a new terminal and begins to read it. The caller owns the process and ends it
// with stop.
func (s *Shell) spawn(size Size, restore string) (*process, error) {
	master, slave, err := openTerminal(size, s.o.Termios, s.o.Private)
	if err != nil {
		return nil, err
	}
	defer slave.Close()
	p := &process{
		tty: slave.Name(), master: master,
		stream: &stream{unowned: s.o.Unowned},
		exited: make(chan struct{}), buried: make(chan struct{}),
	}
	rc, err := s.writeRC(p.tty, restore)
	if err != nil {
		master.Close()
		return nil, err
	}
	p.cmd = exec.Command(s.path, "--noediting", "--rcfile", rc, "-i") // long options come before -i
	p.cmd.Args[0] = "bash"
	p.cmd.Env = s.env
	p.cmd.Dir = s.o.Dir
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = slave, slave, slave
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	err = startUnignored(p.cmd)
	if err != nil {
		master.Close()
		return nil, fmt.Errorf("start %s: %w", s.path, err)
	}
	p.pid = p.cmd.Process.Pid
	p.read.Go(func() { p.readLoop(s) })
	s.workers.Go(func() { p.waitLoop(s) })
	return p, nil
}

// unignoring is held while ignored signals are not: of shells that are started at the same moment, the first to be done
// would have the next inherit them.
var unignoring sync.Mutex

// startUnignored starts a command that ignores no signal, whatever this process ignores.
func startUnignored(cmd *exec.Cmd) error {
	unignoring.Lock()
	defer unignoring.Unlock()
	defer unignore()()
	return cmd.Start()
}

// bequeathed are the signals that bash would pass on to what it runs, where it begins with them ignored.
var bequeathed = []os.Signal{
	syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGPIPE,
	syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGCHLD,
}

// inherited are those that this process began with ignored. After Notify and Stop the kernel ignores them again, and
// signal.Ignored denies it.
var inherited = ignoredOf(bequeathed)

func ignoredOf(list []os.Signal) (ignored []os.Signal) {
	for _, sig := range list {
		if signal.Ignored(sig) {
			ignored = append(ignored, sig)
		}
	}
	return ignored
}

// unignore undoes ignored signals for children started now: a client started by `&` in a script or by nohup ignores
// SIGINT, bash would inherit that and be deaf to every ^C (measured, perf-limits.md section 2).
func unignore() (restore func()) {
	ignored := ignoredOf(bequeathed)
	undone := slices.Concat(ignored, inherited)
	if len(undone) == 0 {
		return func() {}
	}
	sink := make(chan os.Signal, len(undone))
	signal.Notify(sink, undone...)
	return func() {
		signal.Stop(sink)
		if len(ignored) > 0 {
			signal.Ignore(ignored...)
		}
	}
}

// readLoop reads the terminal until it is closed. A terminal read gives at most 4 KiB (pitfall 7).
func (p *process) readLoop(s *Shell) {
	buf := make([]byte, 16<<10)
	for lates := 0; ; {
		n, err := p.master.Read(buf)
		if n > 0 {
			s.activity.Store(time.Now().UnixNano())
			p.stream.feed(buf[:n])
		}
		if err != nil {
			if lates++; errors.Is(err, os.ErrDeadlineExceeded) && lates < lastLooks && p.unreadOutput() {
				_ = p.readUntil(lastWords)
				continue // the machine stood still, or who takes the output is slow
			}
			if !errors.Is(err, os.ErrClosed) && !errors.Is(err, unix.EIO) && !errors.Is(err, os.ErrDeadlineExceeded) {
				s.log.Warn("terminal read", "error", err)
			}
			return // EIO: the last holder of the slave is gone
		}
	}
}

// What an ended shell printed last is read for lastWords, and again where there is more, lastLooks times: a child that keeps
// printing must not hold us.
const (
	lastWords = 50 * time.Millisecond
	lastLooks = 20
)

// readUntil bounds the reads of the terminal by d from now.
func (p *process) readUntil(d time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return os.ErrClosed
	}
	return p.master.SetReadDeadline(time.Now().Add(d))
}

// waitLoop reaps the shell. Its death is told by its wait status: a child may keep the terminal open (T1g).
func (p *process) waitLoop(s *Shell) {
	_ = p.cmd.Wait() // the state tells more than the error
	p.state = p.cmd.ProcessState
	_ = p.readUntil(lastWords)
	p.read.Wait()
	close(p.exited)
	s.died(p)
	close(p.buried)
}

// learn notes where the idle shell reads its lines to. It takes a moment once, and nothing afterwards.
func (p *process) learn() {
	if p == nil || p.lineBuf.Load() != 0 || p.hidden {
		return
	}
	for tries := 50; tries > 0; tries-- {
		if buf := lineBuffer(p.pid); buf != 0 {
			p.lineBuf.Store(buf)
			return
		}
		if p.hidden = !showsCalls(p.pid); p.hidden || p.looked {
			return
		}
		time.Sleep(200 * time.Microsecond) // it told that it is ready, and is about to read
	}
	p.looked = true // on a machine this busy, later looks are single
}

// learnIdle does the same while nobody wants the shell, for a machine so busy that learn came too early each time: without
// it a shell that lost its hook could not be told from one that reads for a command. It ends when it knows, after
// learnMost, or with the shell.
func (p *process) learnIdle(s *Shell) {
	limit := time.NewTimer(learnMost)
	defer limit.Stop()
	look := newSight()
	defer look.stop()
	for p.lineBuf.Load() == 0 {
		select {
		case <-p.exited:
			return
		case <-limit.C:
			return
		case <-look.tick():
			look.again()
		}
		s.mu.Lock()
		idle, free := s.idle, s.proc == p && s.run == nil && closed(s.idle)
		s.mu.Unlock()
		if !free {
			continue
		}
		buf := lineBuffer(p.pid)
		s.mu.Lock()
		if buf != 0 && s.idle == idle && s.run == nil {
			p.lineBuf.Store(buf)
		}
		s.mu.Unlock()
		if buf == 0 && !showsCalls(p.pid) {
			return
		}
	}
}

// learnMost bounds learnIdle.
const learnMost = 10 * time.Second

// placed is where the shell is: what it tells is PWD, in which the way there may lead through links, but which a command can
// set to anything (`read PWD`). Where that cannot be seen, what was told must do.
func (p *process) placed(told string) string {
	is := workingDir(p.pid)
	if is == "" || is == told {
		return told
	}
	a, errA := os.Stat(told)
	b, errB := os.Stat(is)
	if errA == nil && errB == nil && os.SameFile(a, b) {
		return told
	}
	return is
}

// write types into the terminal. It fails with os.ErrClosed after stop.
func (p *process) write(b []byte) (int, error) {
	p.mu.Lock()
	f := p.master
	closed := p.closed
	p.mu.Unlock()
	if closed {
		return 0, os.ErrClosed
	}
	return f.Write(b)
}

// signalGroup sends sig to a process group of the shell's session; false if there is none to send to.
func signalGroup(pgid int, sig syscall.Signal) bool {
	return pgid > 1 && syscall.Kill(-pgid, sig) == nil
}

// hangUp closes the terminal; what still has it open reads end of file and gets SIGHUP from the kernel.
func (p *process) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		p.master.Close()
	}
}

// stop ends the shell: SIGHUP, so that it tells its jobs and saves its history, a bounded wait, SIGKILL. The group fg,
// which has or had the terminal (0 = none), is hung up, too, and in the end killed where kill says so; what runs in the
// background and ignores SIGHUP (nohup) was meant to stay. It returns when the shell was reaped and its reader has ended, or,
// with ended false, where SIGKILL has not ended it within the grace either.
func (p *process) stop(fg int, kill bool, grace time.Duration) (killed, ended bool) {
	ended = true
	select {
	case <-p.exited:
	default:
		hangUp := func(pgid int) {
			signalGroup(pgid, syscall.SIGHUP)
			signalGroup(pgid, syscall.SIGCONT)
		}
		hangUp(p.pid)
		hangUp(fg)
		if ended = p.endsWithin(grace); !ended {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
			killed, ended = true, p.endsWithin(grace)
		}
	}
	if fg != 0 && kill {
		signalGroup(fg, syscall.SIGKILL)
	}
	p.hangUp()
	return killed, ended
}

func (p *process) endsWithin(d time.Duration) bool {
	limit, stop := Patiently(context.Background(), d)
	defer stop()
	select {
	case <-p.exited:
		return true
	case <-limit.Done():
		return closed(p.exited)
	}
}
