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

// patience is that of the fake shell.
const patience = time.Second

// fake is a shell without a process, for exact times: a person types into it, programs run in it until they are told to
// end, and its line editor can be held while it is free. The rules of lending are proved here; that a real shell obeys is
// proved in bash_test.go.
type fake struct {
	dies, looks time.Duration // what a cancelled command takes to end, and the state to be read
	began       func(shell.Command)
	fails       error // what Run and Undo return, who do nothing then
	l           *Lender
	gone        chan struct{}

	mu      sync.Mutex
	bad     []string      // what no borrower may do
	changed chan struct{} // closed when the editor may be free
	broken  error         // what Hold returns
	state   shell.State
	stale   bool
	line    int       // characters of the half-typed line
	typed   time.Time // the last key of it
	program string    // the user's, that runs
	held    bool
	holds   int      // how often it was
	screen  bool     // is taken: nobody types into the shell
	kept    []string // lines and keys that were typed while it was held
	calls   []string // commands that ran, the user's and borrowers'
	cmd     *shell.Command
	end     chan shell.Result
}

func newFake() *fake {
	return &fake{
		gone: make(chan struct{}), changed: make(chan struct{}), stale: true,
		state: shell.State{Dir: "/home/u", Digest: "d0", Vars: map[string]string{"HOME": "/home/u", "API_TOKEN": "hush"}},
	}
}

func (f *fake) wrong(format string, args ...any) { f.bad = append(f.bad, fmt.Sprintf(format, args...)) }

func (f *fake) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// event is called with the lock held, as an event of the real shell may come while any of its methods runs.
func (f *fake) event(e any) {
	if f.l != nil {
		f.l.Event(e)
	}
}

// types is the user's key in the line, or for the program that runs; a text that ends in "\n" is a line to run.
func (f *fake) types(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.typesLocked(text)
}

func (f *fake) typesLocked(text string) {
	line, run := strings.CutSuffix(text, "\n")
	switch {
	case f.screen || f.program != "":
	case f.held:
		if f.kept = append(f.kept, text); len(f.kept) == 1 {
			f.event(shell.KeysWaiting{})
		}
	case run:
		f.line, f.program, f.stale = 0, line, true
		f.calls = append(f.calls, line)
		if f.cmd != nil {
			f.wrong("%s of the user's runs while %s does", line, f.cmd.Text)
		}
		f.event(shell.UserBegan{})
	default:
		f.line += len(line)
		f.typed = time.Now()
	}
}

// ends ends the user's program, which changed the state to s where s has a digest.
func (f *fake) ends(s shell.State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.program == "" {
		panic("the user runs nothing")
	}
	if s.Digest != "" {
		f.state = s
	}
	text := f.program
	f.program = ""
	f.event(shell.UserEnded{Text: text, Dir: f.state.Dir})
	f.event(shell.PromptShown{Dir: f.state.Dir})
	f.wake()
}

func (f *fake) Busy() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.program != "":
		return f.program + " is running"
	case !f.screen && f.line > 0:
		return "the user is typing"
	}
	return ""
}

func (f *fake) Hold(ctx context.Context) error {
	for {
		f.mu.Lock()
		wait, again := time.Hour, f.changed
		switch {
		case ctx.Err() != nil:
			f.mu.Unlock()
			return context.Cause(ctx)
		case f.broken != nil:
			defer f.mu.Unlock()
			return f.broken
		case f.held:
			f.wrong("held twice")
		case f.program != "":
		case !f.screen && f.line > 0 && time.Since(f.typed) < patience:
			wait = time.Until(f.typed.Add(patience))
		default:
			f.held = true
			f.holds++
			f.mu.Unlock()
			return nil
		}
		f.mu.Unlock()
		select {
		case <-again:
		case <-time.After(wait):
		case <-ctx.Done():
		case <-f.gone:
			return shell.ErrClosed
		}
	}
}

func (f *fake) Release() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.held || f.cmd != nil {
		f.wrong("released: held %v, a command runs: %v", f.held, f.cmd != nil)
	}
	f.held = false
	kept := f.kept
	f.kept = nil
	for _, text := range kept {
		f.typesLocked(text)
	}
	f.wake()
	return nil
}

func (f *fake) Run(ctx context.Context, cmd shell.Command) (shell.Result, error) {
	if f.fails != nil {
		return shell.Result{}, f.fails
	}
	f.mu.Lock()
	if f.cmd != nil || !f.held || f.program != "" {
		f.wrong("%s runs: held %v, %q of the user's runs", cmd.Text, f.held, f.program)
	}
	if ctx.Err() != nil {
		f.mu.Unlock()
		return shell.Result{}, context.Cause(ctx)
	}
	end := make(chan shell.Result, 1)
	f.cmd, f.end = &cmd, end
	f.calls = append(f.calls, cmd.Text)
	dies := f.dies
	f.mu.Unlock()
	if f.began != nil {
		f.began(cmd)
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
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cmd = nil
	r.Dir, r.Duration, r.Changes = f.state.Dir, time.Since(began), f.stale
	return r, nil
}

// finish ends the borrower's command, which changed the state to s where s has a digest.
func (f *fake) finish(code int, s shell.State) {
	f.becomes(s)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.end == nil {
		panic("nothing was run yet")
	}
	select {
	case f.end <- shell.Result{Status: wire.StatusOK, ExitCode: &code, Output: []byte("out")}:
	default: // it has ended, or is dying
	}
}

// becomes has what runs change the state.
func (f *fake) becomes(s shell.State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.Digest != "" {
		f.state, f.stale = s, true
	}
}

// runs reports whether a borrower's command runs.
func (f *fake) runs() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cmd != nil
}

// users returns the user's command that runs.
func (f *fake) users() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.program
}

func (f *fake) digest() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state.Digest
}

// waits reports whether the user's keys wait for the editor while no borrowed command runs.
func (f *fake) waits() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.kept) > 0 && f.cmd == nil
}

func (f *fake) isHeld() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held
}

func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	f.wake()
}

func (f *fake) print(text string) {
	f.mu.Lock()
	out := f.cmd.Output
	f.mu.Unlock()
	out([]byte(text))
}

// keyboard is why the borrower's command wants the user's keyboard, "" where it no longer does.
func (f *fake) keyboard(why string) {
	f.mu.Lock()
	wants := f.cmd.Keyboard
	f.mu.Unlock()
	wants(why, "")
}

func (f *fake) ran() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

func (f *fake) State(ctx context.Context) (shell.State, error) {
	f.mu.Lock()
	if !f.held {
		f.wrong("asked for its state while it is not held")
	}
	looks := f.looks
	if !f.stale {
		looks = 0
	}
	f.mu.Unlock()
	select {
	case <-time.After(looks):
	case <-ctx.Done():
	}
	if ctx.Err() != nil { // also if both have come
		return shell.State{}, context.Cause(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stale = false
	s := f.state
	s.Vars = maps.Clone(s.Vars)
	return s, nil
}

// Undo goes back to the directory and the variables of before, and so to its digest, as far as that is said there.
func (f *fake) Undo(_ context.Context, before, after shell.State) ([]string, error) {
	if f.fails != nil {
		return nil, f.fails
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.held {
		f.wrong("undone while it is not held")
	}
	now := f.state.Vars
	f.state.Vars = map[string]string{}
	maps.Copy(f.state.Vars, now)
	for name := range after.Vars {
		delete(f.state.Vars, name)
	}
	maps.Copy(f.state.Vars, before.Vars)
	f.state.Dir, f.state.Digest, f.stale = before.Dir, before.Digest, true
	var left []string
	for name := range after.Functions {
		left = append(left, name)
	}
	return left, nil
}

func (f *fake) Exited() <-chan struct{} { return f.gone }

// desk is a lender between a shell, a daemon's end of a link and a screen.
type desk struct {
	t  *testing.T
	l  *Lender
	sh *fake

	slow time.Duration // what a command's end takes to be shown

	mu     sync.Mutex
	down   bool
	sent   []wire.Message
	typed  []string // who was said to type, unasked
	events []any
}

// open returns a desk whose daemon knows the shell's state.
func open(t *testing.T) *desk {
	d := &desk{t: t, sh: newFake()}
	d.l = New(Options{Shell: d.sh, Send: d.send, Observer: d, Env: []string{"HOME=/home/u", "OLD=1"}})
	d.sh.l = d.l
	d.up()
	d.told("ShellState")
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
	d.sh.mu.Lock()
	defer d.sh.mu.Unlock()
	if d.sh.held || len(d.sh.bad) > 0 {
		d.t.Errorf("the shell is held: %v, and saw %q", d.sh.held, d.sh.bad)
	}
}

func (d *desk) send(m wire.Message) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.down {
		return errors.New("no link")
	}
	if u, ok := m.(*wire.ShellUseReply); ok && u.Nonce == 0 { // see TestTypingIsSent
		d.typed = append(d.typed, u.Holder)
		return nil
	}
	d.sent = append(d.sent, m)
	return nil
}

func (d *desk) Observe(event any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, event)
}

func (d *desk) AwaitDrawn() { time.Sleep(d.slow) }

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

// told has the screen take the terminal for a moment, and checks what the daemon is sent of the shell's state.
func (d *desk) told(want ...string) []wire.Message {
	d.t.Helper()
	d.l.SetScreenTaken(true)
	sent := d.take(want...)
	d.l.SetScreenTaken(false)
	return sent
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
		kinds = append(kinds, wire.KindOf(m))
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
	synctest.Wait()
}

// queued has lease n wait for the user until the daemon knows of it.
func (d *desk) queued(n int) *wire.ShellLeaseQueued {
	d.t.Helper()
	d.acquire(n)
	time.Sleep(queuedAfter)
	return d.take("ShellLeaseQueued")[0].(*wire.ShellLeaseQueued)
}

func (d *desk) execute(n int, id, text string) *wire.ExecuteLeasedCommand {
	m := &wire.ExecuteLeasedCommand{
		LeaseRef: ref(n), ExecutionID: wire.ExecutionID(id), Command: wire.OSString(text), Cwd: "/home/u",
		Fingerprint: wire.Fingerprint(wire.OSString(text), "/home/u", d.sh.digest()),
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

// runs has the user run a command, which changed the shell to s where that has a digest.
func (d *desk) runs(text string, s shell.State) {
	d.sh.types(text + "\n")
	d.sh.ends(s)
}
