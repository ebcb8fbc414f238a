package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"sublet/wire"
	"sublet/wire/socket"
)

// The test program is also the daemon that is started: a real process with a real listener and lock, of which only the
// handshake, the status and the shutdown are there.
const asDaemon = "LAUNCH_TEST_DAEMON"

func TestMain(m *testing.M) {
	if how := os.Getenv(asDaemon); how != "" {
		os.Exit(daemon(how))
	}
	goleak.VerifyTestMain(m)
}

// daemon serves until it is told to stop, or for a minute if a test forgot it. how is "wedged", "broken" and the like, or
// "ok" or the protocol it speaks, behind what else it is: "busy" if turns run, "old" if its program is older than this
// one, "kept" if a service manager keeps it.
func daemon(how string) int {
	if how == "broken" {
		return 1
	}
	if how == "advising" {
		ln, err := net.FileListener(os.NewFile(3, "listener"))
		if err != nil {
			return 1
		}
		nc, err := ln.Accept()
		if err != nil {
			return 1
		}
		wc := wire.NewConn(nc)
		_, _ = wc.Receive()
		_ = wc.Send(&wire.Error{Code: wire.CodeInternal, Message: "the store is broken", Hint: "move it aside", Details: map[string]string{}})
		wc.Close()
		return 1
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(4, &st); err != nil || os.Getenv("SUBLET_LISTEN_FD") != "3" || os.Getenv("SUBLET_LOCK_FD") != "4" {
		fmt.Fprintln(os.Stderr, "no lock was passed")
		return 1
	}
	ln, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	time.AfterFunc(time.Minute, func() { os.Exit(3) })
	if err := socket.Sign(os.NewFile(4, "lock"), ln.Addr().String()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	d := &fake{protocol: wire.Version}
	d.kept, how = cut(how, "kept")
	d.old, how = cut(how, "old")
	d.busy, how = cut(how, "busy")
	if n, err := strconv.Atoi(how); err == nil {
		d.protocol = n
	}
	for {
		nc, err := ln.Accept()
		if err != nil {
			return 1
		}
		if how != "wedged" {
			go d.answer(wire.NewConn(nc))
		}
	}
}

func cut(how, what string) (bool, string) {
	rest, found := strings.CutPrefix(how, what)
	return found, rest
}

var stopping = &wire.Error{Code: wire.CodeShuttingDown, Message: "the daemon stops", Details: map[string]string{}}

// fake is what the daemon of a test is.
type fake struct {
	protocol        int
	busy, old, kept bool
	stops           atomic.Bool
}

func (d *fake) answer(wc *wire.Conn) {
	protocol := d.protocol
	defer wc.Close()
	for {
		m, err := wc.Receive()
		if err != nil {
			return
		}
		switch m := m.(type) {
		case *wire.EnvSnapshot:
			if d.stops.Load() { // a real one closes its store meanwhile
				_ = wc.Send(stopping)
				os.Remove(os.Getenv("SUBLET_RUNTIME_DIR") + "/daemon.sock")
				os.Exit(0)
			}
			if m.ProtocolMin > protocol || m.ProtocolMax < protocol {
				_ = wc.Send(&wire.Error{Code: wire.CodeVersion, Details: map[string]string{"protocol_min": strconv.Itoa(protocol), "protocol_max": strconv.Itoa(protocol)}})
				return
			}
			cwd, _ := os.Getwd()
			exe, _ := os.Executable()
			info := wire.DaemonInfo{PID: os.Getpid(), Name: cwd, BuiltAtMS: socket.BuiltAt(exe), Kept: d.kept}
			if d.old {
				info.BuiltAtMS--
			}
			_ = wc.Send(&wire.Ready{Protocol: protocol, Daemon: info})
		case *wire.ShutdownRequest:
			if d.busy && m.IfIdle {
				_ = wc.Send(&wire.Error{Event: wire.Event{RequestID: m.RequestID}, Code: wire.CodeShuttingDown, Details: map[string]string{"turns": "2"}})
				continue
			}
			_ = wc.Send(&wire.StatusReply{RequestID: m.RequestID, State: "draining"})
			d.stops.Store(true)
			_ = wc.Send(stopping)
			return
		}
	}
}

func paths(t *testing.T) socket.Paths {
	dir, err := os.MkdirTemp("", "launch") // short: a socket's path holds 104 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return socket.Paths{
		Runtime: dir + "/run", Socket: dir + "/run/daemon.sock", Lock: dir + "/run/daemon.lock",
		State: dir + "/state", Config: dir + "/config.toml",
	}
}

func launcher(t *testing.T, p socket.Paths, how string) *Launcher {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{Paths: p, Executable: exe, Env: []string{asDaemon + "=" + how}})
}

// mustOpen opens a connection and ends both it and its daemon with the test.
func mustOpen(t *testing.T, l *Launcher) *wire.Ready {
	t.Helper()
	wc, ready, err := l.Open(t.Context(), snapshot())
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		wc.Close()
		_ = syscall.Kill(ready.Daemon.PID, syscall.SIGKILL) // gone already where the test ended it
		waitGone(t, ready.Daemon.PID)
	})
	return ready
}

func snapshot() *wire.EnvSnapshot {
	return &wire.EnvSnapshot{ProtocolMin: wire.MinVersion, ProtocolMax: wire.Version}
}

func waitGone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		var status syscall.WaitStatus
		_, _ = syscall.Wait4(pid, &status, syscall.WNOHANG, nil) // whichever launcher started it: it is our child
		if syscall.Kill(pid, 0) != nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("daemon %d is still there", pid)
		}
	}
}

func TestStartedDetachedAndKeepsTheLock(t *testing.T) {
	p := paths(t)
	l := launcher(t, p, "ok")
	ready := mustOpen(t, l)
	pid := ready.Daemon.PID
	if sid, err := unix.Getsid(pid); err != nil || sid != pid {
		t.Errorf("got session %d, %v, want its own, %d", sid, err, pid)
	}
	if ready.Daemon.Name != "/" {
		t.Errorf("got directory %s, want /", ready.Daemon.Name)
	}
	if _, err := socket.TryLock(p.Lock); !errors.Is(err, socket.ErrLocked) {
		t.Errorf("got %v, want the lock held by the daemon", err)
	}
	if again := mustOpen(t, l); again.Daemon.PID != pid {
		t.Errorf("got daemon %d, want %d again", again.Daemon.PID, pid)
	}
}

// A daemon that was killed leaves no zombie with the client that started it, and the next Open starts another.
func TestKilledDaemonIsCollectedAndReplaced(t *testing.T) {
	p := paths(t)
	l := launcher(t, p, "ok")
	wc, ready, err := l.Open(t.Context(), snapshot())
	if err != nil {
		t.Fatal(err)
	}
	defer wc.Close()
	pid := ready.Daemon.PID
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); syscall.Kill(pid, 0) == nil; time.Sleep(time.Millisecond) {
		l.reap()
		if time.Now().After(end) {
			t.Fatalf("daemon %d is still a zombie", pid)
		}
	}
	if again := mustOpen(t, l); again.Daemon.PID == pid {
		t.Errorf("got daemon %d again, want another", pid)
	}
}

// ten clients started at once share one daemon; also over a socket that a killed daemon left behind.
func TestTenAtOnceShareOneDaemon(t *testing.T) {
	p := paths(t)
	for round := range 3 {
		var mu sync.Mutex
		pids := map[int]int{}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				l := launcher(t, p, "ok")
				wc, ready, err := l.Open(t.Context(), snapshot())
				if err != nil {
					t.Errorf("round %d: %v", round, err)
					return
				}
				defer wc.Close()
				mu.Lock()
				defer mu.Unlock()
				pids[ready.Daemon.PID]++
			})
		}
		all.Wait()
		if len(pids) != 1 {
			t.Errorf("round %d: got daemons %v, want one", round, pids)
		}
		for pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			waitGone(t, pid)
		}
		if _, err := os.Lstat(p.Socket); err != nil {
			t.Fatalf("the stale socket is gone: %v", err)
		}
	}
}

// A daemon that cannot start answers why; of one that crashed, the error names the log.
func TestFailedStart(t *testing.T) {
	p := paths(t)
	for how, want := range map[string][2]string{
		"advising": {"the daemon did not start: the store is broken", "move it aside"},
		"broken":   {"the daemon did not start: " + errCut.Error(), p.Log()},
	} {
		_, _, err := launcher(t, p, how).Open(t.Context(), snapshot())
		failed, ok := errors.AsType[*StartError](err)
		if !ok || !strings.HasPrefix(failed.Error(), want[0]) || !strings.Contains(failed.Hint(), want[1]) {
			t.Errorf("%s: got %v, want %q", how, err, want)
		}
	}
}

// A daemon that could not start refuses everybody until it has ended. A client that comes in that moment, when the cause may
// be removed already, starts another one.
func TestFailedStartOfAnotherIsTriedAgain(t *testing.T) {
	p := paths(t)
	if err := p.Prepare(); err != nil {
		t.Fatal(err)
	}
	lock, err := socket.TryLock(p.Lock)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := socket.Listen(p.Socket)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		defer lock.Close()
		nc, err := ln.Accept()
		if err != nil {
			ended <- err
			return
		}
		wc := wire.NewConn(nc)
		_, err = wc.Receive()
		ended <- errors.Join(err, ln.Close(), wc.Send(&wire.Error{Code: wire.CodeInternal, Message: "broken", Details: map[string]string{}}))
		wc.Close()
	}()
	l := launcher(t, p, "ok")
	ready := mustOpen(t, l)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if l.child == 0 || ready.Daemon.PID != l.child {
		t.Errorf("greeted by pid %d, want the one that was started, %d", ready.Daemon.PID, l.child)
	}
}

// a daemon with a live pid that answers nothing is reported, and not killed.
func TestWedgedDaemonIsReported(t *testing.T) {
	p := paths(t)
	l := launcher(t, p, "wedged")
	l.o.Answer = 200 * time.Millisecond
	_, _, err := l.Open(t.Context(), snapshot())
	l.mu.Lock()
	pid := l.child
	l.mu.Unlock()
	wedged, ok := errors.AsType[*WedgedError](err)
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if _, signed := socket.Holder(p.Lock); signed {
			break // a process that has just been started may take longer than the bound above
		}
	}
	if want := fmt.Sprintf("`kill %d` ends it", pid); !ok || !strings.Contains(wedged.Hint(), want) {
		t.Errorf("got %v (%v), want *WedgedError with the hint %s", err, wedged.Hint(), want)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Errorf("the wedged daemon is gone: %v", err)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	waitGone(t, pid)
}

// Somebody who holds the lock and never listens is reported after a bound.
func TestLockHeldAndNobodyListens(t *testing.T) {
	p := paths(t)
	if err := p.Prepare(); err != nil {
		t.Fatal(err)
	}
	lock, err := socket.TryLock(p.Lock)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	l := launcher(t, p, "ok")
	l.o.lockBound = 50 * time.Millisecond
	_, _, err = l.Open(t.Context(), snapshot())
	if _, ok := errors.AsType[*WedgedError](err); !ok {
		t.Errorf("got %v, want *WedgedError", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l.o.lockBound = time.Hour
	if _, _, err := l.Open(ctx, snapshot()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context canceled", err)
	}
}

func TestNoStart(t *testing.T) {
	p := paths(t)
	l := launcher(t, p, "ok")
	l.o.NoStart = true
	if _, _, err := l.Open(t.Context(), snapshot()); !errors.Is(err, ErrNoDaemon) {
		t.Errorf("got %v, want ErrNoDaemon", err)
	}
	if _, err := os.Lstat(filepath.Dir(p.Socket)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want nothing made", err)
	}
}

// A daemon without a protocol in common is left alone: its own error says what to do.
func TestVersionSkew(t *testing.T) {
	for _, version := range []string{"0", "5"} {
		p := paths(t)
		_, _, err := launcher(t, p, version).Open(t.Context(), snapshot())
		pid, ok := socket.Holder(p.Lock)
		if !ok {
			t.Fatalf("the daemon is gone after %v", err)
		}
		defer waitGone(t, pid)
		defer syscall.Kill(pid, syscall.SIGKILL)
		if !errors.Is(err, wire.ErrVersion) {
			t.Errorf("protocol %s: got %v", version, err)
		}
	}
}

// A daemon of an older program is replaced once, and not where a service manager keeps it.
func TestOlderBuild(t *testing.T) {
	for _, c := range []struct {
		runs, started string
		replaced      bool
	}{
		{"old", "ok", true},
		{"old", "old", true}, // such a one comes in its place
		{"oldbusy", "ok", false},
		{"keptold", "ok", false},
		{"ok", "ok", false},
	} {
		t.Run(c.runs+" "+c.started, func(t *testing.T) {
			p := paths(t)
			pid := mustOpen(t, launcher(t, p, c.runs)).Daemon.PID // its own daemon is asked to go too, and started again
			l := launcher(t, p, c.started)
			began := time.Now()
			ready := mustOpen(t, l)
			if replaced := ready.Daemon.PID != pid; replaced != c.replaced {
				t.Errorf("replaced: got %v, want %v", replaced, c.replaced)
			}
			if got, want := l.Older(ready), strings.Contains(c.started, "old") || !c.replaced && strings.Contains(c.runs, "old"); got != want {
				t.Errorf("older: got %v, want %v", got, want)
			}
			if took := time.Since(began); took > leaveBound/2 {
				t.Errorf("it took %v", took)
			}
			l.o.NoStart = true
			if again := mustOpen(t, l); again.Daemon.PID != ready.Daemon.PID {
				t.Error("replaced by who starts none")
			}
		})
	}
}
