package provider

import (
	"bytes"
	"encoding/json"
	"strings"

	"sublet/daemon/internal/picture"
)

// LastPrompt returns the newest prompt, and the messages after it. A user message with tool results is not a prompt. The
// first text of a message is the prompt itself; further ones are context that the agent adds (recent commands,
// attachments). Without a prompt both results are zero.
func LastPrompt(messages []Message) (prompt string, after []Message) {
	for i := len(messages) - 1; i >= 0; i-- {
		if text, ok := PromptOf(messages[i]); ok {
			return text, messages[i+1:]
		}
	}
	return "", nil
}

// PromptOf returns the prompt in m; false if m is not a prompt.
func PromptOf(m Message) (string, bool) {
	if m.Role != User {
		return "", false
	}
	prompt := ""
	for _, p := range m.Parts {
		if p.ToolResult != nil {
			return "", false
		}
		if prompt == "" {
			prompt = p.Text
		}
	}
	return prompt, prompt != ""
}

// Images returns the images of a conversation in order, those of tool results included.
func Images(messages []Message) []*picture.Image {
	var list []*picture.Image
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.Image != nil {
				list = append(list, p.Image)
			}
			if p.ToolResult != nil {
				list = append(list, p.ToolResult.Images...)
			}
		}
	}
	return list
}

// Bytes returns the size of a request's text: system prompt, messages and tool descriptions. An image counts four bytes for
// each of its tokens, since a token is about four bytes of text.
func (r Request) Bytes() int {
	n := len(r.System)
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			n += len(p.Text)
			if p.Image != nil {
				n += 4 * p.Image.Tokens()
			}
			if p.Reasoning != nil {
				n += len(p.Reasoning.Text)
			}
			if p.ToolCall != nil {
				n += len(p.ToolCall.Name) + len(p.ToolCall.Arguments)
			}
			if p.ToolResult != nil {
				n += len(p.ToolResult.Content)
				for _, i := range p.ToolResult.Images {
					n += 4 * i.Tokens()
				}
			}
		}
	}
	for _, t := range r.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return n
}

// EstimateTokens is the estimate for providers that do not count tokens.
func EstimateTokens(bytes int) int64 { return int64(bytes+3) / 4 }

// ArgumentsObject returns a call's arguments as a JSON object, which every API requires in a conversation; anything else that
// the model wrote is put under one key of a new object.
func ArgumentsObject(raw json.RawMessage) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) == nil && object != nil {
		return raw
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return json.RawMessage("{}")
	}
	wrapped, _ := json.Marshal(map[string]string{"invalid_arguments": string(raw)}) // strings always marshal
	return wrapped
}

// Seal prefixes a signature with its kind of provider; Unseal removes the prefix, ok only for the same kind.
func Seal(kind, signature string) string { return kind + ":" + signature }

func Unseal(kind, sealed string) (signature string, ok bool) {
	return strings.CutPrefix(sealed, kind+":")
}
