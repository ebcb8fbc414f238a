package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"sublet/wire"
)

// maxStep bounds one step of a proposed plan, in bytes.
const maxStep = 1000

// Proposal is the user's answer to a plan.
type Proposal struct {
	Accepted bool
	Steps    []string // as accepted
	Comment  string   // what the user wants changed
	Reason   string   // why it was not accepted, where the user said nothing
	Mode     string   // that holds now
}

// Plan returns the tool that ends plan mode: Env.Propose asks the user about the steps, and accepted ones become Env.Todo.
func Plan() Tool {
	return newTool(Spec{
		Name: "plan",
		Description: "End plan mode, when you know enough: show the user all steps in order. They accept or edit the steps, or send them back with a comment. " +
			"Once they accept, carry out the plan and keep it up to date with todo.",
		Example: `{"items":["add the flag to main.go","test it in main_test.go","run go test ./..."]}`,
		Schema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{"items":{"type":"array","minItems":1,"maxItems":%d,"items":{"type":"string"},`+
			`"description":"what is done, and where"}},"required":["items"]}`, maxTodo)),
	}, planArgs{})
}

type planArgs struct {
	effectless
	Items []string `json:"items"`
}

func (a *planArgs) check(env Env) error {
	if env.Propose == nil {
		return errors.New("there is no plan to end: this is not plan mode")
	}
	_, err := checkSteps(a.Items)
	return err
}

func checkSteps(steps []string) ([]string, error) {
	if len(steps) == 0 || len(steps) > maxTodo {
		return nil, fmt.Errorf("items: got %d steps, want 1 to %d", len(steps), maxTodo)
	}
	for i, s := range steps {
		if strings.TrimSpace(s) == "" || len(s) > maxStep {
			return nil, fmt.Errorf("items[%d]: want a text of 1 to %d bytes", i, maxStep)
		}
	}
	return steps, nil
}

func (a *planArgs) run(ctx context.Context, env Env, _ Action, _ func([]byte)) (Result, error) {
	raw, err := json.Marshal(a)
	if err != nil {
		return Result{}, err
	}
	p, err := env.Propose(ctx, Proposed{env.ExecutionID, raw, a.Items})
	switch {
	case err != nil:
		return Result{}, err
	case !p.Accepted && p.Comment != "":
		return Result{Content: "The user did not accept the plan, and says: " + p.Comment + "\nLook again where that needs it, and call plan with what changed.", IsError: true, Status: wire.StatusDenied}, nil
	case !p.Accepted:
		return Result{Content: "The plan was not accepted: " + p.Reason + ". Change nothing. End with the plan as numbered steps, and ask what should be different.", IsError: true, Status: wire.StatusDenied}, nil
	}
	var items []TodoItem
	for _, s := range p.Steps {
		items = append(items, TodoItem{s, "pending"})
	}
	env.Todo.Set(items)
	head := "The user accepted the plan."
	if strings.Join(p.Steps, "\n") != strings.Join(a.Items, "\n") {
		head = "The user changed the plan and accepted it as it is here."
	}
	if p.Mode == "plan" {
		head += " But the settings of the project or your role keep plan mode on: change nothing, and tell the user."
	} else {
		head += " Plan mode is over, the mode is " + p.Mode + " now: carry it out."
	}
	return Result{Content: head + "\n" + env.Todo.String()}, nil
}

// PlanText returns steps as the user sees and edits them, a numbered line for each.
func PlanText(steps []string) string {
	var b strings.Builder
	for i, s := range steps {
		fmt.Fprintf(&b, "%s. %s\n", strconv.Itoa(i+1), strings.Join(strings.Fields(s), " "))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

var stepNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*(\d+[.)]|[-*])\s+`) })

// PlanSteps reads what PlanText wrote and the user edited: each line that is not empty is a step, whatever its number.
func PlanSteps(text string) ([]string, error) {
	var steps []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(stepNumber().ReplaceAllString(line, "")); line != "" {
			steps = append(steps, line)
		}
	}
	return checkSteps(steps)
}
