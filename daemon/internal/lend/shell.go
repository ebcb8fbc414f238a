package lend

import (
	"context"

	"sublet/daemon/internal/job"
	"sublet/daemon/internal/tool"
	"sublet/lease/confine"
	"sublet/lease/shell"
	"sublet/wire"
)

// Command is a command that was allowed.
type Command struct {
	tool.Command
	Confine  confine.Spec // what the kernel holds it to, where it has a reach
	Launcher string       // the program that does that
	Draft    *job.Draft   // the background job that it becomes; nil: none
	// Continue prepares the job that the command becomes when its time-out has passed; nil: it is ended then.
	Continue func() (*job.Draft, error)
}

// folder returns the folder of the job that the command becomes, "" if it becomes none.
func (c *Command) folder() string {
	if c.Draft == nil {
		return ""
	}
	return c.Draft.Folder
}

// jobResult returns the result of a command that was to become a background job: the job, even if the shell was lost after its start,
// without the exit code and output of the start. If it has not started, its draft is discarded, and r and err are returned, as for any
// other command.
func (c *Command) jobResult(r tool.CommandResult, err error) (tool.CommandResult, error) {
	if c.Draft == nil {
		return r, err
	}
	if info, ok := c.Draft.Started(); ok {
		r.Job, r.ExitCode, r.Output, err = &info, nil, nil, nil
	}
	return r, err
}

// A Borrower is who commands are run for.
type Borrower interface {
	// Lent returns the shell of a window to run in, nil for a private one.
	Lent() (*Lender, error)
	// Private returns the private shell to run in.
	Private(ctx context.Context) (*Private, error)
	// Prepare completes an allowed command; shellName names its shell, for people.
	Prepare(c tool.Command, shellName string) (Command, error)
	// Terms returns those, with a Watch, on which a window's shell is borrowed for an execution.
	Terms(ln *Lender, id wire.ExecutionID) Terms
}

// Shell is the shell that a borrower's commands run in. It implements tool.Shell; a lease is held inside Run only, so never during a
// question or a model call.
type Shell struct {
	By Borrower

	// Of agents of other programs:
	Cwd   string              // the folder that their request names, "" for the shell's own
	Agent bool                // a private shell is theirs alone
	Watch func(output []byte) // gets a window's output as well, in pieces, for as long as the command runs; it must not block; nil = nobody

	planned string // the shell's own folder when the command was planned in Cwd
}

// Name returns the shell to write commands for, with its version; "" for a private one or none.
func (s *Shell) Name() string {
	ln, err := s.By.Lent()
	if err != nil || ln == nil {
		return ""
	}
	return ln.Name()
}

// Trusting is a shell, a *Lender or a *Private, that records which parts of its state no person has approved. Later commands that such a
// part decides are judged as riskier.
type Trusting interface {
	// Suspects returns the names (of variables, functions, aliases and so on) whose meaning was changed by a command that no person
	// approved, and the state in which they were found.
	Suspects(ctx context.Context) (names []string, in shell.State)
	// Accept records that a person approves the changes to names that are still as in the state shown; if names is empty, all changes.
	Accept(ctx context.Context, names []string, shown shell.State)
}

// target is the shell to run in: a *Lender or a *Private.
type target interface {
	Trusting
	// Where returns where a command would run now.
	Where(ctx context.Context) tool.ShellPlace
	// State returns the shell's state, as far as it is known.
	State(ctx context.Context) shell.State
}

func (s *Shell) target(ctx context.Context) (target, error) {
	ln, err := s.By.Lent()
	if err != nil {
		return nil, err
	}
	if ln != nil {
		return ln, nil
	}
	p, err := s.By.Private(ctx)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Where implements tool.Shell.
func (s *Shell) Where(ctx context.Context) (tool.ShellPlace, error) {
	in, err := s.target(ctx)
	if err != nil {
		return tool.ShellPlace{}, err
	}
	place := in.Where(ctx)
	if s.Cwd != "" {
		s.planned, place.Cwd = place.Cwd, s.Cwd
	}
	place.Agent = place.Agent || s.Agent && place.Private
	return place, nil
}

// Run implements tool.Shell. A note of the result names what the command changed in the shell, other than the directory.
func (s *Shell) Run(ctx context.Context, c tool.Command, live func([]byte)) (tool.CommandResult, error) {
	if s.Cwd != "" && c.Approved.Cwd == s.Cwd {
		c.Approved.Cwd = s.planned // by which Run of a shell sees whether it has changed; it goes to Cwd only to run the command
	}
	if c.Reach != "" { // it runs in a child of the shell
		return s.run(ctx, c, live)
	}
	before := s.state(ctx)
	r, err := s.run(ctx, c, live)
	if err == nil {
		after := s.state(ctx)
		before.Dir = after.Dir
		if changed := shell.Difference(before, after); changed != "" {
			r.Notes = append(r.Notes, "changed in the shell: "+changed)
		}
	}
	return r, err
}

func (s *Shell) state(ctx context.Context) shell.State {
	in, err := s.target(ctx)
	if err != nil {
		return shell.State{}
	}
	return in.State(ctx)
}

// run runs c in the target and returns its result. In a private shell live gets the output as it comes; in the user's shell s.Watch
// does. It returns tool.ErrChanged if the target is not of the kind (private or not) for which c was approved, and errNoJobs for a
// background command if the user's client cannot start jobs. When ctx ends, the command is ended.
func (s *Shell) run(ctx context.Context, c tool.Command, live func([]byte)) (r tool.CommandResult, err error) {
	in, err := s.target(ctx)
	if err != nil {
		return r, err
	}
	id := wire.ExecutionID(c.ExecutionID)
	ln, lent := in.(*Lender)
	name := ""
	switch {
	case lent == c.Approved.Private:
		return r, tool.ErrChanged // a window came or went meanwhile
	case !lent:
		name = "a private " + in.(*Private).shell().Name()
	case c.Background && !ln.Can(wire.CapJobs):
		return r, errNoJobs
	default:
		name = "the user's " + ln.Name()
	}
	cmd, err := s.By.Prepare(c, name)
	if err != nil {
		return r, err
	}
	if !lent {
		r, err = in.(*Private).Run(ctx, cmd, live)
		return cmd.jobResult(r, err)
	}
	on := s.By.Terms(ln, id)
	if show := on.Watch; s.Watch != nil {
		on.Watch = func(m wire.LeaseMessage) {
			if out, ok := m.(*wire.CommandOutput); ok {
				s.Watch(out.Data)
			}
			show(m)
		}
	}
	ask := request{Terms: on, Command: cmd}
	if cmd.Continue != nil && ln.Can(wire.CapContinue) {
		ask.continuation = newContinuation(cmd.Continue)
		defer ask.continuation.end()
	}
	done, err := ln.run(ctx, ask)
	if err == nil {
		r = resultOf(done, ctx.Err() != nil)
	}
	if err == nil && done.JobPID != 0 && ask.continuation != nil {
		ask.continuation.adopt(done, &r)
	}
	return cmd.jobResult(r, err)
}

// errNoJobs refuses what the window's program is too old for.
var errNoJobs = &tool.BrokenError{Why: "this window's program starts no background jobs"}

// resultOf converts a client's CommandCompleted to a tool's result. ours reports that a cancel came from here and not from the
// user.
func resultOf(m *wire.CommandCompleted, ours bool) tool.CommandResult {
	r := tool.CommandResult{Result: shell.Result{
		Output: m.Output, ExitCode: m.ExitCode, Signal: m.Signal, Status: m.Status, Dir: string(m.Cwd), Notes: m.Notes, Duration: milliseconds(m.DurationMS),
	}}
	if m.Truncated != nil {
		r.Truncated, r.SpoolPath = m.Truncated.Bytes, string(m.Truncated.SpoolPath)
	}
	for _, p := range m.Leftovers {
		r.Leftovers = append(r.Leftovers, shell.Process{PID: p.PID, Command: string(p.Command)})
	}
	if m.Status == wire.StatusCancelled && !ours && len(r.Notes) == 0 {
		r.Notes = append(r.Notes, "the user stopped this command")
	}
	return r
}
