package tool

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"unicode/utf8"

	"sublet/daemon/internal/picture"
)

const (
	defaultLines = 2000 // of one read
	maxLineBytes = 2000 // shown of one line
)

type readTool struct{}

// Read returns the tool that shows a text file with line numbers, or an image.
func Read() Tool { return readTool{} }

type readArgs struct {
	Path   *string `json:"path"`
	Offset int     `json:"offset"`
	Limit  int     `json:"limit"`
}

func (readTool) Spec() Spec {
	return Spec{
		Name:        "read",
		Description: "Show a text file with line numbers (number, tab, line), or an image (PNG, JPEG, GIF, WebP). Long texts come in pieces: use offset and limit.",
		Example:     `{"path":"main.go"}`,
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"path":{"type":"string","description":"absolute, or relative to the working directory"},` +
			`"offset":{"type":"integer","minimum":1,"description":"first line, from 1"},` +
			`"limit":{"type":"integer","minimum":1,"description":"how many lines; default 2000"}},"required":["path"],"additionalProperties":false}`),
		ReadOnly: true,
	}
}

func (t readTool) parse(env Env, args json.RawMessage) (a readArgs, path string, err error) {
	if err := decode(t.Spec(), args, &a); err != nil {
		return a, "", err
	}
	switch {
	case a.Path == nil:
		return a, "", errors.New("path: is missing")
	case a.Offset < 0:
		return a, "", fmt.Errorf("offset: got %d, want 1 or more", a.Offset)
	case a.Limit < 0:
		return a, "", fmt.Errorf("limit: got %d, want 1 or more", a.Limit)
	}
	a.Offset = max(a.Offset, 1)
	if a.Limit == 0 {
		a.Limit = defaultLines
	}
	path, err = resolve(env.Cwd, *a.Path)
	return a, path, err
}

func (t readTool) Plan(_ context.Context, env Env, args json.RawMessage) (Action, error) {
	_, path, err := t.parse(env, args)
	if err != nil {
		return Action{}, err
	}
	return Action{Cwd: env.Cwd, Reads: []string{path}}, nil
}

func (t readTool) Run(ctx context.Context, env Env, args json.RawMessage, approved Action, _ func([]byte)) (Result, error) {
	a, path, err := t.parse(env, args)
	if err != nil {
		return Result{}, err
	}
	if len(approved.Reads) != 1 || approved.Reads[0] != path {
		return Result{}, ErrChanged // a link was turned round meanwhile
	}
	f, info, err := OpenRegular(path)
	if err != nil {
		return Result{}, err
	}
	defer f.Close()
	head, err := headOf(f)
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
	whole := info.Size() <= maxFile // larger files are not hashed: nothing edits them
	if whole {
		in = io.TeeReader(f, sum)
	}
	page, err := readPage(ctx, in, a, whole)
	if err != nil {
		return Result{}, err
	}
	if whole {
		env.Files.Saw(path, hex.EncodeToString(sum.Sum(nil)))
	}
	if page.lines < a.Offset && page.lines > 0 {
		return Result{}, fmt.Errorf("offset: %s has only %d lines", path, page.lines)
	}
	if page.lines == 0 {
		page.text = "[the file is empty]"
	}
	return Result{Content: page.text, TruncatedBy: page.left}, nil
}

type page struct {
	text  string
	lines int   // seen
	left  int64 // bytes cut off from long lines
}

// readPage numbers the lines asked for, as many as MaxResult holds. With toEnd it reads on afterwards, for the digest.
func readPage(ctx context.Context, in io.Reader, a readArgs, toEnd bool) (page, error) {
	var p page
	var out bytes.Buffer
	r := bufio.NewReaderSize(in, 64<<10)
	full, more := false, false
	for {
		if err := ctx.Err(); err != nil {
			return page{}, context.Cause(ctx)
		}
		line, n, err := readLine(r)
		if err != nil && !errors.Is(err, io.EOF) {
			return page{}, err
		}
		if n > 0 {
			p.lines++
			if p.lines >= a.Offset {
				full = full || p.lines >= a.Offset+a.Limit || out.Len() > MaxResult-maxLineBytes
				if full {
					more = true
				} else {
					fmt.Fprintf(&out, "%6d\t%s\n", p.lines, line)
					if cut := n - len(line); cut > 2 {
						p.left += int64(cut)
					}
				}
			}
			if more && p.text == "" {
				p.text = fmt.Sprintf("[more follows: read on with offset %d]", p.lines)
			}
		}
		if err != nil || more && !toEnd {
			break
		}
	}
	p.text = out.String() + p.text
	return p, nil
}

// readLine returns a line without its end, at most maxLineBytes of it, and how many bytes it took.
func readLine(r *bufio.Reader) (line string, n int, err error) {
	var kept []byte
	for {
		piece, err := r.ReadSlice('\n')
		n += len(piece)
		if room := maxLineBytes + utf8.UTFMax - len(kept); room > 0 {
			kept = append(kept, piece[:min(room, len(piece))]...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			s := strings.TrimRight(string(kept), "\r\n")
			s = strings.ToValidUTF8(s, "\uFFFD")
			if len(s) > maxLineBytes {
				s = CutHead(s, maxLineBytes) + "… [line cut]"
			}
			return s, n, err
		}
	}
}

// headOf is the start of f, which is rewound.
func headOf(f *os.File) ([]byte, error) {
	head := make([]byte, 8000)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	_, err = f.Seek(0, io.SeekStart)
	return head[:n], err
}

// binaryKind says what kind of non-text a file begins like; "" for text.
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
