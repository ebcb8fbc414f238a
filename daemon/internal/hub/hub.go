// Package hub is the daemon's middle: conversations, who is attached to them, what runs in them and who may. It plays turns one
// after the other in each session. It speaks no protocol of its own (see server), knows no model (see provider), lends no shell
// (see lend), and leaves a session's events and questions to eventlog and question.
//
// Locks: the mu of the Hub, a Client, a session or a turn is never taken while another of them is held. That of the
// questions is taken before any of them, and those of a session's events and of its policy after them. Sending to a Peer only queues, so it is
// done under the lock whose order it must follow.
package hub

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"sublet/daemon/config"
	"sublet/daemon/internal/crew"
	"sublet/daemon/internal/hosted"
	"sublet/daemon/internal/job"
	"sublet/daemon/internal/judge"
	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/mcp"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/question"
	"sublet/daemon/internal/reach"
	"sublet/daemon/internal/store"
	"sublet/wire"
)

// Options for New. All must be set but for those that say what they are without.
type Options struct {
	Store  *store.Store
	Audit  *store.Audit
	Config func() config.Config // the settings in force now; safe for concurrent use
	// OpenModel returns the model of that name ("" = the configured one). creds are what a client brought along.
	OpenModel func(ctx context.Context, name string, creds map[string]string) (provider.Model, error)
	// Models describes what can be used, the one in use first, without opening or running anything.
	Models func(creds map[string]string) []wire.ModelInfo
	// FindModels returns the model of that name, an error if it cannot be used, or with "" those of all providers, which it asks
	// within a bound of its own.
	FindModels func(ctx context.Context, name string, creds map[string]string) (*wire.ModelsReply, error)
	// Stop asks the daemon to end: called once, when a client's ShutdownRequest was accepted.
	Stop func(drain time.Duration)
	// Confine returns what holds commands to a reach on this machine. nil: nothing does.
	Confine func() reach.Confiner
	Hosted  *hosted.Agents // of other programs; whoever made them closes them, after the Hub
	// Instructions is the user's own file of instructions to agents, which need not exist. "": none.
	Instructions string
	Proxy        string       // the socket of what lets commands held to project reach the hosts of the settings
	MCP          *mcp.Servers // the settings'; whoever made it closes it, after the Hub. nil: none
	Jobs         string       // folder of background jobs
	Runtime      string       // private folder for the files of private shells
	Spool        string       // folder for raw output that was cut
	Version      string
	BuiltAt      int64 // see wire.DaemonInfo
	Kept         bool  // see wire.DaemonInfo
	Log          *slog.Logger
}

// Hub owns every session, turn, lender and private shell of the daemon. Safe for concurrent use.
type Hub struct {
	opts    Options
	log     *slog.Logger
	started time.Time

	jobs     *job.Manager
	crew     *crew.Manager
	projects judge.Projects
	shells   *lend.Shells
	// questions has a lock that is taken before any of the others.
	questions *question.Open[*Client]

	ctx    context.Context // ends when turns are cancelled by Close
	cancel context.CancelCauseFunc
	work   sync.WaitGroup // operations that have begun, and answers to StatusRequests

	activity chan struct{} // see Activity

	mu sync.Mutex
	// below: guarded by mu
	closing  bool
	sessions map[wire.SessionID]*session
	idle     []*session // nobody attached, nothing runs; the oldest first
	clients  map[*Client]struct{}
	running  map[*operation]struct{}
}

// maxIdleSessions bounds the sessions kept in memory for their rules and for what their agents know of files.
const maxIdleSessions = 100

// New returns a Hub. It ends the turns and compactions that an earlier daemon left open as errors, so that each has one end.
func New(ctx context.Context, o Options) (*Hub, error) {
	h := &Hub{
		opts: o, log: o.Log, started: time.Now(), activity: make(chan struct{}, 1),
		sessions: map[wire.SessionID]*session{}, clients: map[*Client]struct{}{},
		running: map[*operation]struct{}{},
	}
	// The hub's lifetime is its own: Close ends it in order.
	h.ctx, h.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	h.shells = lend.New(h.log, uint64(h.started.UnixMicro())) // the fencing tokens of an earlier daemon were lower
	h.questions = question.New(h.attached, h.log, h.signalActivity)
	var err error
	if err := h.endUnfinished(ctx, "", restarted); err != nil {
		return nil, err
	}
	if h.crew, err = crew.Open(ctx, o.Store, h.log); err != nil {
		return nil, err
	}
	if h.jobs, err = job.Open(o.Jobs, h.log); err != nil {
		return nil, err
	}
	if err := h.jobs.Follow(h.jobChanged); err != nil {
		return nil, err
	}
	return h, nil
}

// Activity receives a value when clients, turns or leases have come or gone; Idle reports whether any are left.
func (h *Hub) Activity() <-chan struct{} { return h.activity }

// Idle reports whether no client is attached and no turn, borrowed command or background job runs.
func (h *Hub) Idle() bool {
	h.mu.Lock()
	idle := len(h.clients) == 0 && len(h.running) == 0
	h.mu.Unlock()
	return idle && h.jobs.Running() == 0
}

// Running returns how many operations run, turns that wait included.
func (h *Hub) Running() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.running)
}

// signalActivity lets the next receive from Activity return.
func (h *Hub) signalActivity() {
	select {
	case h.activity <- struct{}{}:
	default:
	}
}

// Notify sends a notice to every client.
func (h *Hub) Notify(n *wire.Notice) {
	for _, c := range h.attached() {
		c.Send(n)
	}
}

// NotifyPolicy sends a notice to every client, as one about its own session, whose mode may have changed.
func (h *Hub) NotifyPolicy(n wire.Notice) {
	for _, c := range h.attached() {
		own := n
		own.SessionID = c.attached().id
		c.Send(&own)
	}
}

// Farewell sends every client the last message: the daemon stops on request, so they must not start another one by themselves.
// why is one line for people.
func (h *Hub) Farewell(why string) {
	for _, c := range h.attached() {
		c.Send(&wire.Error{
			Code: wire.CodeShuttingDown, Message: why, Hint: "the next request starts a new one", Details: map[string]string{},
		})
	}
}

// attached returns the clients.
func (h *Hub) attached() []*Client {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.clients))
}

// unfinished returns the turns that run or wait.
func (h *Hub) unfinished() (turns []*turn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for o := range h.running {
		if o.turn != nil {
			turns = append(turns, o.turn)
		}
	}
	return turns
}

// Refuse makes every later request that would begin work fail with lend.ErrShuttingDown. Turns that run go on.
func (h *Hub) Refuse() {
	h.mu.Lock()
	h.closing = true
	h.mu.Unlock()
}

// refuses reports whether Refuse was called.
func (h *Hub) refuses() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closing
}

// Drain waits until nothing runs any more that ends by itself, or ctx ends. A turn that waits for a person's decision,
// and what is queued behind it, is not waited for: the person may be gone for a day.
func (h *Hub) Drain(ctx context.Context) {
	for {
		if working, _ := h.Work(); working == 0 {
			return
		}
		select {
		case <-h.activity:
		case <-ctx.Done():
			return
		}
	}
}

// Work returns how many turns and borrowed commands run or wait for each other, and how many turns wait for a person's
// decision, those queued behind them included.
func (h *Hub) Work() (working, waiting int) {
	working = h.Running()
	asked := h.questions.Waiting()
	for _, t := range h.unfinished() {
		if asked[t.s.id] != "" {
			waiting++
		}
	}
	return working - waiting, waiting
}

// Close refuses new work, cancels every turn, ends every lease, closes private shells and returns when the last turn has
// ended, or when ctx ends, with its error. Clients stay attached until their connections end.
func (h *Hub) Close(ctx context.Context) error {
	h.Refuse()
	asked := h.questions.Waiting()
	for _, t := range h.unfinished() {
		if asked[t.s.id] == t.id {
			t.cancel(&stopped{wire.StatusError, "the daemon was stopped while this waited for an answer", errStopped})
		}
	}
	h.cancel(&stopped{wire.StatusError, "the daemon was stopped", errStopped})
	// Turns give their leases back when they are cancelled, with proof that the command ended; only what is left after
	// them is cut off.
	done := make(chan struct{})
	go func() { // ends with the last turn; Close waits for it below, or reports that it did not
		h.work.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	h.shells.Close()
	h.mu.Lock()
	sessions := slices.Collect(maps.Values(h.sessions))
	h.mu.Unlock()
	for _, s := range sessions {
		s.closePrivate()
	}
	h.jobs.Close()
	return err
}

// daemonInfo returns the description of the daemon for Ready.
func (h *Hub) daemonInfo() wire.DaemonInfo {
	return wire.DaemonInfo{
		Name: "sublet", Version: cmp.Or(h.opts.Version, "devel"), PID: os.Getpid(),
		UptimeMS: time.Since(h.started).Milliseconds(), BuiltAtMS: h.opts.BuiltAt, Kept: h.opts.Kept,
	}
}
