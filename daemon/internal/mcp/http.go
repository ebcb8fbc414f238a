package mcp

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"golang.org/x/time/rate"

	"sublet/daemon/internal/child"
)

const (
	// maxMessage bounds one message of a server, in bytes.
	maxMessage = 12 << 20
	// linesPerSecond and linesAtOnce bound the lines of a server before it is ended, since each costs the daemon work.
	linesPerSecond = 250
	linesAtOnce    = 4096
)

// newMeter bounds what a server sends.
func newMeter(r io.ReadCloser) *child.Meter {
	return child.NewMeter(r, maxMessage, rate.NewLimiter(linesPerSecond, linesAtOnce))
}

// newHTTPClient returns a client that sends the headers with every request, and only to the host of the user's URL. forgotten is set
// when the server does not know the session of a request.
func newHTTPClient(headers map[string]string, forgotten *atomic.Bool) *http.Client {
	base := http.DefaultTransport.(*http.Transport).Clone()
	return &http.Client{
		Transport: &sender{base, headers, forgotten},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme {
				return errors.New("redirected to another host")
			}
			if len(via) > 5 {
				return errors.New("redirected too often")
			}
			return nil
		},
	}
}

// sender is the transport of newHTTPClient. It also bounds what it receives, in bytes and in lines a second.
type sender struct {
	*http.Transport
	headers   map[string]string
	forgotten *atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (s *sender) RoundTrip(r *http.Request) (*http.Response, error) {
	if len(s.headers) > 0 {
		r = r.Clone(r.Context())
		for name, value := range s.headers {
			r.Header.Set(name, value)
		}
	}
	resp, err := s.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusNotFound && r.Header.Get("Mcp-Session-Id") != "" { // read here, since the SDK's error depends on the body
		s.forgotten.Store(true)
	}
	body := io.ReadCloser(newMeter(resp.Body))
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") { // the SDK bounds each event of such a stream
		body = http.MaxBytesReader(nil, body, maxMessage)
	}
	resp.Body = body
	return resp, nil
}
