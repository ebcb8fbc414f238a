package jsonrpc

import (
	"cmp"
	"context"
	"errors"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

// codes maps the daemon's codes to the document's; codeAgent for others.
var codes = map[string]int{
	wire.CodeInvalidMessage:   codeParams,
	wire.CodeUnknownKind:      codeInternal,
	wire.CodeVersion:          codeInternal,
	wire.CodeTooLarge:         codeParams,
	wire.CodeDuplicateID:      codeInternal,
	wire.CodeToolNotAvailable: codeTool,
	wire.CodeToolFailed:       codeTool,
	wire.CodeProvider:         codeModel,
	wire.CodeModel:            codeModel,
	wire.CodeTokenLimit:       codeModel,
	wire.CodePermissionDenied: codePermission,
	wire.CodeCancelled:        codeCancelled,
	wire.CodeTimeout:          codeTimeout,
	wire.CodeLeaseStale:       codeTool,
	wire.CodeLeaseDenied:      codeTool,
	wire.CodeShuttingDown:     codeInternal,
	wire.CodeInternal:         codeInternal,
}

// failureOf converts an error of the daemon, or of the connection to it.
func failureOf(err error) *failure {
	if e, ok := errors.AsType[*wire.Error](err); ok {
		return hinted(failed(cmp.Or(codes[e.Code], codeAgent), "%s", e.Error()).with("code", e.Code).with("recoverable", e.Recoverable), err)
	}
	switch {
	case errors.Is(err, gateway.ErrNoAnswer):
		return failed(codeTimeout, "%s", err)
	case errors.Is(err, context.Canceled), errors.Is(err, gateway.ErrClosed):
		return failed(codeCancelled, "the server is stopping")
	}
	return hinted(failed(codeInternal, "%s", err), err)
}

func hinted(f *failure, err error) *failure {
	if hint := wire.HintOf(err); hint != "" {
		f.with("hint", hint)
	}
	return f
}
