package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"sublet/daemon/internal/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func busy(after time.Duration) error {
	return &provider.Error{Kind: provider.ErrOverloaded, RetryAfter: after}
}

// At most 4 tries in 20 s; a longer Retry-After ends the turn.
func TestBackoff(t *testing.T) {
	for _, c := range []struct {
		name     string
		err      error
		began    bool
		tries    int
		min, max time.Duration
	}{
		{"overloaded", busy(0), false, 4, 7 * time.Second, 8750 * time.Millisecond},
		{"told how long", busy(6 * time.Second), false, 4, 18 * time.Second, 18 * time.Second},
		{"told too long for the budget", busy(9 * time.Second), false, 3, 18 * time.Second, 18 * time.Second},
		{"a longer Retry-After ends it", busy(21 * time.Second), false, 1, 0, 0},
		{"T4f: never after the first delta", busy(0), true, 1, 0, 0},
		{"broken before the first delta", &provider.Error{Kind: provider.ErrBroken}, false, 4, 7 * time.Second, 8750 * time.Millisecond},
		{"invalid", &provider.Error{Kind: provider.ErrInvalid}, false, 1, 0, 0},
		{"nobody there", &provider.Error{Kind: provider.ErrUnreachable}, false, 1, 0, 0},
		{"not ours", errors.New("x"), false, 1, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			tries, start, waits := 0, time.Now(), []string{}
			err := provider.DefaultBackoff().Do(t.Context(), slog.New(slog.DiscardHandler), func(d provider.Delta) { waits = append(waits, string(d.Type)+":"+d.Text) },
				func() (bool, error) { tries++; return c.began, c.err })
			if took := time.Since(start); !errors.Is(err, c.err) || tries != c.tries || took < c.min || took > c.max {
				t.Errorf("%s: got %d tries in %v (%v), want %d in %v to %v", c.name, tries, took, err, c.tries, c.min, c.max)
			}
			// No wait is silent: each is announced, with its length, and its end as well.
			if len(waits) != 2*(c.tries-1) {
				t.Errorf("%s: announced %q, want the begin and the end of %d waits", c.name, waits, c.tries-1)
			}
			for i, w := range waits {
				if begins := fmt.Sprintf("before try %d of 4: ", i/2+2); i%2 == 0 && !strings.Contains(w, begins) || i%2 == 1 && w != "wait:" {
					t.Errorf("%s: announced %q, want %q, then its end", c.name, w, begins)
				}
			}
		})
	}
}

func TestBackoffEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("stopped by user")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(500*time.Millisecond, func() { cancel(cause) })
		start := time.Now()
		err := provider.DefaultBackoff().Do(ctx, slog.New(slog.DiscardHandler), func(provider.Delta) {}, func() (bool, error) { return false, busy(0) })
		if took := time.Since(start); !errors.Is(err, cause) || took != 500*time.Millisecond {
			t.Errorf("got %v after %v, want the cause after exactly 500ms", err, took)
		}
	})
}

func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, dog, stop := provider.NewWatchdog(t.Context(), 10*time.Second, time.Second)
		defer stop()
		time.Sleep(9 * time.Second)
		dog.Fed()
		time.Sleep(900 * time.Millisecond)
		dog.Fed()
		if ctx.Err() != nil {
			t.Fatal("ended although fed")
		}
		start := time.Now()
		<-ctx.Done()
		if took := time.Since(start); took != time.Second || !errors.Is(context.Cause(ctx), provider.ErrStalled) {
			t.Errorf("got %v after %v, want ErrStalled after exactly 1s", context.Cause(ctx), took)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "3", 3 * time.Second},
		{"Retry-After", "0.5", 500 * time.Millisecond},
		{"Retry-After-Ms", "250", 250 * time.Millisecond},
		{"Retry-After", "Fri, 20 Nov 2026 12:01:00 GMT", time.Minute},
		{"Retry-After", "Fri, 20 Nov 2026 11:00:00 GMT", 0},
		{"Retry-After", "-1", 0},
		{"Retry-After", "soon", 0},
		{"X", "3", 0},
	} {
		if got := provider.RetryAfter(http.Header{c.name: {c.value}}, now); got != c.want {
			t.Errorf("%s: %s: got %v, want %v", c.name, c.value, got, c.want)
		}
	}
}

func TestClean(t *testing.T) {
	f := provider.Fault{Config: provider.Config{APIKey: "sk-secret"}}
	for in, want := range map[string]string{
		"key sk-secret is bad":      "key … is bad",
		"a\r\n\tb  c":               "a b c",
		"\x1b[31mred\x07\u202eevil": "[31mredevil",
		" padded ":                  "padded",
		"":                          "",
	} {
		if got := f.Clean(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got := f.Clean(strings.Repeat("é", 5000)); len(got) > 700 {
		t.Errorf("got %d bytes, want a bound", len(got))
	}
}

func TestLastPrompt(t *testing.T) {
	user := func(parts ...provider.Part) provider.Message {
		return provider.Message{Role: provider.User, Parts: parts}
	}
	result := provider.Part{ToolResult: &provider.ToolResult{Content: "r"}}
	assistant := provider.Message{Role: provider.Assistant, Parts: []provider.Part{{Text: "a"}}}
	prompt, after := provider.LastPrompt([]provider.Message{user(provider.Part{Text: "old"}), assistant, user(provider.Part{Text: "new"}, provider.Part{Text: "more"}), assistant, user(result, provider.Part{Text: "comment"})})
	if prompt != "new" || len(after) != 2 {
		t.Errorf("got %q, %d after it", prompt, len(after))
	}
	if prompt, after := provider.LastPrompt(nil); prompt != "" || after != nil {
		t.Errorf("got %q, %v", prompt, after)
	}
}

func TestArgumentsObject(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":1}`: `{"a":1}`, ``: `{}`, ` `: `{}`, `null`: `{"invalid_arguments":"null"}`, `[1]`: `{"invalid_arguments":"[1]"}`, `{"a`: `{"invalid_arguments":"{\"a"}`,
	} {
		if got := provider.ArgumentsObject(json.RawMessage(in)); string(got) != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func TestCost(t *testing.T) {
	l := provider.KnownLimit("anthropic/claude-sonnet-4-5-20250929")
	if got := l.Cost(provider.Usage{Input: 1_000_000, Output: 100_000}); got == nil || *got != 4.5 {
		t.Errorf("got %v, want 4.5", got)
	}
	if got := provider.KnownLimit("nobody-knows").Cost(provider.Usage{Input: 1}); got != nil {
		t.Errorf("got %v, want nil: the price is not known", *got)
	}
}
