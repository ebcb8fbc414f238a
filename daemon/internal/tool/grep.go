package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/sys/unix"

	"sublet/wire/visible"
)

const (
	grepBlock    = 256 << 10 // bytes read at once
	maxGrepBlock = 16 << 20  // longest line, in bytes, that is searched in one piece
	maxGrepLine  = 500       // bytes shown of a line
	maxGrepNotes = 400       // bytes reserved for notes at the end
	binaryHead   = 8000      // bytes of a file in which a NUL means that it is not text, as in git
)

// Grep returns the tool that finds text in files.
func Grep() Tool {
	return newTool(Spec{
		Name:        "grep",
		Description: "Search for a regex (RE2), line by line, in path or in all files that glob can find. mode: content (path:line:text, the default), files (paths only) or count.",
		Example:     `{"pattern":"func main","include":"*.go"}`,
		Schema: json.RawMessage(`{"type":"object","properties":{"pattern":{"type":"string"},` +
			`"path":{"type":"string","description":"file or folder"},` +
			`"include":{"type":"string","description":"such as *.go"},` +
			`"mode":{"type":"string","enum":["content","files","count"]},` +
			`"context":{"type":"integer","maximum":20,"description":"lines around each hit"},` +
			`"ignore_case":{"type":"boolean"}},"required":["pattern"]}`),
		ReadOnly: true,
	}, grepArgs{})
}

type grepArgs struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Include    string `json:"include"`
	Mode       string `json:"mode"`
	Context    int    `json:"context"`
	IgnoreCase bool   `json:"ignore_case"`
	searchRoot
	lines lineMatcher
}

func (a *grepArgs) check(env Env) (err error) {
	text := a.Pattern
	if a.IgnoreCase {
		text = "(?i)" + text
	}
	if a.lines, err = newLineMatcher(text); err != nil {
		return fmt.Errorf("pattern: %w", err)
	}
	if a.Include != "" {
		if a.Include, err = nameAnywhere(a.Include); err != nil {
			return fmt.Errorf("include: %w", err)
		}
	}
	return a.find(env, a.Path)
}

func (a *grepArgs) run(ctx context.Context, env Env, approved Action, _ func([]byte)) (Result, error) {
	set, err := a.files(ctx, approved)
	if err != nil {
		return Result{}, err
	}
	slices.Sort(set.files)
	g := &grepOutput{cwd: env.Cwd, args: a, unread: set.unread}
	named := slices.ContainsFunc(a.names, env.Secrets.Holds) // then the user was asked about it
	for _, f := range set.files {
		name, full := f, filepath.Join(a.path, f)
		if f == "" {
			name = path.Base(a.path)
		}
		if a.Include != "" {
			if ok, err := doublestar.Match(a.Include, name); err != nil || !ok {
				continue
			}
		}
		if !named && env.Secrets.Holds(full) {
			g.secrets++
			continue
		}
		if err := g.file(ctx, full); err != nil {
			return Result{}, err
		}
		if g.full {
			break
		}
	}
	return g.result(set.more), nil
}

// grepOutput collects hits up to MaxResult.
type grepOutput struct {
	cwd  string
	args *grepArgs

	b       strings.Builder
	buf     []byte // reused from file to file
	hits    int
	binary  int // files that are not text
	unread  int // files and folders that could not be read
	pieces  int // lines that were too long to be searched in one piece
	secrets int // files with secrets
	full    bool
}

// file searches one file. It returns the error of ctx only.
func (g *grepOutput) file(ctx context.Context, path string) error {
	// An *os.File makes more system calls for each file: a seventh of the time of a search.
	fd, err := openDescriptor(path, unix.O_RDONLY|unix.O_NONBLOCK)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ELOOP) {
		return nil // deleted meanwhile, or a link, which is not searched
	}
	if err != nil {
		g.unread++
		return nil
	}
	defer unix.Close(fd)
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil || info.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil
	}
	s := &scan{grepOutput: g, path: path}
	if err := s.blocks(ctx, fd, info.Size); err != nil {
		return err
	}
	if s.found > 0 && g.args.Mode == "count" {
		s.row("%s:%d", s.name(), s.found)
	}
	return nil
}

// scan is the state of searching one file.
type scan struct {
	*grepOutput
	path   string
	found  int      // hits in this file; hits counts those in all
	line   int      // number of the last line that was searched
	shown  int      // number of the last line that was shown
	after  int      // number of the last line to show after a hit
	before [][]byte // the last lines that were not shown: at most as many as are shown before a hit
}

// blocks searches a file of size bytes, block by block. It returns the error of ctx only.
func (s *scan) blocks(ctx context.Context, fd int, size int64) error {
	if s.buf == nil {
		s.buf = make([]byte, grepBlock)
	}
	for end, read, eof := 0, int64(0), false; !eof; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := unix.Read(fd, s.buf[end:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			s.unread++
			return nil
		}
		if read == 0 && bytes.IndexByte(s.buf[:min(n, binaryHead)], 0) >= 0 {
			s.binary++
			return nil
		}
		end, read = end+n, read+int64(n)
		eof = n == 0 || read == size // which is 0 for files of /proc
		cut := end
		if !eof {
			cut = bytes.LastIndexByte(s.buf[:end], '\n') + 1
		}
		if cut == 0 && end < len(s.buf) { // the read was short, or there is nothing left
			continue
		}
		piece, number := cut == 0 && end > 0, s.line
		if piece && len(s.buf) < maxGrepBlock { // one line fills the block
			s.buf = append(s.buf, make([]byte, len(s.buf))...)
			continue
		}
		if piece {
			s.pieces++
			cut = end
		}
		if done := s.block(s.buf[:cut]); done {
			break
		}
		if piece { // the next one is of the same line
			s.line = number
		}
		end = copy(s.buf, s.buf[cut:end])
	}
	return nil
}

// block searches the next part of the file, which is whole lines, and shows hits with s.args.Context lines around each. It reports whether
// the search of the file can end: its name is shown in mode "files", or the output is full. It keeps no reference to text.
func (s *scan) block(text []byte) (done bool) {
	around := s.args.Context
	if s.line >= s.after && !s.args.lines.mayMatch(text) { // only its last lines can be shown, before a later hit
		from := len(text)
		for range around {
			from = bytes.LastIndexByte(text[:max(from-1, 0)], '\n') + 1
		}
		s.line += bytes.Count(text[:from], []byte("\n"))
		text = text[from:]
	}
	for line := range bytes.Lines(text) {
		s.line++
		line = bytes.TrimSuffix(line, []byte("\n"))
		hit := s.args.lines.match(line)
		if hit {
			s.found++
			s.hits++
		}
		switch {
		case s.args.Mode == "files":
			if hit {
				s.row("%s", s.name())
				return true
			}
		case s.args.Mode == "count":
		case hit:
			s.hit(line)
		case s.line <= s.after:
			s.show(s.line, "-", line)
		case around > 0:
			s.before = append(s.before[max(0, len(s.before)-around+1):], line)
		}
		if s.full {
			return true
		}
	}
	for i, line := range s.before { // text is overwritten by the next block
		s.before[i] = bytes.Clone(line[:min(len(line), 4*maxGrepLine)])
	}
	return false
}

func (s *scan) name() string { return display(s.path, s.cwd) }

// hit writes a line as path:line:text, its context lines as path-line-text, and "--" between separate places.
func (s *scan) hit(line []byte) {
	first := s.line - len(s.before)
	if s.args.Context > 0 && s.b.Len() > 0 && first != s.shown+1 {
		s.row("--")
	}
	for i, line := range s.before {
		s.show(first+i, "-", line)
	}
	s.show(s.line, ":", line)
	s.before, s.after = s.before[:0], s.line+s.args.Context
}

func (s *scan) show(n int, sep string, line []byte) {
	text := strings.TrimSuffix(string(line[:min(len(line), 4*maxGrepLine)]), "\r")
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > maxGrepLine {
		text = visible.Cut(text, maxGrepLine) + "…"
	}
	s.row("%s%s%d%s%s", s.name(), sep, n, sep, text)
	s.shown = n
}

func (g *grepOutput) row(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	if g.b.Len()+len(s) > MaxResult-maxGrepNotes {
		g.full = true
		return
	}
	g.b.WriteString(s)
	g.b.WriteByte('\n')
}

func (g *grepOutput) result(more bool) Result {
	if g.hits == 0 {
		fmt.Fprintf(&g.b, "no match in %s\n", g.args.path)
	}
	if g.full {
		g.b.WriteString("[there is more; narrow the search, or use mode files]\n")
	}
	for _, left := range []struct {
		n   int
		why string
	}{
		{g.secrets, "may hold secrets; name one to search it"},
		{g.binary, "not text"},
		{g.unread, "could not be read"},
	} {
		if left.n > 0 {
			fmt.Fprintf(&g.b, "[left out: %d (%s)]\n", left.n, left.why)
		}
	}
	if g.pieces > 0 {
		fmt.Fprintf(&g.b, "[lines longer than %d MiB were searched in pieces]\n", maxGrepBlock>>20)
	}
	if more {
		fmt.Fprintf(&g.b, "[only the first %d files were looked at]\n", maxFiles)
	}
	return bounded(strings.TrimRight(g.b.String(), "\n"))
}
