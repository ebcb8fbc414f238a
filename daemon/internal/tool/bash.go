package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"sublet/daemon/internal/job"
	"sublet/wire"
	"sublet/wire/visible"
)

// Bash returns the tool that runs a command in a shell. timeout applies to calls that set none; longer ones than limit are
// refused.
func Bash(timeout, limit time.Duration) Tool {
	return newTool(Spec{
		Name: "bash",
		Description: "Run a command in the user's own shell, where they watch it, or with private: true in a bash of yours that starts in the same directory. " +
			"Both keep cd, export, aliases and functions between calls. " +
			"The kernel restricts most commands to a reach: read (writes only to a temporary /tmp) or project (also writes to the project and build caches; no network). " +
			"Only if a result reports that something was denied, request more with reach and why. Do not start programs that need a keyboard.",
		Example: `{"command":"go test ./...","description":"run the tests"}`,
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{`+
			`"command":{"type":"string"},`+
			`"description":{"type":"string","description":"for the user, in a few words"},`+
			`"timeout_ms":{"type":"integer","maximum":%d,"description":"default %d"},`+
			`"private":{"type":"boolean"},`+
			`"reach":{"type":"string","enum":["read","project","free"]},`+
			`"why":{"type":"string"},`+
			`"background":{"type":"boolean","description":"start it as a job and return at once; see jobs"},`+
			`"wake":{"type":"boolean","description":"start a turn of yours when the job ends"},`+
			`"wake_on":{"type":"string","description":"or when a line of its output matches this regex"}},`+
			`"required":["command"]}`, limit.Milliseconds(), timeout.Milliseconds())),
	}, bashArgs{timeout: timeout})
}

type bashArgs struct {
	Command     string `json:"command"`
	TimeoutMS   int64  `json:"timeout_ms"`
	Private     bool   `json:"private"`
	Description string `json:"description"`
	Reach       string `json:"reach"`
	Why         string `json:"why"`
	Background  bool   `json:"background"`
	Wake        bool   `json:"wake"`
	WakeOn      string `json:"wake_on"`

	timeout time.Duration // the default; check replaces it by that of the call
}

func (a *bashArgs) check(Env) error {
	switch {
	case strings.TrimSpace(a.Command) == "":
		return errors.New("command: is empty")
	case strings.ContainsRune(a.Command, 0):
		return errors.New("command: contains a NUL byte")
	case a.wake() != "" && !a.Background:
		return errors.New("wake and wake_on: only with background")
	}
	if _, err := regexp.Compile(a.wake()); err != nil {
		return fmt.Errorf("wake_on: %w", err)
	}
	if a.TimeoutMS > 0 {
		a.timeout = time.Duration(a.TimeoutMS) * time.Millisecond
	}
	return nil
}

// wake returns when the agent wants to be woken, as wire.Job.Wake.
func (a *bashArgs) wake() string {
	if a.Wake && a.WakeOn == "" {
		return job.WakeEnd
	}
	return a.WakeOn
}

// shell returns the shell for a call; own reports whether it is the agent's usual one, whose directory later calls use.
func (a *bashArgs) shell(env Env) (sh Shell, own bool, err error) {
	if a.Private && env.Private != nil {
		return env.Private, env.Private == env.Shell, nil
	}
	if env.Shell == nil {
		return nil, false, ErrNoShell
	}
	return env.Shell, true, nil
}

func (a *bashArgs) plan(ctx context.Context, env Env) (Action, error) {
	sh, _, err := a.shell(env)
	if err != nil {
		return Action{}, shellError(err, env)
	}
	place, err := sh.Where(ctx)
	if err != nil {
		return Action{}, shellError(err, env)
	}
	return Action{
		Command: a.Command, Cwd: place.Cwd, StateDigest: place.StateDigest, Private: place.Private, AgentShell: place.Agent, Facts: place.Facts,
		Background: a.Background, Reach: a.Reach, ReachWhy: oneLine(a.Why),
	}, nil
}

func (a *bashArgs) run(ctx context.Context, env Env, approved Action, live func([]byte)) (Result, error) {
	if a.Command != approved.Command {
		return Result{}, ErrChanged // the text is not the one that was judged
	}
	sh, own, err := a.shell(env)
	if err != nil {
		return Result{}, shellError(err, env)
	}
	r, err := sh.Run(ctx, Command{
		ExecutionID: env.ExecutionID,
		Text:        approved.Command,
		Cwd:         approved.Cwd, // rather than the current directory, which the user may have changed
		Approved:    ShellPlace{Cwd: approved.Cwd, StateDigest: approved.StateDigest, Private: approved.Private},
		Approval:    approved.Approval,
		Timeout:     a.timeout,
		Reach:       approved.Reach,
		Background:  a.Background,
		Continue:    env.Jobs != nil,
		Wake:        a.wake(),
		Purpose:     a.purpose(),
	}, live)
	if err != nil {
		return Result{}, shellError(err, env)
	}
	if r.Job != nil && r.Continued {
		return continued(env, r)
	}
	if r.Job != nil {
		return Result{Content: fmt.Sprintf(
			"[job %s was started in %s, process %d. It goes on by itself; its output goes to %s]",
			r.Job.JobID, r.Job.Shell, r.Job.PID, r.Job.OutputPath)}, nil
	}
	was := ""
	if own {
		was = env.Cwd
	}
	res := commandResult(r, approved, was, a.timeout, a.Background && !approved.Private)
	if own {
		res.Cwd = r.Dir
	}
	return res, nil
}

// continued returns the result for a command that has become a job: its output so far, and what the model can do next.
func continued(env Env, r CommandResult) (Result, error) {
	text, left, err := newOutput(env, *r.Job)
	if err != nil {
		return Result{}, err
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	notes := ""
	for _, n := range r.Notes {
		notes += "\n[" + oneLine(n) + "]"
	}
	what := fmt.Sprintf("wait for it, look at what is new, or end it, by that id. Your shell is another one, in %s and as it was before this command", r.Dir)
	if r.Job.Terminal {
		what = "wait for its end, or end it, by that id. It is a job of the user's shell and prints to their terminal: what it prints from now on, and its exit status, are not known here"
	}
	res := bounded(fmt.Sprintf("%s[it goes on as the job %s: %s.]", text, r.Job.JobID, what) + notes)
	res.Cwd = r.Dir
	if left > 0 {
		res.TruncatedBy, res.SpoolPath = res.TruncatedBy+left, string(r.Job.OutputPath)
	}
	return res, nil
}

// purpose returns one short line for the user.
func (a *bashArgs) purpose() string {
	p := cmp.Or(a.Description, a.Command)
	if a.Background {
		p = "in the background: " + p
	}
	return oneLine(p)
}

// oneLine returns the beginning of a text, on one line for the screen.
func oneLine(p string) string {
	p, _, _ = strings.Cut(strings.TrimSpace(p), "\n")
	return visible.Cut(strings.ToValidUTF8(p, "\uFFFD"), 120)
}

// commandResult converts what a command did to a result for the model: its output, then one line for each fact that the
// output does not show. was is the directory that the agent expects; "" if that does not matter.
func commandResult(r CommandResult, approved Action, was string, timeout time.Duration, background bool) Result {
	res := Result{
		ExitCode: r.ExitCode, TruncatedBy: r.Truncated, SpoolPath: r.SpoolPath,
		Duration: r.Duration,
	}
	var b strings.Builder
	output, cut := Bound(string(r.Output), MaxWhole)
	res.TruncatedBy += cut
	b.WriteString(output)
	note := func(format string, args ...any) {
		if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "["+format+"]", args...)
	}
	switch r.Status {
	case wire.StatusOK, wire.StatusSuccess, "":
		res.Status = wire.StatusSuccess
	case wire.StatusTimeout:
		res.Status = wire.StatusTimeout
		note("ended: it ran longer than %s; give a longer timeout_ms, or start it with background", timeout)
	case wire.StatusCancelled:
		res.Status = wire.StatusCancelled
		note("ended: it was cut off") // Notes give the cause: the user, a lost window, the end of the lease
	case wire.StatusShellExited:
		res.Status = wire.StatusError
		note("the shell ended with it")
	default:
		res.Status = wire.StatusError
		note("%s: the shell did not run it", r.Status)
	}
	if background {
		note("it was not started as a job; with \"private\": true it would be one of a bash of your own")
	}
	switch {
	case r.ExitCode != nil && *r.ExitCode != 0:
		note("exit code %d", *r.ExitCode)
		if res.Status == wire.StatusSuccess {
			res.Status = wire.StatusError
		}
	case r.Signal != "":
		note("ended by %s", r.Signal)
	}
	if b.Len() == 0 {
		note("no output")
	}
	if was != "" && was != approved.Cwd { // changed by the user or another borrower
		note("ran in %s, where the shell is by now, not in %s", approved.Cwd, was)
	}
	if r.Dir != "" && r.Dir != approved.Cwd {
		note("now in %s", r.Dir)
	}
	if res.TruncatedBy > 0 && len(output) <= MaxResult { // otherwise Fit adds a note
		if r.SpoolPath != "" {
			note("%d bytes of output are left out above; the whole is in %s", res.TruncatedBy, r.SpoolPath)
		} else {
			note("%d bytes of output are left out above", res.TruncatedBy)
		}
	}
	for _, n := range r.Notes {
		note("%s", n)
	}
	var left []string
	for _, p := range r.Leftovers {
		left = append(left, p.String())
	}
	if left != nil {
		note("still running: %s", strings.Join(left, "; "))
	}
	res.IsError = res.Status != wire.StatusSuccess
	res.Content = strings.ToValidUTF8(b.String(), "\uFFFD")
	return res
}

// shellError adds to an error of acquiring a shell what the model can do about it. It returns other errors unchanged.
func shellError(err error, env Env) error {
	advice := ""
	if env.Private != nil && env.Private != env.Shell {
		advice = "; set \"private\": true to run it in a shell of your own instead"
	}
	if busy, ok := errors.AsType[*BusyError](err); ok {
		return fmt.Errorf("%w%s, or try again later", busy, advice)
	}
	if _, broken := errors.AsType[*BrokenError](err); broken || errors.Is(err, ErrNoShell) {
		return fmt.Errorf("%w%s", err, advice)
	}
	return err
}
