package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"sublet/daemon/internal/provider"
)

// itemPrefix is the prefix of the signature of reasoning that is an item of the Responses API; the item in JSON follows.
const itemPrefix = "item "

// speaksResponses reports whether requests go to the Responses API, which accepts the model's own encrypted reasoning between
// tool calls.
func (m *Model) speaksResponses() bool {
	return m.config.API == "responses" || m.config.API == "" && m.base == openaiURL
}

type responsesRequest struct {
	Model           string         `json:"model"`
	Instructions    string         `json:"instructions,omitempty"`
	Input           []any          `json:"input"` // of inputMessage, inputCall, inputOutput, and reasoning items as they came
	Tools           []responseTool `json:"tools,omitempty"`
	Stream          bool           `json:"stream"`
	Store           bool           `json:"store"` // false: the server stores nothing
	Include         []string       `json:"include,omitempty"`
	MaxOutputTokens *int           `json:"max_output_tokens,omitempty"`
	Temperature     *float64       `json:"temperature,omitempty"`
	Reasoning       *reasoningWish `json:"reasoning,omitempty"`
}

type reasoningWish struct {
	Effort  string `json:"effort,omitempty"`
	Summary string `json:"summary"`
}

type responseTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

type inputMessage struct {
	Role    string      `json:"role"`
	Content []inputPart `json:"content"`
}

type inputPart struct {
	Type     string `json:"type"` // input_text, output_text, input_image
	Text     string `json:"text,omitempty"`
	ImageURL string `json:"image_url,omitempty"`
}

type inputCall struct {
	Type      string `json:"type"` // function_call
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type inputOutput struct {
	Type   string `json:"type"` // function_call_output
	CallID string `json:"call_id"`
	Output string `json:"output"`
}

// responses converts a conversation to the form of the Responses API.
func (m *Model) responses(req provider.Request) responsesRequest {
	q := m.quirks.get()
	w := responsesRequest{Model: m.config.Model, Instructions: req.System, Input: []any{}, Stream: true, MaxOutputTokens: req.MaxTokens}
	if !q.noTemperature {
		w.Temperature = req.Temperature
	}
	if !q.noEncrypted {
		w.Include = []string{"reasoning.encrypted_content"}
	}
	effort := req.Thinking
	if effort == "off" {
		switch { // newer models take the former, older ones the latter, and some neither
		case !q.noNone:
			effort = "none"
		case !q.noMinimal:
			effort = "minimal"
		default:
			effort = ""
		}
	}
	if effort != "" && !q.noEffort {
		w.Reasoning = &reasoningWish{Effort: effort, Summary: "auto"}
	}
	current := turnBegin(req.Messages)
	for i, msg := range req.Messages {
		if msg.Role == provider.Assistant {
			w.Input = append(w.Input, m.ownItems(msg, i >= current && !q.noEncrypted)...)
		} else {
			w.Input = append(w.Input, userItems(msg)...)
		}
	}
	if !q.noTools {
		for _, t := range req.Tools {
			w.Tools = append(w.Tools, responseTool{Type: "function", Name: t.Name, Description: t.Description, Parameters: t.Schema})
		}
	}
	return w
}

// ownItems converts a message of the model: reasoning if it is sent back, text and calls.
func (m *Model) ownItems(msg provider.Message, reasoning bool) (items []any) {
	for _, p := range msg.Parts {
		switch {
		case p.Reasoning != nil:
			signature, ok := provider.Unseal(m.config.Kind, p.Reasoning.Signature)
			if item, is := strings.CutPrefix(signature, itemPrefix); ok && is && reasoning {
				items = append(items, json.RawMessage(item))
			}
		case p.ToolCall != nil:
			items = append(items, inputCall{"function_call", p.ToolCall.ID, p.ToolCall.Name, string(p.ToolCall.Arguments)})
		case p.Text != "":
			items = append(items, inputMessage{"assistant", []inputPart{{Type: "output_text", Text: p.Text}}})
		}
	}
	return items
}

// userItems converts a user's message: the results of calls, then the rest as one message.
func userItems(msg provider.Message) (items []any) {
	results, rest := apart(msg)
	for _, r := range results {
		items = append(items, inputOutput{"function_call_output", r.CallID, r.Content})
	}
	var parts []inputPart
	for _, p := range rest {
		if p.Image != nil {
			parts = append(parts, inputPart{Type: "input_image", ImageURL: dataURL(p.Image)})
		} else {
			parts = append(parts, inputPart{Type: "input_text", Text: p.Text})
		}
	}
	if len(parts) > 0 {
		items = append(items, inputMessage{"user", parts})
	}
	return items
}

// responseEvent is one event of a stream of the Responses API.
type responseEvent struct {
	Type     string          `json:"type"`
	Delta    string          `json:"delta"`
	ItemID   string          `json:"item_id"`
	Item     json.RawMessage `json:"item"`
	Code     string          `json:"code"`
	Message  string          `json:"message"`
	Response struct {
		Error      *wireError `json:"error"`
		Incomplete struct {
			Reason string `json:"reason"`
		} `json:"incomplete_details"`
		Usage *struct {
			Input   int64 `json:"input_tokens"`
			Output  int64 `json:"output_tokens"`
			Details struct {
				Cached int64 `json:"cached_tokens"`
			} `json:"input_tokens_details"`
		} `json:"usage"`
	} `json:"response"`
}

type responseItem struct {
	Type      string `json:"type"` // message, function_call, reasoning
	ID        string `json:"id"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Encrypted string `json:"encrypted_content"`
}

// event processes one event of the Responses API.
func (a *assembly) event(f provider.Fault, data []byte) error {
	var e responseEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return f.Broken(fmt.Errorf("event: %w", err))
	}
	var item responseItem
	if len(e.Item) > 0 {
		if err := json.Unmarshal(e.Item, &item); err != nil {
			return f.Broken(fmt.Errorf("item: %w", err))
		}
	}
	switch e.Type {
	case "response.output_text.delta":
		a.say(e.Delta)
	case "response.refusal.delta":
		a.refusal = true
		a.say(e.Delta)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		a.reason(e.Delta)
	case "response.reasoning_summary_part.done":
		a.reason("\n\n")
	case "response.output_item.added":
		if item.Type == "function_call" {
			a.callOf(item)
		}
	case "response.function_call_arguments.delta":
		if c := a.callOf(responseItem{ID: e.ItemID}); c != nil {
			c.args.WriteString(e.Delta)
			a.emit(provider.Delta{Type: provider.DeltaToolCall, CallID: c.id, Tool: c.name, Text: e.Delta})
		}
	case "response.output_item.done":
		a.done(item, e.Item)
	case "response.completed", "response.incomplete":
		a.finish = "stop"
		switch e.Response.Incomplete.Reason {
		case "max_output_tokens":
			a.finish = "length"
		case "content_filter":
			a.finish = "content_filter"
		}
		if u := e.Response.Usage; u != nil {
			cached := min(u.Details.Cached, u.Input)
			a.usage = provider.Usage{Input: u.Input - cached, Output: u.Output, CacheRead: cached}
		}
	case "response.failed":
		if e.Response.Error == nil {
			return f.Broken(nil)
		}
		return e.Response.Error.inStream(f)
	case "error":
		return (&wireError{e.Code, e.Message}).inStream(f)
	}
	return nil
}

// done processes a complete item: the arguments of a call, and reasoning that must be sent back.
func (a *assembly) done(item responseItem, raw json.RawMessage) {
	switch {
	case item.Type == "reasoning" && item.Encrypted != "":
		a.items = append(a.items, raw)
	case item.Type == "function_call":
		c := a.callOf(item)
		c.args.Reset()
		c.args.WriteString(item.Arguments)
	}
}

// callOf returns the call that is an item. The first event that has the item's name begins it; nil if that has not come.
func (a *assembly) callOf(item responseItem) *call {
	key := cmp.Or(item.ID, item.CallID)
	for _, c := range a.calls {
		if c.item == key {
			return c
		}
	}
	if item.Type == "" {
		return nil
	}
	c := &call{index: -1, id: item.CallID, item: key, name: item.Name}
	a.calls = append(a.calls, c)
	a.emit(provider.Delta{Type: provider.DeltaToolCall, CallID: c.id, Tool: c.name})
	return c
}
