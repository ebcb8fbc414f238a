package tool

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"sublet/wire"
	"sublet/wire/visible"
)

const (
	// MaxResult bounds a result for the model, in bytes.
	MaxResult = 24 << 10
	// MaxForeign is MaxResult for agents of other programs: they cut longer results, at 12,000 characters at the least, or drop them.
	MaxForeign = 10_000
	// MaxWhole bounds what a tool returns, in bytes; Fit reduces it.
	MaxWhole = 4 << 20

	maxFailing     = 40        // lines
	maxFailingText = 4 << 10   // bytes of them together
	maxFailingLine = 300       // bytes of one
	maxFitNotes    = 512       // bytes of Fit's own notes
	maxFitScan     = 64 << 20  // bytes of a whole output that are searched
	fitBlock       = 256 << 10 // bytes searched at once
)

// failing matches lines about a failure, which Fit keeps: those that contain one of these words in any case.
var failing = sync.OnceValues(func() (fails, not lineMatcher) {
	var errs [2]error
	fails, errs[0] = newLineMatcher(`(?i)(error|exception)s?\b|\b(fail(s|ed|ing|ures?)?|fatal|panic(s|ked)?|undefined|traceback|assertion|not ok)\b`)
	not, errs[1] = newLineMatcher(`(?i)\b(0|no) (errors?|failures?|failed|exceptions?)\b`)
	if err := errors.Join(errs[:]...); err != nil {
		panic(err)
	}
	return fails, not
})

// Fit cuts a result for the model to most bytes: equal parts of head and tail, and between them the lines that failing
// matches, with their numbers. It writes the whole to a file in folder, unless the tool has done so (SpoolPath) or folder is
// "", and puts the file's path where the text is cut. Lines from a file of the tool are passed through mask. The error is
// that of the file; the result is cut nevertheless. The lines of a cancelled call are not searched: the user waits for its end.
func (r *Result) Fit(most int, folder string, mask func(string) string) (err error) {
	if len(r.Content) <= most {
		return nil
	}
	var whole io.Reader = strings.NewReader(r.Content)
	if r.SpoolPath != "" { // Content may be only the ends of it
		f, _, ferr := OpenRegular(r.SpoolPath)
		if ferr == nil {
			defer f.Close()
			whole = f
		}
		err = ferr
	} else if folder != "" {
		r.SpoolPath, err = spool(folder, r.Content)
	}
	room := (most - maxFitNotes) / 2
	least := room - maxFailingText/2 // of each end, if there are that many lines
	var lines string
	var more int
	if r.Status != wire.StatusCancelled {
		var ferr error
		lines, more, ferr = failingLines(whole, visible.Cut(r.Content, least), visible.CutTail(r.Content, least), mask)
		err = errors.Join(err, ferr)
	}
	room -= len(lines) / 2
	head, tail := wholeLines(visible.Cut(r.Content, room), visible.CutTail(r.Content, room))
	r.TruncatedBy += int64(len(r.Content) - len(head) - len(tail))
	note := fmt.Sprintf("[… %d bytes left out", r.TruncatedBy)
	if r.SpoolPath != "" {
		note += "; the whole is in " + r.SpoolPath
	}
	if lines != "" {
		note += "; these of its lines say what failed …]\n" + lines + "[…"
		if more > 0 {
			note += fmt.Sprintf(" and %d more …", more)
		}
	} else {
		note += " …"
	}
	r.Content = fmt.Sprintf("%s\n%s]\n%s", head, note, tail)
	return err
}

// wholeLines removes partial lines at the end of head and the start of tail, unless they are long: a cut number would be
// misread.
func wholeLines(head, tail string) (string, string) {
	if i := strings.LastIndexByte(head, '\n'); i > len(head)-maxLineBytes {
		head = head[:i]
	}
	if i := strings.IndexByte(tail, '\n'); i >= 0 && i < maxLineBytes {
		tail = tail[i+1:]
	}
	return head, tail
}

// failingLines returns the first lines of a text that failing matches, without those in head or tail, and how many more there
// are.
func failingLines(whole io.Reader, head, tail string, mask func(string) string) (lines string, more int, err error) {
	fails, not := failing()
	var out strings.Builder
	in := bufio.NewReaderSize(io.LimitReader(whole, maxFitScan), fitBlock)
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		if line := bytes.TrimSuffix(line, []byte("\n")); fails.match(line) && !not.match(line) {
			text := visible.Clean(string(line[:min(len(line), 4*maxFailingLine)]))
			text = visible.Cut(mask(strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))), maxFailingLine)
			switch {
			case strings.Contains(head, text), strings.Contains(tail, text):
			case strings.Count(out.String(), "\n") >= maxFailing, out.Len()+len(text)+20 > maxFailingText:
				more++
			default:
				fmt.Fprintf(&out, "%6d\t%s\n", n, text)
			}
		}
		for errors.Is(err, bufio.ErrBufferFull) { // the rest of a long line
			_, err = in.ReadSlice('\n')
		}
		if errors.Is(err, io.EOF) {
			return out.String(), more, nil
		}
		if err != nil {
			return out.String(), more, err
		}
	}
}

// spool writes a text to a new file that only the user can read.
func spool(folder, text string) (path string, err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(folder, "result-*.txt") // 0600
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}
