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

// Complete returns the AgentComplete event of the turn, without its ids. Its lists are not nil.
func (o Outcome) Complete() *wire.AgentComplete {
	o.ToolsExecuted, o.Refused = append([]string{}, o.ToolsExecuted...), append([]wire.RefusedTool{}, o.Refused...)
	return &o.AgentComplete
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
			e.Message = "the turn ran out of time"
		}
	}
	if _, ok := errors.AsType[*workError](o.Err); ok {
		e.Code = wire.CodeModel
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
		case provider.ErrNotFound, provider.ErrInvalid, provider.ErrImages:
			e.Code = wire.CodeModel
		}
	}
	return e
}
