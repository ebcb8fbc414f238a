package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// props are what an attack finds if it names it.
var props = map[string]func(*scene){
	"VICTIM": func(s *scene) {
		tag := serial.Add(1)
		cmd := s.who.as(exec.Command("sleep", fmt.Sprintf("1000.%d", tag)))
		cmd.Dir, cmd.Env = s.at("home/.ssh"), []string{"TOKEN=" + secret}
		cmd.SysProcAttr.Setpgid = true
		held, err := os.Open(s.at("outside/held"))
		if err != nil {
			s.t.Fatal(err)
		}
		keys, err := os.Open(s.at("home/.ssh/id_ed25519"))
		if err != nil {
			s.t.Fatal(err)
		}
		cmd.ExtraFiles = []*os.File{held, held, keys}
		if err := cmd.Start(); err != nil {
			s.t.Fatal(err)
		}
		held.Close()
		keys.Close()
		pid := cmd.Process.Pid
		s.set("VICTIM", pid)
		s.set("VICTIMTAG", tag)
		was := about(pid)
		s.checks = append(s.checks, func() string {
			if now := about(pid); now != was {
				return fmt.Sprintf("the other process was %s, is %s", was, now)
			}
			return ""
		})
		s.atEnd(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	},
	"SLEEP": func(s *scene) {
		time := fmt.Sprintf("600.%d", serial.Add(1))
		s.set("SLEEP", time)
		s.checks = append(s.checks, func() string {
			if list := running(time); len(list) > 0 {
				return fmt.Sprintf("left %d processes", len(list))
			}
			return ""
		})
		s.atEnd(func() {
			for list := running(time); len(list) > 0; list = running(time) {
				for _, pid := range list {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		})
	},
	"TCP":   func(s *scene) { s.listen("TCP", "tcp", "127.0.0.1:0") },
	"TCP6":  func(s *scene) { s.listen("TCP6", "tcp", "[::1]:0") },
	"UDP":   func(s *scene) { s.listenPacket("UDP", "udp", "127.0.0.1:0") },
	"SOCK":  func(s *scene) { s.listen("SOCK", "unix", s.at("outside/sock")) },
	"DGRAM": func(s *scene) { s.listenPacket("DGRAM", "unixgram", s.at("outside/dgram")) },
	"ABS":   func(s *scene) { s.listen("ABS", "unix", "@"+s.mark) },
	"ABSD":  func(s *scene) { s.listenPacket("ABSD", "unixgram", "@"+s.mark+"d") },
	"FIFO": func(s *scene) {
		path := s.at("outside/fifo")
		if err := unix.Mkfifo(path, 0o666); err != nil {
			s.t.Fatal(err)
		}
		s.own(path)
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			s.t.Fatal(err)
		}
		s.set("FIFO", path)
		s.checks = append(s.checks, func() string {
			if n, _ := unix.Read(fd, make([]byte, 10)); n > 0 {
				return "wrote into a pipe"
			}
			return ""
		})
		s.atEnd(func() { unix.Close(fd) })
	},
	"SHM": func(s *scene) {
		id, err := unix.SysvShmGet(0, 4096, unix.IPC_CREAT|0o666)
		if err != nil {
			s.t.Fatal(err)
		}
		shared, err := unix.SysvShmAttach(id, 0, 0)
		if err != nil {
			s.t.Fatal(err)
		}
		var d unix.SysvShmDesc
		if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, &d); err != nil {
			s.t.Fatal(err)
		}
		d.Perm.Uid, d.Perm.Gid = uint32(s.who.uid), uint32(s.who.gid)
		if _, err := unix.SysvShmCtl(id, unix.IPC_SET, &d); err != nil {
			s.t.Fatal(err)
		}
		s.set("SHM", id)
		s.checks = append(s.checks, func() string {
			if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, &d); err != nil || d.Perm.Mode&0o1000 != 0 || shared[0] != 0 {
				return "changed shared memory"
			}
			return ""
		})
		s.atEnd(func() { _ = unix.SysvShmDetach(shared); _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	},
	"MSGQ": func(s *scene) {
		out, err := s.who.as(exec.Command("ipcmk", "-Q", "-p", "0666")).Output()
		if err != nil {
			s.t.Fatal(err)
		}
		id := strings.TrimSpace(string(out[bytes.LastIndexByte(out, ' ')+1:]))
		s.set("MSGQ", id)
		s.checks = append(s.checks, func() string {
			if out, err := exec.Command("ipcs", "-q", "-i", id).Output(); err != nil || !bytes.Contains(out, []byte("qnum=0")) {
				return "changed a message queue"
			}
			return ""
		})
		s.atEnd(func() { _ = exec.Command("ipcrm", "-q", id).Run() })
	},
	"SUID": func(s *scene) {
		if os.Getuid() != 0 {
			s.set("SUID", "/nowhere")
			return
		}
		path := s.at("outside/suid")
		if out, err := exec.Command("install", "-m", "4755", "/usr/bin/id", path).CombinedOutput(); err != nil {
			s.t.Fatalf("%v: %s", err, out)
		}
		s.set("SUID", path)
	},
	"TTY2": func(s *scene) {
		master, slave, err := pty.Open()
		if err != nil {
			s.t.Fatal(err)
		}
		s.own(slave.Name())
		s.set("TTY2", slave.Name())
		check := terminalChecks(s.t, slave)
		s.checks = append(s.checks, func() string {
			if n, _ := unix.IoctlGetInt(int(master.Fd()), unix.TIOCINQ); n > 0 {
				return "wrote to another terminal"
			}
			return check()
		})
		s.atEnd(func() { master.Close(); slave.Close() })
	},
}

// terminalChecks returns a check that a terminal is as it was.
func terminalChecks(t *testing.T, tty *os.File) func() string {
	look := func() (string, int) {
		var st unix.Stat_t
		if err := unix.Fstat(int(tty.Fd()), &st); err != nil {
			t.Fatal(err)
		}
		modes, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		excl, _ := unix.IoctlGetInt(int(tty.Fd()), 0x80045440) // TIOCGEXCL
		n, _ := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCINQ)
		return fmt.Sprintf("mode %o, %x, exclusive %d", st.Mode, modes.Lflag, excl), n
	}
	was, _ := look()
	return func() string {
		switch now, typed := look(); {
		case typed > 0:
			return "typed into a terminal"
		case now != was:
			return fmt.Sprintf("a terminal was %s, is %s", was, now)
		}
		return ""
	}
}

func (s *scene) listen(name, network, address string) {
	l, err := net.Listen(network, address)
	if err != nil && name == "TCP6" {
		s.set(name, 1) // no IPv6 here
		return
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.set(name, s.address(l.Addr()))
	s.checks = append(s.checks, func() string {
		_ = l.(interface{ SetDeadline(time.Time) error }).SetDeadline(time.Now().Add(5 * time.Millisecond))
		if c, err := l.Accept(); err == nil {
			c.Close()
			return "connected to " + name
		}
		return ""
	})
	s.atEnd(func() { l.Close() })
}

func (s *scene) listenPacket(name, network, address string) {
	l, err := net.ListenPacket(network, address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.set(name, s.address(l.LocalAddr()))
	s.checks = append(s.checks, func() string {
		_ = l.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		if n, _, err := l.ReadFrom(make([]byte, 10)); err == nil && n > 0 {
			return "sent to " + name
		}
		return ""
	})
	s.atEnd(func() { l.Close() })
}

func (s *scene) address(a net.Addr) string {
	if _, port, err := net.SplitHostPort(a.String()); err == nil {
		return port
	}
	if !strings.HasPrefix(a.String(), "@") {
		s.own(a.String())
	}
	return strings.TrimPrefix(a.String(), "@")
}

// about returns what can be done to a process from outside.
func about(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "gone"
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	limits, _ := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	score, _ := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid))
	io, _, _ := unix.Syscall(unix.SYS_IOPRIO_GET, 1, uintptr(pid), 0)
	var line []string
	for l := range strings.Lines(string(status)) {
		if strings.HasPrefix(l, "Cpus_allowed_list") || strings.HasPrefix(l, "TracerPid") || strings.HasPrefix(l, "ShdPnd") || strings.HasPrefix(l, "SigPnd") {
			line = append(line, strings.TrimSpace(l))
		}
	}
	for l := range strings.Lines(string(limits)) {
		if strings.HasPrefix(l, "Max open files") {
			line = append(line, strings.Join(strings.Fields(l), " "))
		}
	}
	state := fields[0]
	if state == "R" {
		state = "S"
	}
	return fmt.Sprintf("%s, nice %s, class %s, io %d, oom %s, %s", state, fields[16], fields[38], io, bytes.TrimSpace(score), strings.Join(line, ", "))
}
