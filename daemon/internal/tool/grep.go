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

	"sublet/wire/visible"

	"github.com/bmatcuk/doublestar/v4"
)

const (
	grepBlock    = 256 << 10 // bytes read at once
	maxGrepBlock = 16 << 20  // longest line, in bytes, that is searched in one piece
	maxGrepLine  = 500       // bytes shown of a line
	maxGrepNotes = 400       // bytes reserved for notes at the end
	maxPattern   = 4 << 10
	binaryHead   = 8000 // bytes of a file in which a NUL means that it is not text, as in git
)

type grepTool struct{}

// Grep returns the tool that finds text in files.
func Grep() Tool { return grepTool{} }

type grepArgs struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Include    string `json:"include"`
	Mode       string `json:"mode"`
	Context    int    `json:"context"`
	IgnoreCase bool   `json:"ignore_case"`
}

func (grepTool) Spec() Spec {
	return Spec{
		Name: "grep",
		Description: "Search files for a regular expression (RE2), line by line. mode: content (path:line:text, the default), files (paths only) or count. " +
			"Looks at the same files as glob; a file that path names is searched however large it is.",
		Example: `{"pattern":"func main","include":"*.go"}`,
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"pattern":{"type":"string"},` +
			`"path":{"type":"string","description":"file or folder; default: the working directory"},` +
			`"include":{"type":"string","description":"only files that match this pattern, such as *.go"},` +
			`"mode":{"type":"string","enum":["content","files","count"]},` +
			`"context":{"type":"integer","minimum":0,"maximum":20,"description":"lines to show around each hit"},` +
			`"ignore_case":{"type":"boolean"}},"required":["pattern"],"additionalProperties":false}`),
		ReadOnly: true,
	}
}

type grepPlan struct {
	grepArgs
	lines   lineMatcher
	root    string
	include string
}

func (t grepTool) parse(env Env, args json.RawMessage) (p grepPlan, err error) {
	p.grepArgs, err = decode[grepArgs](t.Spec(), args)
	switch {
	case err != nil:
		return p, err
	case p.Pattern == "":
		return p, errors.New("pattern: is empty")
	case len(p.Pattern) > maxPattern:
		return p, fmt.Errorf("pattern: %d bytes is more than the limit of %d", len(p.Pattern), maxPattern)
	}
	text := p.Pattern
	if p.IgnoreCase {
		text = "(?i)" + text
	}
	if p.lines, err = newLineMatcher(text); err != nil {
		return p, fmt.Errorf("pattern: %w", err)
	}
	if p.Include != "" {
		if p.include, err = nameAnywhere(p.Include); err != nil {
			return p, fmt.Errorf("include: %w", err)
		}
	}
	p.root, err = searchRoot(env, p.Path)
	return p, err
}

func (t grepTool) Plan(_ context.Context, env Env, args json.RawMessage) (Action, error) {
	p, err := t.parse(env, args)
	if err != nil {
		return Action{}, err
	}
	return Action{Cwd: env.Cwd, Reads: []string{p.root}}, nil
}

func (t grepTool) Run(ctx context.Context, env Env, args json.RawMessage, approved Action, _ func([]byte)) (Result, error) {
	p, err := t.parse(env, args)
	if err != nil {
		return Result{}, err
	}
	if len(approved.Reads) != 1 || approved.Reads[0] != p.root {
		return Result{}, ErrChanged
	}
	set, err := fileSet(ctx, p.root)
	if err != nil {
		return Result{}, err
	}
	dir, err := openFolder(p.root)
	if err != nil {
		return Result{}, err
	}
	defer dir.close()
	slices.Sort(set.files)
	g := &grepOutput{cwd: env.Cwd, plan: p, dir: dir, unread: set.unread}
	named := env.Secrets.Holds(p.root) // then the user was asked about it
	for _, f := range set.files {
		name := f
		if f == "" {
			name = path.Base(p.root)
		}
		if p.include != "" {
			if ok, err := doublestar.Match(p.include, name); err != nil || !ok {
				continue
			}
		}
		if !named && env.Secrets.Holds(filepath.Join(p.root, f)) {
			g.secrets++
			continue
		}
		if err := g.file(ctx, f); err != nil {
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
	plan grepPlan
	dir  folder

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
func (g *grepOutput) file(ctx context.Context, rel string) error {
	in, err := g.dir.open(rel)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotRegular) {
		return nil // deleted meanwhile, or a link, which is not searched
	}
	if err != nil {
		g.unread++
		return nil
	}
	defer in.close()
	s := &scan{grepOutput: g, name: display(g.plan.root, rel, g.cwd), line: 1}
	if g.buf == nil {
		g.buf = make([]byte, grepBlock)
	}
	end, skip := 0, 0
	for first := true; ; first = false {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, eof, err := in.fill(g.buf[end:])
		if err != nil {
			g.unread++
			return nil
		}
		if first && bytes.IndexByte(g.buf[:min(n, binaryHead)], 0) >= 0 {
			g.binary++
			return nil
		}
		end += n
		cut := end
		if !eof {
			if cut = bytes.LastIndexByte(g.buf[skip:end], '\n') + 1 + skip; cut == skip && end < len(g.buf) {
				continue
			}
			if cut == skip { // one line fills the block
				if len(g.buf) < maxGrepBlock {
					g.buf = append(g.buf, make([]byte, len(g.buf))...)
					continue
				}
				g.pieces++
				cut = end
			}
		}
		if done := s.block(g.buf[:cut], skip); done || eof {
			break
		}
		keep := s.keep(g.buf[:cut])
		copy(g.buf, g.buf[keep:end])
		skip, end = cut-keep, end-keep
	}
	if s.found > 0 && g.plan.Mode == "count" {
		g.row("%s:%d", s.name, s.found)
	}
	return nil
}

// scan is the state of searching one file, block by block.
type scan struct {
	*grepOutput
	name  string
	found int // hits
	line  int // number of the line at byte at
	at    int
	shown int // number of the last line that was shown
	after int // number of the last line to show after a hit
}

// block searches text from byte from on, which must begin a line; the lines before were searched already and may be shown as
// context. It reports whether the search of the file can end.
func (s *scan) block(text []byte, from int) (done bool) {
	s.at = from
	s.plan.lines.begin()
	for pos := from; pos < len(text); {
		start, end := s.plan.lines.next(text, pos)
		if start < 0 {
			break
		}
		s.found++
		s.hits++
		switch s.plan.Mode {
		case "files":
			s.row("%s", s.name)
			return true
		case "count":
		default:
			s.hit(text, start, end)
			if s.full {
				return true
			}
		}
		pos = end + 1
	}
	if s.plan.Mode == "" || s.plan.Mode == "content" {
		s.rest(text, len(text))
		s.line += bytes.Count(text[s.at:], []byte("\n"))
		s.at = len(text)
	}
	return s.full
}

// hit writes a line as path:line:text, its context lines as path-line-text, and "--" between separate places.
func (s *scan) hit(text []byte, start, end int) {
	s.rest(text, start)
	s.line += bytes.Count(text[s.at:start], []byte("\n"))
	s.at = start
	from, n := start, s.line
	for ; n > max(s.line-s.plan.Context, s.shown+1) && from > 0; n-- {
		from = bytes.LastIndexByte(text[:from-1], '\n') + 1
	}
	if s.plan.Context > 0 && s.b.Len() > 0 && n != s.shown+1 {
		s.row("--")
	}
	for ; n < s.line; n++ {
		stop := from + bytes.IndexByte(text[from:], '\n')
		s.show(n, "-", text[from:stop])
		from = stop + 1
	}
	s.show(n, ":", text[start:end])
	s.after = n + s.plan.Context
}

// rest writes the context lines after the last hit, up to byte end.
func (s *scan) rest(text []byte, end int) {
	for s.shown > 0 && s.shown < s.after && !s.full {
		if s.line <= s.shown { // the hit itself, or what was shown
			stop := bytes.IndexByte(text[s.at:end], '\n')
			if stop < 0 {
				return
			}
			s.at, s.line = s.at+stop+1, s.line+1
			continue
		}
		if s.at >= end {
			return
		}
		stop := s.at + bytes.IndexByte(text[s.at:], '\n')
		if stop < s.at {
			stop = len(text)
		}
		s.show(s.line, "-", text[s.at:stop])
	}
}

// keep returns where in a searched block the lines begin that may be context of later hits.
func (s *scan) keep(text []byte) int {
	at := len(text)
	for range s.plan.Context {
		if at == 0 {
			break
		}
		at = bytes.LastIndexByte(text[:at-1], '\n') + 1
	}
	if at < len(text)-maxGrepBlock/4 {
		return len(text) // lines that long are not shown as context
	}
	return at
}

func (s *scan) show(n int, sep string, line []byte) {
	text := strings.TrimSuffix(string(line[:min(len(line), 4*maxGrepLine)]), "\r")
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > maxGrepLine {
		text = visible.Cut(text, maxGrepLine) + "…"
	}
	s.row("%s%s%d%s%s", s.name, sep, n, sep, text)
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
		fmt.Fprintf(&g.b, "no match in %s\n", g.plan.root)
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
