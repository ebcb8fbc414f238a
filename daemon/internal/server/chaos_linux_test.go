package server_test

import (
	"bytes"
	"flag"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"sublet/daemon/config"
	"sublet/daemon/internal/provider/scripted"
	"sublet/wire"
)

var (
	chaosFor  = flag.Duration("chaos.for", 0, "how long TestChaos runs; 0 = 60 steps of each client")
	chaosSeed = flag.Uint64("chaos.seed", 0, "seed of TestChaos; 0 = a new one")
)

// Four clients with a session each ask, steer, cancel, fork, compact, start and end jobs, and lose their connection, at random.
// Whatever happens, each turn has one end, the events of each session are numbered without a gap, and each request is answered.
// When all have ended, no process is left, nor, by TestMain, a goroutine.
func TestChaos(t *testing.T) {
	seed := *chaosSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-chaos.seed=%d", seed)
	r := newRig(t,
		bash("^quick", "echo one", "cd /; pwd"),
		bash("^long", "sleep 1000"),
		scripted.Script{Match: "^job", Steps: []scripted.Step{step("bash", map[string]any{"command": "echo begun; sleep 0.05", "background": true, "wake": true}), {Text: "begun"}}},
		scripted.Script{Match: "^endless job", Steps: []scripted.Step{step("bash", map[string]any{"command": "sleep 1000", "background": true}), {Text: "begun"}}},
		scripted.Script{Match: "^delegate", Steps: []scripted.Step{task("engineer", "quick part", false), {Text: "reported"}}},
		scripted.Script{Match: ".", Steps: []scripted.Step{{Text: "a few words more", ChunkBytes: 3}}},
	)
	r.set(func(c *config.Config) { c.Limits.RequestsPerSecond = 10_000 })
	var clients sync.WaitGroup
	for n := range 4 {
		c := &chaos{rig: r, left: map[wire.TurnID]bool{}, rand: rand.New(rand.NewPCG(seed, uint64(n)))}
		c.options = []func(*wire.EnvSnapshot){r.there}
		if n >= 2 { // its agent works in a private shell
			c.options = append(c.options, withoutShell)
		}
		c.peer = r.dial(c.options...)
		clients.Go(func() {
			for end, step := time.Now().Add(*chaosFor), 0; step < 60 || time.Now().Before(end); step++ {
				c.step()
			}
			c.finish()
		})
	}
	clients.Wait()
	if t.Failed() {
		return
	}
	r.close()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		left := withEnv(t, "HOME="+r.dir)
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("left running: %q", left)
		}
	}
}

// chaos is one client of TestChaos.
type chaos struct {
	*peer
	rig     *rig
	rand    *rand.Rand
	options []func(*wire.EnvSnapshot)
	after   int64                // number of the last event that an earlier connection received
	asked   []wire.RequestID     // on this connection
	left    map[wire.TurnID]bool // turns that ran when an earlier connection ended
}

func (c *chaos) step() {
	switch c.rand.IntN(10) {
	case 0, 1, 2, 3:
		prompts := []string{"quick", "long", "job", "endless job", "delegate", "talk"}
		c.asked = append(c.asked, c.ask(prompts[c.rand.IntN(len(prompts))]))
	case 4:
		c.asked = append(c.asked, c.ask("a word", steer))
	case 5:
		c.cancel(1)
		for id := range c.left {
			c.send(&wire.CancelRequest{TurnID: &id})
			delete(c.left, id)
		}
	case 6:
		c.fork()
	case 7:
		for _, j := range c.jobs(&wire.JobRequest{Op: "list"}).Jobs {
			if j.SessionID == c.session && j.State == "running" && c.rand.IntN(2) == 0 {
				c.jobs(&wire.JobRequest{Op: "kill", JobID: j.JobID})
			}
		}
	case 8:
		c.send(&wire.CompactRequest{RequestID: requestID(), Op: "run"})
	case 9:
		c.reconnect()
	}
	if c.rand.IntN(3) == 0 {
		c.reached()
	}
	if len(c.open()) > 3 {
		c.cancel(len(c.asked))
		c.settle()
	}
}

// open returns the requests of this connection that have no answer yet.
func (c *chaos) open() []wire.RequestID {
	over := map[wire.RequestID]bool{}
	for _, m := range c.all() {
		switch m := m.(type) {
		case *wire.AgentComplete:
			over[m.RequestID] = true
		case *wire.TurnSteered:
			over[m.RequestID] = true
		case *wire.Error:
			over[m.RequestID] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(c.asked), func(id wire.RequestID) bool { return over[id] })
}

// cancel cancels up to n requests.
func (c *chaos) cancel(n int) {
	for _, id := range c.open()[:min(n, len(c.open()))] {
		c.send(&wire.CancelRequest{RequestID: &id})
	}
}

// settle waits until each request of this connection is answered.
func (c *chaos) settle() {
	for end := time.Now().Add(4 * patience); len(c.open()) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			c.t.Errorf("not answered: %q\n%s", c.open(), c.story())
			return
		}
	}
}

// fork copies the session as it is, checks the turns of the copy and deletes it.
func (c *chaos) fork() {
	r := &wire.SessionRequest{RequestID: requestID(), Op: "fork", SessionID: &c.session}
	c.send(r)
	for end := time.Now().Add(4 * patience); ; time.Sleep(time.Millisecond) {
		if has(c.peer, func(m *wire.Error) bool { return m.RequestID == r.RequestID }) {
			return // nothing was asked yet, or a turn runs
		}
		if has(c.peer, func(m *wire.SessionReply) bool { return m.RequestID == r.RequestID }) {
			break
		}
		if time.Now().After(end) {
			c.t.Errorf("fork %s: no answer", r.RequestID)
			return
		}
	}
	copied := await(c.peer, func(m *wire.SessionReply) bool { return m.RequestID == r.RequestID }).Session.ID
	if left := c.whole(copied); len(left) > 0 {
		c.t.Errorf("a copy has turns without an end: %q", left)
	}
	c.sessions(&wire.SessionRequest{Op: "delete", SessionID: &copied})
}

// reconnect closes the connection, whatever is running, and resumes the session on a new one.
func (c *chaos) reconnect() {
	if c.rand.IntN(4) > 0 { // else its requests stay in the session's queue
		c.cancel(len(c.asked))
		c.reached()
	}
	c.close()
	checkNumbers(c.t, c.peer, c.after)
	for _, m := range c.all() {
		switch m := m.(type) {
		case *wire.TurnStarted:
			c.left[m.TurnID] = true
		case *wire.AgentComplete:
			delete(c.left, m.TurnID)
		}
		if e, ok := m.(wire.EventMessage); ok && e.Meta().SessionID == c.session && !live(e) {
			c.after = max(c.after, e.Meta().Seq)
		}
	}
	c.asked = nil
	c.peer = c.rig.dial(append(slices.Clone(c.options), inSession(c.session, c.after))...)
}

// finish cancels the requests and turns that run, those of earlier connections included, kills the jobs, and checks what is stored.
func (c *chaos) finish() {
	end, last := time.Time{}, int64(-1)
	for ; ; time.Sleep(time.Millisecond) {
		info := c.sessions(&wire.SessionRequest{Op: "get", SessionID: &c.session}).Session
		if info.LastSeq > last { // many requests may be queued
			end, last = time.Now().Add(4*patience), info.LastSeq
		}
		jobs := 0
		for _, j := range c.jobs(&wire.JobRequest{Op: "list"}).Jobs {
			if j.SessionID == c.session && j.State == "running" {
				c.jobs(&wire.JobRequest{Op: "kill", JobID: j.JobID})
				jobs++
			}
		}
		c.cancel(len(c.asked))
		running := c.whole(c.session)
		for _, id := range running {
			c.send(&wire.CancelRequest{TurnID: &id})
		}
		if jobs == 0 && len(c.open()) == 0 && len(running) == 0 && !info.Running {
			break
		}
		if time.Now().After(end) {
			c.t.Errorf("%d jobs, requests %q and turns %q do not end\n%s", jobs, c.open(), running, c.story())
			return
		}
	}
	checkNumbers(c.t, c.peer, c.after)
}

// whole reads a stored session and returns its turns without an end. It checks that no number is missing and that no turn ends twice.
func (c *chaos) whole(id wire.SessionID) []wire.TurnID {
	open, last := map[wire.TurnID]bool{}, int64(0)
	for more := true; more; {
		page := c.sessions(&wire.SessionRequest{Op: "get", SessionID: &id, IncludeHistory: true, AfterSeq: last})
		more = page.More
		for _, e := range page.Events {
			event := e.Message.(wire.EventMessage)
			first := event.Meta().Seq
			switch m := e.Message.(type) {
			case *wire.AgentStreamChunk:
				first = m.SeqFirst
			case *wire.TurnStarted:
				open[m.TurnID] = true
			case *wire.AgentComplete:
				if !open[m.TurnID] {
					c.t.Errorf("turn %s of %s ended twice, or never began", m.TurnID, id)
				}
				delete(open, m.TurnID)
			}
			if first != last+1 {
				c.t.Errorf("%s: %s has number %d after %d", id, wire.KindOf(event), first, last)
			}
			last = event.Meta().Seq
		}
	}
	return slices.Collect(maps.Keys(open))
}

// withEnv lists the commands of the processes that have a variable in their environment.
func withEnv(t *testing.T, variable string) (list []string) {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		env, err := os.ReadFile(path)
		if err == nil && slices.ContainsFunc(bytes.Split(env, []byte{0}), func(kv []byte) bool { return string(kv) == variable }) {
			command, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline")) // gone: ""
			list = append(list, string(command))
		}
	}
	return list
}
