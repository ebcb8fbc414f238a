package server

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/eventlog"
	"sublet/daemon/internal/hub"
	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/question"
	"sublet/daemon/internal/store"
	"sublet/daemon/internal/tool"
	"sublet/wire"
)

// codes maps the errors that refuse a request to protocol codes; the first match counts. Others have the code of a failed turn.
var codes = []struct {
	err  error
	code string
	hint string
}{
	{lend.ErrShuttingDown, wire.CodeShuttingDown, "try again in a moment: the next command starts a new daemon"},
	{hub.ErrDuplicateID, wire.CodeDuplicateID, "choose a new request_id for each request"},
	{hub.ErrNoSession, wire.CodeNotFoundSession, "`sublet session ls` lists the sessions"},
	{store.ErrNotFound, wire.CodeNotFoundSession, "`sublet session ls` lists the sessions"},
	{hub.ErrNoAgent, wire.CodeNotFoundAgent, "agents are orchestrator, engineer, reviewer, explorer and those of `[agents]` in the settings"},
	{hub.ErrNoTool, wire.CodeToolNotAvailable, ""},
	{question.ErrNoQuestion, wire.CodeInvalidMessage, "it was answered already, or its turn is over"},
	{lend.ErrInside, wire.CodePermissionDenied, hub.Elsewhere},
	{hub.ErrAgent, wire.CodePermissionDenied, hub.Elsewhere},
	{hub.ErrNotYours, wire.CodePermissionDenied, "a client says in its EnvSnapshot what it can do"},
	{lend.ErrNotShellOwner, wire.CodeInvalidMessage, "a client that lends a shell says so in its EnvSnapshot"},
	{lend.ErrNoLease, wire.CodeLeaseStale, "`sublet lease ls` lists the leases"},
	{lend.ErrDenied, wire.CodeLeaseDenied, ""},
	{hub.ErrNoRule, wire.CodeInvalidMessage, "`/rules` and `sublet policy ls` list the rules with their IDs"},
	{hub.ErrSessionExists, wire.CodeDuplicateID, "resume it, or choose another id"},
	{hub.ErrSessionBusy, wire.CodeTooManyQueries, "cancel it, or wait until it ends"},
	{tool.ErrNoShell, wire.CodeLeaseDenied, "start `sublet` in a terminal"},
}

// errorOf converts an error of the hub to the Error that answers a request.
func errorOf(err error) *wire.Error {
	e := agent.Outcome{Err: err}.Failure()
	for _, row := range codes {
		if errors.Is(err, row.err) {
			e.Code = row.code
			if e.Hint == "" {
				e.Hint = row.hint
			}
			return e
		}
	}
	if bad, ok := errors.AsType[*hub.InvalidError](err); ok {
		e.Code, e.Message = wire.CodeInvalidMessage, bad.Error()
		return e
	}
	if limit, ok := errors.AsType[*hub.LimitError](err); ok {
		e.Code = wire.CodeTooManyQueries
		e.Details["limit"] = strconv.Itoa(limit.Limit)
		return e
	}
	if busy, ok := errors.AsType[*hub.BusyDaemonError](err); ok {
		e.Code = wire.CodeShuttingDown
		e.Details["turns"] = strconv.Itoa(busy.Turns)
		return e
	}
	if _, ok := errors.AsType[*lend.NoShellError](err); ok {
		e.Code = wire.CodeLeaseDenied
	}
	return e
}

// fail answers a request with an error.
func (c *conn) fail(id wire.RequestID, err error) {
	e := errorOf(err)
	e.RequestID = id
	c.log.Debug("request refused", "request", id, "code", e.Code, "err", err)
	c.answer(e)
}

// done answers with err unless it is nil. After a *eventlog.CutOffError, which reports that a client received a session but not
// all its events, it ends the connection, so that the client connects again and resumes.
func (c *conn) done(id wire.RequestID, err error) {
	if _, ok := errors.AsType[*eventlog.CutOffError](err); ok {
		c.fail("", err) // without the id, since the request has already been answered
		c.Close()
		return
	}
	if err != nil {
		c.fail(id, err)
	}
}

// versionError returns the Error for a client without a common version, with both ranges and a hint.
func versionError(env *wire.EnvSnapshot) *wire.Error {
	e := &wire.Error{
		Code:    wire.CodeVersion,
		Message: fmt.Sprintf("this daemon speaks protocol %d to %d, the client %d to %d", wire.MinVersion, wire.Version, env.ProtocolMin, env.ProtocolMax),
		Hint:    fmt.Sprintf("`kill %d` ends this daemon once its running turns have ended, after 30 s at most; then start again", os.Getpid()),
		Details: map[string]string{"protocol_min": strconv.Itoa(wire.MinVersion), "protocol_max": strconv.Itoa(wire.Version)},
	}
	if env.ProtocolMax < wire.MinVersion {
		e.Hint = "leave this sublet and start it again: its program is older than the daemon"
	}
	return e
}

func rateError(id wire.RequestID, limit int) *wire.Error {
	return &wire.Error{
		Event: wire.Event{RequestID: id}, Code: wire.CodeRateLimited,
		Message: fmt.Sprintf("more than %d requests in a second", limit), Hint: "wait a second",
		Details: map[string]string{"requests_per_second": strconv.Itoa(limit)}, Recoverable: true,
	}
}
