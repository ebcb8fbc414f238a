package hosted

import (
	"cmp"
	"errors"
	"reflect"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"sublet/daemon/config"
	"sublet/daemon/internal/child"
)

const (
	// maxMessage bounds one message of an agent, in bytes. The SDK ends a connection with one of 10 MiB, without a reason.
	maxMessage = 8 << 20
	// linesPerSecond and linesAtOnce bound the messages of an agent before it is ended.
	linesPerSecond = 1000
	linesAtOnce    = 10_000
	// maxBytes bounds what an agent sends in one turn: texts are stored, and calls kept until they end.
	maxBytes = 64 << 20
	// signInBound is how long a sign-in may take.
	signInBound = 10 * time.Minute
	// authRequired is the protocol's error code for an agent whose user is not signed in.
	authRequired = -32000
)

// serverName is the name of sublet's MCP server for agents.
const serverName = "sublet"

// session is an agent's session, as the protocol calls it.
type session struct {
	id         sdk.SessionId
	cwd        string
	mode       selector
	model      selector
	firstModel string  // the model that it began with
	cost       float64 // in US dollars, as the agent reports it
}

// host is one process of an agent with one session of the protocol. It implements the SDK's client.
type host struct {
	agents *Agents
	key    key
	conf   config.Agent
	known  known
	proc   *child.Process
	in     *input
	conn   *sdk.ClientSideConnection
	path   string        // of its program
	token  string        // by which its MCP server is recognised in Agents.Call
	lists  chan struct{} // closed when that server's tools were listed
	once   sync.Once

	about            sdk.InitializeResponse
	newSessionNotice string // for the first turn; "" = none

	requestedModel string // the model of the last request, "" = it named none; only the turn that has the host uses it

	mu sync.Mutex
	// below: guarded by mu, except that a session's other fields than mode, model and cost do not change after the start
	session  session
	chosen   string      // the mode that the user chose, while it is in use; "" = none
	run      *run        // nil: no turn runs
	prompted bool        // a turn has begun
	idle     *time.Timer // nil before the end of the first turn
	since    time.Time   // when the last turn ended
	ending   bool        // it takes no other turn
	received int         // bytes, in this turn or since its start
	cause    error       // why it was given up; nil: it was not
}

// errUnusable is returned by take for a process that ends, was started with other settings, or knows a conversation that was cleared.
var errUnusable = errors.New("the agent's process ends")

// take gives the host to a turn until giveBack, or returns errUnusable.
func (h *host) take(r *run) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ending || h.prompted && r.fresh() || !reflect.DeepEqual(h.conf, *r.t.Of.Role.Hosted) {
		return errUnusable
	}
	if h.idle != nil {
		h.idle.Stop()
	}
	h.run, r.host, h.received, r.costBefore = r, h, 0, h.session.cost
	return nil
}

// giveBack ends the turn that take gave the host to. Unless another turn takes the host within Options.Idle, it is ended.
func (h *host) giveBack() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.run, h.since = nil, time.Now()
	if !h.ending {
		h.idle = time.AfterFunc(h.agents.o.Idle, func() {
			if h.retire() {
				h.end()
			}
		})
	}
}

// idleSince returns when the last turn ended. It returns false while a turn runs, before the first one, and when the process ends.
func (h *host) idleSince() (at time.Time, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.since, h.run == nil && h.idle != nil && !h.ending
}

// retire makes take refuse further turns if the host is idle, and reports whether it was. The caller then calls end.
func (h *host) retire() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.run != nil || h.ending {
		return false
	}
	h.ending = true
	return true
}

// running returns the turn that runs, nil for none.
func (h *host) running() *run {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.run
}

func (h *host) markListed() { h.once.Do(func() { close(h.lists) }) }

// giveUp ends the agent; why is the turn's error unless there is one already.
func (h *host) giveUp(why error) {
	h.mu.Lock()
	h.cause = cmp.Or(h.cause, why)
	h.mu.Unlock()
	h.end()
}

// end ends the process and its group, and waits for that. It is idempotent.
func (h *host) end() {
	h.mu.Lock()
	h.ending = true
	if h.idle != nil {
		h.idle.Stop()
	}
	h.mu.Unlock()
	h.agents.remove(h.key, h)
	h.proc.End()
}
