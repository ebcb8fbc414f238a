// Package provider is the interface to models: it takes a conversation and returns a stream of deltas and a message. Its
// subpackages implement it for anthropic, openai and compatible servers, offline and scripted. It also retries requests. It
// does not know tools, sessions or policy.
package provider

import (
	"context"
	"encoding/json"
	"time"

	"sublet/daemon/internal/picture"
)

// A Model answers conversations. Implementations are safe for concurrent use.
type Model interface {
	// Info is cheap and does no I/O. The Limit may change after the first Stream, when the server has been asked, and NoImages
	// may become true after one that failed with ErrImages; the rest is constant.
	Info() Info
	// Stream sends req and calls onDelta, never concurrently, for each piece as it arrives. It returns the whole message once
	// the provider has sent its stop reason. A stream that breaks off earlier is requested again, after a DeltaVoid, and is an
	// error in the end. When ctx ends it returns at once with context.Cause(ctx). Errors are *Error.
	Stream(ctx context.Context, req Request, onDelta func(Delta)) (Response, error)
}

// Info describes a Model. Its ContextWindow is DefaultContextWindow if the provider does not report it.
type Info struct {
	Name     string // "provider/model", as the configuration has it
	Provider string
	Kind     string // one of config.ProviderKinds
	Loaded   bool   // usable: has its key, or needs none
	NoImages bool   // takes no images: by the settings, or because it has refused one
	Limit
}

// Offer is what a provider reports about one of its models; 0 or nil = not reported.
type Offer struct {
	Name                    string // as Config.Model has it
	Limit                   Limit
	Images, Tools, Thinking *bool
}

// DefaultContextWindow is assumed if a provider does not report it, in tokens.
const DefaultContextWindow = 128_000

type Role string

const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one message of a conversation. Tool results are in a User message right after the Assistant message that
// called for them; providers refuse a call without its result, or the reverse.
type Message struct {
	Role  Role
	Parts []Part
}

// Part is a union; exactly one field is not zero.
type Part struct {
	Text       string
	Image      *picture.Image // of a user; its Data is not nil
	Reasoning  *Reasoning
	ToolCall   *ToolCall
	ToolResult *ToolResult
}

// Reasoning is a part of the model's reasoning. Signature is the provider's proof of origin, which it requires with reasoning that is sent
// back. It begins with the kind of provider, so that another one leaves it out after a change of model.
type Reasoning struct {
	Text      string
	Signature string
}

type ToolCall struct {
	ID        string // in a Request of letters, digits, - and _
	Name      string
	Arguments json.RawMessage // in a Request a JSON object (ArgumentsObject); in a Response whatever the model wrote
}

type ToolResult struct {
	CallID  string
	Content string
	IsError bool
	Images  []*picture.Image // in addition to Content; their Data is not nil
}

type ToolSpec struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of the arguments object
}

type Request struct {
	System      string
	Messages    []Message
	Tools       []ToolSpec
	MaxTokens   *int
	Temperature *float64
	Thinking    string // "", off, low, medium, high
	Replaceable bool   // another model takes over if this one is busy: do not wait longer than usual
	// Facts is for the offline model only; real models never receive it.
	Facts Facts
}

// Facts is the state of the user's shell as the daemon knows it.
type Facts struct {
	Cwd            string
	RecentCommands []RecentCommand
}

type RecentCommand struct {
	Command    string
	ExitCode   *int
	OutputTail string
}

type DeltaType string

const (
	DeltaText      DeltaType = "text"
	DeltaReasoning DeltaType = "reasoning"
	DeltaToolCall  DeltaType = "tool_call" // a piece of a call's arguments: CallID, Tool, Text
	// The following are not part of the answer.
	DeltaWait   DeltaType = "wait"   // Text says what is waited for, how long, and why; "" ends the wait
	DeltaVoid   DeltaType = "void"   // withdraws the deltas since the call or the last DeltaVoid; Text says why
	DeltaNotice DeltaType = "notice" // Text is for the user
)

type Delta struct {
	Type   DeltaType
	Text   string
	CallID string
	Tool   string
}

type StopReason string

const (
	EndTurn   StopReason = "end_turn"
	MaxTokens StopReason = "max_tokens"
	ToolUse   StopReason = "tool_use"
	Refusal   StopReason = "refusal"
)

type Response struct {
	Message    Message
	StopReason StopReason
	Usage      Usage
}

// Usage is in tokens as the provider counted; all zero if it did not. Input excludes what was read from or written to the
// provider's cache: the three together are what the model got.
type Usage struct {
	Input, Output, CacheRead, CacheWrite int64
	CostUSD                              *float64 // nil where the price is not known
}

type ErrorKind string

const (
	ErrAuth           ErrorKind = "auth"             // no key, wrong key
	ErrNotFound       ErrorKind = "not_found"        // no such model
	ErrOverloaded     ErrorKind = "overloaded"       // also rate limits; retried already
	ErrContextTooLong ErrorKind = "context_too_long" // the conversation must be compacted
	ErrBroken         ErrorKind = "broken"           // the stream ended too early; retried already
	ErrUnreachable    ErrorKind = "unreachable"      // no server answers at base_url; retried already, unless Lasting
	ErrInvalid        ErrorKind = "invalid"          // the provider refused the request
	ErrImages         ErrorKind = "images"           // the model takes no images
	ErrOther          ErrorKind = "other"
)

// An Error is a provider's error, without keys and control sequences.
type Error struct {
	Kind     ErrorKind
	Provider string
	Message  string
	HintText string // what the user can do, one line
	Err      error
	// RetryAfter is how long the provider asks to wait, 0 if it does not say.
	RetryAfter time.Duration
	// Lasting is set if a retry would not help, although it would for other errors of the Kind.
	Lasting bool
}

func (e *Error) Error() string { return e.Provider + ": " + e.Message }
func (e *Error) Unwrap() error { return e.Err }

// Hint returns what the user can do about e, never "".
func (e *Error) Hint() string {
	if e.HintText != "" {
		return e.HintText
	}
	switch e.Kind {
	case ErrAuth:
		return "check the key: `sublet config show` shows where [provider." + e.Provider + "] gets it from"
	case ErrNotFound:
		return "check `model`, and `base_url` under [provider." + e.Provider + "]"
	case ErrContextTooLong:
		return "`/compact` shortens the conversation; `/clear` begins a new one"
	case ErrUnreachable:
		return "check the network, and `base_url` under [provider." + e.Provider + "]"
	case ErrInvalid:
		return "choose another model, or begin a new conversation with `/clear`; `sublet daemon logs` has the details"
	case ErrImages:
		return "`images = false` under [provider." + e.Provider + "] keeps images from it"
	}
	return "ask again, or choose another model"
}
