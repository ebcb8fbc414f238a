package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"sublet/daemon/config"
	"sublet/daemon/internal/provider"
)

// redacted marks the signature of encrypted thinking.
const redacted = "redacted:"

// budgets of thinking, in tokens, for models that need one.
var budgets = map[string]int64{"low": 2_048, "medium": 8_192, "high": 24_576}

func thinks(req provider.Request) bool { return budgets[req.Thinking] > 0 }

// mayThink reports whether the API accepts a budget for thinking: a turn that goes on with results of calls must have begun with
// thinking, which it has not where another provider's model began it.
func mayThink(messages []provider.Message) bool {
	_, after := provider.LastPrompt(messages)
	if len(after) == 0 {
		return true
	}
	first := blocks(after[0])
	return len(first) > 0 && (first[0].OfThinking != nil || first[0].OfRedactedThinking != nil)
}

// params converts a conversation to the API's form, with four cache marks, the most that the API takes: tools, system prompt,
// the end of the previous request and the end of this one. So each request reads the cache of the one before.
func (m *Model) params(req provider.Request) sdk.MessageNewParams {
	m.mu.Lock()
	limit, needsBudget, noTemperature, noEffort, noDisabled := m.limit, m.needsBudget, m.noTemperature, m.noEffort, m.noDisabled
	m.mu.Unlock()

	p := sdk.MessageNewParams{Model: m.config.Model, MaxTokens: defaultMaxTokens}
	if limit.MaxOutput > 0 {
		p.MaxTokens = min(p.MaxTokens, int64(limit.MaxOutput))
	}
	if req.MaxTokens != nil {
		p.MaxTokens = int64(*req.MaxTokens)
	}
	switch {
	case thinks(req) && !needsBudget:
		p.Thinking.OfAdaptive = &sdk.ThinkingConfigAdaptiveParam{Display: sdk.ThinkingConfigAdaptiveDisplaySummarized}
		if !noEffort {
			p.OutputConfig.Effort = sdk.OutputConfigEffort(req.Thinking)
		}
	case thinks(req) && p.MaxTokens > 2*budgets["low"] && mayThink(req.Messages):
		// At most half of the tokens go to thinking, and less than the lowest budget is not worth it. The API requires a budget
		// of at least 1024, below max_tokens.
		p.Thinking = sdk.ThinkingConfigParamOfEnabled(min(budgets[req.Thinking], p.MaxTokens/2))
	case req.Thinking == "off" && !noDisabled:
		p.Thinking.OfDisabled = &sdk.ThinkingConfigDisabledParam{}
	}
	// The API refuses a temperature together with thinking.
	if req.Temperature != nil && !noTemperature && p.Thinking.OfAdaptive == nil && p.Thinking.OfEnabled == nil {
		p.Temperature = param.NewOpt(*req.Temperature)
	}
	if req.System != "" {
		p.System = []sdk.TextBlockParam{{Text: req.System, CacheControl: sdk.NewCacheControlEphemeralParam()}}
	}
	for i, t := range req.Tools {
		tool := &sdk.ToolParam{Name: t.Name, Description: param.NewOpt(t.Description), InputSchema: param.Override[sdk.ToolInputSchemaParam](t.Schema)}
		if i == len(req.Tools)-1 {
			tool.CacheControl = sdk.NewCacheControlEphemeralParam()
		}
		p.Tools = append(p.Tools, sdk.ToolUnionParam{OfTool: tool})
	}
	for _, msg := range req.Messages {
		if content := blocks(msg); len(content) > 0 {
			p.Messages = append(p.Messages, sdk.MessageParam{Role: sdk.MessageParamRole(msg.Role), Content: content})
		}
	}
	// The previous request ended with the third message from the end. A mark there finds its cache even if the newest answer has
	// more than the 20 blocks that the API looks back from a mark.
	markLast(p.Messages)
	if n := len(p.Messages) - 2; n > 0 {
		markLast(p.Messages[:n])
	}
	return p
}

// blocks converts a message. As the API requires, results of calls come first; everything else keeps its order.
func blocks(msg provider.Message) (list []sdk.ContentBlockParamUnion) {
	var texts []sdk.ContentBlockParamUnion
	for _, p := range msg.Parts {
		switch {
		case p.ToolResult != nil:
			r := p.ToolResult
			block := sdk.NewToolResultBlock(r.CallID, r.Content, r.IsError)
			for _, i := range r.Images {
				image := sdk.NewImageBlockBase64(i.MIME, base64.StdEncoding.EncodeToString(i.Data)).OfImage
				block.OfToolResult.Content = append(block.OfToolResult.Content, sdk.ToolResultBlockParamContentUnion{OfImage: image})
			}
			list = append(list, block)
		case p.ToolCall != nil:
			c := p.ToolCall
			list = append(append(list, texts...), sdk.NewToolUseBlock(c.ID, c.Arguments, c.Name))
			texts = nil
		case p.Reasoning != nil:
			signature, ok := provider.Unseal(config.KindAnthropic, p.Reasoning.Signature)
			if !ok || signature == "" {
				continue // another provider's, or without a signature: the API refuses it
			}
			list = append(list, texts...)
			texts = nil
			if data, ok := strings.CutPrefix(signature, redacted); ok {
				list = append(list, sdk.NewRedactedThinkingBlock(data))
			} else {
				list = append(list, sdk.NewThinkingBlock(signature, p.Reasoning.Text))
			}
		case p.Image != nil:
			texts = append(texts, sdk.NewImageBlockBase64(p.Image.MIME, base64.StdEncoding.EncodeToString(p.Image.Data)))
		case strings.TrimSpace(p.Text) != "": // the API refuses blank text
			texts = append(texts, sdk.NewTextBlock(p.Text))
		}
	}
	return append(list, texts...)
}

// markLast sets a cache mark on the last block of messages, of which none is empty. A block other than a text, an image or a tool result
// gets none.
func markLast(messages []sdk.MessageParam) {
	if len(messages) == 0 {
		return
	}
	content := messages[len(messages)-1].Content
	switch last := content[len(content)-1]; {
	case last.OfText != nil:
		last.OfText.CacheControl = sdk.NewCacheControlEphemeralParam()
	case last.OfImage != nil:
		last.OfImage.CacheControl = sdk.NewCacheControlEphemeralParam()
	case last.OfToolResult != nil:
		last.OfToolResult.CacheControl = sdk.NewCacheControlEphemeralParam()
	}
}

// response converts a complete message. input has the arguments of its calls as they were received, by the index of the block.
func response(m sdk.Message, input map[int64]string) provider.Response {
	msg := provider.Message{Role: provider.Assistant}
	for i, b := range m.Content {
		switch b.Type {
		case "text":
			if b.Text != "" {
				msg.Parts = append(msg.Parts, provider.Part{Text: b.Text})
			}
		case "thinking":
			msg.Parts = append(msg.Parts, provider.Part{Reasoning: &provider.Reasoning{
				Text: b.Thinking, Signature: provider.Seal(config.KindAnthropic, b.Signature),
			}})
		case "redacted_thinking":
			msg.Parts = append(msg.Parts, provider.Part{Reasoning: &provider.Reasoning{
				Signature: provider.Seal(config.KindAnthropic, redacted+b.Data),
			}})
		case "tool_use":
			args := json.RawMessage(input[int64(i)])
			if len(args) == 0 {
				args = b.Input
			}
			msg.Parts = append(msg.Parts, provider.Part{ToolCall: &provider.ToolCall{ID: b.ID, Name: b.Name, Arguments: args}})
		}
	}
	return provider.Response{
		Message: msg, StopReason: stopReason(m.StopReason),
		Usage: provider.Usage{
			Input: m.Usage.InputTokens, Output: m.Usage.OutputTokens,
			CacheRead: m.Usage.CacheReadInputTokens, CacheWrite: m.Usage.CacheCreationInputTokens,
		},
	}
}

func stopReason(r sdk.StopReason) provider.StopReason {
	switch r {
	case sdk.StopReasonToolUse:
		return provider.ToolUse
	case sdk.StopReasonMaxTokens, sdk.StopReasonModelContextWindowExceeded:
		return provider.MaxTokens
	case sdk.StopReasonRefusal:
		return provider.Refusal
	}
	return provider.EndTurn
}

// errorMessage returns the message in {"type":"error","error":{"type":…,"message":…}}, or the text unchanged.
func errorMessage(raw string) string {
	var body struct {
		Error struct{ Message string }
	}
	if json.Unmarshal([]byte(raw), &body) == nil && body.Error.Message != "" {
		return body.Error.Message
	}
	return raw
}
