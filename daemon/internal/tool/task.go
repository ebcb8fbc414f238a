package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"sublet/wire"
)

const maxPrompt = 256 << 10 // bytes of one task's prompt

type taskTool struct{ roles []string }

// Task returns the tool that delegates work to other agents through Env.Delegate. roles are lines "name: what it is good for"
// for the model.
func Task(roles ...string) Tool { return taskTool{roles: roles} }

type taskArgs struct {
	Tasks      []taskSpec `json:"tasks"`
	Agent      string     `json:"agent"`
	Prompt     string     `json:"prompt"`
	Background bool       `json:"background"`
	Stop       bool       `json:"stop"`
}

type taskSpec struct {
	Role   string `json:"role"`
	Title  string `json:"title"`
	Prompt string `json:"prompt"`
}

func (t taskTool) Spec() Spec {
	return Spec{
		Name: "task",
		Description: "Hand work to other agents and wait for their reports. Several tasks run side by side, each in a shell of its own " +
			"and without this conversation: put everything they need in the prompt. In the background they work on while you do; their end is " +
			"told to you. {agent, prompt} asks one further, {agent, stop} ends it, {agent} shows it. " +
			"Roles: " + strings.Join(t.roles, "; ") + ".",
		Example: `{"tasks":[{"role":"reviewer","prompt":"Review the changes in main.go and report what is wrong."}]}`,
		Schema: json.RawMessage(`{"type":"object","properties":{"tasks":{"type":"array","maxItems":16,"items":{"type":"object","properties":{` +
			`"role":{"type":"string"},` +
			`"title":{"type":"string","description":"a few words for the user's screen"},` +
			`"prompt":{"type":"string","description":"the whole task: goal, where, what is known, what to report"}},` +
			`"required":["role","prompt"],"additionalProperties":false}},` +
			`"background":{"type":"boolean"},` +
			`"agent":{"type":"string","description":"engineer-1"},` +
			`"prompt":{"type":"string"},` +
			`"stop":{"type":"boolean"}},"additionalProperties":false}`),
		ReadOnly: true, // the calls of each agent are judged one by one
	}
}

func (t taskTool) parse(args json.RawMessage) (a taskArgs, err error) {
	a, err = decode[taskArgs](t.Spec(), args)
	switch {
	case err != nil:
		return a, err
	case a.Agent == "" && (a.Prompt != "" || a.Stop):
		return a, errors.New("agent: is missing")
	case a.Agent != "" && len(a.Tasks) > 0:
		return a, errors.New("tasks and agent: give one of them")
	case a.Stop && (a.Prompt != "" || a.Background):
		return a, errors.New("stop: needs nothing but agent")
	case len(a.Prompt) > maxPrompt:
		return a, fmt.Errorf("prompt: %d bytes is more than the limit of %d", len(a.Prompt), maxPrompt)
	case a.Agent != "":
		return a, nil
	case len(a.Tasks) == 0:
		return a, errors.New("tasks: is missing")
	}
	for i, s := range a.Tasks {
		switch {
		case strings.TrimSpace(s.Prompt) == "":
			return a, fmt.Errorf("tasks[%d].prompt: is empty", i)
		case len(s.Prompt) > maxPrompt:
			return a, fmt.Errorf("tasks[%d].prompt: %d bytes is more than the limit of %d", i, len(s.Prompt), maxPrompt)
		}
	}
	return a, nil
}

func (t taskTool) Plan(_ context.Context, env Env, args json.RawMessage) (Action, error) {
	if env.Delegate == nil {
		return Action{}, errors.New("this agent cannot start others")
	}
	_, err := t.parse(args)
	return Action{}, err
}

// Run waits for all tasks, each in a goroutine of its own. It fails only if every task did.
func (t taskTool) Run(ctx context.Context, env Env, args json.RawMessage, _ Action, _ func([]byte)) (Result, error) {
	a, err := t.parse(args)
	if err != nil {
		return Result{}, err
	}
	switch {
	case a.Stop:
		if err := env.Delegate.Stop(a.Agent); err != nil {
			return Result{}, err
		}
		return Result{Content: a.Agent + " is being ended."}, nil
	case a.Agent != "" && a.Prompt == "":
		r, err := env.Delegate.Report(ctx, a.Agent)
		return bounded(r.Answer), err
	}
	var list []Assignment
	for _, s := range a.Tasks {
		list = append(list, Assignment{Role: s.Role, Title: s.Title, Prompt: s.Prompt, Background: a.Background})
	}
	if a.Agent != "" {
		list = []Assignment{{Agent: a.Agent, Prompt: a.Prompt, Background: a.Background}}
	}
	reports := make([]string, len(list))
	failed := make([]bool, len(list))
	var wg sync.WaitGroup
	for i, s := range list {
		wg.Go(func() {
			r, err := env.Delegate.Delegate(ctx, s)
			name := cmp.Or(r.Agent, s.Agent, s.Role)
			if s.Title != "" {
				name += " (" + s.Title + ")"
			}
			text := strings.TrimSpace(r.Answer)
			if err != nil {
				failed[i] = true
				text = strings.TrimSpace("failed: " + err.Error() + "\n" + text)
			}
			text, _ = Bound(text, MaxWhole/len(list))
			reports[i] = "## " + name + "\n" + text
		})
	}
	wg.Wait()
	res := bounded(strings.Join(reports, "\n\n"))
	if ctx.Err() != nil {
		res.Status = wire.StatusCancelled
	}
	res.IsError = true
	for _, f := range failed {
		res.IsError = res.IsError && f
	}
	return res, nil
}
