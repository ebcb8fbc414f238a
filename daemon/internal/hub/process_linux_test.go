package hub

import (
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"sublet/lease/procstat"
	"sublet/wire"
)

// heard is a peer that keeps what it is sent.
type heard struct {
	deaf
	pid int

	mu  sync.Mutex
	got []wire.Message // guarded by mu
}

func (p *heard) PID() int { return p.pid }

func (p *heard) Send(m wire.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, m)
}

// A window that an agent may have started, by its mark, cannot confirm and says so at once; another one can.
func TestMarkedWindow(t *testing.T) {
	for _, marked := range []bool{false, true} {
		h := newHub(t)
		out, err := exec.Command("sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo $!").Output() // none of this process's own
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
		if marked {
			if err := procstat.Mark(pid); err != nil {
				t.Fatal(err)
			}
		}
		peer := &heard{pid: pid}
		c, err := h.Attach(t.Context(), peer, &wire.EnvSnapshot{
			ProtocolMin: 1, ProtocolMax: 1, Cwd: wire.OSString(t.TempDir()), Capabilities: []string{wire.CapShell, wire.CapConfirm},
		})
		if err != nil {
			t.Fatal(err)
		}
		peer.mu.Lock()
		warned := slices.ContainsFunc(peer.got, func(m wire.Message) bool {
			n, ok := m.(*wire.Notice)
			return ok && n.Level == "warning" && strings.HasPrefix(n.Text, "questions cannot be answered in this window")
		})
		peer.mu.Unlock()
		if err := c.person(); (err != nil) != marked || warned != marked || c.confirm == marked {
			t.Errorf("marked %v: %v, warned %v, may confirm %v", marked, err, warned, c.confirm)
		}
		c.Detach()
	}
}
