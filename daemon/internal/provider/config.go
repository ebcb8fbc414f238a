package provider

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"
)

// Config describes the model to open; provider/open opens it. Fields that a kind does not need may be zero.
type Config struct {
	Name    string // of the provider in the configuration: the part of "provider/model" before the slash
	Kind    string // one of config.ProviderKinds
	BaseURL string // "" = the provider's own
	APIKey  string // never logged; "" where the server needs none
	Model   string // the part after the slash
	Script  string // scripted: path of the JSON file
	// APIKeyEnv is the variable the key comes from, for hints.
	APIKeyEnv string
	// ContextWindow, in tokens, overrides what the provider reports; 0 = ask it.
	ContextWindow int
	NoImages      bool // never send it images
	// Silence is how long a request may receive nothing before it is given up; 0 = SilenceLimit, or LocalSilenceLimit.
	Silence time.Duration
	Log     *slog.Logger
	// Headers and Query are added to each request.
	Headers, Query map[string]string
	// Prices override the known ones of the model where they are not 0.
	Prices Limit
	API    string // openai: chat, responses; "" = responses at OpenAI itself, chat elsewhere
	// HTTP is for tests and proxies; nil is a client of the package's own, without an overall time-out (streams are long).
	HTTP *http.Client
}

// Client returns the client for requests: HTTP, or a new one, which adds Headers and Query to each.
func (c Config) Client() *http.Client {
	client := &http.Client{}
	if c.HTTP != nil {
		copied := *c.HTTP
		client = &copied
	}
	if len(c.Headers)+len(c.Query) > 0 {
		client.Transport = adding{base: cmp.Or(client.Transport, http.DefaultTransport), headers: c.Headers, query: c.Query}
	}
	return client
}

// adding is a transport that adds headers and query parameters to each request.
type adding struct {
	base           http.RoundTripper
	headers, query map[string]string
}

func (a adding) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range a.headers {
		r.Header.Set(name, value)
	}
	q := r.URL.Query()
	for name, value := range a.query {
		q.Set(name, value)
	}
	r.URL.RawQuery = q.Encode()
	return a.base.RoundTrip(r)
}

// InForce returns l with the window and the prices of the settings, where they set any, and a window in any case.
func (c Config) InForce(l Limit) Limit {
	l.ContextWindow = cmp.Or(c.ContextWindow, l.ContextWindow, DefaultContextWindow)
	l.Input, l.Output = cmp.Or(c.Prices.Input, l.Input), cmp.Or(c.Prices.Output, l.Output)
	l.CacheRead, l.CacheWrite = cmp.Or(c.Prices.CacheRead, l.CacheRead), cmp.Or(c.Prices.CacheWrite, l.CacheWrite)
	return l
}

// FullName returns "provider/model".
func (c Config) FullName() string {
	if c.Model == "" {
		return c.Name
	}
	return c.Name + "/" + c.Model
}

// Logger returns c.Log, or a logger that discards.
func (c Config) Logger() *slog.Logger {
	if c.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Log
}
