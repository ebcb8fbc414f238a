package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"sublet/wire"
)

// borrowed prints the output of a command in a borrowed shell as it comes. If the reader of standard output pauses, as a pager does, only the
// caller waits.
type borrowed struct {
	app           *app
	json          bool
	plainNewlines bool                  // \r\n becomes \n, since standard output is not a terminal
	keepSequence  func(seq []byte) bool // reports whether a control sequence is printed; nil = all are
	stop          context.CancelCauseFunc
	held          []byte // the end of the output so far, which write joins with the next
	next          int64  // offset of the byte that comes next
	gap           int64  // bytes that the client left out, because they came too fast
	waits         string // the reason printed last why the shell is waited for
	err           error  // of the first failed write; nothing is printed after it
}

// newBorrowed returns a borrowed that prints JSON or text, to a terminal or not. Without sequences no control sequence is printed,
// and on a terminal only those that draw. It calls stop with the error if standard output fails. The caller must call finish.
func newBorrowed(a *app, json, onTerminal, sequences bool, stop context.CancelCauseFunc) *borrowed {
	o := &borrowed{app: a, json: json, plainNewlines: !onTerminal, stop: stop}
	switch {
	case !sequences:
		o.keepSequence = keepNone
	case onTerminal && !json:
		o.keepSequence = keepDrawing
	}
	return o
}

// show prints a message of the lease: the output, and as text why it waits for the shell.
func (o *borrowed) show(m wire.LeaseMessage) {
	switch m := m.(type) {
	case *wire.CommandOutput:
		o.gap += max(0, m.Offset-o.next)
		o.next = m.Offset + int64(len(m.Data))
		o.write(m.Data, false)
	case *wire.ShellLeaseQueued:
		if why := cmp.Or(m.Why, m.Holder+" has it"); why != o.waits && !o.json {
			o.waits = why
			fmt.Fprintf(o.app.stderr, "sublet: waiting for the shell: %s\n", oneLine(why))
		}
	}
}

// write prints data. It holds back an end that may be the beginning of a character or sequence.
func (o *borrowed) write(data []byte, last bool) {
	if o.err != nil {
		return
	}
	data = append(o.held, data...)
	n := len(data)
	if !last {
		n -= incompleteTail(data)
	}
	rest := data[n:]
	if data = data[:n]; o.keepSequence != nil {
		var cut []byte
		if data, cut = filtered(data, o.keepSequence); !last && len(cut) < sequenceMost {
			rest = slices.Concat(cut, rest)
		}
	}
	o.held = bytes.Clone(rest)
	if o.plainNewlines {
		data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	}
	var err error
	switch {
	case len(data) == 0:
	case !o.json:
		_, err = o.app.stdout.Write(data)
	case utf8.Valid(data):
		err = o.app.printJSON(map[string]string{"data": string(data)})
	default:
		err = o.app.printJSON(map[string][]byte{"data_base64": data})
	}
	if err != nil {
		o.err = err
		o.stop(err)
	}
}

// incompleteTail returns how many bytes at the end of p are a \r or the beginning of a UTF-8 character.
func incompleteTail(p []byte) int {
	if bytes.HasSuffix(p, []byte("\r")) {
		return 1
	}
	for n := 1; n <= min(3, len(p)); n++ {
		if tail := p[len(p)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return n
			}
			return 0
		}
	}
	return 0
}

// finish prints the rest of the output; then, of a command whose end is known (else nil), what the user should know of it or, as
// JSON, all but the protocol's own ids. The error is that of standard output.
func (o *borrowed) finish(end *wire.CommandCompleted) error {
	o.write(nil, true)
	if o.err != nil {
		return o.err
	}
	if o.gap > 0 {
		fmt.Fprintf(o.app.stderr, "sublet: %d bytes of output were left out here, since they came faster than they were read\n", o.gap)
	}
	if end == nil {
		return nil
	}
	if !o.json {
		for _, note := range end.Notes {
			fmt.Fprintf(o.app.stderr, "sublet: %s\n", oneLine(note))
		}
		for _, p := range end.Leftovers {
			fmt.Fprintf(o.app.stderr, "sublet: still running: %d %s\n", p.PID, oneLine(string(p.Command)))
		}
		return nil
	}
	return o.app.printView(end, "lease_id", "fence", "execution_id")
}
