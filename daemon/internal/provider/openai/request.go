package openai

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"sublet/daemon/internal/picture"
	"sublet/daemon/internal/provider"
)

type wireRequest struct {
	Model               string         `json:"model"`
	Messages            []wireMessage  `json:"messages"`
	Tools               []wireTool     `json:"tools,omitempty"`
	Stream              bool           `json:"stream"`
	StreamOptions       *streamOptions `json:"stream_options,omitempty"`
	MaxTokens           *int           `json:"max_tokens,omitempty"`
	MaxCompletionTokens *int           `json:"max_completion_tokens,omitempty"`
	Temperature         *float64       `json:"temperature,omitempty"`
	ReasoningEffort     string         `json:"reasoning_effort,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// wireMessage's Content is a *string, nil for an assistant message with calls only, since some servers insist on null. With
// images it is a []wirePart; text alone is a string, since some servers do not accept a list.
type wireMessage struct {
	Role             string     `json:"role"`
	Content          any        `json:"content"`
	ReasoningContent string     `json:"reasoning_content,omitempty"`
	ToolCalls        []wireCall `json:"tool_calls,omitempty"`
	ToolCallID       string     `json:"tool_call_id,omitempty"`
}

type wirePart struct {
	Type     string        `json:"type"` // text, image_url
	Text     string        `json:"text,omitempty"`
	ImageURL *wireImageURL `json:"image_url,omitempty"`
	Cache    *wireCache    `json:"cache_control,omitempty"`
}

// wireCache marks the end of what a server should cache for the next request.
type wireCache struct {
	Type string `json:"type"` // ephemeral
}

type wireImageURL struct {
	URL string `json:"url"`
}

func dataURL(i *picture.Image) string {
	return "data:" + i.MIME + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
}

type wireCall struct {
	ID           string          `json:"id"`
	Type         string          `json:"type"`
	Function     wireFunction    `json:"function"`
	ExtraContent json.RawMessage `json:"extra_content,omitempty"` // Google: the thought's signature
}

type wireFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type wireTool struct {
	Type     string       `json:"type"`
	Function wireToolSpec `json:"function"`
}

type wireToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// request converts a conversation to the API's form.
func (m *Model) request(req provider.Request) wireRequest {
	q := m.quirks.get()
	w := wireRequest{Model: m.config.Model, Stream: true}
	if !q.noStreamOptions {
		w.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	if q.maxCompletionTokens {
		w.MaxCompletionTokens = req.MaxTokens
	} else {
		w.MaxTokens = req.MaxTokens
	}
	if !q.noTemperature {
		w.Temperature = req.Temperature
	}
	switch req.Thinking {
	case "low", "medium", "high":
		if !q.noEffort {
			w.ReasoningEffort = req.Thinking
		}
	}
	if req.System != "" {
		w.Messages = append(w.Messages, wireMessage{Role: "system", Content: &req.System})
	}
	current := turnBegin(req.Messages)
	for i, msg := range req.Messages {
		if msg.Role == provider.Assistant {
			w.Messages = append(w.Messages, m.assistant(msg, i >= current && !q.noReasoningBack))
			continue
		}
		w.Messages = append(w.Messages, userMessages(msg)...)
	}
	if strings.Contains(m.base, "openrouter.ai") && strings.HasPrefix(m.config.Model, "anthropic/") {
		markCache(w.Messages)
	}
	if !q.noTools {
		for _, t := range req.Tools {
			w.Tools = append(w.Tools, wireTool{Type: "function", Function: wireToolSpec{t.Name, t.Description, t.Schema}})
		}
	}
	return w
}

// markCache sets cache marks on the system prompt and the newest two messages that are not the model's, as Claude needs;
// OpenRouter passes them on. Messages of tools then have their text in one part.
func markCache(messages []wireMessage) {
	left := 3
	for i := len(messages) - 1; i >= 0 && left > 0; i-- {
		w := &messages[i]
		if w.Role == "assistant" || left == 1 && w.Role != "system" {
			continue
		}
		parts, several := w.Content.([]wirePart)
		if !several {
			parts = []wirePart{{Type: "text", Text: *w.Content.(*string)}}
		}
		parts[len(parts)-1].Cache = &wireCache{"ephemeral"}
		w.Content = parts
		left--
	}
}

// assistant converts a message of the model. Reasoning is sent back within the current turn only, and only to the kind of
// server that sent it: models that think between tool calls need it, others refuse or ignore it.
func (m *Model) assistant(msg provider.Message, reasoning bool) wireMessage {
	w := wireMessage{Role: "assistant"}
	var text strings.Builder
	var extra json.RawMessage
	for _, p := range msg.Parts {
		switch {
		case p.Reasoning != nil:
			signature, ok := provider.Unseal(m.config.Kind, p.Reasoning.Signature)
			switch {
			case !ok:
			case signature == reasoningField:
				if reasoning {
					w.ReasoningContent += p.Reasoning.Text
				}
			case json.Valid([]byte(signature)):
				extra = json.RawMessage(signature) // belongs to the call that follows
			}
		case p.ToolCall != nil:
			w.ToolCalls = append(w.ToolCalls, wireCall{
				ID: p.ToolCall.ID, Type: "function", ExtraContent: extra,
				Function: wireFunction{p.ToolCall.Name, string(p.ToolCall.Arguments)},
			})
			extra = nil
		case p.Text != "":
			text.WriteString(p.Text)
		}
	}
	if text.Len() > 0 || len(w.ToolCalls) == 0 {
		s := text.String()
		w.Content = &s
	}
	return w
}

// turnBegin returns the index at which the current turn begins, whose reasoning is sent back.
func turnBegin(messages []provider.Message) int {
	_, after := provider.LastPrompt(messages)
	return len(messages) - len(after)
}

// apart returns the results of calls in a user's message, which both APIs take by themselves and before the rest, and the rest.
// A result is text only there, so that its images follow as the user's.
func apart(msg provider.Message) (results []*provider.ToolResult, rest []provider.Part) {
	for _, p := range msg.Parts {
		if p.ToolResult == nil {
			rest = append(rest, p)
			continue
		}
		results = append(results, p.ToolResult)
		for _, i := range p.ToolResult.Images {
			rest = append(rest, provider.Part{Text: "The image that the tool gave, " + i.String() + ":"}, provider.Part{Image: i})
		}
	}
	return results, rest
}

// userMessages converts a user's message: one for each result, and one for the rest.
func userMessages(msg provider.Message) (list []wireMessage) {
	results, rest := apart(msg)
	for _, r := range results {
		list = append(list, wireMessage{Role: "tool", ToolCallID: r.CallID, Content: &r.Content})
	}
	if len(rest) == 0 {
		return list
	}
	var parts []wirePart
	var texts []string
	for _, p := range rest {
		if p.Image != nil {
			parts = append(parts, wirePart{Type: "image_url", ImageURL: &wireImageURL{dataURL(p.Image)}})
		} else {
			parts, texts = append(parts, wirePart{Type: "text", Text: p.Text}), append(texts, p.Text)
		}
	}
	if len(texts) < len(parts) {
		return append(list, wireMessage{Role: "user", Content: parts})
	}
	text := strings.Join(texts, "\n\n")
	return append(list, wireMessage{Role: "user", Content: &text})
}
