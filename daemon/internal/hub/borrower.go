package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/policy"
	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/store"
	"sublet/daemon/internal/tool"
	"sublet/lease/caller"
	"sublet/wire"
	"sublet/wire/visible"
)

// answerBound is how long a question about a foreign agent's command waits for an answer where the request sets no time.
const answerBound = 5 * time.Minute

// foreign is what a turn has that works for an agent of another program: its commands are judged as those of our own agents
// are, run in the shell of the window that was last typed in, and asked about there.
type foreign struct {
	wire.Borrower
	private bool          // in a private shell of the session
	lease   *leaseRun     // it came as a LeaseRunRequest, and is answered as one; nil: as a ToolRequest
	answer  time.Duration // how long a question waits
}

// A NoWindowError reports that a foreign agent cannot borrow a shell.
type NoWindowError struct{ Why string }

func (e *NoWindowError) Error() string {
	return e.Why + "; a private shell of the daemon can be used instead"
}

var (
	errNoWindow  = &NoWindowError{"no sublet window is open whose shell could be borrowed"}
	errOwnWindow = &NoWindowError{"this agent runs in a shell that sublet lends, and keeps it busy: start it in a terminal outside of sublet"}
)

// foreign returns the agent of another program that a request is for. The error is an *InvalidError.
func (c *Client) foreign(r *wire.ToolRequest) (*foreign, error) {
	if err := agent.CheckForeign(r); err != nil {
		return nil, invalid("%v", err)
	}
	f := &foreign{Borrower: r.Borrower, private: r.Private, answer: cmp.Or(ms(r.AnswerMS), answerBound)}
	f.Name = agent.ForeignName(c.hub.opts.Config(), r.Borrower.Name)
	f.Executable = wire.OSString(visible.Exact(visible.Cut(string(r.Borrower.Executable), 256)))
	return f, nil
}

// who names a foreign agent in the audit log.
func (f *foreign) who() string {
	if f.PID == 0 {
		return f.Name
	}
	return strings.TrimSpace(fmt.Sprintf("%s %d %s", f.Name, f.PID, f.Executable))
}

// work returns the work of a turn that runs one tool for a foreign agent.
func (f *foreign) work(r *wire.ToolRequest, cwd string) func(ctx context.Context, t *turn) agent.Outcome {
	return func(ctx context.Context, t *turn) agent.Outcome {
		if r.Tool == wire.ToolAskUser {
			return f.askUser(ctx, t, r)
		}
		at, err := t.toolTurn(ctx, agent.Role{Name: f.Name}, cwd)
		if err != nil {
			return t.failed(ctx, err)
		}
		at.NewPrivateShell, at.Env.Agent, at.Env.MaxResult = nil, f.Name, tool.MaxForeign
		if r.Tool == "bash" { // the working folder comes from the shell alone
			at.Env.Cwd = ""
		}
		at.Env.Shell = &lend.Shell{By: t, Cwd: string(r.Cwd), Agent: f.private}
		return agent.RunTool(ctx, at, r.Tool, []byte(r.Arguments))
	}
}

// foreignShell returns the shell that a turn's foreign agent borrows, nil for a private one of the session.
func (t *turn) foreignShell() (*lend.Lender, error) {
	if t.foreign.private {
		return nil, nil
	}
	if t.origin.person() != nil {
		return nil, errOwnWindow
	}
	if ln := t.hub.shells.Find(t.foreign.lease.window()); ln != nil {
		return ln, nil
	}
	return nil, errNoWindow
}

// window returns the client that is asked about a foreign agent's command, with its shell: the window that the request names, else the
// one last typed in. It returns nil if there is none, if its client cannot ask a person, and for a request from inside a shell that agents
// use, since an agent may have sent it.
func (t *turn) window() (*lend.Lender, *Client) {
	if t.origin.person() != nil {
		return nil, nil
	}
	ln := t.hub.shells.Find(t.foreign.lease.window())
	c := windowOf(ln)
	if c == nil || !c.confirm {
		return nil, nil
	}
	return ln, c
}

// leaseRun is a LeaseRunRequest of a process that an agent of another program started.
type leaseRun struct {
	r     *wire.LeaseRunRequest
	relay *lend.Relay
	done  bool // the end of the command was sent
}

// window is the client whose shell is asked for, 0 for the one last typed in.
func (l *leaseRun) window() int {
	if l == nil {
		return 0
	}
	return l.r.ClientPID
}

// leaseRunForAgent runs a LeaseRunRequest as a command of the agent that asks: judged, and asked about in the window. What the window
// reports is passed on; where the command does not run, the turn's Error answers.
func (c *Client) leaseRunForAgent(r *wire.LeaseRunRequest, of caller.Agent) error {
	arguments := map[string]any{"command": string(r.Command)}
	if r.TimeoutMS > 0 {
		arguments["timeout_ms"] = r.TimeoutMS
	}
	text, err := json.Marshal(arguments)
	if err != nil {
		return err
	}
	m := &wire.ToolRequest{
		Tool: "bash", Arguments: string(text), Cwd: r.Cwd, Borrower: wire.Borrower{Name: of.Name, Executable: wire.OSString(of.Program), PID: of.PID},
	}
	f, err := c.foreign(m)
	if err != nil {
		return err
	}
	f.lease = &leaseRun{r: r, relay: lend.NewRelay(r.RequestID, c.Send)}
	t := c.turn(c.held(), r.RequestID)
	t.foreign, t.attached, t.agent, t.work = f, true, f.Name, f.work(m, string(r.Cwd))
	t.cleanup(func() {
		if f.lease.done {
			c.Send(&wire.ShellLeaseReleased{LeaseRef: f.lease.relay.Ref(), Reason: wire.ReleasedReleased})
		}
	})
	return c.hub.enqueue(t)
}

// watch makes on report the progress of the agent's command in the user's shell to its client: of a LeaseRunRequest all of it, of a
// ToolRequest only that the command waits and that it runs.
func (f *foreign) watch(t *turn, on *lend.Terms) {
	if f.lease == nil {
		relay, show := lend.NewRelay(t.request, t.origin.Send), on.Watch
		on.Watch = func(m wire.LeaseMessage) {
			switch m.(type) {
			case *wire.ShellLeaseQueued, *wire.CommandStarted:
				relay.Pass(m)
			default:
				show(m)
			}
		}
		return
	}
	on.Watch = func(m wire.LeaseMessage) {
		_, ended := m.(*wire.CommandCompleted)
		f.lease.done = f.lease.done || ended
		f.lease.relay.Pass(m)
	}
	if f.lease.r.WaitMS > 0 {
		on.Wait = ms(f.lease.r.WaitMS)
	}
}

// askUser runs the tool of that name as the agent's turn: the user's answer approves nothing.
func (f *foreign) askUser(ctx context.Context, t *turn, r *wire.ToolRequest) agent.Outcome {
	if _, err := t.askUser(ctx, f.Name, r.Arguments); err != nil {
		return t.failed(ctx, err)
	}
	return succeeded(r.Tool, "")
}

// askUser runs the tool of that name: it asks the user a question of an agent. Its result, with the answer, is an event of the turn.
func (t *turn) askUser(ctx context.Context, agentName, arguments string) (*wire.CommandResult, error) {
	if _, err := wire.ParseUserQuestion(arguments); err != nil {
		return nil, invalid("%v", err)
	}
	if why := t.whyUnasked(); why != "" {
		return nil, errors.New(why)
	}
	begun := time.Now()
	id := wire.ExecutionID(wire.NewID())
	v := risk.Verdict{Level: risk.Low, Reversible: true}
	d, err := t.ask(ctx, agent.Question{Agent: agentName, Tool: wire.ToolAskUser, ExecutionID: id, Arguments: []byte(arguments)}, v, policy.Decision{})
	if err != nil {
		return nil, err
	}
	res := &wire.CommandResult{
		Agent: agentName, ExecutionID: id, Tool: wire.ToolAskUser, Status: wire.StatusSuccess, Output: []byte(d.Comment), FilesModified: []wire.OSString{},
		StartedAtMS: begun.UnixMilli(), DurationMS: time.Since(begun).Milliseconds(),
	}
	if !d.Allowed {
		res.Status, res.Output = wire.StatusDenied, []byte("the user did not answer: "+cmp.Or(d.Comment, d.Reason))
	}
	t.emitFromAgent(res)
	return res, nil
}

// LeaseRun borrows another client's shell for one command of the user, which is audited but not asked about. A request of a process that
// an agent of another program started is judged as a command of that agent. The lease's events answer, with the request's id, up to
// ShellLeaseReleased or ShellLeaseDenied.
func (c *Client) LeaseRun(r *wire.LeaseRunRequest) error {
	if err := c.person(); err != nil {
		return err
	}
	if err := lend.Check(r); err != nil {
		return invalid("%v", err)
	}
	if of := c.startedBy(); of.Name != "" {
		return c.leaseRunForAgent(r, of)
	}
	ln := c.hub.shells.Find(r.ClientPID)
	if ln == nil {
		return &lend.NoShellError{PID: r.ClientPID}
	}
	cfg := c.hub.opts.Config()
	loan := lend.Loan{
		Request: r, Who: c.who(), Wait: cfg.Lease.Wait.Duration, Term: cfg.Lease.Term.Duration, Timeout: cfg.Shell.CommandTimeout.Duration, Relay: lend.NewRelay(r.RequestID, c.Send),
		Audit: func(e store.AuditEntry) { _ = c.hub.audit(e) }, // it is in the daemon's log
	}
	var run func() wire.Message
	o := &operation{request: r.RequestID, limited: true, attached: true, beforeNext: func(ctx context.Context) { run = ln.Lend(ctx, loan) }}
	return c.answerLater(o, c.held(), func(context.Context) (wire.Message, error) { return run(), nil })
}
