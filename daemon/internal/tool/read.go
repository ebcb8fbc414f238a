package tool

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dustin/go-humanize/english"

	"sublet/daemon/internal/picture"
	"sublet/wire/visible"
)

const (
	defaultLines = 2000 // of one read
	largeFile    = 1 << 20
	largeLines   = 100  // of a file over largeFile bytes, if the call names no lines
	maxLineBytes = 2000 // shown of one line
	maxSummary   = 300  // approximate bytes of the line that ends a read
)

// lineRange is a range of lines. Offset is the first, from 1.
type lineRange struct {
	Offset int `json:"offset"`
	Limit  int `json:"limit"`
}

// Read returns the tool that shows a text file with line numbers, or an image.
func Read() Tool {
	const one = `"offset":{"type":"integer","description":"first line, from 1"},"limit":{"type":"integer","description":"lines; default 2000"}`
	return newTool(Spec{
		Name:        "read",
		Description: "Show a text file with line numbers (number, tab, line), or an image. ranges shows several parts.",
		Example:     `{"path":"main.go","ranges":[{"offset":1,"limit":50}]}`,
		Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},` + one + `,` +
			`"ranges":{"type":"array","items":{"type":"object","properties":{"offset":{"type":"integer"},"limit":{"type":"integer"}},"required":["offset"]}}},` +
			`"required":["path"]}`),
		ReadOnly: true,
	}, readArgs{})
}

type readArgs struct {
	Path   string      `json:"path"`
	Ranges []lineRange `json:"ranges"`
	lineRange

	located
	namesNoLines bool // the call names no lines
}

// check sorts the requested ranges by line and merges adjacent ones.
func (a *readArgs) check(env Env) error {
	if len(a.Ranges) == 0 {
		a.Ranges = []lineRange{a.lineRange}
		a.namesNoLines = a.lineRange == lineRange{}
	} else if a.lineRange != (lineRange{}) {
		return errors.New("ranges: give either ranges or offset and limit, not both")
	}
	for i, r := range a.Ranges {
		a.Ranges[i] = lineRange{min(max(r.Offset, 1), math.MaxInt32), min(cmp.Or(r.Limit, defaultLines), math.MaxInt32)}
	}
	slices.SortFunc(a.Ranges, func(a, b lineRange) int { return cmp.Compare(a.Offset, b.Offset) })
	merged := a.Ranges[:1]
	for _, r := range a.Ranges[1:] {
		if last := &merged[len(merged)-1]; r.Offset <= last.end() {
			last.Limit = max(last.end(), r.end()) - last.Offset
		} else {
			merged = append(merged, r)
		}
	}
	a.Ranges = merged
	return a.find(env.Cwd, a.Path)
}

func (r lineRange) end() int { return r.Offset + r.Limit }

func (a *readArgs) plan(_ context.Context, env Env) (Action, error) {
	return Action{Cwd: env.Cwd, Reads: a.names}, nil
}

func (a *readArgs) run(ctx context.Context, env Env, approved Action, _ func([]byte)) (Result, error) {
	path := a.path
	if !slices.Equal(approved.Reads, a.names) {
		return Result{}, ErrChanged // a link was changed meanwhile
	}
	f, info, err := openResolved(path)
	if err != nil {
		return Result{}, err
	}
	defer f.Close()
	head, err := readHead(f)
	if err != nil {
		return Result{}, err
	}
	if picture.Is(head) {
		i, err := picture.Read(path, f)
		if err != nil {
			return Result{}, fmt.Errorf("%s: %w", path, err)
		}
		return Result{Content: "[the image " + i.String() + "]", Images: []*picture.Image{i}}, nil
	}
	if kind := binaryKind(head); kind != "" {
		return Result{}, fmt.Errorf("%s: is %s, not text", path, kind)
	}
	var in io.Reader = f
	sum := sha256.New()
	whole := info.Size() <= maxFile // larger files are not hashed, since edit does not accept them
	if whole {
		in = io.TeeReader(f, sum)
	}
	var text bytes.Buffer
	opens := env.Opened != nil && info.Size() <= largeFile
	if opens {
		in = io.TeeReader(in, &text)
	}
	if a.namesNoLines && info.Size() > largeFile {
		a.Ranges[0].Limit = largeLines
	}
	p := page{ranges: a.Ranges}
	if err := p.read(ctx, in, whole); err != nil {
		return Result{}, err
	}
	if whole {
		env.Files.Saw(env.Agent, path, hex.EncodeToString(sum.Sum(nil)))
	}
	if opens {
		env.Opened(path, text.Bytes())
	}
	if p.lines == 0 {
		return Result{Content: "[the file is empty]"}, nil
	}
	if len(p.shown) == 0 {
		return Result{}, fmt.Errorf("offset: %s has only %s", path, english.Plural(p.lines, "line", ""))
	}
	size := info.Size()
	if whole {
		size = p.bytes // the kernel reports size 0 for files in /proc
	}
	return Result{Content: p.text.String() + p.summary(size, whole), TruncatedBy: p.left}, nil
}

// page is the part of a file that a read shows.
type page struct {
	ranges []lineRange
	text   bytes.Buffer
	shown  []lineRange // the ranges that fitted
	next   int         // first requested line that did not fit, or the line after the last range; 0 = none
	lines  int         // lines read
	bytes  int64       // bytes read
	left   int64       // bytes cut off from long lines
}

// read writes the requested lines with their numbers, up to MaxResult bytes. With toEnd it then reads to the end, for the
// digest and the number of lines.
func (p *page) read(ctx context.Context, in io.Reader, toEnd bool) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for at := 0; ; {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		line, n, left, err := readLine(r)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n > 0 {
			p.lines++
			p.bytes += int64(n)
			if at < len(p.ranges) && p.lines >= p.ranges[at].end() {
				at++
			}
			switch {
			case p.next > 0:
			case at == len(p.ranges), p.lines >= p.ranges[at].Offset && p.text.Len() > MaxResult-maxLineBytes-maxSummary:
				p.next = p.lines
			case p.lines >= p.ranges[at].Offset:
				p.show(line)
				p.left += int64(left)
			}
		}
		if err != nil || p.next > 0 && !toEnd {
			return nil
		}
	}
}

// show adds the newest line that was read, and before it a mark where lines between two ranges are not shown.
func (p *page) show(line string) {
	if last := len(p.shown) - 1; last >= 0 && p.shown[last].end() == p.lines {
		p.shown[last].Limit++
	} else {
		if last >= 0 {
			p.text.WriteString("--\n")
		}
		p.shown = append(p.shown, lineRange{p.lines, 1})
	}
	fmt.Fprintf(&p.text, "%6d\t%s\n", p.lines, line)
}

// summary returns the line about what was shown, the file's size, and how to read on. whole reports that all lines were
// counted.
func (p *page) summary(size int64, whole bool) string {
	if whole && p.shown[0].Offset == 1 && p.shown[0].Limit == p.lines {
		return fmt.Sprintf("[%s, %s]", english.Plural(p.lines, "line", ""), english.Plural(int(size), "byte", ""))
	}
	var parts []string
	for _, r := range p.shown[:min(len(p.shown), maxLineList)] {
		parts = append(parts, fmt.Sprintf("%d-%d", r.Offset, r.end()-1))
	}
	if more := len(p.shown) - maxLineList; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	total := fmt.Sprint(p.lines)
	if !whole {
		total = "more"
	}
	s := fmt.Sprintf("[lines %s of %s, %d bytes", strings.Join(parts, ", "), total, size)
	if p.next > 0 {
		s += fmt.Sprintf("; more follows: read on with offset %d", p.next)
	} else if last := p.ranges[len(p.ranges)-1]; last.Offset > p.lines {
		s += fmt.Sprintf("; offset %d is beyond the end", last.Offset)
	}
	return s + "]"
}

// readLine returns a line without its end, cut to maxLineBytes, the n bytes that it takes in the input, its end included, and how
// many of them a cut left out. With the last line err may be io.EOF already; after it n is 0.
func readLine(r *bufio.Reader) (line string, n, left int, err error) {
	var kept []byte
	for {
		piece, err := r.ReadSlice('\n')
		n += len(piece)
		if room := maxLineBytes + utf8.UTFMax - len(kept); room > 0 { // more than is shown: a longer line is seen as such
			kept = append(kept, piece[:min(room, len(piece))]...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			s := strings.ToValidUTF8(strings.TrimRight(string(kept), "\r\n"), "\uFFFD")
			if len(s) > maxLineBytes {
				shown := visible.Cut(s, maxLineBytes)
				left = len(s) - len(shown) + n - len(kept)
				s = shown + "… [line cut]"
			}
			return s, n, left, err
		}
	}
}

// readHead returns the first binaryHead bytes of f, or all of a shorter file, and rewinds f.
func readHead(f *os.File) ([]byte, error) {
	head := make([]byte, binaryHead)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	_, err = f.Seek(0, io.SeekStart)
	return head[:n], err
}

// binaryKind returns the kind of a file that is not text, by its beginning; "" for text.
func binaryKind(head []byte) string {
	kind := http.DetectContentType(head)
	switch {
	case strings.HasPrefix(kind, "image/"):
		return "an image (" + kind + "); convert it to PNG with a command first"
	case bytes.HasPrefix(head, []byte("%PDF-")):
		return "a PDF; convert it with a command first"
	case bytes.IndexByte(head, 0) >= 0:
		return "binary (" + kind + ")"
	}
	return ""
}
