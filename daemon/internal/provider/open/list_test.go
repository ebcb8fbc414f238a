package open_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"sublet/daemon/config"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/provider/open"
)

// What providers say of their models is listed, in their own forms; headers and parameters of the settings go along.
func TestList(t *testing.T) {
	for kind, c := range map[string]struct {
		body string
		want []provider.Offer
	}{
		config.KindOpenAI: {
			`{"data": [{"id": "vendor/big", "context_length": 1000, "pricing": {"prompt": "0.000003", "completion": "0.00001"},
				"architecture": {"input_modalities": ["text", "image"]}, "supported_parameters": ["tools"]}, {"id": "gpt-4o"}]}`,
			[]provider.Offer{
				{Name: "vendor/big", Limit: provider.Limit{ContextWindow: 1000, Input: 3, Output: 10}, Images: new(true), Tools: new(true), Thinking: new(false)},
				{Name: "gpt-4o", Limit: provider.KnownLimit("gpt-4o")},
			},
		},
		config.KindAnthropic: {
			`{"data": [{"id": "claude-sonnet-4-5", "type": "model", "max_input_tokens": 5000, "max_tokens": 100,
				"capabilities": {"image_input": {"supported": true}, "thinking": {"supported": false}}}], "has_more": false}`,
			[]provider.Offer{{
				Name: "claude-sonnet-4-5", Images: new(true), Tools: new(true), Thinking: new(false),
				Limit: func() provider.Limit {
					l := provider.KnownLimit("claude-sonnet-4-5")
					l.ContextWindow, l.MaxOutput = 5000, 100
					return l
				}(),
			}},
		},
	} {
		t.Run(kind, func(t *testing.T) {
			var got *http.Request
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got = r
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(c.body))
			}))
			defer srv.Close()
			list, err := open.List(t.Context(), provider.Config{
				Name: "p", Kind: kind, BaseURL: srv.URL, APIKey: "k", HTTP: srv.Client(),
				Headers: map[string]string{"X-Team": "blue"}, Query: map[string]string{"api-version": "7"},
			})
			if err != nil || !reflect.DeepEqual(list, c.want) {
				t.Errorf("got %+v, %v, want %+v", list, err, c.want)
			}
			if got.Header.Get("X-Team") != "blue" || got.URL.Query().Get("api-version") != "7" || !strings.HasSuffix(got.URL.Path, "/models") {
				t.Errorf("asked %s with %v", got.URL, got.Header)
			}
		})
	}
	if _, err := open.List(t.Context(), provider.Config{Name: "anthropic", Kind: config.KindAnthropic, APIKeyEnv: "A_KEY"}); !isAuth(err) {
		t.Errorf("without a key: got %v", err)
	}
	if list, err := open.List(t.Context(), provider.Config{Name: "offline", Kind: config.KindOffline}); err != nil || len(list) != 1 || list[0].Name != "" {
		t.Errorf("the built-in model: got %+v, %v", list, err)
	}
}

func isAuth(err error) bool {
	pe, ok := errors.AsType[*provider.Error](err)
	return ok && pe.Kind == provider.ErrAuth && strings.Contains(pe.Hint(), "A_KEY")
}

// The settings' prices count before those that are known.
func TestCost(t *testing.T) {
	u := provider.Usage{Input: 1_000_000, Output: 1_000_000, CacheRead: 1_000_000}
	c := provider.Config{Prices: provider.Limit{Output: 7}}
	if got := c.InForce(provider.Limit{Input: 1, Output: 2, CacheRead: 0.5}).Cost(u); got == nil || *got != 8.5 {
		t.Errorf("got %v, want 8.5", got)
	}
	if got := (provider.Config{}).InForce(provider.Limit{}).Cost(u); got != nil {
		t.Errorf("without prices: got %v", *got)
	}
}
