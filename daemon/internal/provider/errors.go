package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sublet/wire/visible"
)

// maxMessage bounds a provider's error message, in bytes.
const maxMessage = 600

// A Fault converts a provider's failures to *Error, for all APIs in the same way.
type Fault struct {
	Config  Config
	BaseURL string // where requests are actually sent
}

// later are the statuses below 500 of a request that may succeed if it is sent again. 499 is a proxy's: the connection to the
// server behind it was closed.
var later = []int{http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests, 499}

// Status converts an unsuccessful response. code is the provider's error code, such as "overloaded_error" or
// "context_length_exceeded", message its explanation; header may be nil.
func (f Fault) Status(status int, code, message string, header http.Header) *Error {
	e := &Error{Provider: f.Config.Name, Message: f.Clean(message), RetryAfter: RetryAfter(header, time.Now())}
	if e.Message == "" {
		e.Message = cmp.Or(strings.ToLower(http.StatusText(status)), "no explanation")
	}
	switch {
	case isAny(message, noImages...): // some servers report it with status 500, or as a missing model
		e.Kind = ErrImages
	case TooLong(code, message), status == http.StatusRequestEntityTooLarge: // a proxy may use a text of its own
		e.Kind = ErrContextTooLong
	case isAny(code+" "+message, "insufficient_quota", "billing", "credit balance", "payment required") || status == http.StatusPaymentRequired:
		e.Kind = ErrAuth
		e.HintText = "the account has no credit left; choose another model with `model = …` or add credit"
	case status == http.StatusUnauthorized, status == http.StatusForbidden, code == "authentication_error", code == "permission_error", code == "invalid_api_key":
		e.Kind = ErrAuth
		e.HintText = f.keyHint()
	case status == http.StatusNotFound, code == "not_found_error", code == "model_not_found":
		e.Kind = ErrNotFound
		e.HintText = f.modelHint()
	case slices.Contains(later, status), status >= 500 && status != http.StatusNotImplemented, code == "overloaded_error", code == "rate_limit_error",
		code == "rate_limit_exceeded", code == "api_error", code == "server_error", code == "timeout_error":
		e.Kind = ErrOverloaded
		when := "wait a moment and ask again"
		if e.RetryAfter > 0 {
			when = "ask again after " + time.Now().Add(e.RetryAfter).Format("Mon 15:04:05")
			e.Message += fmt.Sprintf(" (asks to wait %s)", e.RetryAfter.Round(time.Second))
		}
		e.HintText = when + ", or choose another model; `fallback` in the settings names those that take over"
	case status == 0 && !isAny(code, "invalid"): // in a stream that had begun: the request itself was accepted
		e.Kind = ErrBroken
	case status >= 400 || code != "":
		e.Kind = ErrInvalid
	default:
		e.Kind = ErrOther
	}
	if status != 0 {
		e.Message = fmt.Sprintf("%s (HTTP %d)", e.Message, status)
	}
	return e
}

// Transport converts an error of the connection. If ctx, that of the call, has ended, it returns context.Cause(ctx).
func (f Fault) Transport(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		if cause := context.Cause(ctx); !errors.Is(cause, ErrStalled) {
			return cause
		}
		return &Error{
			Kind: ErrBroken, Provider: f.Config.Name, Err: ErrStalled,
			Message:  fmt.Sprintf("nothing came for %v, so the model was given up", f.Silence()),
			HintText: "ask again, or choose another model; `silence` under [provider." + f.Config.Name + "] is how long it may take",
		}
	}
	e := &Error{Provider: f.Config.Name, Err: err}
	var dns *net.DNSError
	var op *net.OpError
	var urlErr *url.Error
	switch {
	case errors.As(err, &dns), errors.Is(err, syscall.ECONNREFUSED), errors.As(err, &op) && op.Op == "dial":
		e.Kind = ErrUnreachable
		e.Message = fmt.Sprintf("no server answers at %s", hostOf(f.BaseURL))
		e.HintText = "check the network, and `base_url` under [provider." + f.Config.Name + "]; is the server running?"
		if dns != nil {
			e.Message = fmt.Sprintf("cannot find %s", hostOf(f.BaseURL))
			e.Lasting = dns.IsNotFound
		}
	case strings.Contains(err.Error(), "tls: "), strings.Contains(err.Error(), "x509: "):
		e.Kind = ErrUnreachable
		e.Message = f.Clean(fmt.Sprintf("no secure connection to %s: %v", hostOf(f.BaseURL), err))
		e.HintText = "check the computer's clock, its certificates, and whether a proxy is in between"
		e.Lasting = true
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed), op != nil,
		strings.Contains(err.Error(), "stream error"), strings.Contains(err.Error(), "unexpected EOF"):
		return f.Broken(err)
	case errors.As(err, &urlErr) && urlErr.Timeout():
		e.Kind = ErrUnreachable
		e.Message = fmt.Sprintf("%s did not answer in time", hostOf(f.BaseURL))
	default:
		e.Kind = ErrOther
		e.Message = f.Clean(err.Error())
	}
	return e
}

// Broken returns the error for a stream that ended too early.
func (f Fault) Broken(err error) *Error {
	return &Error{Kind: ErrBroken, Provider: f.Config.Name, Err: err, Message: "the connection broke off before the answer was complete"}
}

// WebPage returns the error for an HTML response: base_url lacks its path, or a proxy asks to log in. It is not retried.
func (f Fault) WebPage() *Error {
	return &Error{
		Kind: ErrNotFound, Provider: f.Config.Name, Message: "a web page answers at " + hostOf(f.BaseURL) + ", not a model",
		HintText: "check `base_url` under [provider." + f.Config.Name + "] (compatible servers mostly end in /v1), and whether a proxy is in between",
	}
}

// NoKey returns the error of a provider that needs a key and has none.
func (f Fault) NoKey() *Error {
	return &Error{Kind: ErrAuth, Provider: f.Config.Name, Message: "no API key", HintText: f.keyHint()}
}

func (f Fault) keyHint() string {
	name := f.Config.APIKeyEnv
	if name == "" {
		return "set `api_key_env` under [provider." + f.Config.Name + "] to the name of the variable that holds the key"
	}
	return "export " + name + "=… in the shell that starts sublet, then open it again"
}

func (f Fault) modelHint() string {
	if strings.Contains(f.BaseURL, ":11434") {
		return "`ollama pull " + f.Config.Model + "` gets the model; `ollama ls` shows those there are"
	}
	return "check `model = \"" + f.Config.FullName() + "\"` and `base_url` (compatible servers mostly end in /v1)"
}

// Clean makes a provider's message safe to show and to log: without key and control sequences, on one line, bounded.
func (f Fault) Clean(s string) string {
	if len(f.Config.APIKey) >= 4 {
		s = strings.ReplaceAll(s, f.Config.APIKey, "…")
	}
	return visible.Clip(strings.Join(strings.Fields(visible.Strip(visible.Clean(s))), " "), maxMessage)
}

// tooLong are texts in lower case by which servers report that a conversation does not fit.
var tooLong = []string{
	"context_length_exceeded", "exceed_context_size", "maximum context length", "context length exceeded", "exceeds the context",
	"exceed context limit", "exceeds the available context size", "context window", "prompt is too long", "prompt too long",
	"input is too long", "input length exceeds", "exceeds maximum context", "maximum model length", "exceeds the maximum number of tokens",
	"reduce the length of the messages", "context length of only", "context the overflows", "context overflow", "request_too_large",
	"larger than the maximum context",
}

// noImages are texts in lower case by which servers report that a model takes no images.
var noImages = []string{
	"image_url is only supported by certain models",            // OpenAI
	"no endpoints found that support image",                    // OpenRouter
	"image input is not supported",                             // llama.cpp
	`unsupported content part type: "image_url"`,               // older versions of it
	"is not a multimodal model",                                // vLLM
	"not support image",                                        // Ollama, LM Studio and others
	"unknown variant `image_url`", "unknown variant image_url", // DeepSeek
	"did not match any variant of untagged enum chatcompletionrequestcontent", // older versions of it
	// Groq, Mistral and others:
	"content must be a string", "image input is not enabled", "images are not supported", "not support vision",
	"missing data required for image input",
}

// AboutImage reports whether a refusal is about an image: one that the provider cannot read, or finds too large.
func (e *Error) AboutImage() bool { return e.Kind == ErrInvalid && isAny(e.Message, "image") }

// TooLong reports whether an error means that the conversation must be compacted.
func TooLong(code, message string) bool { return isAny(code+" "+message, tooLong...) }

func isAny(s string, words ...string) bool {
	s = strings.ToLower(s)
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// RetryAfter returns how long a server asks to wait: seconds or a date. 0 = it does not say.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 {
		return time.Duration(min(s, 1e6) * float64(time.Second))
	}
	if t, err := http.ParseTime(v); err == nil && t.After(now) {
		return t.Sub(now)
	}
	return 0
}

func hostOf(base string) string {
	if u, err := url.Parse(base); err == nil && u.Host != "" {
		return u.Host
	}
	return base
}
