// Package hosted runs turns of agents of other programs that speak the Agent Client Protocol: sublet is their client. A turn's
// events are those of an agent of our own. Its commands come through sublet's MCP server, which the agent is given for its
// session, or by terminal/create, and run as those of our agents do: judged, asked about and audited by the caller's Approver.
// What an agent sends is data: it is bounded and never allows anything.
package hosted

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"sublet/daemon/config"
	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/tool"
	"sublet/lease/confine"
	"sublet/lease/procstat"
	"sublet/wire"
	"sublet/wire/visible"
)

// maxIdle bounds the processes that are kept for a later turn. Each sub-agent has one of its own.
const maxIdle = 4

// Store keeps, for each session of sublet and each agent, the agent's own session.
type Store interface {
	PutHosted(ctx context.Context, session wire.SessionID, agent string, record []byte) error
	Hosted(ctx context.Context, session wire.SessionID, agent string) (record []byte, err error) // nil: there is none
}

// Options for New. Zero durations mean the defaults.
type Options struct {
	Version   string
	Log       *slog.Logger      // nil = discard
	Store     Store             // nil = an agent that is started again begins a new session
	Server    []string          // the command of sublet's MCP server, for mcpServers; nil = agents are given none
	ServerEnv map[string]string // that server's variables for finding the daemon
	Folder    string            // private, for files that agents are started with
	// Hold returns the launcher for an agent that works in cwd, "" for none, and the reach that it enforces. nil: none is confined.
	Hold func(a config.Agent, cwd string) (launcher string, to confine.Spec, err error)

	Start   time.Duration // how long an agent may take from its start to its session; 1 min
	Connect time.Duration // how long it may take to list the MCP server's tools before its first prompt; 15 s
	Silence time.Duration // how long it may send nothing while none of its calls runs here; 10 min
	Cancel  time.Duration // how long it may take to end a cancelled turn; 5 s
	Idle    time.Duration // how long a process is kept after its last turn; 10 min
}

// Turn is one turn of a hosted agent.
type Turn struct {
	// Of is the turn as one of our own agents would have it, but its model is not used: the agent has its own. An empty History makes the
	// agent begin a new session; what is in it is not used.
	Of   agent.Turn
	Env  []string // NAME=value, for the process; without secrets
	Home string
	// Shell returns the shell that a command runs in; cwd is the folder that it names, "" for the shell's own. Unless watch is nil, it gets
	// what the command writes in a window's shell; it does not block.
	Shell func(cwd string, watch func(output []byte)) tool.Shell
	// Private returns a private shell for the agent of that name, which starts with its first command: in returns it for a command in
	// cwd, "" for where it is, and closeShell ends it. nil = the turn has none.
	Private func(agent string) (in func(cwd string) tool.Shell, closeShell func())
	// Ask asks the user what an agent wants to know, by the tool ask_user; arguments are those of wire.ParseUserQuestion.
	Ask func(ctx context.Context, arguments string) (*wire.CommandResult, error)
}

// Agents is the running agents of a daemon. It is safe for concurrent use.
type Agents struct {
	o      Options
	log    *slog.Logger
	ctx    context.Context // their lifetime; Close ends it
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu sync.Mutex
	// below: guarded by mu
	hosts  map[key]*host
	tokens map[string]*host // by what the MCP server of a host presents
}

// storedSession is the session of a process that may have ended, as Store keeps it.
type storedSession struct {
	ID   string  `json:"id"`
	Cwd  string  `json:"cwd"`
	Cost float64 `json:"cost"`
	Mode string  `json:"mode"` // the one that the user chose; "" = none
	// Not every agent sends these again when it resumes the session.
	Models selector `json:"models"`
	Modes  selector `json:"modes"`
	Began  string   `json:"began"`
}

// key names a conversation with one agent.
type key struct{ session, agent string }

// New returns Agents without any; Close must be called.
func New(o Options) *Agents {
	o.Start, o.Connect = cmp.Or(o.Start, time.Minute), cmp.Or(o.Connect, 15*time.Second)
	o.Silence, o.Cancel, o.Idle = cmp.Or(o.Silence, 10*time.Minute), cmp.Or(o.Cancel, 5*time.Second), cmp.Or(o.Idle, 10*time.Minute)
	if o.Hold == nil {
		o.Hold = func(config.Agent, string) (string, confine.Spec, error) { return "", confine.Spec{}, nil }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &Agents{o: o, log: o.Log, hosts: map[key]*host{}, tokens: map[string]*host{}}
	a.ctx, a.cancel = context.WithCancel(context.Background()) // Close ends it
	return a
}

// Close ends every agent with its processes, and waits for that. No turn may run any more.
func (a *Agents) Close() {
	a.cancel()
	for _, h := range a.matching(func(key) bool { return true }) {
		h.end()
	}
	a.work.Wait()
}

// Run runs one turn to its end. When ctx ends, what runs here for the agent ends first, then the agent's own turn; an agent that
// does not end it in time is ended itself. Errors are in Outcome.Err. Turns of one session and agent must not run at once.
func (a *Agents) Run(ctx context.Context, t Turn) agent.Outcome {
	r := newRun(ctx, t)
	defer r.close()
	o := a.prompt(r)
	if needsSignIn(o.Err) {
		if o = a.signIn(r); o.Err == nil {
			o = a.prompt(r)
		}
		if needsSignIn(o.Err) {
			o = r.outcome(wire.StatusError, &FaultError{r.name, "it asks for a sign-in again", "sign in with the agent itself"})
		}
	}
	if o.Err != nil && ctx.Err() != nil {
		o = r.ended(context.Cause(ctx))
	}
	if c := o.Usage.CostUSD; c != nil && t.Of.Budget.Spend != nil {
		if _, err := t.Of.Budget.Spend(*c); err != nil {
			a.log.Warn("a turn's cost is not recorded", "agent", r.name, "err", err)
		}
	}
	return o
}

// prompt sends the turn's prompt to its agent, which is started if it does not run.
func (a *Agents) prompt(r *run) agent.Outcome {
	h, err := a.host(r)
	if err != nil {
		return r.outcome(wire.StatusError, err)
	}
	defer a.trim()
	defer a.remember(h) // with the session's cost
	defer h.giveBack()
	return h.prompt(r)
}

// signIn signs the user in to an agent that asks for it only at its prompt. It ends the process: a new one reads what the sign-in
// wrote, and resumes the session.
func (a *Agents) signIn(r *run) agent.Outcome {
	h := r.host
	err := h.within(r.ctx, signInBound, func(ctx context.Context) error { return h.signIn(ctx, r) })
	h.end()
	return r.outcome(wire.StatusError, err)
}

// host returns the process of the turn's agent: the one that its session has, or a new one. A conversation that was cleared begins
// with a new one.
func (a *Agents) host(r *run) (*host, error) {
	k := key{r.t.Of.Env.Session, r.name}
	h := a.find(k.session, k.agent)
	if h != nil {
		err := h.take(r)
		if !errors.Is(err, errUnusable) {
			return h, err
		}
		h.end()
	}
	h, err := a.start(r, k)
	if err != nil {
		return nil, err
	}
	return h, h.take(r)
}

// EndSession ends the agents of a session that is deleted. It does not wait for that.
func (a *Agents) EndSession(session string) {
	for _, h := range a.matching(func(k key) bool { return k.session == session }) {
		a.work.Go(h.end)
	}
}

// matching returns the processes with the keys for which match returns true.
func (a *Agents) matching(match func(key) bool) (list []*host) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for k, h := range a.hosts {
		if match(k) {
			list = append(list, h)
		}
	}
	return list
}

// trim ends the idle processes beyond maxIdle, the longest idle first.
func (a *Agents) trim() {
	since := map[*host]time.Time{}
	list := slices.DeleteFunc(a.matching(func(key) bool { return true }), func(h *host) bool {
		at, idle := h.idleSince()
		since[h] = at
		return !idle
	})
	slices.SortFunc(list, func(h, other *host) int { return since[h].Compare(since[other]) })
	for _, h := range list[:max(0, len(list)-maxIdle)] {
		if h.retire() {
			a.work.Go(h.end)
		}
	}
}

func (a *Agents) add(k key, h *host) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hosts[k], a.tokens[h.token] = h, h
}

// remember stores a session, so that a later process of the agent can resume it.
func (a *Agents) remember(h *host) {
	if a.o.Store == nil {
		return
	}
	h.mu.Lock()
	s := &h.session
	record, err := json.Marshal(storedSession{string(s.id), s.cwd, s.cost, h.chosen, s.model, s.mode, s.firstModel})
	h.mu.Unlock()
	if err == nil {
		err = a.o.Store.PutHosted(a.ctx, wire.SessionID(h.key.session), h.key.agent, record)
	}
	if err != nil {
		a.log.Warn("the session of an agent is not stored", "agent", h.key.agent, "err", err)
	}
}

// remembered returns the session that the agent had before in the turn's conversation, the zero value for none.
func (a *Agents) remembered(r *run, k key) (e storedSession) {
	if a.o.Store == nil || r.fresh() {
		return e
	}
	record, err := a.o.Store.Hosted(r.ctx, wire.SessionID(k.session), k.agent)
	if err == nil && record != nil {
		err = json.Unmarshal(record, &e)
	}
	if err != nil {
		a.log.Warn("the session of an agent cannot be read", "agent", k.agent, "err", err)
	}
	return e
}

func (a *Agents) remove(k key, h *host) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hosts[k] == h {
		delete(a.hosts, k)
	}
	delete(a.tokens, h.token)
}

// errNoTurn refuses what an agent asks for while no turn of its runs.
var errNoTurn = errors.New("no turn of this agent runs")

// Call runs a tool for the MCP server that presents r.Hosted, in the turn of its agent, and returns the result. Without a tool it
// notes that the server's tools were listed.
func (a *Agents) Call(ctx context.Context, r *wire.ToolRequest) (*wire.CommandResult, error) {
	a.mu.Lock()
	h := a.tokens[r.Hosted]
	a.mu.Unlock()
	if h == nil {
		return nil, errors.New("the hosted agent that this server was started for has ended")
	}
	if r.Tool == "" {
		h.markListed()
		return &wire.CommandResult{}, nil
	}
	run := h.running()
	if run == nil {
		return nil, errNoTurn
	}
	return run.tool(ctx, r)
}

// Started returns the name of the hosted agent that is an ancestor of the process pid; false if none is.
func (a *Agents) Started(pid int) (name string, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.hosts) == 0 {
		return "", false
	}
	list, _ := procstat.Ancestors(pid) // on an error the list has those up to the first that cannot be read
	for k, h := range a.hosts {
		if slices.Contains(list, h.proc.PID()) {
			return k.agent, true
		}
	}
	return "", false
}

// shown returns an agent's text in one line without control sequences, of at most most bytes.
func shown(text string, most int) string {
	return visible.Clip(strings.Join(strings.Fields(visible.Clean(text)), " "), most)
}
