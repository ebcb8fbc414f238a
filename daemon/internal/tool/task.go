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

// Task returns the tool that delegates work to other agents through Env.Delegate. roles are lines "name: what it is good for"
// for the model.
func Task(roles ...string) Tool {
	return newTool(Spec{
		Name: "task",
		Description: "Give a task (role, prompt) or, in parallel, several (tasks) to other agents, and wait for their reports. Each has its own shell and cannot see this conversation: put all it needs in the prompt. " +
			"With background you need not wait; reports come later. For a started agent: {agent, prompt} asks it further, {agent, stop} ends it, {agent} shows its state or report. " +
			"Roles: " + strings.Join(roles, "; ") + ".",
		Example: `{"tasks":[{"role":"reviewer","prompt":"Review the changes in main.go and report what is wrong."}]}`,
		Schema: json.RawMessage(`{"type":"object","properties":{"tasks":{"type":"array","maxItems":16,"items":{"type":"object","properties":{` +
			`"role":{"type":"string"},"title":{"type":"string"},"prompt":{"type":"string"}},"required":["role","prompt"]}},` +
			`"role":{"type":"string"},"title":{"type":"string"},"background":{"type":"boolean"},"agent":{"type":"string","description":"engineer-1"},"prompt":{"type":"string"},"stop":{"type":"boolean"}}}`),
		ReadOnly: true, // the calls of each agent are judged one by one
	}, taskArgs{})
}

type taskArgs struct {
	effectless
	Tasks      []taskSpec `json:"tasks"`
	taskSpec              // a single task; with Agent, Prompt alone
	Agent      string     `json:"agent"`
	Background bool       `json:"background"`
	Stop       bool       `json:"stop"`
}

type taskSpec struct {
	Role   string `json:"role"`
	Title  string `json:"title"`
	Prompt string `json:"prompt"`
}

func (a *taskArgs) check(Env) error {
	switch {
	case a.Role != "" && (a.Agent != "" || len(a.Tasks) > 0), a.Agent != "" && len(a.Tasks) > 0:
		return errors.New("role, tasks and agent: give one of them")
	case a.Agent == "" && a.Role == "" && (a.Prompt != "" || a.Stop):
		return errors.New("role or agent: is missing")
	case a.Stop && (a.Prompt != "" || a.Background):
		return errors.New("stop: needs nothing but agent")
	case a.Agent != "":
		return nil
	case a.Role != "":
		a.Tasks = []taskSpec{a.taskSpec}
	case len(a.Tasks) == 0:
		return errors.New("tasks: is missing")
	}
	for i, s := range a.Tasks {
		if strings.TrimSpace(s.Prompt) == "" {
			return fmt.Errorf("tasks[%d].prompt: is empty", i)
		}
	}
	return nil
}

// run waits for all tasks, each in a goroutine of its own. It fails only if every task did.
func (a *taskArgs) run(ctx context.Context, env Env, _ Action, _ func([]byte)) (Result, error) {
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
