package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

const maxQuery = 1000 // bytes of a query

type recallTool struct{}

// Recall returns the tool that searches the whole conversation, compacted parts included, through Env.Recall.
func Recall() Tool { return recallTool{} }

type recallArgs struct {
	Query string `json:"query"`
}

func (recallTool) Spec() Spec {
	return Spec{
		Name:        "recall",
		Description: "Search this whole conversation, also what a summary folded away, for words: what was said, called and printed.",
		Example:     `{"query":"migration lock timeout"}`,
		Schema:      json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","description":"a few words"}},"required":["query"],"additionalProperties":false}`),
		ReadOnly:    true,
	}
}

func (t recallTool) parse(env Env, args json.RawMessage) (recallArgs, error) {
	a, err := decode[recallArgs](t.Spec(), args)
	switch {
	case err != nil:
		return a, err
	case strings.TrimSpace(a.Query) == "":
		return a, errors.New("query: is empty")
	case len(a.Query) > maxQuery:
		return a, fmt.Errorf("query: %d bytes is more than the limit of %d", len(a.Query), maxQuery)
	case env.Recall == nil:
		return a, errors.New("this agent's conversation is not stored")
	}
	return a, nil
}

func (t recallTool) Plan(_ context.Context, env Env, args json.RawMessage) (Action, error) {
	_, err := t.parse(env, args)
	return Action{}, err
}

func (t recallTool) Run(ctx context.Context, env Env, args json.RawMessage, _ Action, _ func([]byte)) (Result, error) {
	a, err := t.parse(env, args)
	if err != nil {
		return Result{}, err
	}
	found, err := env.Recall(ctx, a.Query)
	if err != nil {
		return Result{}, err
	}
	return bounded(found), nil
}
