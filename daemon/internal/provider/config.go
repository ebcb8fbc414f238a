package provider

import (
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
	// HTTP is for tests and proxies; nil is a client of the package's own, without an overall time-out (streams are long).
	HTTP *http.Client
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
