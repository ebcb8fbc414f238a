// Package scripted is a model whose answers are in a file. Tests drive the whole product with it: which tools
// are called, how an answer is cut into pieces, when a step waits, where a stream breaks. It is stateless: which step
// comes next is read off the conversation, so it behaves the same after a restart.
package scripted

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"sublet/daemon/config"
	"sublet/daemon/internal/picture"
	"sublet/daemon/internal/provider"
)

// pollInterval is how often a step looks for its wait_file.
const pollInterval = 5 * time.Millisecond

// A File is what the script's JSON holds; a bare array of scripts is accepted too.
type File struct {
	ContextWindow int      `json:"context_window"` // tokens; 0 = provider.DefaultContextWindow
	Scripts       []Script `json:"scripts"`
}

// A Script answers the prompts that Match finds itself in. Scripts are tried in order.
type Script struct {
	Match string `json:"match"` // a regular expression, unanchored
	Steps []Step `json:"steps"`
}

// A Step is one answer of the model. The step used is the number of assistant messages since the last real prompt;
// beyond the last one the answer is "done".
type Step struct {
	Text      string `json:"text"` // {images} stands for the images that the request carried
	Reasoning string `json:"reasoning"`
	ToolCalls []Call `json:"tool_calls"`
	// WaitFile is a path that must exist before this step answers.
	WaitFile   string `json:"wait_file"`
	Waits      string `json:"waits"`       // announced as the wait of a provider that is asked again, before the first piece
	ChunkBytes int    `json:"chunk_bytes"` // size of text pieces, rounded up to whole characters; 0 = one piece
	ChunkMS    int    `json:"chunk_ms"`    // pause after each piece
	Error      string `json:"error"`       // broken (after the text), overloaded, context_too_long, auth, unreachable, images (if there are any)
	// ErrorOverBytes limits Error to conversations longer than this; 0 = always. With it a step fails until the
	// conversation is compacted.
	ErrorOverBytes int             `json:"error_over_bytes"`
	StopReason     string          `json:"stop_reason"` // "" = tool_use if there are calls, else end_turn
	Usage          *provider.Usage `json:"usage"`       // nil = estimated
}

// A Call's arguments are a JSON object; a JSON string stands for its own text, to send what is not JSON.
type Call struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// Model plays a script file. The file is read again for each answer, so a test may write it at any time.
type Model struct {
	path string
	info provider.Info
}

// Open returns the model for c.Script. The file need not exist yet.
func Open(c provider.Config) (*Model, error) {
	if c.Script == "" {
		return nil, &provider.Error{
			Kind: provider.ErrInvalid, Provider: c.Name, Message: "a scripted model needs a script",
			HintText: fmt.Sprintf("set `script = \"/path/to/file.json\"` under [provider.%s]", c.Name),
		}
	}
	m := &Model{path: c.Script, info: provider.Info{
		Name: c.FullName(), Provider: c.Name, Kind: config.KindScripted, Loaded: true, Limit: c.InForce(provider.Limit{}),
	}}
	f, err := load(c.Script)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, m.fail(provider.ErrInvalid, err.Error(), err)
	}
	if f.ContextWindow > 0 {
		m.info.ContextWindow = f.ContextWindow
	}
	return m, nil
}

func (m *Model) Info() provider.Info { return m.info }

func load(path string) (File, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return File{}, err
	}
	var f File
	if list := []Script(nil); json.Unmarshal(b, &list) == nil {
		f.Scripts = list
	} else if err := json.Unmarshal(b, &f); err != nil {
		return File{}, fmt.Errorf("script %s: %w", path, err)
	}
	for _, s := range f.Scripts {
		if _, err := regexp.Compile(s.Match); err != nil {
			return File{}, fmt.Errorf("script %s: match: %w", path, err)
		}
	}
	return f, nil
}

func (m *Model) Stream(ctx context.Context, req provider.Request, onDelta func(provider.Delta)) (provider.Response, error) {
	f, err := load(m.path)
	if err != nil {
		return provider.Response{}, m.fail(provider.ErrInvalid, err.Error(), err)
	}
	step := f.step(req)
	if err := step.wait(ctx); err != nil {
		return provider.Response{}, err
	}
	images := provider.Images(req.Messages)
	step.Text = strings.ReplaceAll(step.Text, "{images}", describe(images))
	failing := step.Error != "" && (step.Error != string(provider.ErrImages) || len(images) > 0) && (step.ErrorOverBytes == 0 || req.Bytes() > step.ErrorOverBytes)
	if failing && step.Error != string(provider.ErrBroken) {
		return provider.Response{}, m.fail(provider.ErrorKind(step.Error), "scripted "+step.Error, nil)
	}
	var msg provider.Message
	msg.Role = provider.Assistant
	out := 0
	emit := func(t provider.DeltaType, text, call, tool string) error {
		for text != "" {
			piece := cut(text, step.ChunkBytes)
			text = text[len(piece):]
			out += len(piece)
			onDelta(provider.Delta{Type: t, Text: piece, CallID: call, Tool: tool})
			if err := provider.Sleep(ctx, time.Duration(step.ChunkMS)*time.Millisecond); err != nil {
				return err
			}
		}
		return nil
	}
	if step.Waits != "" {
		onDelta(provider.Delta{Type: provider.DeltaWait, Text: step.Waits})
		onDelta(provider.Delta{Type: provider.DeltaWait}) // ends the wait
	}
	if step.Reasoning != "" {
		if err := emit(provider.DeltaReasoning, step.Reasoning, "", ""); err != nil {
			return provider.Response{}, err
		}
		msg.Parts = append(msg.Parts, provider.Part{Reasoning: &provider.Reasoning{Text: step.Reasoning, Signature: "scripted"}})
	}
	if step.Text != "" {
		if err := emit(provider.DeltaText, step.Text, "", ""); err != nil {
			return provider.Response{}, err
		}
		msg.Parts = append(msg.Parts, provider.Part{Text: step.Text})
	}
	if failing {
		return provider.Response{}, m.fail(provider.ErrBroken, "the stream broke off (scripted)", nil)
	}
	for i, c := range step.ToolCalls {
		id := fmt.Sprintf("call_%d_%d", len(req.Messages), i)
		args := c.raw()
		if err := emit(provider.DeltaToolCall, string(args), id, c.Name); err != nil {
			return provider.Response{}, err
		}
		msg.Parts = append(msg.Parts, provider.Part{ToolCall: &provider.ToolCall{ID: id, Name: c.Name, Arguments: args}})
	}
	return provider.Response{Message: msg, StopReason: step.stopReason(), Usage: step.usage(req, out)}, nil
}

// describe lists the images with their sizes and digests, so that a test sees that they came whole.
func describe(images []*picture.Image) string {
	if len(images) == 0 {
		return "no image"
	}
	list := make([]string, 0, len(images))
	for _, i := range images {
		list = append(list, fmt.Sprintf("%s of %d bytes, sha256 %x", i, len(i.Data), sha256.Sum256(i.Data)))
	}
	return strings.Join(list, "; ")
}

// step picks the answer to req.
func (f File) step(req provider.Request) Step {
	prompt, after := provider.LastPrompt(req.Messages)
	n := 0
	for _, m := range after {
		if m.Role == provider.Assistant {
			n++
		}
	}
	for _, s := range f.Scripts {
		if !regexp.MustCompile(s.Match).MatchString(prompt) {
			continue
		}
		if n >= len(s.Steps) {
			return Step{Text: "done"}
		}
		return s.Steps[n]
	}
	return Step{Text: "no script for: " + prompt}
}

// wait returns when WaitFile exists, or with the cause of ctx.
func (s Step) wait(ctx context.Context) error {
	for s.WaitFile != "" {
		if _, err := os.Stat(s.WaitFile); err == nil {
			break
		}
		if err := provider.Sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
	return nil
}

func (s Step) stopReason() provider.StopReason {
	switch {
	case s.StopReason != "":
		return provider.StopReason(s.StopReason)
	case len(s.ToolCalls) > 0:
		return provider.ToolUse
	}
	return provider.EndTurn
}

func (s Step) usage(req provider.Request, out int) provider.Usage {
	if s.Usage != nil {
		return *s.Usage
	}
	return provider.Usage{Input: provider.EstimateTokens(req.Bytes()), Output: provider.EstimateTokens(out)}
}

func (c Call) raw() json.RawMessage {
	var text string
	if json.Unmarshal(c.Arguments, &text) == nil && len(c.Arguments) > 0 && c.Arguments[0] == '"' {
		return json.RawMessage(text)
	}
	if len(c.Arguments) == 0 {
		return json.RawMessage("{}")
	}
	return c.Arguments
}

// cut returns the first n bytes of s, extended to the end of a character; all of s when n is 0.
func cut(s string, n int) string {
	if n <= 0 || n >= len(s) {
		return s
	}
	for n < len(s) && !utf8.RuneStart(s[n]) {
		n++
	}
	return s[:n]
}

func (m *Model) fail(kind provider.ErrorKind, message string, err error) *provider.Error {
	return &provider.Error{Kind: kind, Provider: m.info.Provider, Message: message, Err: err}
}
