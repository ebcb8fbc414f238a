package tool

import (
	"context"
	"encoding/json"
	"fmt"
)

// arguments are those of one call of a tool: a pointer to a C, which has a field for each name in the tool's schema.
type arguments[C any] interface {
	*C
	// check validates what the schema does not, and fills in fields that are not the model's.
	check(env Env) error
	// plan and run are Tool.Plan and Tool.Run for valid arguments.
	plan(ctx context.Context, env Env) (Action, error)
	run(ctx context.Context, env Env, approved Action, live func([]byte)) (Result, error)
}

// typed is a Tool whose arguments are decoded into a copy of initial.
type typed[C any, A arguments[C]] struct {
	spec    Spec
	initial C
}

func newTool[C any, A arguments[C]](spec Spec, initial C) Tool {
	spec.Closed = true
	return typed[C, A]{spec, initial}
}

func (t typed[C, A]) Spec() Spec { return t.spec }

func (t typed[C, A]) Plan(ctx context.Context, env Env, args json.RawMessage) (Action, error) {
	c, err := t.decode(env, args)
	if err != nil {
		return Action{}, err
	}
	return c.plan(ctx, env)
}

func (t typed[C, A]) Run(ctx context.Context, env Env, args json.RawMessage, approved Action, live func([]byte)) (Result, error) {
	c, err := t.decode(env, args)
	if err != nil {
		return Result{}, err
	}
	return c.run(ctx, env, approved, live)
}

// decode returns the arguments, with the values of initial for those that were not given, and an error if they are not valid.
func (t typed[C, A]) decode(env Env, args json.RawMessage) (A, error) {
	args, err := Arguments(t.spec, args)
	if err != nil {
		return nil, err
	}
	c := t.initial
	if err := json.Unmarshal(args, &c); err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	return &c, A(&c).check(env)
}

// effectless is embedded in the arguments of a tool whose calls have no effects of their own.
type effectless struct{}

func (effectless) plan(context.Context, Env) (Action, error) { return Action{}, nil }
