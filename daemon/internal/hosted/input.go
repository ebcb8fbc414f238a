package hosted

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"sublet/daemon/internal/child"
	"sublet/daemon/internal/mask"
	"sublet/wire/visible"
)

// maxPending bounds the updates that were read and not handled. The SDK closes a connection with 1024 of them.
const maxPending = 512

// input is what an agent sends, as the SDK reads it: one line at a time. The SDK answers requests at once, but handles updates one after
// the other; a request for permission is therefore held back until the updates before it were handled, which describe its call. Lines that
// are not the protocol are left out.
type input struct {
	meter *child.Meter
	lines *bufio.Reader // of meter
	host  *host
	line  []byte // what is left of the line that is read

	mu sync.Mutex
	// below: guarded by mu
	pending  int // updates that were read and not handled
	handled  sync.Cond
	firstBad string // the first line that is not the protocol; "" = there is none
}

func newInput(h *host, meter *child.Meter) *input {
	in := &input{meter: meter, lines: bufio.NewReader(meter), host: h}
	in.handled.L = &in.mu
	return in
}

// Read implements io.Reader. More than maxBytes in one turn are an error.
func (in *input) Read(p []byte) (int, error) {
	for len(in.line) == 0 {
		line, err := in.lines.ReadBytes('\n')
		if err != nil && (err != io.EOF || len(line) == 0) {
			return 0, err
		}
		if err := in.host.count(len(line)); err != nil {
			return 0, err
		}
		if in.admit(line) {
			in.line = line
		}
	}
	n := copy(p, in.line)
	in.line = in.line[n:]
	return n, nil
}

// count adds to the bytes that the agent has sent in this turn.
func (h *host) count(n int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.received += n; h.received > maxBytes {
		h.cause = fmt.Errorf("it has sent more than %d MiB in one turn, and was ended", maxBytes>>20)
		return h.cause
	}
	return nil
}

// admit reports whether the SDK is to have a line, and waits as the type says.
func (in *input) admit(line []byte) bool {
	var m struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
	}
	err := json.Unmarshal(line, &m)
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case len(bytes.TrimSpace(line)) == 0:
		return false
	case err != nil, m.ID == nil && m.Method == "":
		if in.firstBad == "" {
			in.firstBad = visible.Exact(shown(mask.String(string(line)), 100))
		}
		return false
	case m.Method == sdk.ClientMethodSessionUpdate && m.ID == nil:
		var u sdk.SessionNotification
		if json.Unmarshal(m.Params, &u) != nil || u.Validate() != nil {
			return false // one of a later version
		}
		for in.pending >= maxPending {
			in.handled.Wait()
		}
		in.pending++
	case m.Method == sdk.ClientMethodSessionRequestPermission:
		for in.pending > 0 {
			in.handled.Wait()
		}
	}
	return true
}

// updateHandled records that an update was handled.
func (in *input) updateHandled() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.pending--
	in.handled.Signal()
}

// notProtocol returns the first line that is not the protocol, "" for none: some programs greet on standard output.
func (in *input) notProtocol() string {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.firstBad
}
