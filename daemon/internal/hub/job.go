package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/job"
	"sublet/daemon/internal/mask"
	"sublet/daemon/internal/store"
	"sublet/daemon/internal/tool"
	"sublet/wire"
	"sublet/wire/visible"
)

const (
	// wakesMost is how often in wakesIn a session's agent is woken by its jobs.
	wakesMost = 10
	wakesIn   = time.Hour
)

// draft reserves a job for a background command, nil for another one. The caller calls Started or Discard of it.
func (t *turn) draft(c tool.Command, shellName string) (*job.Draft, error) {
	if !c.Background {
		return nil, nil
	}
	return t.hub.jobs.New(wire.Job{
		SessionID: t.s.id, Agent: cmp.Or(c.Agent, t.agent), Command: wire.OSString(mask.String(c.Text)), Cwd: wire.OSString(c.Approved.Cwd),
		Shell: shellName, Reach: c.Reach, Wake: c.Wake,
	}, t.hub.opts.Config().Limits.Jobs)
}

// jobChanged records the end of a job in the audit log, and wakes its agent if that has not received the job's report yet. It is called
// when the job has ended or printed a line that its agent waits for.
func (h *Hub) jobChanged(i job.Info) {
	h.signalActivity()
	if i.State == job.Ended {
		e := store.AuditEntry{
			At: time.UnixMilli(i.EndedAtMS), Event: "execution", Session: string(i.SessionID), Agent: i.Agent, Tool: "bash", Command: string(i.Command), Cwd: string(i.Cwd),
			Status: wire.StatusSuccess, ExitCode: i.ExitCode, DurationMS: i.EndedAtMS - i.StartedAtMS, Why: "background job " + i.JobID + " " + i.End(),
		}
		if i.ExitCode == nil || *i.ExitCode != 0 {
			e.Status = wire.StatusError
		}
		_ = h.audit(e) // audit logs its errors
	}
	if i.Due != "" {
		h.wakeForJob(i)
	}
}

// wakeForJob reports the end or the matched output of a job to its session's agent.
func (h *Hub) wakeForJob(i job.Info) {
	what := fmt.Sprintf("job %s (%s) %s", i.JobID, visible.Cut(visible.Exact(string(i.Command)), 120), visible.Exact(visible.Cut(i.Due, 300)))
	h.wake(i.SessionID, func() bool { return h.jobs.ClaimReport(i.JobID) }, what, what+". Look at it with the jobs tool and go on with what waited for it.")
}

// wake begins a turn with prompt, for a client of the session. what is the event in one line, for notices. It calls claim first and begins
// no turn if that returns false: another call has begun it. Without a client, and while the daemon stops, nothing is claimed: wakeDue
// calls it again later.
func (h *Hub) wake(id wire.SessionID, claim func() bool, what, prompt string) {
	s, err := h.session(h.ctx, id)
	if errors.Is(err, ErrNoSession) {
		claim()
		return
	}
	if err != nil {
		h.log.Error("an agent was not woken", "what", what, "err", err)
		return
	}
	defer h.release(s)
	var to *Client
	for _, c := range s.events.Subscribers() {
		if to == nil || c.confirm && !to.confirm || c.lender != nil && to.lender == nil {
			to = c
		}
	}
	if to == nil || h.refuses() || !claim() {
		return
	}
	s.mu.Lock()
	now := time.Now()
	s.wakes = slices.DeleteFunc(s.wakes, func(at time.Time) bool { return now.Sub(at) > wakesIn })
	tooOften := len(s.wakes) >= wakesMost
	if !tooOften {
		s.wakes = append(s.wakes, now)
	}
	s.mu.Unlock()
	if tooOften {
		err = fmt.Errorf("jobs have woken it %d times within the hour", wakesMost)
	} else {
		err = to.Ask(h.ctx, &wire.AgentRequest{RequestID: wire.RequestID(wire.NewID()), SessionID: &id, Prompt: agent.WakeHead + prompt})
	}
	if err != nil {
		s.events.Send(&wire.Notice{Level: "warning", Text: what + "; its agent was not woken: " + err.Error(), Hint: "ask it to go on"})
	}
}

// wakeDue delivers the reports of jobs and agents that were due while no client was attached.
func (h *Hub) wakeDue(s *session) {
	h.crew.Report(host{session: s})
	for _, i := range h.jobs.List(string(s.id)) {
		if i.Due != "" {
			h.wakeForJob(i)
		}
	}
}

// Job serves a JobRequest. JobReply answers, later where it is to wait.
func (c *Client) Job(r *wire.JobRequest) error {
	h := c.hub
	switch {
	case job.CheckRequest(r) != nil:
		return invalid("%v", job.CheckRequest(r))
	case r.Op == "kill", r.Op == "background":
		if err := c.person(); err != nil {
			return err
		}
	}
	s := c.held()
	return c.answerLater(&operation{request: r.RequestID}, s, func(ctx context.Context) (wire.Message, error) {
		if r.Op != "background" {
			return h.jobs.Serve(ctx, c.who(), r, h.refuses)
		}
		list, err := s.toBackground(ctx)
		if err != nil && len(list) == 0 {
			return nil, err
		} else if err != nil {
			c.Send(&wire.Notice{Level: "warning", Text: "not every command goes on as a job: " + err.Error()})
		}
		return job.Reply(r.RequestID, list), nil
	})
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// toBackground makes the commands that the session's agents run background jobs. It returns these jobs and, possibly
// together with them, an error for the commands that cannot become one.
func (s *session) toBackground(ctx context.Context) (list []job.Info, err error) {
	note := func(i *job.Info, fault error) {
		if err = errors.Join(err, fault); i != nil {
			list = append(list, *i)
		}
	}
	for _, t := range s.hub.unfinished() {
		if t.s == s {
			if ln, fault := t.Lent(); fault == nil && ln != nil {
				note(ln.Background(ctx, t.id))
			}
		}
	}
	for _, p := range s.hub.shells.Privates(s.id) {
		note(p.Background(ctx))
	}
	if err == nil && len(list) == 0 {
		err = invalid("no agent runs a command that can go on as a job")
	}
	return list, err
}
