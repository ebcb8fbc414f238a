// Package provider is the models' side: one conversation in, a stream of deltas and a message out, whoever serves it.
// It knows back ends (anthropic, openai and what is compatible, offline, scripted) and retries; it knows no tools, no
// sessions and no policy.
package provider

import (
	"context"
	"encoding/json"
	"time"

	"sublet/daemon/internal/picture"
)

// A Model answers conversations. Implementations are safe for concurrent use.
type Model interface {
	// Info is cheap and does no I/O. ContextWindow and MaxOutput may become exact after the first Stream, when the server
	// has been asked, and NoImages true after one that failed with ErrImages; the rest is constant.
	Info() Info
	// Stream sends req and calls onDelta, never twice at once, for each piece as it arrives. It returns the whole message
	// once the provider said why it stopped. A stream that breaks off before is asked for again, after a DeltaVoid, and is an
	// error in the end. When ctx ends it returns at once with context.Cause(ctx). Errors are *Error.
	Stream(ctx context.Context, req Request, onDelta func(Delta)) (Response, error)
}

// Info describes a Model. ContextWindow is in tokens; where the provider does not say, it is DefaultContextWindow.
type Info struct {
	Name          string // "provider/model", as the configuration has it
	Provider      string
	Kind          string // anthropic, openai, google, offline, scripted
	Loaded        bool   // has what it needs (its key, or needs none)
	ContextWindow int
	MaxOutput     int  // tokens; 0 = unknown
	NoImages      bool // takes no images: the settings say so, or it has refused one; false: it may
}

// Offer is what a provider says of one of its models. What it does not say is 0 or nil.
type Offer struct {
	Name                    string // as Config.Model has it
	Limit                   Limit
	Images, Tools, Thinking *bool
}

// DefaultContextWindow is assumed where a provider does not tell, in tokens.
const DefaultContextWindow = 128_000

type Role string

const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one turn of a conversation. Tool results travel in a User message, right after the Assistant message that
// called for them; a call without its result, or the reverse, is refused by every provider.
type Message struct {
	Role  Role
	Parts []Part
}

// Part is a union; the one that is not zero counts.
type Part struct {
	Text       string
	Image      *picture.Image // of a user; its Data is there
	Reasoning  *Reasoning
	ToolCall   *ToolCall
	ToolResult *ToolResult
}

// Reasoning is the model's own; Signature is the provider's seal, without which it takes none back. It begins with the
// back end's kind, so that another one, after a change of model, leaves it out.
type Reasoning struct {
	Text      string
	Signature string
}

type ToolCall struct {
	ID        string
	Name      string
	Arguments json.RawMessage // a JSON object, or what the model wrote in its place
}

type ToolResult struct {
	CallID  string
	Content string
	IsError bool
	Images  []*picture.Image // beside Content; their Data is there
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
	// Facts is what the offline model may look at beside the conversation; real models never receive it.
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
	// The following are no part of the answer.
	DeltaWait   DeltaType = "wait"   // Text says what is waited for, how long, and why; "" ends the wait
	DeltaVoid   DeltaType = "void"   // what came since the call, or the last of these, is void; Text says why
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

// Usage is in tokens, as the provider counted; all zero where it does not say. Input leaves out what was read from or
// written to the provider's cache: the three together are what the model saw.
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
	ErrBroken         ErrorKind = "broken"           // the stream broke off; retried already
	ErrUnreachable    ErrorKind = "unreachable"      // nobody answers at base_url; retried already, unless Lasting
	ErrInvalid        ErrorKind = "invalid"          // the provider refused the request
	ErrImages         ErrorKind = "images"           // the model takes no images
	ErrOther          ErrorKind = "other"
)

// An Error is what a provider said, without keys and without control sequences.
type Error struct {
	Kind     ErrorKind
	Provider string
	Message  string
	HintText string // what the user can do, one line
	Err      error
	// RetryAfter is how long the provider asks to be left alone, 0 where it does not say.
	RetryAfter time.Duration
	// Lasting is set where another try would not help although it would for others of the Kind.
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
		return "check the key: `sublet config show` says where [provider." + e.Provider + "] has it from"
	case ErrNotFound:
		return "check `model`, and `base_url` under [provider." + e.Provider + "]"
	case ErrContextTooLong:
		return "`/compact` folds the conversation; `/clear` begins a new one"
	case ErrUnreachable:
		return "check the network, and `base_url` under [provider." + e.Provider + "]"
	case ErrInvalid:
		return "choose another model, or begin a new conversation with `/clear`; `sublet daemon logs` has the details"
	case ErrImages:
		return "`images = false` under [provider." + e.Provider + "] keeps images from it"
	}
	return "ask again, or choose another model"
}
