package hosted

import (
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
	// linesPerSecond and linesAtOnce bound the messages of an agent before it is ended. The SDK ends a connection whose updates are
	// not handled as fast as they come, so handling one must not wait.
	linesPerSecond = 1000
	linesAtOnce    = 10_000
	// maxBytes bounds what an agent sends in one turn: calls are kept until they end.
	maxBytes = 128 << 20
	// maxBad bounds the lines of one process that are not the protocol: some programs greet on standard output.
	maxBad = 100
	// signInBound is how long a sign-in may take.
	signInBound = 10 * time.Minute
	// authRequired is the protocol's error code for an agent whose user is not signed in.
	authRequired = -32000
)

// serverName is how agents know sublet's MCP server.
const serverName = "sublet"

// session is an agent's session as the protocol describes it.
type session struct {
	id    sdk.SessionId
	cwd   string
	mode  selector
	model selector
	began string  // the model that it began with
	cost  float64 // in US dollars, as the agent reports it
}

// host is one process of an agent with one session of the protocol. It implements the SDK's client.
type host struct {
	of    *Agents
	key   key
	conf  config.Agent
	known known
	proc  *child.Process
	in    *input
	conn  *sdk.ClientSideConnection
	bad   *badLines
	path  string        // of its program
	token string        // what its MCP server presents
	lists chan struct{} // closed when that server's tools were listed
	once  sync.Once

	about  sdk.InitializeResponse
	begins string // a notice for the first turn; "" = none

	wanted string // the model of the last request, "" = it named none; turns run one after the other

	mu sync.Mutex
	// below: guarded by mu; the start sets what a session is, and after it only mode, model and cost change
	session  session
	chosen   string // the mode that the user chose, while it is in use; "" = none
	run      *run   // nil: no turn runs
	prompted bool   // a turn has begun
	idle     *time.Timer
	rested   time.Time // when its last turn ended
	ending   bool      // it takes no other turn
	got      int       // bytes, in this turn or since its start
	cause    error     // why it was given up; nil: it was not
}

// errUnusable reports a process that ends, was started with other settings, or knows a conversation that was cleared.
var errUnusable = errors.New("the agent's process ends")

// take gives the host to a turn until rest, or returns errUnusable.
func (h *host) take(r *run) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.run != nil {
		return errors.New("another turn of this agent runs")
	}
	if h.ending || h.prompted && r.fresh() || !reflect.DeepEqual(h.conf, *r.t.Of.Role.Hosted) {
		return errUnusable
	}
	if h.idle != nil {
		h.idle.Stop()
	}
	h.run, r.host, h.got, r.costBefore = r, h, 0, h.session.cost
	return nil
}

// rest ends the turn's use of the host. Without another turn the host ends after Options.Idle.
func (h *host) rest() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.run, h.rested = nil, time.Now()
	if !h.ending {
		h.idle = time.AfterFunc(h.of.o.Idle, func() {
			if h.retire() {
				h.end()
			}
		})
	}
}

// idleSince returns when the last turn ended; false while a turn runs, before the first one, and when the process ends.
func (h *host) idleSince() (at time.Time, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rested, h.run == nil && !h.rested.IsZero() && !h.ending
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
	if h.cause == nil {
		h.cause = why
	}
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
	h.of.remove(h.key, h)
	h.proc.End()
}
