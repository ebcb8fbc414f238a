package job

import (
	"context"
	"fmt"
	"time"

	"sublet/wire"
	"sublet/wire/visible"
)

const (
	// ReadMost bounds the bytes of output in one JobReply, WaitMost how long a read waits; poll is the interval of its checks.
	ReadMost    = 1 << 20
	readDefault = 64 << 10
	WaitMost    = time.Minute
	poll        = 100 * time.Millisecond
)

// CheckRequest returns an error that names the first field of a request that is out of its bounds.
func CheckRequest(r *wire.JobRequest) error {
	switch {
	case r.Op != "list" && r.Op != "read" && r.Op != "kill" && r.Op != "background":
		return fmt.Errorf("op: %q is none of list, read, kill, background", visible.Exact(visible.Cut(r.Op, 64)))
	case r.Limit < 0 || r.Limit > ReadMost:
		return fmt.Errorf("limit: %d is outside 0 to %d", r.Limit, ReadMost)
	case r.WaitMS < 0 || r.WaitMS > WaitMost.Milliseconds():
		return fmt.Errorf("wait_ms: %d is outside 0 to %d", r.WaitMS, WaitMost.Milliseconds())
	}
	return nil
}

// Serve answers a JobRequest. who describes the peer to the user. A read stops waiting when stopping returns true. The hub
// serves the operation background itself.
func (m *Manager) Serve(ctx context.Context, who string, r *wire.JobRequest, stopping func() bool) (*wire.JobReply, error) {
	var list []Info
	var output []byte
	var offset int64
	switch r.Op {
	case "list":
		list = m.List("")
	case "kill":
		i, err := m.Kill("", r.JobID, who)
		if err != nil {
			return nil, err
		}
		list = append(list, i)
	case "read":
		limit := r.Limit
		if limit == 0 {
			limit = readDefault
		}
		for end := time.Now().Add(time.Duration(r.WaitMS) * time.Millisecond); ; {
			i, err := m.Get("", r.JobID) // before reading: once it has ended, all output is there
			if err != nil {
				return nil, err
			}
			output, offset, err = m.Read("", r.JobID, r.Offset, limit)
			if err != nil {
				return nil, err
			}
			if list = []Info{i}; len(output) > 0 || i.State == Ended || !time.Now().Before(end) || stopping() {
				break
			}
			select {
			case <-time.After(poll):
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
	}
	reply := Reply(r.RequestID, list)
	reply.Output, reply.Offset = append(reply.Output, output...), offset
	return reply, nil
}

// Reply returns the reply to a request that has these jobs.
func Reply(id wire.RequestID, list []Info) *wire.JobReply {
	reply := &wire.JobReply{RequestID: id, Jobs: []wire.Job{}, Output: []byte{}}
	for _, i := range list {
		reply.Jobs = append(reply.Jobs, i.Job)
	}
	return reply
}

// Summary lists the running jobs of a session in one line; "none" if none runs, "" if none is kept, ended ones included.
func (m *Manager) Summary(session string) string {
	list, text := m.List(session), ""
	for _, i := range list {
		if i.State == Ended {
			continue
		}
		if text != "" {
			text += "; "
		}
		text += i.JobID + " `" + visible.Cut(visible.Exact(string(i.Command)), 120) + "`"
		if i.State == Stopped {
			text += " (stopped: it wants the keyboard)"
		}
	}
	if text == "" && len(list) > 0 {
		return "none"
	}
	return text
}
