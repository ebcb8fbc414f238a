package provider_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"syscall"
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

// At most 4 tries in 20 s in which nothing comes, or as long as a request may be silent where the provider asks to wait.
func TestBackoff(t *testing.T) {
	gone := &provider.Error{Kind: provider.ErrUnreachable}
	for _, c := range []struct {
		name     string
		err      error
		shows    time.Duration // how long each attempt shows something, after its first word
		tries    int
		min, max time.Duration
	}{
		{"overloaded", busy(0), 0, 4, 7 * time.Second, 8750 * time.Millisecond},
		{"told how long", busy(6 * time.Second), 0, 4, 18 * time.Second, 18 * time.Second},
		{"told to wait longer than the budget", busy(21 * time.Second), 0, 4, 63 * time.Second, 63 * time.Second},
		{"told too long, together", busy(50 * time.Second), 0, 3, 100 * time.Second, 100 * time.Second},
		{"told too long at once", busy(121 * time.Second), 0, 1, 0, 0},
		{"overloaded in the middle of a long answer", busy(0), time.Minute, 4, 4*time.Minute + 7*time.Second, 4*time.Minute + 8750*time.Millisecond},
		{"broken", &provider.Error{Kind: provider.ErrBroken}, 0, 4, 7 * time.Second, 8750 * time.Millisecond},
		{"invalid", &provider.Error{Kind: provider.ErrInvalid}, 0, 1, 0, 0},
		{"nobody there", gone, 0, 4, 7 * time.Second, 8750 * time.Millisecond},
		{"no such host", &provider.Error{Kind: provider.ErrUnreachable, Lasting: true}, 0, 1, 0, 0},
		{"not ours", errors.New("x"), 0, 1, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			tries, voids, start, waits := 0, 0, time.Now(), []string{}
			b := provider.DefaultBackoff()
			b.Silence = 2 * time.Minute
			err := b.Do(t.Context(), slog.New(slog.DiscardHandler), func(d provider.Delta) {
				switch d.Type {
				case provider.DeltaWait:
					waits = append(waits, d.Text)
				case provider.DeltaVoid:
					voids++
				}
			}, func(show func(provider.Delta)) error {
				tries++
				for at := time.Duration(0); c.shows > 0 && at < c.shows; at += time.Second {
					show(provider.Delta{Type: provider.DeltaText, Text: "word"})
					time.Sleep(time.Second)
				}
				if c.shows > 0 {
					show(provider.Delta{Type: provider.DeltaText, Text: "word"})
				}
				return c.err
			})
			if took := time.Since(start); !errors.Is(err, c.err) || tries != c.tries || took < c.min || took > c.max {
				t.Errorf("%s: got %d tries in %v (%v), want %d in %v to %v", c.name, tries, took, err, c.tries, c.min, c.max)
			}
			// What was shown before the last try is void; that of the last stays, before the error.
			if want := c.tries - 1; c.shows > 0 && voids != want || c.shows == 0 && voids != 0 {
				t.Errorf("%s: got %d voids of %d tries", c.name, voids, c.tries)
			}
			// No wait is silent: each is announced, with its length, and its end as well.
			if len(waits) != 2*(c.tries-1) {
				t.Errorf("%s: announced %q, want the begin and the end of %d waits", c.name, waits, c.tries-1)
			}
			for i, w := range waits {
				if begins := fmt.Sprintf("before try %d of 4: ", i/2+2); i%2 == 0 && !strings.Contains(w, begins) || i%2 == 1 && w != "" {
					t.Errorf("%s: announced %q, want %q, then its end", c.name, w, begins)
				}
			}
		})
	}
}

// A model that another one can replace does not wait for longer than the budget, whatever its provider asks for.
func TestReplaceableDoesNotWait(t *testing.T) {
	b := provider.DefaultBackoff()
	b.Silence = 2 * time.Minute
	tries := 0
	_, err := b.Stream(t.Context(), provider.Request{Replaceable: true}, slog.New(slog.DiscardHandler), func(provider.Delta) {}, func(func(provider.Delta)) (provider.Response, error) {
		tries++
		return provider.Response{}, busy(21 * time.Second)
	}, func(error) bool { return false })
	if err == nil || tries != 1 {
		t.Errorf("got %v after %d tries, want the error at once", err, tries)
	}
}

// Where the turn ends because of it, the user reads when to ask again.
func TestBusyForLongSaysUntilWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := provider.Fault{}.Status(http.StatusTooManyRequests, "", "slow down", http.Header{"Retry-After": {"600"}})
		if want := "ask again after " + time.Now().Add(10*time.Minute).Format("Mon 15:04:05"); !strings.HasPrefix(e.Hint(), want) {
			t.Errorf("got %q, want it to begin with %q", e.Hint(), want)
		}
	})
}

func TestBackoffEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("stopped by user")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(500*time.Millisecond, func() { cancel(cause) })
		start := time.Now()
		err := provider.DefaultBackoff().Do(ctx, slog.New(slog.DiscardHandler), func(provider.Delta) {}, func(func(provider.Delta)) error { return busy(0) })
		if took := time.Since(start); !errors.Is(err, cause) || took != 500*time.Millisecond {
			t.Errorf("got %v after %v, want the cause after exactly 500ms", err, took)
		}
	})
}

// A silence is reported after 20 s, also one after the first word, and so is its end.
func TestSilenceIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var got []string
		b := provider.DefaultBackoff()
		b.Silence = 2 * time.Minute
		err := b.Do(t.Context(), slog.New(slog.DiscardHandler), func(d provider.Delta) {
			got = append(got, fmt.Sprintf("%v %s %s", time.Since(start), d.Type, d.Text))
		}, func(show func(provider.Delta)) error {
			time.Sleep(30 * time.Second)
			show(provider.Delta{Type: provider.DeltaText, Text: "a"})
			time.Sleep(19 * time.Second)
			show(provider.Delta{Type: provider.DeltaText, Text: "b"})
			time.Sleep(25 * time.Second)
			return nil
		})
		want := []string{
			"20s wait nothing has come from the model for 20s; the request is given up after 2m0s", "30s wait ", "30s text a", "49s text b",
			"1m9s wait nothing has come from the model for 20s; the request is given up after 2m0s", "1m14s wait ",
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("got %q, %v\nwant %q", got, err, want)
		}
	})
}

func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, feed, stop := provider.Watchdog(t.Context(), 10*time.Second)
		defer stop()
		r, w := io.Pipe()
		body := feed(r)
		go func() { // ends with the pipe
			_, _ = io.Copy(io.Discard, body)
		}()
		for range 3 {
			time.Sleep(9 * time.Second)
			fmt.Fprint(w, "x")
		}
		if ctx.Err() != nil {
			t.Fatal("ended although fed")
		}
		start := time.Now()
		<-ctx.Done()
		if took := time.Since(start); took != 10*time.Second || !errors.Is(context.Cause(ctx), provider.ErrStalled) {
			t.Errorf("got %v after %v, want ErrStalled after exactly 10s", context.Cause(ctx), took)
		}
		w.Close()
	})
}

func TestSilenceLimits(t *testing.T) {
	for base, want := range map[string]time.Duration{
		"https://api.openai.com/v1": 2 * time.Minute, "http://127.0.0.1:11434/v1": 10 * time.Minute, "http://[::1]:1/v1": 10 * time.Minute,
		"http://localhost:8080": 10 * time.Minute, "http://gpu.local/v1": 10 * time.Minute, "http://192.168.1.7/v1": 10 * time.Minute,
		"http://8.8.8.8/v1": 2 * time.Minute, "https://local.example.com": 2 * time.Minute,
	} {
		if got := (provider.Fault{BaseURL: base}).Silence(); got != want {
			t.Errorf("%s: got %v, want %v", base, got, want)
		}
	}
	if got := (provider.Fault{BaseURL: "http://localhost", Config: provider.Config{Silence: time.Second}}).Silence(); got != time.Second {
		t.Errorf("got %v, want what the settings say", got)
	}
}

// A server that refuses the handshake is not asked again.
func TestHandshakeRefused(t *testing.T) {
	s := httptest.NewUnstartedServer(nil)
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	defer s.Close()
	c := s.Client()
	c.Transport.(*http.Transport).TLSClientConfig.MaxVersion = tls.VersionTLS12
	_, err := c.Get(s.URL)
	f := provider.Fault{BaseURL: s.URL}
	if e, ok := errors.AsType[*provider.Error](f.Transport(t.Context(), err)); !ok || e.Kind != provider.ErrUnreachable || !e.Lasting || !strings.Contains(e.Hint(), "certificates") {
		t.Errorf("%v: got %+v", err, e)
	}
}

// Whatever goes wrong, the user reads what to do.
func TestEveryErrorHasAHint(t *testing.T) {
	f := provider.Fault{Config: provider.Config{Name: "p"}, BaseURL: "http://example.com"}
	for status := 300; status < 600; status++ {
		if e := f.Status(status, "", "no", nil); e.Hint() == "" || e.Kind == "" {
			t.Errorf("HTTP %d: got %+v", status, e)
		}
	}
	for _, err := range []error{
		io.EOF, errors.New("x"), &net.DNSError{IsNotFound: true}, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, &net.OpError{Op: "read", Err: syscall.ETIMEDOUT},
		&url.Error{Op: "Post", Err: context.DeadlineExceeded}, errors.New("tls: no"),
	} {
		if e, ok := errors.AsType[*provider.Error](f.Transport(t.Context(), err)); !ok || e.Hint() == "" {
			t.Errorf("%v: got %+v", err, e)
		}
	}
	if f.Broken(nil).Hint() == "" || f.WebPage().Hint() == "" || f.NoKey().Hint() == "" {
		t.Error("one has no hint")
	}
}

// Statuses by which a server or a proxy reports that a request may succeed later are retried like an overload; others are not.
func TestStatusesThatAreRetried(t *testing.T) {
	f := provider.Fault{Config: provider.Config{Name: "p"}}
	for status, want := range map[int]provider.ErrorKind{
		408: provider.ErrOverloaded, 409: provider.ErrOverloaded, 425: provider.ErrOverloaded, 429: provider.ErrOverloaded, 499: provider.ErrOverloaded,
		500: provider.ErrOverloaded, 502: provider.ErrOverloaded, 504: provider.ErrOverloaded, 522: provider.ErrOverloaded, 524: provider.ErrOverloaded, 529: provider.ErrOverloaded,
		400: provider.ErrInvalid, 405: provider.ErrInvalid, 422: provider.ErrInvalid, 501: provider.ErrInvalid,
	} {
		e := f.Status(status, "", "", nil)
		if e.Kind != want || strings.Contains(e.Error(), ":  (") || want == provider.ErrOverloaded && !strings.Contains(e.Hint(), "ask again") {
			t.Errorf("HTTP %d: got %s, %v, hint %q, want %s", status, e.Kind, e, e.Hint(), want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "3", 3 * time.Second},
		{"Retry-After", "0.5", 500 * time.Millisecond},
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
		"\x1b[31mred\x07\u202eevil": "redevil",
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

// A longer prefix counts before a shorter one, also where a family's later versions have a larger window.
func TestKnownWindows(t *testing.T) {
	for model, want := range map[string]int{
		"claude-opus-4-5": 200_000, "claude-opus-4-6": 1_000_000, "claude-sonnet-4-5": 200_000, "claude-sonnet-4-6": 1_000_000,
		"gpt-5": 400_000, "gpt-5.6-terra": 1_050_000, "gpt-6-luna": 1_050_000, "gpt-6.1-sol": 1_050_000, "nobody-knows": 0,
	} {
		if got := provider.KnownLimit(model).ContextWindow; got != want {
			t.Errorf("%s: got %d, want %d", model, got, want)
		}
	}
}

func TestCost(t *testing.T) {
	for model, want := range map[string]float64{ // of a million tokens in, a million out and a million from the cache
		"anthropic/claude-sonnet-4-5-20250929": 18.3, "claude-opus-4-20250514": 91.5, "claude-opus-4-8": 30.5, "claude-opus-5-5": 24.2,
		"claude-fable-5-1": 60.25, "claude-sonnet-5": 12.2, "claude-haiku-5-5": 0.61, "claude-next-9": 0,
		"openai/gpt-5": 11.375, "gpt-5-2025-08-07": 11.375, "gpt-5-codex": 11.375, "gpt-5-pro": 150, "gpt-5.2-codex": 15.925, "gpt-5.4-mini": 5.325, "gpt-5.6": 24.4, "gpt-5.6-sol": 24.4, "gpt-5.6-terra": 14.2,
		"gpt-5.99": 0, "gpt-6.2-sol": 12.1, "gpt-7": 0, "gpt-4.1": 10.5, "gpt-4o-mini": 0.825,
		"o1": 82.5, "o3-2025-04-16": 10.5, "o3-pro": 120, "o4-mini": 5.775,
		"models/gemini-2.5-pro": 11.375, "gemini-2.5-flash-lite": 0.51, "gemini-3.8-flash": 9.15, "gemini-9-pro": 0,
		"deepseek-flash": 1.506, "deepseek-v4-pro": 5.324, "nobody-knows": 0,
	} {
		got := provider.KnownLimit(model).Cost(provider.Usage{Input: 1_000_000, Output: 1_000_000, CacheRead: 1_000_000})
		switch {
		case got == nil && want != 0:
			t.Errorf("%s has no price, want %v", model, want)
		case got != nil && math.Abs(*got-want) > 1e-9:
			t.Errorf("%s: got %v, want %v", model, *got, want)
		}
	}
}
