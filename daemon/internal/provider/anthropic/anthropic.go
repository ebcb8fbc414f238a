// Package anthropic implements provider.Model with the Messages API through Anthropic's SDK. The SDK's retries, environment
// variables and tracing are disabled: the daemon retries, keys come from the user's configuration, and prompts are sent to
// the API only.
package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"sublet/daemon/config"
	"sublet/daemon/internal/provider"
)

const defaultURL = "https://api.anthropic.com/"

// defaultMaxTokens is sent if the caller sets no bound, since the API requires one.
const defaultMaxTokens = 32_000

// probeLimit bounds the request for the model's limits, which runs concurrently with the first answer.
const probeLimit = 2 * time.Second

// Model is one of Anthropic's models.
type Model struct {
	config provider.Config
	base   string
	fault  provider.Fault
	client sdk.Client
	retry  provider.Backoff

	mu sync.Mutex
	// guarded by mu:
	limit         provider.Limit
	asked         bool
	needsBudget   bool // supports thinking with a budget only
	noTemperature bool
	noEffort      bool
	noDisabled    bool // always thinks
	noImages      bool
}

// Open does no I/O.
func Open(c provider.Config) *Model {
	m := &Model{
		config: c, base: c.BaseURL, retry: provider.DefaultBackoff(), limit: provider.KnownLimit(c.Model), noImages: c.NoImages,
	}
	if m.base == "" {
		m.base = defaultURL
	}
	// The SDK appends v1/ itself.
	m.base = strings.TrimSuffix(strings.TrimRight(m.base, "/"), "/v1") + "/"
	m.fault = provider.Fault{Config: c, BaseURL: m.base}
	m.retry.Silence = m.fault.Silence()
	m.client = sdk.NewClient(
		option.WithoutEnvironmentDefaults(), option.WithoutOpenTelemetry(), option.WithMaxRetries(0),
		option.WithBaseURL(m.base), option.WithAPIKey(c.APIKey), option.WithHTTPClient(c.Client()),
		option.WithHeader("User-Agent", "sublet"),
	)
	return m
}

func (m *Model) Info() provider.Info {
	m.mu.Lock()
	defer m.mu.Unlock()
	return provider.Info{
		Name: m.config.FullName(), Provider: m.config.Name, Kind: config.KindAnthropic,
		Loaded: m.config.APIKey != "", NoImages: m.noImages, Limit: m.config.InForce(m.limit),
	}
}

func (m *Model) Stream(ctx context.Context, req provider.Request, onDelta func(provider.Delta)) (provider.Response, error) {
	if m.config.APIKey == "" {
		return provider.Response{}, m.fault.NoKey()
	}
	// The probe runs concurrently with the first answer; wait for it, so that no goroutine is left.
	probeCtx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { m.probe(probeCtx) })
	if thinks(req) {
		beside.Wait() // its result decides the form of thinking
	}

	resp, err := m.retry.Stream(ctx, req, m.config.Logger(), onDelta, func(show func(provider.Delta)) (provider.Response, error) {
		return m.try(ctx, req, show)
	}, m.learn)
	if err != nil {
		cancel() // a failed call does not wait for the probe
		return provider.Response{}, err
	}
	resp.Usage.CostUSD = m.Info().Cost(resp.Usage)
	return resp, nil
}

// try makes one request.
func (m *Model) try(ctx context.Context, req provider.Request, onDelta func(provider.Delta)) (provider.Response, error) {
	watched, feed, stop := provider.Watchdog(ctx, m.retry.Silence)
	defer stop()
	stream := m.client.Messages.NewStreaming(watched, m.params(req), option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		resp, err := next(r)
		if err == nil {
			resp.Body = feed(resp.Body) // the SDK drops pings, which must reset the watchdog
		}
		return resp, err
	}))
	defer stream.Close()
	var message sdk.Message
	input := map[int64]string{} // the arguments of calls as received, because the SDK empties those that were cut off
	stopped := false
	for stream.Next() {
		event := stream.Current()
		if err := message.Accumulate(event); err != nil {
			return provider.Response{}, m.fault.Broken(err)
		}
		switch event.Type {
		case "message_stop":
			stopped = true
		case "content_block_start":
			if b := event.ContentBlock; b.Type == "tool_use" {
				onDelta(provider.Delta{Type: provider.DeltaToolCall, CallID: b.ID, Tool: b.Name})
			}
		case "content_block_delta":
			input[event.Index] += event.Delta.PartialJSON
			if d, ok := delta(message.Content[event.Index], event.Delta); ok {
				onDelta(d)
			}
		}
	}
	if err := stream.Err(); err != nil {
		return provider.Response{}, m.failed(watched, err)
	}
	// The SDK takes EOF for the end of the message; only message_stop is.
	if !stopped || message.StopReason == "" {
		return provider.Response{}, m.fault.Broken(nil)
	}
	return response(message, input), nil
}

func delta(block sdk.ContentBlockUnion, d sdk.MessageStreamEventUnionDelta) (provider.Delta, bool) {
	switch {
	case d.Text != "":
		return provider.Delta{Type: provider.DeltaText, Text: d.Text}, true
	case d.Thinking != "":
		return provider.Delta{Type: provider.DeltaReasoning, Text: d.Thinking}, true
	case d.PartialJSON != "":
		return provider.Delta{Type: provider.DeltaToolCall, Text: d.PartialJSON, CallID: block.ID, Tool: block.Name}, true
	}
	return provider.Delta{}, false
}

// failed converts the SDK's errors: responses, errors in mid-stream, and errors of the connection.
func (m *Model) failed(ctx context.Context, err error) error {
	api, ok := errors.AsType[*sdk.Error](err)
	if !ok {
		if _, ok := errors.AsType[*json.SyntaxError](err); ok {
			return m.fault.Broken(err)
		}
		return m.fault.Transport(ctx, err)
	}
	status := api.StatusCode
	if status == http.StatusOK {
		status = 0 // an error event inside a stream that had begun
	}
	var header http.Header
	if api.Response != nil {
		header = api.Response.Header
	}
	return m.fault.Status(status, string(api.Type()), errorMessage(api.RawJSON()), header)
}

// learn records a feature that a refusal names and that can be left out or replaced, and reports whether that is new.
func (m *Model) learn(err error) bool {
	e, ok := err.(*provider.Error)
	if !ok || e.Kind != provider.ErrInvalid && e.Kind != provider.ErrImages {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.Kind == provider.ErrImages { // the caller must know if they are left out
		m.noImages = true
		return false
	}
	text := strings.ToLower(e.Message)
	switch {
	case strings.Contains(text, "temperature") && !m.noTemperature:
		m.noTemperature = true
	case strings.Contains(text, "effort") && !m.noEffort:
		m.noEffort = true
	case strings.Contains(text, "thinking.type.disabled") && !m.noDisabled:
		m.noDisabled = true
	case strings.Contains(text, "thinking") && strings.Contains(text, "adaptive") && !m.needsBudget:
		m.needsBudget = true
	default:
		return false
	}
	return true
}

// List returns the models that the key may use.
func (m *Model) List(ctx context.Context) ([]provider.Offer, error) {
	if m.config.APIKey == "" {
		return nil, m.fault.NoKey()
	}
	var list []provider.Offer
	pages := m.client.Models.ListAutoPaging(ctx, sdk.ModelListParams{})
	for pages.Next() {
		info := pages.Current()
		o := provider.Offer{Name: info.ID, Limit: provider.KnownLimit(info.ID)}
		o.Limit.ContextWindow = cmp.Or(int(info.MaxInputTokens), o.Limit.ContextWindow)
		o.Limit.MaxOutput = cmp.Or(int(info.MaxTokens), o.Limit.MaxOutput)
		if c := info.Capabilities; info.JSON.Capabilities.Valid() {
			yes := true // all of Anthropic's models call tools
			o.Images, o.Thinking, o.Tools = &c.ImageInput.Supported, &c.Thinking.Supported, &yes
		}
		list = append(list, o)
	}
	if err := pages.Err(); err != nil {
		return nil, m.failed(ctx, err)
	}
	return list, nil
}

// probe asks once for the model's capabilities. If the server does not answer, nothing changes.
func (m *Model) probe(ctx context.Context) {
	m.mu.Lock()
	asked := m.asked
	m.asked = true
	m.mu.Unlock()
	if asked {
		return
	}
	info, err := m.client.Models.Get(ctx, m.config.Model, sdk.ModelGetParams{})
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limit.ContextWindow = cmp.Or(int(info.MaxInputTokens), m.limit.ContextWindow)
	m.limit.MaxOutput = cmp.Or(int(info.MaxTokens), m.limit.MaxOutput)
	if t := info.Capabilities.Thinking.Types; t.Enabled.Supported {
		m.needsBudget = !t.Adaptive.Supported
	}
}
