package hosted

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"sublet/daemon/internal/child"
)

// input is what an agent sends, as the SDK reads it: one line at a time. The SDK answers requests at once, but handles updates one after
// the other; a request for permission is therefore held back until the updates before it were handled, which describe its call.
type input struct {
	meter *child.Meter
	lines *bufio.Reader // of meter
	ready chan struct{} // closed when Read may begin: the connection calls it at once, before its logger is set
	host  *host
	line  []byte // what is left of the line that is read

	mu sync.Mutex
	// below: guarded by mu
	pending int // that were read and not handled
	handled sync.Cond
}

func newInput(h *host, meter *child.Meter) *input {
	in := &input{meter: meter, lines: bufio.NewReader(meter), ready: make(chan struct{}), host: h}
	in.handled.L = &in.mu
	return in
}

// Read implements io.Reader. More than maxBytes in one turn are an error.
func (in *input) Read(p []byte) (int, error) {
	<-in.ready
	if len(in.line) == 0 {
		if err := in.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, in.line)
	in.line = in.line[n:]
	return n, nil
}

// next reads a line. It waits as the type says.
func (in *input) next() error {
	line, err := in.lines.ReadBytes('\n')
	if err != nil && (err != io.EOF || len(line) == 0) {
		return err
	}
	h := in.host
	h.mu.Lock()
	if h.received += len(line); h.received > maxBytes {
		h.cause = fmt.Errorf("it has sent more than %d MiB in one turn, and was ended", maxBytes>>20)
		defer h.mu.Unlock()
		return h.cause
	}
	h.mu.Unlock()
	in.line = line
	var m struct {
		ID     json.RawMessage
		Method string
	}
	if json.Unmarshal(line, &m) != nil {
		return nil // the SDK reports it
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case m.Method == sdk.ClientMethodSessionUpdate && m.ID == nil:
		in.pending++
	case m.Method == sdk.ClientMethodSessionRequestPermission:
		for in.pending > 0 {
			in.handled.Wait()
		}
	}
	return nil
}

// updateHandled records that an update was handled, or that the SDK could not decode it.
func (in *input) updateHandled() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.pending--
	in.handled.Signal()
}
