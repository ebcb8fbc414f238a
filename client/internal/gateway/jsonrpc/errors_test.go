package jsonrpc

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

func told(code string) *wire.Error { return &wire.Error{Code: code, Message: "x"} }

// L5 to L12: every error of the daemon, and of the way to it, has one of the document's codes, its words first, and the
// daemon's own code and hint in data.
func TestErrorCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{
		{told(wire.CodeInternal), -32603},
		{told(wire.CodeShuttingDown), -32603},
		{gateway.ErrAway, -32603},
		{errors.New("x"), -32603},
		{told(wire.CodeNotFoundAgent), -32000},
		{told(wire.CodeNotFoundSession), -32000},
		{told(wire.CodeTooManyQueries), -32000},
		{told("of_tomorrow"), -32000},
		{told(wire.CodeProvider), -32001},
		{told(wire.CodeModel), -32001},
		{told(wire.CodeTokenLimit), -32001},
		{told(wire.CodeToolNotAvailable), -32002},
		{told(wire.CodeToolFailed), -32002},
		{told(wire.CodeLeaseDenied), -32002},
		{told(wire.CodeTimeout), -32003},
		{gateway.ErrNoAnswer, -32003},
		{told(wire.CodeCancelled), -32004},
		{gateway.ErrClosed, -32004},
		{told(wire.CodePermissionDenied), -32005},
		{fmt.Errorf("wrapped: %w", told(wire.CodeInvalidMessage)), -32602},
	} {
		f := failureOf(c.err)
		if f.Code != c.code || !strings.HasPrefix(f.Message, titles[c.code]+": ") {
			t.Errorf("%v: got %d %q, want %d", c.err, f.Code, f.Message, c.code)
		}
		if e, ok := errors.AsType[*wire.Error](c.err); ok && (f.Data["code"] != e.Code || f.Data["recoverable"] != e.Recoverable) {
			t.Errorf("%v: data %v", c.err, f.Data)
		}
	}
	if f := failureOf(gateway.ErrAway); f.Data["hint"] == "" {
		t.Errorf("no hint: %v", f.Data)
	}
	for code := range titles {
		if code != codeParse && code != codeRequest && code != codeMethod && longTitles[code] == "" {
			t.Errorf("stream.error has no words for %d", code)
		}
	}
}
