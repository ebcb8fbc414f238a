package openai

import (
	"encoding/json"
	"testing"

	"sublet/daemon/config"
	"sublet/daemon/internal/provider"
)

// Through OpenRouter, Claude's caches are marked at the system prompt and the newest two messages that are not the model's;
// no other server gets marks, which some refuse.
func TestCacheMarks(t *testing.T) {
	text := func(role provider.Role, s string) provider.Message {
		return provider.Message{Role: role, Parts: []provider.Part{{Text: s}}}
	}
	req := provider.Request{System: "s", Messages: []provider.Message{
		text(provider.User, "one"), text(provider.Assistant, "a"), text(provider.User, "two"), text(provider.Assistant, "b"), text(provider.User, "three"),
	}}
	const plain = `[{"role":"system","content":"s"},{"role":"user","content":"one"},{"role":"assistant","content":"a"},{"role":"user","content":"two"},` +
		`{"role":"assistant","content":"b"},{"role":"user","content":"three"}]`
	const mark = `","cache_control":{"type":"ephemeral"}}]}`
	for _, tt := range []struct{ url, model, want string }{
		{"https://openrouter.ai/api/v1", "anthropic/claude-sonnet-4.5", `[{"role":"system","content":[{"type":"text","text":"s` + mark + `,{"role":"user","content":"one"},` +
			`{"role":"assistant","content":"a"},{"role":"user","content":[{"type":"text","text":"two` + mark + `,{"role":"assistant","content":"b"},` +
			`{"role":"user","content":[{"type":"text","text":"three` + mark + `]`},
		{"https://openrouter.ai/api/v1", "openai/gpt-5", plain},
		{"http://localhost/v1", "anthropic/claude-sonnet-4.5", plain},
	} {
		got, err := json.Marshal(Open(provider.Config{Name: "p", Kind: config.KindOpenAI, BaseURL: tt.url, Model: tt.model}).request(req).Messages)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s at %s:\ngot  %s, %v\nwant %s", tt.model, tt.url, got, err, tt.want)
		}
	}
}
