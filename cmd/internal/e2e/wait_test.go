package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// rateLimitedServer is a provider that refuses each question once, for its rate, and answers it when it is asked again.
func rateLimitedServer(t *testing.T) (url string) {
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.HasSuffix(r.URL.Path, "/chat/completions"):
			http.NotFound(w, r)
		case asked.Add(1)%2 == 1:
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprint(w, `{"error":{"message":"slow down"}}`)
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"here I am\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
		}
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

// A provider that asks to be left alone is waited for in sight: the window and `sublet ask` show for how long, and why.
func TestARateLimitIsWaitedForInSight(t *testing.T) {
	w := newWorld(t, "", nil)
	w.write(w.path("config.toml"), fmt.Sprintf("model = \"slow/m\"\n[provider.slow]\nkind = \"openai\"\nbase_url = %q\ncontext_window = 100000\n", rateLimitedServer(t)))

	const why = "waiting 3s before try 2 of 4: slow: slow down"
	out, errs, status := w.sublet("ask", "are you there?")
	if status != 0 || out != "here I am\n" || !strings.Contains(errs, "sublet: orchestrator: "+why) {
		t.Errorf("ask: got %q, %q, exit %d, want the answer, and %q on standard error", out, errs, status, why)
	}

	term := w.openShell()
	term.ask("are you there?")
	term.see("waiting 3s before try 2 of 4: slow: slow down")
	term.see("here I am")
}
