package openai

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"

	"sublet/daemon/internal/provider"
)

// Bounds in bytes on what a server may send: one event, one error response.
const (
	maxEvent = 16 << 20
	maxError = 64 << 10
)

var errTooLarge = errors.New("the server sent an event of more than 16 MiB")

// readChunks calls add for each JSON object of a server-sent stream, up to [DONE] or EOF. It skips comments, `event:`, `id:`
// and blank lines. It also reads a single object, of a server that ignores `stream`. Whether the answer was complete without
// [DONE] is decided by the finish reason, in assembly.
func readChunks(body io.Reader, add func([]byte) error) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxEvent)
	var object []byte // the single object so far
	for began := false; lines.Scan(); {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if len(object) > 0 || !began && line[0] == '{' {
			if object = append(object, line...); len(object) > maxEvent {
				return errTooLarge
			}
			continue
		}
		began = true
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		data = bytes.TrimSpace(data)
		if string(data) == "[DONE]" {
			return nil
		}
		if ok && len(data) > 0 {
			if err := add(data); err != nil {
				return err
			}
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return errTooLarge
	case err != nil || len(object) == 0:
		return err
	}
	return add(object)
}

type wireChunk struct {
	Choices []struct {
		Delta        *wireDelta `json:"delta"`
		Message      *wireDelta `json:"message"` // of an answer that was not streamed
		FinishReason string     `json:"finish_reason"`
		Error        *wireError `json:"error"` // OpenRouter, in mid-stream
	} `json:"choices"`
	Usage *wireUsage `json:"usage"`
	Error *wireError `json:"error"`
}

type wireDelta struct {
	Content          string          `json:"content"`
	Refusal          string          `json:"refusal"`
	ReasoningContent string          `json:"reasoning_content"` // DeepSeek, llama.cpp, vLLM
	Reasoning        json.RawMessage `json:"reasoning"`         // OpenRouter, Ollama, LM Studio: a string
	ToolCalls        []wirePiece     `json:"tool_calls"`
}

// wirePiece is a piece of a call, or a complete one. Index may be missing; arguments are text or, from some servers, an object.
type wirePiece struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
	ExtraContent json.RawMessage `json:"extra_content"`
}

type wireUsage struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	Details          *struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	Cost *float64 `json:"cost"` // OpenRouter, US dollars
}

func (u *wireUsage) usage() provider.Usage {
	out := provider.Usage{Input: u.PromptTokens, Output: u.CompletionTokens, CostUSD: u.Cost}
	if u.Details != nil {
		out.CacheRead = min(u.Details.Cached, u.PromptTokens)
		out.Input -= out.CacheRead
	}
	return out
}

// wireError is an object, or just a text.
type wireError struct{ Code, Message string }

// inStream returns the error of a stream that had begun.
func (e *wireError) inStream(f provider.Fault) error {
	return f.Status(0, cmp.Or(e.Code, "stream_error"), e.Message, nil)
}

func (e *wireError) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		e.Message = text
		return nil
	}
	var object struct {
		Message  json.RawMessage `json:"message"`
		Type     string          `json:"type"`
		Code     json.RawMessage `json:"code"`
		Metadata struct {
			Raw string `json:"raw"` // OpenRouter: what the provider behind it said
		} `json:"metadata"`
	}
	if err := json.Unmarshal(b, &object); err != nil {
		e.Message = string(b)
		return nil
	}
	e.Message, e.Code = plain(object.Message), plain(object.Code)
	// A number, such as OpenRouter's, is an HTTP status; Fault.Status looks for words.
	if e.Code == "" || e.Code[0] >= '0' && e.Code[0] <= '9' {
		e.Code = object.Type
	}
	if object.Metadata.Raw != "" {
		e.Message += ": " + object.Metadata.Raw
	}
	return nil
}

// plain returns a JSON value as text: strings without their quotes, null as "".
func plain(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// errorBody parses the usual forms of an error: {"error": {…}}, {"error": "…"}, [{"error": …}] (Google),
// {"message": …}, {"detail": …}, or plain text.
func errorBody(r io.Reader) (code, message string) {
	b, _ := io.ReadAll(io.LimitReader(r, maxError)) // use what could be read
	var shape struct {
		Error   *wireError      `json:"error"`
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		Type    string          `json:"type"`
	}
	if list := []json.RawMessage(nil); json.Unmarshal(b, &list) == nil && len(list) > 0 {
		b = list[0]
	}
	if json.Unmarshal(b, &shape) != nil {
		return "", string(b)
	}
	switch {
	case shape.Error != nil:
		return shape.Error.Code, shape.Error.Message
	case len(shape.Message) > 0:
		return shape.Type, plain(shape.Message)
	case len(shape.Detail) > 0:
		return shape.Type, plain(shape.Detail)
	}
	return "", string(b)
}
