package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"

	"sublet/wire"
	"sublet/wire/jsonview"
	"sublet/wire/visible"
)

func (a *app) printf(format string, args ...any) { fmt.Fprintf(a.stdout, format, args...) }

// printJSON prints v on one line.
func (a *app) printJSON(v any) error { return a.printIndented(v, "") }

// printIndented prints v as JSON, on one line for the indent "".
func (a *app) printIndented(v any, indent string) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := a.stdout.Write(jsonview.Escape(text.Bytes()))
	return err
}

// printMessage prints the JSON view of m on one line.
func (a *app) printMessage(m wire.Message) error {
	_, err := a.stdout.Write(append(jsonview.Of(m), '\n'))
	return err
}

// view is the JSON view of m by its fields, without those that belong to the protocol alone.
func view(m wire.Message) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(jsonview.Of(m), &fields); err != nil {
		return nil, err
	}
	delete(fields, "kind")
	delete(fields, "request_id")
	return fields, nil
}

// printView prints the view of m on one line, without some fields.
func (a *app) printView(m wire.Message, without ...string) error {
	fields, err := view(m)
	if err != nil {
		return err
	}
	for _, name := range without {
		delete(fields, name)
	}
	return a.printJSON(fields)
}

// printElements prints each element of the list named field of m's JSON view, one a line.
func (a *app) printElements(m wire.Message, field string) error {
	fields, err := view(m)
	if err != nil {
		return err
	}
	var list []json.RawMessage
	if err := json.Unmarshal(fields[field], &list); err != nil {
		return err
	}
	for _, e := range list {
		if _, err := a.stdout.Write(append(e, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// plain returns untrusted text, safe to display on a terminal.
func plain(s string) string { return visible.Strip(s) }

// firstLine returns the first line of untrusted text, cut to n cells of a terminal.
func firstLine(s string, n int) string { return ansi.Truncate(visible.FirstLine(s), n, "…") }

// file is an *os.File, or an *output.
type file interface{ Fd() uintptr }

// isTerminal reports whether w, a file or a writer of one, is a terminal.
func isTerminal(w any) bool {
	f, ok := w.(file)
	return ok && term.IsTerminal(f.Fd())
}

// forTerminal returns text of a program without control sequences if w is a terminal, else unchanged.
func forTerminal(w io.Writer, s string) string {
	if isTerminal(w) {
		return plain(s)
	}
	return s
}

// ms returns a duration given in milliseconds as text, rounded: from a minute on to seconds, below to 10 ms.
func ms(n int64) string {
	d := time.Duration(n) * time.Millisecond
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

func when(atMS int64) string { return time.UnixMilli(atMS).Format("2006-01-02 15:04") }
