package agent

import (
	"context"
	"errors"

	"sublet/daemon/internal/provider"
	"sublet/wire"
)

// A ToolError reports why RunTool failed.
type ToolError struct {
	Tool    string
	Status  string // error, denied, timeout, cancelled
	Message string
}

func (e *ToolError) Error() string { return e.Tool + ": " + e.Message }

// A CircleError reports an agent that was ended because it repeated itself.
type CircleError struct {
	What string // what it repeated
}

func (e *CircleError) Error() string { return "agent: stopped: " + e.What }

// Complete returns the AgentComplete event of the turn, without its ids.
func (o Outcome) Complete() *wire.AgentComplete {
	return &wire.AgentComplete{
		Agent: o.Agent, Status: o.Status, StopReason: o.StopReason, Summary: o.Summary, Usage: o.Usage, Context: o.Context,
		ToolsExecuted: append([]string{}, o.ToolsExecuted...), Refused: append([]wire.RefusedTool{}, o.Refused...), Model: o.Model,
		DurationMS: o.Duration.Milliseconds(),
	}
}

// Failure returns the Error event that belongs before the AgentComplete of an unsuccessful turn, without its ids; nil
// for a successful one.
func (o Outcome) Failure() *wire.Error {
	if o.Err == nil {
		return nil
	}
	e := &wire.Error{Code: wire.CodeInternal, Message: clean(o.Err.Error()), Details: map[string]string{}, Recoverable: true}
	if hinted, ok := errors.AsType[interface {
		error
		Hint() string
	}](o.Err); ok {
		e.Hint = clean(hinted.Hint())
	}
	switch {
	case o.Status == wire.StatusCancelled:
		e.Code = wire.CodeCancelled
	case o.Status == wire.StatusTimeout:
		e.Code = wire.CodeTimeout
		if errors.Is(o.Err, context.DeadlineExceeded) {
			e.Message = "the turn's time was over"
		}
	case errors.Is(o.Err, ErrStepLimit):
		e.Code, e.Hint = wire.CodeModel, "say `go on` to continue where it stopped"
	case errors.Is(o.Err, ErrEmpty):
		e.Code, e.Hint = wire.CodeModel, "ask again, in other words, or choose another model"
	case errors.Is(o.Err, ErrRefused):
		e.Code, e.Hint = wire.CodeModel, "word the request differently, or use another model"
	}
	if _, ok := errors.AsType[*CircleError](o.Err); ok {
		e.Code, e.Hint = wire.CodeModel, "say what it should try instead, or `go on`"
	}
	if _, ok := errors.AsType[*CostError](o.Err); ok {
		e.Code, e.Hint = wire.CodeModel, "say `go on`, or raise cost_usd_turn or cost_usd_day under [limits]"
	}
	if te, ok := errors.AsType[*ToolError](o.Err); ok {
		e.Code = wire.CodeToolFailed
		if te.Status == wire.StatusDenied {
			e.Code = wire.CodePermissionDenied
		}
	}
	if pe, ok := errors.AsType[*provider.Error](o.Err); ok {
		e.Code = wire.CodeProvider
		e.Details["kind"] = string(pe.Kind)
		switch pe.Kind {
		case provider.ErrContextTooLong:
			e.Code = wire.CodeTokenLimit
			if e.Hint == "" {
				e.Hint = "start a new session, or use a model with a larger context window"
			}
		case provider.ErrNotFound, provider.ErrInvalid, provider.ErrImages:
			e.Code = wire.CodeModel
		}
	}
	return e
}
