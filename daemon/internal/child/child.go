// Package child starts programs that speak on their standard input and output, held to a reach or free, and ends them with all
// that they started.
package child

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"sublet/daemon/internal/mask"
	"sublet/lease/confine"
	"sublet/lease/procstat"
	"sublet/wire/visible"
)

const (
	// endGrace is how long a program may take to end after its input was closed, and again after SIGTERM.
	endGrace = time.Second
	// maxLine bounds one line of a program's standard error that is logged and passed on, in bytes.
	maxLine = 4 << 10
	// maxWords bounds the last line in a message, in bytes.
	maxWords = 200
)

// guardScript is the leader of the program's process group. When the daemon ends, in whatever way, the script's input ends and
// it kills the group, itself included. While it runs the group's id cannot be reused.
const guardScript = `trap '' TERM INT HUP QUIT; read -r _; kill -KILL 0`

// Spec describes a program and how it is started.
type Spec struct {
	Name     string       // for the log
	Path     string       // of the program, see Find
	Args     []string     // without its name
	Env      []string     // NAME=value
	Dir      string       // its working directory
	Launcher string       // holds it to Reach; "" = it runs free
	Reach    confine.Spec // with the reach project and no Project, that is a folder of its own
	Folder   string       // for that folder, which is called Leftover; "" = the temporary one
	Log      *slog.Logger
}

// Process is a program that was started here, and its process group. Its owner reads Stdout and calls End.
type Process struct {
	Stdin  *os.File
	Stdout *os.File

	name       string
	cmd        *exec.Cmd
	guard      *exec.Cmd
	guardInput *os.File // the guard's input
	own        string   // folder with the Spec of a confined program, "" = not confined
	log        *slog.Logger

	exited chan struct{} // closed when the program has ended and its group was killed
	once   sync.Once
	reader sync.WaitGroup

	hearing sync.Mutex        // held while hear is called
	hear    func(line string) // see EachErrorLine; guarded by hearing

	mu sync.Mutex
	// below: guarded by mu
	signalled bool   // by End
	reaped    bool   // it has ended and its group was killed
	how       string // how the program ended, if not by a signal of this process
	last      string // its newest line on standard error
}

// Start starts a program. Error texts are shown to the user.
func Start(s Spec) (_ *Process, err error) {
	p := &Process{name: s.Name, log: s.Log, exited: make(chan struct{})}
	defer func() {
		if err != nil {
			os.RemoveAll(p.own)
		}
	}()
	path, args := s.Path, append([]string{s.Path}, s.Args...)
	if s.Launcher != "" {
		if p.own, err = writeSpec(s.Folder, s.Reach); err != nil {
			return nil, err
		}
		path, args = s.Launcher, append([]string{confine.Program, filepath.Join(p.own, "reach")}, args...)
	}
	var files []*os.File
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
			files = append(files, r, w)
		}
		return r, w
	}
	guardR, guardW := pipe()
	inR, inW := pipe()
	outR, outW := pipe()
	errR, errW := pipe()
	closeBut := func(keep ...*os.File) {
		for _, f := range files {
			if f != nil && !slices.Contains(keep, f) {
				f.Close()
			}
		}
	}
	if err != nil {
		closeBut()
		return nil, err
	}
	p.guard = &exec.Cmd{
		Path: "/bin/sh", Args: []string{"sublet-guard", "-c", guardScript}, Env: []string{}, Dir: "/", Stdin: guardR,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if err := p.guard.Start(); err != nil {
		closeBut()
		return nil, fmt.Errorf("start its guard: %w", err)
	}
	p.cmd = &exec.Cmd{
		Path: path, Args: args, Env: s.Env, Dir: s.Dir, Stdin: inR, Stdout: outW, Stderr: errW,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pgid: p.guard.Process.Pid},
	}
	if err := p.cmd.Start(); err != nil {
		closeBut() // ends the guard
		_ = p.guard.Wait()
		return nil, err
	}
	// Children inherit the mark. By it the daemon recognises a client that one of them starts: the user did not.
	if err := procstat.Mark(p.cmd.Process.Pid); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.ESRCH) {
		p.log.Warn("a program could not be marked", "program", p.name, "err", err)
	}
	p.guardInput, p.Stdin, p.Stdout = guardW, inW, outR
	closeBut(guardW, inW, outR, errR)
	p.reader.Go(func() { p.listen(errR) }) // ends with the pipe, which End closes
	p.reader.Go(func() { p.watch(errR) })  // ends with the process; End waits for both while it can
	return p, nil
}

// Leftover matches the folders that a killed daemon leaves in Spec.Folder.
const Leftover = "child-*"

// writeSpec writes a confinement to the file "reach" in a new folder below parent, which it returns, also with an error. A program
// with the reach project and no Project gets that folder as its project.
func writeSpec(parent string, to confine.Spec) (dir string, err error) {
	made, err := os.MkdirTemp(parent, Leftover)
	if err != nil {
		return "", err
	}
	if dir, err = filepath.EvalSymlinks(made); err != nil {
		return made, err
	}
	if to.Reach == confine.Project && to.Project == "" {
		to.Project = dir
	}
	return dir, os.WriteFile(filepath.Join(dir, "reach"), to.Encode(), 0o600)
}

// Env returns the environment env with the variables of own in it.
func Env(env []string, own map[string]string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		_, again := own[name]
		return again
	})
	for name, value := range own {
		env = append(env, name+"="+value)
	}
	return env
}

// Find returns the path of a program, as a shell in that environment would find it.
func Find(command string, env []string, dir, home string) (string, error) {
	if rest, ok := strings.CutPrefix(command, "~/"); ok {
		return filepath.Join(home, rest), nil
	}
	if strings.Contains(command, "/") {
		if !filepath.IsAbs(command) {
			command = filepath.Join(dir, command)
		}
		return command, nil
	}
	path := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for _, folder := range filepath.SplitList(path) {
		if !filepath.IsAbs(folder) {
			continue // relative entries of PATH are ignored
		}
		file := filepath.Join(folder, command)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("%q is not found on PATH", command)
}

// listen logs the program's standard error, a bounded number of lines, and keeps the last line.
func (p *Process) listen(r io.ReadCloser) {
	defer r.Close()
	lines := bufio.NewReaderSize(r, maxLine)
	limit := rate.NewLimiter(10, 100)
	for {
		line, more, err := lines.ReadLine()
		if err != nil {
			return
		}
		plain := visible.Clean(string(line))
		p.hearing.Lock()
		if p.hear != nil {
			p.hear(plain)
		}
		p.hearing.Unlock()
		text := strings.TrimSpace(mask.String(plain))
		for more && err == nil {
			_, more, err = lines.ReadLine()
		}
		if text == "" {
			continue
		}
		p.mu.Lock()
		p.last = visible.Clip(visible.Exact(strings.Join(strings.Fields(text), " ")), maxWords)
		p.mu.Unlock()
		if limit.Allow() {
			p.log.Debug("a program says", "program", p.name, "line", text)
		}
	}
}

// watch waits for the program's end and then kills the rest of its group.
func (p *Process) watch(errR *os.File) {
	err := p.cmd.Wait()
	p.mu.Lock()
	if !p.signalled {
		p.how = "it ended"
		if err != nil {
			p.how = "it ended: " + err.Error()
		}
	}
	p.signalLocked(syscall.SIGKILL)
	p.reaped = true
	p.mu.Unlock()
	_ = p.guard.Wait() // killed
	p.guardInput.Close()
	p.Stdin.Close()
	// The pipe may have more output, but a child that left the group may keep it open for ever.
	_ = errR.SetReadDeadline(time.Now().Add(endGrace))
	os.RemoveAll(p.own)
	close(p.exited)
}

// signalLocked sends a signal to the whole group, and to the program, which may have left it. The guard is reaped only afterwards,
// so the id is still the group's.
func (p *Process) signalLocked(s syscall.Signal) {
	_ = p.cmd.Process.Signal(s) // an error: it has ended, or is another user's
	if !p.reaped {
		_ = syscall.Kill(-p.guard.Process.Pid, s) // ESRCH: it has ended
	}
}

// PID returns the id of the program's process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// HangUp closes the program's input, which asks it to end and fails pending writes.
func (p *Process) HangUp() { p.Stdin.Close() }

// End ends the program and its group: first by closing its input, then SIGTERM, then SIGKILL. It waits for the
// end, or for three times endGrace if the program cannot be killed. It is idempotent.
func (p *Process) End() {
	p.once.Do(func() {
		p.HangUp()
		timer := time.NewTimer(endGrace)
		defer timer.Stop()
		for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			select {
			case <-p.exited:
				return
			case <-timer.C:
			}
			p.mu.Lock()
			p.signalled = true
			p.signalLocked(s)
			p.mu.Unlock()
			timer.Reset(endGrace)
		}
		select {
		case <-p.exited:
		case <-timer.C: // another user's (sudo), or within the kernel
			p.log.Error("a program cannot be ended", "program", p.name, "pid", p.PID())
		}
	})
	select {
	case <-p.exited:
		p.reader.Wait()
	default: // the goroutines end with the program
	}
	p.Stdout.Close()
}

// EndReason returns how the program ended, "" if it runs or this process ended it.
func (p *Process) EndReason() string {
	select {
	case <-p.exited:
	default:
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.how
}

// EachErrorLine calls f with each line that the program writes on standard error, without control sequences, until stop returns. A second
// f replaces the first.
func (p *Process) EachErrorLine(f func(line string)) (stop func()) {
	set := func(f func(string)) {
		p.hearing.Lock()
		defer p.hearing.Unlock()
		p.hear = f
	}
	set(f)
	return func() { set(nil) }
}

// LastWords returns its newest line on standard error as the end of a message, "" if it wrote none.
func (p *Process) LastWords() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == "" {
		return ""
	}
	return "; its last words: " + p.last
}
