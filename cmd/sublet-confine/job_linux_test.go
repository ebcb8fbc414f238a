package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"sublet/lease/confine"
	"sublet/wire/citest"
)

// A typist is a bash in a terminal, and who types there.
type typist struct {
	t     *testing.T
	tty   *os.File
	shell int // its process group and session
	mu    sync.Mutex
	seen  []byte
}

func newTypist(t *testing.T, who user, dir string) *typist {
	cmd := who.as(exec.Command("bash", "--norc", "--noprofile", "--noediting"))
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "PS1=$ ", "HOME=" + dir, "TERM=xterm"}
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 31, Cols: 97})
	if err != nil {
		t.Fatal(err)
	}
	ty := &typist{t: t, tty: tty, shell: cmd.Process.Pid}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			ty.mu.Lock()
			ty.seen = append(ty.seen, buf[:n]...)
			ty.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		for _, p := range processes() {
			if p.session == ty.shell { // also a command that did not end: while it has the terminal open, Read does not return
				_ = syscall.Kill(p.pid, syscall.SIGKILL) // it may be gone
			}
		}
		_ = cmd.Wait() // killed
		tty.Close()
		<-done
	})
	ty.wants("$ ")
	return ty
}

// types types a text and waits until the screen shows what is wanted after it.
func (ty *typist) types(text string, want ...string) string {
	ty.t.Helper()
	ty.mu.Lock()
	ty.seen = nil
	ty.mu.Unlock()
	if _, err := ty.tty.WriteString(text); err != nil {
		ty.t.Fatal(err)
	}
	return ty.wants(want...)
}

// runs is types for what ends with the prompt.
func (ty *typist) runs(text, want string) string {
	ty.t.Helper()
	return ty.types(text, want, "$ ")
}

type process struct {
	state                       string
	pid, parent, group, session int
}

func processes() (list []process) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well-formed
	for _, path := range stats {
		text, _ := os.ReadFile(path) // it may be gone
		var p process
		p.pid, _ = strconv.Atoi(filepath.Base(filepath.Dir(path))) // by the pattern it is a number
		if _, err := fmt.Sscan(string(text[bytes.LastIndexByte(text, ')')+1:]), &p.state, &p.parent, &p.group, &p.session); err == nil {
			list = append(list, p)
		}
	}
	return list
}

// continued waits until a job has the terminal and no process of it is stopped.
func (ty *typist) continued() {
	ty.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		group, err := unix.IoctlGetInt(int(ty.tty.Fd()), unix.TIOCGPGRP)
		if err != nil {
			ty.t.Fatal(err)
		}
		members, stopped := 0, 0
		for _, p := range processes() {
			if p.group == group {
				members++
				if p.state == "T" {
					stopped++
				}
			}
		}
		if group != ty.shell && members > 0 && stopped == 0 {
			return
		}
		if time.Now().After(end) {
			ty.t.Fatalf("the job %d has %d processes, %d of them stopped", group, members, stopped)
		}
	}
}

// wants waits until the screen shows these texts one after the other.
func (ty *typist) wants(wants ...string) string {
	ty.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		ty.mu.Lock()
		seen := string(ty.seen)
		ty.mu.Unlock()
		rest, found := seen, true
		for _, want := range wants {
			_, after, ok := strings.Cut(rest, want)
			rest, found = after, found && ok
		}
		if found {
			return seen
		}
		if time.Now().After(end) {
			ty.t.Fatalf("want %q, have %q", wants, seen)
		}
	}
}

// TestJob has a shell run held commands in a terminal: it sees what it would see of them unheld.
func TestJob(t *testing.T) {
	for _, who := range users(t) {
		t.Run(who.name, func(t *testing.T) {
			dir, prefix := placeOf(t, who, confine.Spec{Reach: confine.Read})
			ty := newTypist(t, who, dir)
			ty.runs(prefix+"bash -c 'exit 7'; echo \"<$?>\"\r", "\n<7>")
			ty.runs(prefix+"bash -c 'stty size; tty; ps -o pgid= $$ | tr -d \" \"; echo over'\r", "over\r")
			ty.runs(prefix+"bash -c 'stty size'\r", "\n31 97\r")
			ty.runs(prefix+"bash -c 'tty'\r", "\n/dev/console")
			ty.runs(prefix+"bash -c '[ $(ps -o pgid= $$) = $(ps -o tpgid= $$) ] && echo foreground'\r", "\nforeground")
			if seen := ty.runs(prefix+"bash -c 'kill -TERM $$'; echo \"<$?>\"\r", "\n<143>"); !strings.Contains(seen, "Terminated") {
				t.Errorf("ended by SIGTERM: %q", seen)
			}
			ty.runs(prefix+"bash -c 'kill -SEGV $$'; echo \"<$?>\"\r", "\n<139>")
			ty.types(prefix+"bash -c 'echo begun; sleep 1000'\r", "\nbegun")
			ty.types("\x03", "\n$ ")
			ty.runs("echo \"<$?>\"\r", "\n<130>")
			ty.types(prefix+"bash -c 'trap \"echo caught; exit 3\" INT; echo begun; while :; do sleep .01; done'; echo \"<$?>\"\r", "\nbegun")
			ty.runs("\x03", "\n<3>")
			for range 3 { // each stop is seen once
				ty.types(prefix+"bash -c 'echo begun; sleep 1000; echo not'\r", "\nbegun")
				ty.runs("\x1a", "Stopped")
				ty.types("fg\r", "sublet-confine")
				ty.continued() // a ^Z before that is the shell's, or is undone: so it is without the launcher, too
				ty.runs("\x1a", "Stopped")
				ty.runs("bg\r", "&")
				ty.runs("jobs; echo listed\r", "Running")
				ty.runs("kill %%; wait; echo \"ended\"\r", "\nended")
			}
			ty.types(prefix+"bash -c 'echo begun; read -sp pass: x; echo; echo got $x'\r", "pass:")
			ty.runs("hidden\r", "\ngot hidden")
			ty.runs(prefix+"bash -c 'echo one; kill -STOP $$; echo two'\r", "Stopped")
			ty.runs("fg\r", "\ntwo")
			if err := pty.Setsize(ty.tty, &pty.Winsize{Rows: 10, Cols: 20}); err != nil {
				t.Fatal(err)
			}
			ty.runs(prefix+"bash -c 'stty size'\r", "\n10 20\r")
		})
	}
}

// TestEarlyKeys types ^C or ^Z at every moment of a command's start, the first ones before there is a command: it gets them.
func TestEarlyKeys(t *testing.T) {
	who := users(t)[0]
	dir, prefix := placeOf(t, who, confine.Spec{Reach: confine.Read})
	ty := newTypist(t, who, dir)
	for i := range 60 {
		ty.types("\r", "$ ") // nothing is left over
		ty.mu.Lock()
		ty.seen = nil
		ty.mu.Unlock()
		if _, err := ty.tty.WriteString(prefix + "sleep 1000; echo \"<$?>\"\r"); err != nil {
			t.Fatal(err)
		}
		// Before it has a child the launcher is a program that starts, and loses keys as any other does.
		for begun, end := false, time.Now().Add(patience); !begun; {
			group, err := unix.IoctlGetInt(int(ty.tty.Fd()), unix.TIOCGPGRP)
			if err != nil || time.Now().After(end) {
				t.Fatal("the job does not get the terminal: ", err)
			}
			for _, p := range processes() {
				begun = begun || group != ty.shell && p.parent == group
			}
		}
		time.Sleep(time.Duration(i/2) * time.Millisecond)
		if i%2 == 0 {
			seen := ty.types("\x03", "\n$ ")
			if got := ty.runs("echo \"<$?>\"\r", ">\r\n"); !strings.Contains(got, "\n<130>") {
				t.Errorf("^C after %d ms: %q, then %q", i/2, seen, got)
			}
		} else {
			ty.runs("\x1a", "Stopped")
			ty.runs("kill -9 %%; wait; echo \"ended\"\r", "\nended")
		}
	}
}

// TestKilled kills what holds a command, as a cancel does in the end: nothing of the command outlives it.
func TestKilled(t *testing.T) {
	for _, who := range users(t) {
		for _, victim := range []string{"parent", "keeper", "group", "terminate"} {
			t.Run(who.name+" "+victim, func(t *testing.T) {
				dir, prefix := placeOf(t, who, confine.Spec{Reach: confine.Read})
				tag := fmt.Sprintf("700.%d", serial.Add(1))
				words := strings.Fields(prefix)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				cmd := who.as(exec.CommandContext(ctx, words[0], append(words[1:], "bash", "-c",
					"trap '' INT HUP; setsid sleep "+tag+" & (trap '' TERM; setsid sleep "+tag+" & ) & echo $PPID; kill -9 $PPID; kill -9 "+strconv.Itoa(os.Getpid())+"; echo begun; sleep "+tag)...))
				cmd.Dir = dir
				cmd.SysProcAttr.Setpgid = true
				out := &citest.Buffer{}
				cmd.Stdout, cmd.Stderr = out, out
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				for !strings.Contains(out.String(), "begun") || len(running(tag)) < 4 {
					if ctx.Err() != nil {
						t.Fatalf("it did not begin: %q", out.String())
					}
					time.Sleep(5 * time.Millisecond)
				}
				keeper, err := strconv.Atoi(strings.Fields(out.String())[0])
				if err != nil {
					t.Fatal(err)
				}
				parent, sig := cmd.Process.Pid, syscall.SIGKILL
				switch victim {
				case "parent":
					err = syscall.Kill(parent, sig)
				case "keeper":
					err = syscall.Kill(keeper, sig)
				case "group":
					err = syscall.Kill(-parent, sig)
				case "terminate":
					err = syscall.Kill(parent, syscall.SIGTERM)
				}
				if err != nil {
					t.Fatal(err)
				}
				_ = cmd.Wait() // killed
				for len(running(tag)) > 0 {
					if ctx.Err() != nil {
						t.Fatalf("left: %v", running(tag))
					}
					time.Sleep(5 * time.Millisecond)
				}
				if victim == "terminate" && cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
					t.Errorf("ended by %v", cmd.ProcessState)
				}
				if want := "\nsublet-confine: the keeper was killed (SIGKILL), and the command with it\n"; victim == "keeper" &&
					(cmd.ProcessState.ExitCode() != 128+int(sig) || !strings.HasSuffix(out.String(), want)) {
					t.Errorf("%v, %q; want %q", cmd.ProcessState, out.String(), want)
				}
			})
		}
	}
}

// startEarly starts a command whose keeper reads its part of the spec from a pipe, into which the caller writes it.
func startEarly(t *testing.T, argv ...string) (cmd *exec.Cmd, keeper int, out *citest.Buffer, spec *os.File) {
	who := users(t)[0]
	dir, prefix := placeOf(t, who, confine.Spec{Reach: confine.Read})
	words, path := strings.Fields(prefix), filepath.Join(dir, "spec")
	if err := unix.Mkfifo(path, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd, out = who.as(exec.Command(words[0], append([]string{path}, argv...)...)), &citest.Buffer{}
	cmd.Dir, cmd.Stderr = dir, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, confine.Spec{Reach: confine.Read}.Encode(), 0); err != nil { // read by the parent
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); keeper == 0; time.Sleep(time.Millisecond) {
		for _, p := range processes() {
			if p.parent == cmd.Process.Pid {
				keeper = p.pid
			}
		}
		if time.Now().After(end) {
			_ = cmd.Process.Kill() // it may have ended
			t.Fatalf("it has no keeper: %q", out.String())
		}
	}
	spec, err := os.OpenFile(path, os.O_WRONLY, 0) // once the keeper has opened it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { spec.Close() })
	return cmd, keeper, out, spec
}

// TestKilledEarly kills the keeper before it starts the command.
func TestKilledEarly(t *testing.T) {
	cmd, keeper, out, _ := startEarly(t, "touch", "ran")
	if err := syscall.Kill(keeper, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the state says more
	want := "sublet-confine: the command was not run: the keeper ended before it started the command (SIGKILL)\n"
	if cmd.ProcessState.ExitCode() != confine.NotConfined || out.String() != want {
		t.Errorf("%v, %q; want %q", cmd.ProcessState, out.String(), want)
	}
}

// TestSignalledEarly sends signals before there is a command, to one process each: a signal to the job may reach the keeper alone, and
// kill(1) the parent alone. The command gets them.
func TestSignalledEarly(t *testing.T) {
	for _, to := range []string{"keeper", "parent"} {
		for _, sig := range []syscall.Signal{unix.SIGTERM, unix.SIGHUP, unix.SIGINT} {
			if to == "parent" && sig == unix.SIGINT {
				continue // comes from the terminal, which sends it to the job
			}
			t.Run(unix.SignalName(sig)+" "+to, func(t *testing.T) {
				cmd, pid, out, spec := startEarly(t, "sleep", "1000")
				kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
				defer kill.Stop()
				if to == "parent" {
					pid = cmd.Process.Pid
				}
				if err := syscall.Kill(pid, sig); err != nil {
					t.Fatal(err)
				}
				_, err := spec.Write(confine.Spec{Reach: confine.Read}.Encode())
				if err = errors.Join(err, spec.Close()); err != nil {
					t.Fatal(err)
				}
				_ = cmd.Wait() // the state says more
				if got := cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(); got != sig || out.String() != "" {
					t.Errorf("ended by %v, %q; want %v", cmd.ProcessState, out.String(), sig)
				}
			})
		}
	}
}

// The keeper has left the job's session when it starts the command: kill -9 of the whole job would end it too, and leave what the
// command has detached, still confined and with nobody to end it.
func TestKeeperLeavesTheJobFirst(t *testing.T) {
	strace := citest.Program(t, "strace")
	for _, who := range users(t) {
		t.Run(who.name, func(t *testing.T) {
			dir, prefix := placeOf(t, who, confine.Spec{Reach: confine.Read})
			trace := filepath.Join(dir, "trace")
			words := append([]string{"-f", "-qq", "-e", "trace=setsid,execve", "-o", trace}, strings.Fields(prefix)...)
			cmd := who.as(exec.Command(strace, append(words, "env", "true")...))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			text, err := os.ReadFile(trace)
			if err != nil {
				t.Fatal(err)
			}
			left, begun := strings.Index(string(text), " setsid("), strings.Index(string(text), `/env", ["env"`)
			if left < 0 || begun < left {
				t.Errorf("the command began before the keeper had left:\n%s", text)
			}
		})
	}
}
