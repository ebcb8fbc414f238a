package operator

import (
	"cmp"
	"fmt"
	"strings"

	"sublet/wire"
	"sublet/wire/visible"
)

// A problem is why a request was refused or failed, with its code in both dialects.
type problem struct {
	s3, s4      string
	message     string
	hint        string
	details     map[string]any
	recoverable bool // the session can go on (L27)
}

// The codes of the documents: S3 (L13 to L25) and S4 (L13 to L23). CANCELLED is ours, for a turn that was cancelled.
const (
	codeInvalid     = "INVALID_REQUEST"
	codeNoAgent     = "AGENT_NOT_FOUND"
	codeNoSession   = "SESSION_NOT_FOUND"
	codeTool        = "TOOL_ERROR"
	codeNoTool      = "TOOL_NOT_AVAILABLE"
	codeToolFailed  = "TOOL_EXECUTION_FAILED"
	codeProvider    = "PROVIDER_ERROR"
	codeTokens      = "TOKEN_LIMIT"
	codeTooLarge    = "CONTEXT_TOO_LARGE"
	codeRate        = "RATE_LIMIT"
	codeRateExceeds = "RATE_LIMIT_EXCEEDED"
	codeInternal    = "INTERNAL_ERROR"
	codeTimeout     = "TIMEOUT"
	codeCancelled   = "CANCELLED"
)

// codes maps the daemon's error codes to both dialects; codeInternal for others.
var codes = map[string][2]string{
	wire.CodeInvalidMessage:   {codeInvalid, codeInvalid},
	wire.CodeTooLarge:         {codeInvalid, codeTooLarge},
	wire.CodeRateLimited:      {codeRate, codeRateExceeds},
	wire.CodeTooManyQueries:   {codeRate, codeRateExceeds},
	wire.CodeDuplicateID:      {codeInvalid, codeInvalid},
	wire.CodeNotFoundSession:  {codeNoSession, codeNoSession},
	wire.CodeNotFoundAgent:    {codeNoAgent, codeNoAgent},
	wire.CodeToolNotAvailable: {codeTool, codeNoTool},
	wire.CodeToolFailed:       {codeTool, codeToolFailed},
	wire.CodeProvider:         {codeProvider, codeProvider},
	wire.CodeModel:            {codeProvider, codeProvider},
	wire.CodeTokenLimit:       {codeTokens, codeTooLarge},
	wire.CodePermissionDenied: {codeTool, codeToolFailed},
	wire.CodeCancelled:        {codeCancelled, codeCancelled},
	wire.CodeTimeout:          {codeTimeout, codeTimeout},
	wire.CodeLeaseStale:       {codeTool, codeToolFailed},
	wire.CodeLeaseDenied:      {codeTool, codeToolFailed},
}

// problemOf converts an error of the daemon.
func problemOf(e *wire.Error) *problem {
	both, ok := codes[e.Code]
	if !ok {
		both = [2]string{codeInternal, codeInternal}
	}
	if e.Code == wire.CodeProvider && e.Details["kind"] == "overloaded" {
		both = codes[wire.CodeRateLimited] // L22: the provider's own limit
	}
	p := &problem{s3: both[0], s4: both[1], message: e.Error(), hint: e.Hint, recoverable: e.Recoverable, details: map[string]any{}}
	for k, v := range e.Details {
		p.details[k] = v
	}
	return p
}

// invalid returns the problem of a malformed request.
func invalid(format string, args ...any) *problem {
	return &problem{s3: codeInvalid, s4: codeInvalid, message: fmt.Sprintf(format, args...), recoverable: true}
}

func (p *problem) with(key string, value any) *problem {
	if p.details == nil {
		p.details = map[string]any{}
	}
	p.details[key] = value
	return p
}

// toolProblem returns S4's code for a tool that failed or did not run, and why. A tool that the request did not allow is recognised by
// the text of its result, because the daemon reports it only there.
func toolProblem(t *toolRun) (code, message string) {
	if strings.HasPrefix(t.output, "the tool "+t.name+" is not in this agent's allow-list") || strings.HasPrefix(t.output, "there is no tool ") {
		return codeNoTool, fmt.Sprintf("Tool '%s' not available in this context", t.name)
	}
	return codeToolFailed, fmt.Sprintf("Tool '%s' failed: %s", t.name, cmp.Or(clip(t.output), t.status))
}

// clip returns the first line of a text, cut to 300 bytes, for a message.
func clip(s string) string { return visible.Clip(visible.FirstLine(s), 300) }
