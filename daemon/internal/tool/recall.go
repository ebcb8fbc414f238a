package tool

import (
	"context"
	"encoding/json"
	"errors"
)

// Recall returns the tool that searches the whole conversation, compacted parts included, through Env.Recall.
func Recall() Tool {
	return newTool(Spec{
		Name:        "recall",
		Description: "Search the whole conversation for a few words, also what a summary has replaced.",
		Example:     `{"query":"migration lock timeout"}`,
		Schema:      json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}`),
		ReadOnly:    true,
	}, recallArgs{})
}

type recallArgs struct {
	effectless
	Query string `json:"query"`
}

func (a *recallArgs) check(env Env) error {
	if env.Recall == nil {
		return errors.New("this agent's conversation is not stored")
	}
	return nil
}

func (a *recallArgs) run(ctx context.Context, env Env, _ Action, _ func([]byte)) (Result, error) {
	found, err := env.Recall(ctx, a.Query)
	if err != nil {
		return Result{}, err
	}
	return bounded(found), nil
}
