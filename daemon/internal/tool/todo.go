package tool

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

// TodoList is an agent's own plan. The zero value is empty and ready; it is safe for concurrent use.
type TodoList struct {
	mu    sync.Mutex
	items []TodoItem // guarded by mu
}

// TodoItem is one step of a plan. Status is pending, in_progress or done.
type TodoItem struct {
	Text   string `json:"text"`
	Status string `json:"status"`
}

// maxTodo bounds a plan, in steps.
const maxTodo = 100

// Items returns a copy of the plan.
func (l *TodoList) Items() []TodoItem {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.items)
}

// Set replaces the plan. Each text becomes one line.
func (l *TodoList) Set(items []TodoItem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items = slices.Clone(items)
	for i := range l.items {
		l.items[i].Text = strings.Join(strings.Fields(l.items[i].Text), " ")
	}
}

// marks begin the lines of a plan that is written as text, by status.
var marks = map[string]string{"pending": "[ ] ", "in_progress": "[>] ", "done": "[x] "}

// String returns the plan, a line for each step, as ParseTodo reads it.
func (l *TodoList) String() string {
	var lines []string
	for _, it := range l.Items() {
		lines = append(lines, marks[it.Status]+it.Text)
	}
	if len(lines) == 0 {
		return "The plan is empty."
	}
	return strings.Join(lines, "\n")
}

// ParseTodo returns the steps in the result of a call of todo or plan. Other lines are ignored.
func ParseTodo(result string) (items []TodoItem) {
	for line := range strings.Lines(result) {
		for status, mark := range marks {
			if text, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), mark); ok {
				items = append(items, TodoItem{text, status})
			}
		}
	}
	return items
}

// Todo returns the tool that keeps the agent's plan in Env.Todo. Without todos it returns the plan.
func Todo() Tool {
	return newTool(Spec{
		Name:        "todo",
		Description: "Keep a list of steps for longer work: send the whole list each time, with one step in_progress. Without todos, returns the list.",
		Example:     `{"todos":[{"text":"run the tests","status":"in_progress"}]}`,
		Schema: json.RawMessage(`{"type":"object","properties":{"todos":{"type":"array","maxItems":100,"items":{"type":"object","properties":{"text":{"type":"string"},` +
			`"status":{"type":"string","enum":["pending","in_progress","done"]}},"required":["text","status"]}}}}`),
	}, todoArgs{})
}

type todoArgs struct {
	effectless
	Todos []TodoItem `json:"todos"`
}

func (a *todoArgs) check(Env) error { return nil }

func (a *todoArgs) run(_ context.Context, env Env, _ Action, _ func([]byte)) (Result, error) {
	if a.Todos != nil {
		env.Todo.Set(a.Todos)
	}
	return bounded(env.Todo.String()), nil
}
