package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
	r := bufio.NewReaderSize(body, 32<<10)
	if first, err := firstByte(r); err != nil {
		return err
	} else if first == '{' {
		whole, err := io.ReadAll(io.LimitReader(r, maxEvent+1))
		if err != nil {
			return err
		}
		if len(whole) > maxEvent {
			return errTooLarge
		}
		return add(whole)
	}
	for {
		line, err := readLine(r)
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = bytes.TrimSpace(data)
			if bytes.Equal(data, []byte("[DONE]")) {
				return nil
			}
			if len(data) > 0 {
				if err := add(data); err != nil {
					return err
				}
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func firstByte(r *bufio.Reader) (byte, error) {
	for {
		b, err := r.ReadByte()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return 0, io.ErrUnexpectedEOF // it ended before the first event
			}
			return 0, err
		}
		switch b {
		case ' ', '\t', '\r', '\n':
		default:
			return b, r.UnreadByte()
		}
	}
}

// readLine returns a line without its end. The caller owns the slice.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		piece, err := r.ReadSlice('\n')
		if len(line)+len(piece) > maxEvent {
			return nil, errTooLarge
		}
		line = append(line, piece...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimRight(line, "\r\n"), err
		}
	}
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

// wirePiece is a piece of a call, or a whole one. Index may be missing; arguments are text or, from some servers, an object.
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

// decode parses one event. A stream that contains anything but JSON is an error.
func decode(f provider.Fault, data []byte) (wireChunk, error) {
	var c wireChunk
	if err := json.Unmarshal(data, &c); err != nil {
		return c, f.Broken(fmt.Errorf("event: %w", err))
	}
	if c.Error == nil && len(c.Choices) > 0 {
		c.Error = c.Choices[0].Error
	}
	if c.Error != nil {
		return c, f.Status(0, c.Error.orStream(), c.Error.Message, nil)
	}
	return c, nil
}

func (e *wireError) orStream() string {
	if e.Code == "" {
		return "stream_error"
	}
	return e.Code
}
