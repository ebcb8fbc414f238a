package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"sublet/daemon/internal/job"
	"sublet/lease/shell"
	"sublet/wire"
)

// jobsWait is how long a call waits if it sets no time.
const jobsWait = 30 * time.Second

// Jobs returns the tool that lists background jobs, waits for them and ends them. Longer waits than limit are refused.
func Jobs(limit time.Duration) Tool {
	return newTool(Spec{
		Name: "jobs",
		Description: "Background jobs. {} lists them. {id} returns a job's new output. {id, until} waits for a line that matches the regex until, " +
			"or for the job's end if until is empty. {id, kill} ends the job and all it started.",
		Example: `{"id":"j1","until":"listening on","timeout_ms":20000}`,
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{"id":{"type":"string"},"until":{"type":"string"},`+
			`"timeout_ms":{"type":"integer","maximum":%d,"description":"default %d"},"kill":{"type":"boolean"}}}`,
			limit.Milliseconds(), jobsWait.Milliseconds())),
		ReadOnly: true, // it can end only jobs of the agent itself or its sub-agents
	}, jobsArgs{})
}

type jobsArgs struct {
	ID        string  `json:"id"`
	Until     *string `json:"until"`
	TimeoutMS int64   `json:"timeout_ms"`
	Kill      bool    `json:"kill"`

	until *regexp.Regexp // nil: the end of the job
}

func (a *jobsArgs) check(env Env) (err error) {
	switch {
	case env.Jobs == nil:
		return errors.New("there are no background jobs here")
	case a.ID == "" && (a.Until != nil || a.Kill):
		return errors.New("id: is missing")
	case a.Until != nil && a.Kill:
		return errors.New("until and kill: give one of them")
	case a.Until != nil && *a.Until != "":
		if a.until, err = regexp.Compile(*a.Until); err != nil {
			return fmt.Errorf("until: %w", err)
		}
	}
	return nil
}

func (a *jobsArgs) plan(_ context.Context, env Env) (Action, error) {
	if a.Kill {
		return Action{}, env.NoKill
	}
	return Action{}, nil
}

func (a *jobsArgs) run(ctx context.Context, env Env, _ Action, _ func([]byte)) (Result, error) {
	if a.ID == "" {
		return bounded(listJobs(env.Jobs.List(env.Session))), nil
	}
	note := ""
	switch {
	case a.Kill:
		i, err := env.Jobs.Get(env.Session, a.ID)
		if err != nil {
			return Result{}, err
		}
		if env.Agent != "" && i.Agent != env.Agent {
			return Result{}, fmt.Errorf("%s is a job of %s: you end only your own", a.ID, i.Agent)
		}
		if _, err := env.Jobs.Kill(env.Session, a.ID, "its agent"); err != nil {
			return Result{}, err
		}
	case a.Until != nil:
		if i, err := env.Jobs.Get(env.Session, a.ID); err == nil && i.Terminal && a.until != nil {
			return Result{}, fmt.Errorf("until: %s prints to the user's terminal, so none of its later lines is known; an empty until waits for its end", a.ID)
		}
		wait := jobsWait
		if a.TimeoutMS > 0 {
			wait = time.Duration(a.TimeoutMS) * time.Millisecond
		}
		bounded, cancel := context.WithTimeout(ctx, wait)
		line, err := env.Jobs.Await(bounded, env.Session, a.ID, a.until)
		cancel()
		switch {
		case ctx.Err() != nil:
			return Result{Content: "[cancelled; the job goes on]", Status: wire.StatusCancelled, IsError: true}, nil
		case errors.Is(err, context.DeadlineExceeded):
			if note = fmt.Sprintf("[after %v it goes on]\n", wait); a.until != nil {
				note = fmt.Sprintf("[after %v it goes on, and no line matched]\n", wait)
			}
		case err != nil:
			return Result{}, err
		case line != "":
			note = "[a line matched: " + oneLine(renderOutput([]byte(line))) + "]\n"
		}
	}
	i, err := env.Jobs.Get(env.Session, a.ID)
	if err != nil {
		return Result{}, err
	}
	text, left, err := newOutput(env, i)
	if err != nil {
		return Result{}, err
	}
	res := bounded(note + "[" + describeJob(i) + "]\n" + text)
	if left > 0 {
		res.TruncatedBy, res.SpoolPath = res.TruncatedBy+left, string(i.OutputPath)
	}
	return res, nil
}

// newOutput returns a job's output since the last call; left is how many bytes of it are left out.
func newOutput(env Env, i job.Info) (text string, left int64, err error) {
	head, tail, left, err := env.Jobs.ReadNew(env.Session, i.JobID, MaxResult-2048) // leaves room for the lines about the job
	if err != nil {
		return "", 0, err
	}
	text = renderOutput(head)
	if left > 0 {
		text += fmt.Sprintf("\n[… %d bytes left out; the newest 16 MiB are in %s …]\n", left, i.OutputPath)
	}
	switch text += renderOutput(tail); {
	case len(head) == 0 && i.Terminal:
		text += "[what it prints now goes to the user's terminal, and is not known here]"
	case len(head) == 0:
		text += "[nothing new was printed]"
	}
	return text, left, nil
}

// renderOutput renders raw output to the text that a screen would show.
func renderOutput(raw []byte) string {
	const cols = 1000 // wide enough that few lines wrap
	return string(shell.Render(raw, cols))
}

func listJobs(list []job.Info) string {
	if len(list) == 0 {
		return "There are no jobs."
	}
	var lines []string
	for _, i := range list {
		lines = append(lines, describeJob(i))
	}
	return strings.Join(lines, "\n")
}

// describeJob returns one line about a job.
func describeJob(i job.Info) string {
	state := i.State
	switch i.State {
	case job.Ended:
		state = fmt.Sprintf("%s, after %v", i.End(), (time.Duration(i.EndedAtMS-i.StartedAtMS) * time.Millisecond).Round(time.Second))
	case job.Stopped:
		state = "stopped: it wants the keyboard, which a job does not have"
		if i.Terminal {
			state += " until the user brings it to the front with fg"
		}
	}
	if i.State != job.Ended {
		state += fmt.Sprintf(" since %v", time.Since(time.UnixMilli(i.StartedAtMS)).Round(time.Second))
		if i.Note != "" {
			state += ", " + i.Note
		}
	}
	return fmt.Sprintf("%s: %s; %d bytes of output; in %s: %s", i.JobID, state, i.Bytes, i.Shell, oneLine(string(i.Command)))
}
