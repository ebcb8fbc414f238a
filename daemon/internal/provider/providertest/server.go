// Package providertest is what the tests of several back ends need: a real HTTP server that keeps what it was asked, and
// one way to ask a model. What a back end's wire looks like is left to its own tests.
package providertest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"sublet/daemon/internal/picture"
	"sublet/daemon/internal/provider"
)

// Server is a model's server. It is closed, with its connections, when the test ends.
type Server struct {
	*httptest.Server

	mu sync.Mutex
	// Requests are the bodies of the questions so far, guarded by mu: read them when no question is under way.
	Requests []map[string]any
}

// Serve answers questions, the requests whose path ends in path, with what handle writes to the n-th of them, and all
// others by other.
func Serve(t testing.TB, path string, other http.HandlerFunc, handle func(n int, w http.ResponseWriter, r *http.Request)) *Server {
	t.Helper()
	s := &Server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, path) {
			other(w, r)
			return
		}
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Errorf("request: %v", err)
		}
		s.mu.Lock()
		s.Requests = append(s.Requests, body)
		n := len(s.Requests)
		s.mu.Unlock()
		handle(n, w, r)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

// Count is how many questions came.
func (s *Server) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.Requests)
}

// Stream writes server-sent events, each at once.
func Stream(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		fmt.Fprintf(w, "%s\n\n", e)
		w.(http.Flusher).Flush()
	}
}

// Reset breaks the connection off, as a server that crashes does.
func Reset(t testing.TB, w http.ResponseWriter) {
	c, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	if err := c.(*net.TCPConn).SetLinger(0); err != nil {
		t.Error(err)
	}
	c.Close()
}

// Prompt is a conversation of one question.
func Prompt(text string) provider.Request {
	return provider.Request{System: "be brief", Messages: []provider.Message{{Role: provider.User, Parts: []provider.Part{{Text: text}}}}}
}

// Ask sends a request; the deltas are "type:tool:text", or "type:text" where there is no tool. Waits are left out.
func Ask(t testing.TB, m provider.Model, req provider.Request) (provider.Response, []string, error) {
	t.Helper()
	var deltas []string
	resp, err := m.Stream(t.Context(), req, func(d provider.Delta) {
		if d.Type == provider.DeltaWait {
			return
		}
		deltas = append(deltas, strings.TrimSuffix(string(d.Type)+":"+d.Tool, ":")+":"+d.Text)
	})
	return resp, deltas, err
}

// Pictured is a conversation with an image in the prompt, and one in a tool's result.
func Pictured() provider.Request {
	pic := func(name string) *picture.Image {
		return &picture.Image{Name: name, MIME: "image/png", Width: 3, Height: 2, Size: 4, Data: []byte("\x89PNG" + name)}
	}
	req := Prompt("what is it?")
	req.Messages[0].Parts = append(req.Messages[0].Parts, provider.Part{Text: "a.png:"}, provider.Part{Image: pic("a.png")})
	req.Messages = append(req.Messages,
		provider.Message{Role: provider.Assistant, Parts: []provider.Part{{ToolCall: &provider.ToolCall{ID: "c1", Name: "read", Arguments: json.RawMessage(`{}`)}}}},
		provider.Message{Role: provider.User, Parts: []provider.Part{{ToolResult: &provider.ToolResult{CallID: "c1", Content: "[the image b.png]", Images: []*picture.Image{pic("b.png")}}}}},
	)
	return req
}
