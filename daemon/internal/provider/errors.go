package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxMessage bounds what is kept of a provider's own words, in bytes.
const maxMessage = 600

// A Fault makes a provider's failures into *Error: one table for all wires.
type Fault struct {
	Config  Config
	BaseURL string // where requests really go
}

// Status maps an answer that is not a success. code is the provider's own word for it, such as "overloaded_error" or
// "context_length_exceeded", message its explanation; header may be nil.
func (f Fault) Status(status int, code, message string, header http.Header) *Error {
	e := &Error{Provider: f.Config.Name, Message: f.Clean(message), RetryAfter: RetryAfter(header, time.Now())}
	if e.Message == "" {
		e.Message = strings.ToLower(http.StatusText(status))
	}
	switch {
	case isAny(message, noImages...): // some servers call it their own fault, or a missing model: it is neither
		e.Kind = ErrImages
	case TooLong(code, message), status == http.StatusRequestEntityTooLarge: // a proxy may say so in words of its own
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
	case status == http.StatusTooManyRequests, status == 529, code == "overloaded_error", code == "rate_limit_error", code == "rate_limit_exceeded",
		status >= 500 && status != http.StatusNotImplemented, code == "api_error", code == "server_error", code == "timeout_error":
		e.Kind = ErrOverloaded
		e.HintText = "wait a moment and ask again, or choose another model; `fallback` in the settings names those that take over"
		if e.RetryAfter > 0 {
			e.Message += fmt.Sprintf(" (asks to wait %s)", e.RetryAfter.Round(time.Second))
		}
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

// Transport maps a failure of the connection. ctx is the call's: when it ended, its cause is returned instead.
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
		e.Message = fmt.Sprintf("nobody answers at %s", hostOf(f.BaseURL))
		e.HintText = "check the network, and `base_url` under [provider." + f.Config.Name + "]; is the server running?"
		if dns != nil {
			e.Message = fmt.Sprintf("cannot find %s", hostOf(f.BaseURL))
			e.Lasting = dns.IsNotFound
		}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed), op != nil,
		strings.Contains(err.Error(), "stream error"), strings.Contains(err.Error(), "unexpected EOF"):
		return f.Broken(err)
	case errors.As(err, &urlErr) && urlErr.Timeout():
		e.Kind = ErrUnreachable
		e.Message = fmt.Sprintf("%s did not answer in time", hostOf(f.BaseURL))
	case strings.Contains(err.Error(), "tls:"), strings.Contains(err.Error(), "x509:"):
		e.Kind = ErrUnreachable
		e.Message = f.Clean(fmt.Sprintf("no secure connection to %s: %v", hostOf(f.BaseURL), err))
		e.HintText = "check the computer's clock, its certificates, and whether a proxy is between"
		e.Lasting = true
	default:
		e.Kind = ErrOther
		e.Message = f.Clean(err.Error())
	}
	return e
}

const midAnswer = "the connection broke off in the middle of the answer"

// Broken is a stream that ended before its end: never a success.
func (f Fault) Broken(err error) *Error {
	return &Error{
		Kind: ErrBroken, Provider: f.Config.Name, Err: err,
		Message: midAnswer,
	}
}

// WebPage is an answer for people: base_url lacks its path, or a proxy asks to log in. Another try would not mend it.
func (f Fault) WebPage() *Error {
	return &Error{
		Kind: ErrNotFound, Provider: f.Config.Name, Message: "a web page answers at " + hostOf(f.BaseURL) + ", not a model",
		HintText: "check `base_url` under [provider." + f.Config.Name + "] (compatible servers mostly end in /v1), and whether a proxy is between",
	}
}

// unbegun returns e in the words for a call that showed nothing: a broken stream then has no middle.
func (e *Error) unbegun() *Error {
	if e.Kind != ErrBroken || e.Message != midAnswer {
		return e
	}
	return &Error{
		Kind: e.Kind, Provider: e.Provider, Err: e,
		Message: "the connection broke off before an answer came",
	}
}

// NoKey is what a back end answers that needs a key and has none.
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

// Clean makes a provider's words fit to show and to log: no key, no control sequences, one line, bounded.
func (f Fault) Clean(s string) string {
	if len(f.Config.APIKey) >= 4 {
		s = strings.ReplaceAll(s, f.Config.APIKey, "…")
	}
	var b strings.Builder
	space := false
	for _, r := range s {
		switch {
		case unicode.IsSpace(r):
			space = b.Len() > 0
			continue
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == utf8.RuneError:
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
		if b.Len() > maxMessage {
			b.WriteString("…")
			break
		}
	}
	return b.String()
}

// tooLong is how servers say that a conversation does not fit. Lower case.
var tooLong = []string{
	"context_length_exceeded", "exceed_context_size", "maximum context length", "context length exceeded", "exceeds the context",
	"exceed context limit", "exceeds the available context size", "context window", "prompt is too long", "prompt too long",
	"input is too long", "input length exceeds", "exceeds maximum context", "maximum model length", "exceeds the maximum number of tokens",
	"reduce the length of the messages", "context length of only", "context the overflows", "context overflow", "request_too_large",
	"larger than the maximum context",
}

// noImages is how servers say that a model takes no images. Lower case. In this order: OpenAI; OpenRouter (404); llama.cpp
// (500) and older ones of it; vLLM; Ollama, LM Studio and others; DeepSeek, and before; Groq; Mistral.
var noImages = []string{
	"image_url is only supported by certain models", "no endpoints found that support image", "image input is not supported",
	`unsupported content part type: "image_url"`, "is not a multimodal model", "not support image", "unknown variant `image_url`",
	"unknown variant image_url", "did not match any variant of untagged enum chatcompletionrequestcontent", "content must be a string",
	"image input is not enabled", "images are not supported", "not support vision", "missing data required for image input",
}

// AboutImage reports whether a refusal speaks of an image: one that the provider cannot read, or finds too large.
func (e *Error) AboutImage() bool { return e.Kind == ErrInvalid && isAny(e.Message, "image") }

// TooLong recognises, by what it says, an error that compaction mends.
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

// RetryAfter reads how long a server asks to be left alone: seconds, milliseconds (retry-after-ms) or a date. 0 = it does
// not say.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return time.Duration(ms * float64(time.Millisecond))
	}
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
