// Package openai implements provider.Model with OpenAI's Responses API and with chat completions: OpenAI's own, Google's
// compatible endpoint, and servers that offer the same (Ollama, llama.cpp, vLLM, LM Studio, OpenRouter). It accepts their
// variants: calls whole or in pieces, with or without ids, with or without usage, reasoning in one of three places.
//
// It does not use a library: go-openai v1.43.0 hides the response's headers (Retry-After), returns neither data nor error
// for an error event that follows an `event:` line, does not detect a missing [DONE], and drops `reasoning` and the
// signatures without which Google refuses its own calls.
package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"sublet/daemon/config"
	"sublet/daemon/internal/provider"
)

// Default base URLs.
const (
	openaiURL = "https://api.openai.com/v1"
	googleURL = "https://generativelanguage.googleapis.com/v1beta/openai"
)

// Model is one model of one server.
type Model struct {
	config provider.Config
	base   string
	fault  provider.Fault
	http   *http.Client
	retry  provider.Backoff
	quirks quirks
	probe  probe
}

// Open does no I/O.
func Open(c provider.Config) *Model {
	m := &Model{config: c, base: c.BaseURL, http: c.Client(), retry: provider.DefaultBackoff()}
	if m.base == "" {
		m.base = openaiURL
		if c.Kind == config.KindGoogle {
			m.base = googleURL
		}
	}
	m.base = strings.TrimSuffix(strings.TrimSuffix(strings.TrimRight(m.base, "/"), "/chat/completions"), "/")
	m.fault = provider.Fault{Config: c, BaseURL: m.base}
	m.retry.Silence = m.fault.Silence()
	m.quirks.maxCompletionTokens, m.quirks.noImages = m.base == openaiURL, c.NoImages
	m.probe.limit = provider.KnownLimit(c.Model)
	return m
}

// loaded reports whether the model is usable: OpenAI and Google need a key, other servers may not.
func (m *Model) loaded() bool {
	return m.config.APIKey != "" || m.base != openaiURL && m.base != googleURL
}

func (m *Model) Info() provider.Info {
	return provider.Info{
		Name: m.config.FullName(), Provider: m.config.Name, Kind: m.config.Kind, Loaded: m.loaded(),
		NoImages: m.quirks.get().noImages, Limit: m.config.InForce(m.probe.known()),
	}
}

func (m *Model) Stream(ctx context.Context, req provider.Request, onDelta func(provider.Delta)) (provider.Response, error) {
	if !m.loaded() {
		return provider.Response{}, m.fault.NoKey()
	}
	// The probe runs concurrently with the first answers; wait for it, so that no goroutine is left.
	probeCtx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	var beside sync.WaitGroup
	defer beside.Wait()
	if m.probe.wanted(m.base, m.config) {
		beside.Go(func() { m.probe.ask(probeCtx, m) })
	}

	resp, err := m.retry.Stream(ctx, req, m.config.Logger(), onDelta, func(show func(provider.Delta)) (provider.Response, error) {
		return m.try(ctx, req, show)
	}, m.quirks.learn)
	if err != nil {
		cancel() // a failed call does not wait for the probe
		return provider.Response{}, err
	}
	beside.Wait() // it may have found the price
	if resp.Usage.CostUSD == nil {
		resp.Usage.CostUSD = m.Info().Cost(resp.Usage)
	}
	return resp, nil
}

// try makes one request.
func (m *Model) try(ctx context.Context, req provider.Request, onDelta func(provider.Delta)) (provider.Response, error) {
	watched, feed, stop := provider.Watchdog(ctx, m.retry.Silence)
	defer stop()
	a := &assembly{kind: m.config.Kind, emit: onDelta}
	path, form, add := "/chat/completions", any(nil), a.add
	if m.speaksResponses() {
		path, form, add = "/responses", m.responses(req), a.event
	} else {
		form = m.request(req)
	}
	body, err := json.Marshal(form)
	if err != nil {
		return provider.Response{}, &provider.Error{Kind: provider.ErrInvalid, Provider: m.config.Name, Message: err.Error(), Err: err}
	}
	httpResp, err := m.do(watched, http.MethodPost, m.base+path, body)
	if err != nil {
		return provider.Response{}, m.fault.Transport(watched, err)
	}
	defer httpResp.Body.Close()
	if httpResp.StatusCode != http.StatusOK {
		return provider.Response{}, m.refused(httpResp)
	}
	if strings.HasPrefix(httpResp.Header.Get("Content-Type"), "text/html") {
		return provider.Response{}, m.fault.WebPage()
	}
	err = readChunks(feed(httpResp.Body), func(data []byte) error { return add(m.fault, data) })
	if err != nil {
		if _, ok := err.(*provider.Error); ok && watched.Err() == nil { // else it is of an event that was cut off
			return provider.Response{}, err
		}
		return provider.Response{}, m.fault.Transport(watched, err)
	}
	resp, ok := a.response()
	if !ok {
		return provider.Response{}, m.fault.Broken(nil)
	}
	return resp, nil
}

func (m *Model) do(ctx context.Context, method, url string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(string(body)))
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "text/event-stream")
	}
	if m.config.APIKey != "" {
		r.Header.Set("Authorization", "Bearer "+m.config.APIKey)
	}
	r.Header.Set("User-Agent", "sublet")
	return m.http.Do(r)
}

// refused reads an error response of bounded size.
func (m *Model) refused(resp *http.Response) *provider.Error {
	code, message := errorBody(resp.Body)
	return m.fault.Status(resp.StatusCode, code, message, resp.Header)
}

// quirks are the features that a server has refused, each learned from one refusal.
type quirks struct {
	mu sync.Mutex
	// guarded by mu:
	quirksNow
}

type quirksNow struct {
	maxCompletionTokens, noStreamOptions, noTemperature, noEffort, noReasoningBack, noTools, noImages, noEncrypted bool

	noNone, noMinimal bool // as efforts
}

// learn records a feature that a refusal names and that can be left out, and reports whether that is new. Images are not
// among them, since the caller must know if they are left out.
func (q *quirks) learn(err error) bool {
	e, ok := err.(*provider.Error)
	if !ok || e.Kind != provider.ErrInvalid && e.Kind != provider.ErrImages {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.Kind == provider.ErrImages {
		q.noImages = true
		return false
	}
	said, _, _ := strings.Cut(strings.ToLower(e.Message), "supported values are")
	for _, known := range []struct {
		words string
		flag  *bool
	}{
		{"max_completion_tokens", &q.maxCompletionTokens}, // "use 'max_completion_tokens' instead"
		{"stream_options", &q.noStreamOptions},
		{"temperature", &q.noTemperature},
		{"'none'", &q.noNone},
		{"'minimal'", &q.noMinimal},
		{"reasoning_effort", &q.noEffort},
		{"reasoning.effort", &q.noEffort},
		{"reasoning.summary", &q.noEffort},
		{"encrypted content", &q.noEncrypted},
		{"encrypted_content", &q.noEncrypted},
		{"reasoning_content", &q.noReasoningBack},
		{"does not support tools", &q.noTools},
	} {
		if strings.Contains(said, known.words) && !*known.flag {
			*known.flag = true
			return true
		}
	}
	return false
}

func (q *quirks) get() quirksNow {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.quirksNow
}
