package provider

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"
)

// Kinds of back ends, as `kind` in the configuration names them.
const (
	KindAnthropic = "anthropic"
	KindOpenAI    = "openai" // and every server that speaks its chat completions
	KindGoogle    = "google" // through its OpenAI-compatible endpoint
	KindOffline   = "offline"
	KindScripted  = "scripted"
)

// Config says which model to open; provider/open does it. The zero value of what a kind does not need is right.
type Config struct {
	Name    string // of the provider in the configuration: the part of "provider/model" before the slash
	Kind    string // one of Kind…
	BaseURL string // "" = the provider's own
	APIKey  string // never logged; "" where the server needs none
	Model   string // the part after the slash
	Script  string // scripted: path of the JSON file
	// APIKeyEnv is the variable the key comes from; only hints name it.
	APIKeyEnv string
	// ContextWindow, in tokens, overrules what the provider says; 0 = ask it.
	ContextWindow int
	NoImages      bool // never send it any
	// Silence is after how long without a byte a request is given up; 0 = SilenceLimit, or LocalSilenceLimit.
	Silence time.Duration
	Log     *slog.Logger
	// Headers and Query go with each request.
	Headers, Query map[string]string
	// Prices overrule those that are known of the model where they are not 0.
	Prices Limit
	API    string // openai: chat, responses; "" = responses at OpenAI itself, chat elsewhere
	// HTTP is for tests and proxies; nil is a client of the package's own, without an overall time-out (streams are long).
	HTTP *http.Client
}

// Client returns what requests are sent with: HTTP, or one of its own, that adds Headers and Query to each.
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

// adding is a transport that adds headers and parameters to each request.
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

// Cost prices u at l with the prices of the settings in the place of what they name; nil as for Limit.Cost.
func (c Config) Cost(l Limit, u Usage) *float64 {
	l.Input, l.Output = cmp.Or(c.Prices.Input, l.Input), cmp.Or(c.Prices.Output, l.Output)
	l.CacheRead, l.CacheWrite = cmp.Or(c.Prices.CacheRead, l.CacheRead), cmp.Or(c.Prices.CacheWrite, l.CacheWrite)
	return l.Cost(u)
}

// FullName is "provider/model".
func (c Config) FullName() string {
	if c.Model == "" {
		return c.Name
	}
	return c.Name + "/" + c.Model
}

// Logger is c.Log, or one that writes nowhere.
func (c Config) Logger() *slog.Logger {
	if c.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Log
}
