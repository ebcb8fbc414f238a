package lender

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"sublet/lease/shell"
	"sublet/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a shell without a bash, for exact times: a command runs until it is told to end or its context ends, which
// takes dies. The rules of lending are proved here; that a real bash obeys is proved in bash_test.go.
type clock struct {
	dies, looks time.Duration
	hooks       time.Duration // how long prompt hooks take behind that
	expands     time.Duration // how long the prompt takes
	gone        chan struct{}
	began       func(shell.Command) // nil = none
	fails       error               // what Run and Undo return, who do nothing then

	mu      sync.Mutex
	clash   []string // commands that were to run while another did
	state   shell.State
	calls   []string
	prompts int
	left    bool // what the last command left behind was told
	cmd     *shell.Command
	end     chan shell.Result
}

func newClock() *clock {
	return &clock{gone: make(chan struct{}), state: shell.State{Dir: "/home/u", Digest: "d0", Vars: map[string]string{"HOME": "/home/u", "API_TOKEN": "hush"}}}
}

func (c *clock) Run(ctx context.Context, cmd shell.Command) (shell.Result, error) {
	if c.fails != nil {
		return shell.Result{}, c.fails
	}
	c.mu.Lock()
	if c.cmd != nil {
		c.clash = append(c.clash, cmd.Text+" while "+c.cmd.Text+" runs")
		c.mu.Unlock()
		return shell.Result{}, shell.ErrBusy
	}
	if ctx.Err() != nil {
		c.mu.Unlock()
		return shell.Result{}, context.Cause(ctx)
	}
	end := make(chan shell.Result, 1)
	c.cmd, c.end, c.left = &cmd, end, false
	c.calls = append(c.calls, cmd.Text)
	dies := c.dies
	c.mu.Unlock()
	if c.began != nil {
		c.began(cmd)
	}
	if cmd.Started != nil {
		cmd.Started()
	}
	began := time.Now()
	timeout := make(<-chan time.Time)
	if cmd.Timeout > 0 {
		timer := time.NewTimer(cmd.Timeout)
		defer timer.Stop()
		timeout = timer.C
	}
	var r shell.Result
	select {
	case r = <-end:
	case <-timeout:
		time.Sleep(dies)
		r = shell.Result{Status: wire.StatusTimeout, Signal: "SIGINT"}
	case <-ctx.Done():
		time.Sleep(dies)
		r = shell.Result{Status: wire.StatusCancelled, Signal: "SIGINT"}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cmd = nil
	r.Dir, r.Duration = c.state.Dir, time.Since(began)
	return r, nil
}

// finish ends the running command, which changed the state to s where s has a digest.
func (c *clock) finish(code int, s shell.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.Digest != "" {
		c.state = s
	}
	if c.end == nil {
		panic("nothing was run yet")
	}
	select {
	case c.end <- shell.Result{Status: wire.StatusOK, ExitCode: &code, Output: []byte("out"), Unread: []byte("secret\n")}:
	default: // it has ended, or is dying
	}
}

// runs reports whether a command runs whose text begins with prefix.
func (c *clock) runs(prefix string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cmd != nil && strings.HasPrefix(c.cmd.Text, prefix)
}

func (c *clock) dying(after time.Duration) {
	c.mu.Lock()
	c.dies = after
	c.mu.Unlock()
}

func (c *clock) expanding(takes time.Duration) {
	c.mu.Lock()
	c.expands = takes
	c.mu.Unlock()
}

func (c *clock) clashes() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clash
}

func (c *clock) print(text string) {
	c.mu.Lock()
	out := c.cmd.Output
	c.mu.Unlock()
	out([]byte(text))
}

func (c *clock) ran() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

func (c *clock) State(ctx context.Context) (shell.State, error) {
	c.mu.Lock()
	takes := c.looks
	if c.left {
		takes = c.hooks
	}
	c.mu.Unlock()
	return c.told(ctx, takes)
}

func (c *clock) Left(ctx context.Context) (shell.State, error) {
	s, err := c.told(ctx, c.looks)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = err == nil
	return s, err
}

func (c *clock) told(ctx context.Context, takes time.Duration) (shell.State, error) {
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return shell.State{}, context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.state
	s.Vars = maps.Clone(s.Vars)
	return s, nil
}

func (c *clock) Undo(_ context.Context, before, _ shell.State) error {
	if c.fails != nil {
		return c.fails
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state, c.left = before, false
	return nil
}

func (c *clock) Digest() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Digest
}

func (c *clock) Dir() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Dir
}

func (c *clock) Write(p []byte) (int, error) { return len(p), nil }

func (c *clock) Resize(shell.Size) error { return nil }

// Prompt tells how often it was called.
func (c *clock) Prompt(ctx context.Context) (shell.Prompt, error) {
	c.mu.Lock()
	takes := c.expands
	c.mu.Unlock()
	if takes > 0 {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return shell.Prompt{}, context.Cause(ctx)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prompts++
	return shell.Prompt{Text: fmt.Sprint(c.prompts, "$ ")}, nil
}

func (c *clock) History(context.Context) ([]string, error) { return []string{"ls"}, nil }

func (c *clock) Exited() <-chan struct{} { return c.gone }

func (c *clock) ExitStatus() int { return 0 }

func (c *clock) Complete(context.Context, string, int) (int, []shell.Completion, error) {
	return 0, nil, nil
}

// desk is a lender between a shell, a daemon's end of a link and a screen.
type desk struct {
	t  *testing.T
	l  *Lender
	sh *clock

	mu     sync.Mutex
	slow   time.Duration // what an event takes to be shown
	down   bool
	sent   []wire.Message
	typed  []string // who was said to type, unasked
	events []any
}

func open(t *testing.T) *desk {
	d := &desk{t: t, sh: newClock()}
	d.l = New(Options{Shell: d.sh, Send: d.send, Observer: d, Env: []string{"HOME=/home/u", "OLD=1"}})
	d.up()
	d.take("ShellState")
	return d
}

// atDesk runs a test in a bubble of its own, with nothing lent.
func atDesk(t *testing.T, f func(t *testing.T, d *desk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := open(t)
		defer d.close()
		f(t, d)
	})
}

func (d *desk) close() {
	d.l.Close()
	synctest.Wait()
}

func (d *desk) send(m wire.Message) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.down {
		return errors.New("no link")
	}
	if u, ok := m.(*wire.ShellUseReply); ok && u.Nonce == 0 { // see TestTypingIsTold
		d.typed = append(d.typed, u.Holder)
		return nil
	}
	d.sent = append(d.sent, m)
	return nil
}

func (d *desk) Observe(event any) {
	d.mu.Lock()
	slow := d.slow
	d.mu.Unlock()
	time.Sleep(slow)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, event)
}

func (d *desk) showing(takes time.Duration) {
	d.mu.Lock()
	d.slow = takes
	d.mu.Unlock()
}

func (d *desk) up(leases ...wire.HeldLease) {
	d.mu.Lock()
	d.down = false
	d.mu.Unlock()
	d.l.Snapshot(&wire.EnvSnapshot{})
	d.l.Up(&wire.Ready{Leases: leases})
	synctest.Wait()
}

func (d *desk) drop() {
	d.mu.Lock()
	d.down = true
	d.mu.Unlock()
	d.l.Down()
}

// kinds returns what was sent since the last call, by kind.
func (d *desk) kinds() []string {
	d.t.Helper()
	synctest.Wait()
	d.l.mu.Lock()
	now, ending := d.l.lendingLocked(), d.l.grant != nil && d.l.grant.settles // its end is shown when what it changed is known
	d.l.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	var shown LeaseChanged
	if told := latest[LeaseChanged](d); told != nil {
		shown = *told
	}
	if !reflect.DeepEqual(shown.Lending, now) && !ending {
		d.t.Errorf("the screen shows %+v, it is %+v", shown.Lending, now)
	}
	kinds := []string{}
	for _, m := range d.sent {
		kinds = append(kinds, m.Kind())
	}
	d.sent = nil
	return kinds
}

// latest is the last event of its type that the screen was told, nil for none. d.mu is held.
func latest[E any](d *desk) *E {
	for _, e := range slices.Backward(d.events) {
		if e, ok := e.(E); ok {
			return &e
		}
	}
	return nil
}

// take checks the kinds sent since the last call and returns the messages.
func (d *desk) take(want ...string) []wire.Message {
	d.t.Helper()
	synctest.Wait()
	d.mu.Lock()
	sent := d.sent
	d.mu.Unlock()
	if got := d.kinds(); !slices.Equal(got, want) {
		d.t.Fatalf("got sent %v, want %v", got, want)
	}
	return sent
}

func ref(n int) wire.LeaseRef {
	return wire.LeaseRef{LeaseID: wire.LeaseID(fmt.Sprintf("lease-%d", n)), Fence: uint64(n)}
}

func (d *desk) acquire(n int) {
	d.l.Handle(&wire.AcquireShellLease{LeaseRef: ref(n), Agent: fmt.Sprintf("agent-%d", n), Purpose: "ls", TurnID: "t"})
}

func (d *desk) execute(n int, id, text string) *wire.ExecuteLeasedCommand {
	m := &wire.ExecuteLeasedCommand{
		LeaseRef: ref(n), ExecutionID: wire.ExecutionID(id), Command: wire.OSString(text), Cwd: "/home/u",
		Fingerprint: wire.Fingerprint(wire.OSString(text), "/home/u", d.sh.Digest()),
	}
	d.l.Handle(m)
	return m
}

// begin lends the shell and has a command begin there.
func (d *desk) begin(n int, id, text string) {
	d.t.Helper()
	d.acquire(n)
	d.execute(n, id, text)
	d.take("ShellLeaseAcquired", "CommandStarted")
}

func (d *desk) release(n int, reason string) {
	d.l.Handle(&wire.ReleaseShellLease{LeaseRef: ref(n), Reason: reason})
}

// run starts a command of the user and returns its end.
func (d *desk) run(text string, takeBack bool) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := d.l.Run(context.Background(), text, takeBack, nil)
		done <- err
	}()
	synctest.Wait()
	return done
}
