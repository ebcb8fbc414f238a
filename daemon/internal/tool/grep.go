package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

const (
	maxGrepFile    = 8 << 20 // bytes; larger files are left out and counted
	maxGrepContext = 20      // lines around a hit
	maxGrepLine    = 500     // bytes shown of a line
	maxPattern     = 4 << 10
)

type grepTool struct{}

// Grep returns the tool that finds text in files.
func Grep() Tool { return grepTool{} }

type grepArgs struct {
	Pattern    *string `json:"pattern"`
	Path       string  `json:"path"`
	Include    string  `json:"include"`
	Mode       string  `json:"mode"`
	Context    int     `json:"context"`
	IgnoreCase bool    `json:"ignore_case"`
}

func (grepTool) Spec() Spec {
	return Spec{
		Name: "grep",
		Description: "Search files for a regular expression (RE2), line by line. mode: content (path:line:text, the default), files (paths only) or count. " +
			"Looks at the same files as glob.",
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
	re      *regexp.Regexp
	root    string
	include string
}

func (t grepTool) parse(env Env, args json.RawMessage) (p grepPlan, err error) {
	if err := decode(t.Spec(), args, &p.grepArgs); err != nil {
		return p, err
	}
	switch {
	case p.Pattern == nil || *p.Pattern == "":
		return p, errors.New("pattern: is missing")
	case len(*p.Pattern) > maxPattern:
		return p, fmt.Errorf("pattern: %d bytes is more than the limit of %d", len(*p.Pattern), maxPattern)
	case p.Context < 0 || p.Context > maxGrepContext:
		return p, fmt.Errorf("context: got %d, want 0 to %d", p.Context, maxGrepContext)
	case !slices.Contains([]string{"", "content", "files", "count"}, p.Mode):
		return p, fmt.Errorf("mode: got %q, want content, files or count", p.Mode)
	}
	text := *p.Pattern
	if p.IgnoreCase {
		text = "(?i)" + text
	}
	if p.re, err = regexp.Compile(text); err != nil {
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
	files, more, err := fileSet(ctx, p.root)
	if err != nil {
		return Result{}, err
	}
	slices.Sort(files)
	g := &grepOutput{cwd: env.Cwd, plan: p}
	named := env.Secrets.Holds(p.root) // then it was asked about
	for _, f := range files {
		if ctx.Err() != nil {
			return Result{}, context.Cause(ctx)
		}
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
		g.file(f)
		if g.full {
			break
		}
	}
	return g.result(more), nil
}

// grepOutput collects hits up to MaxResult.
type grepOutput struct {
	cwd  string
	plan grepPlan

	b           strings.Builder
	hits, files int
	skipped     int // files too large
	secrets     int // files with secrets
	full        bool
}

func (g *grepOutput) file(rel string) {
	path := filepath.Join(g.plan.root, rel)
	f, info, err := OpenRegular(path)
	if err != nil {
		return // deleted meanwhile, or not for us to read
	}
	size := info.Size()
	f.Close()
	if size > maxGrepFile {
		g.skipped++
		return
	}
	text, _, err := readWhole(path)
	if err != nil || binaryKind(text[:min(len(text), 8000)]) != "" {
		return
	}
	if !g.plan.re.Match(text) && !bytes.Contains(text, []byte("\n")) {
		return
	}
	lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	var found []int
	for i, l := range lines {
		if g.plan.re.Match(bytes.TrimSuffix(l, []byte("\r"))) {
			found = append(found, i)
		}
	}
	if len(found) == 0 {
		return
	}
	g.hits += len(found)
	g.files++
	name := display(g.plan.root, rel, g.cwd)
	switch g.plan.Mode {
	case "files":
		g.line("%s", name)
	case "count":
		g.line("%s:%d", name, len(found))
	default:
		g.content(name, lines, found)
	}
}

// content shows hits as path:line:text and the lines around them as path-line-text, "--" between places apart.
func (g *grepOutput) content(name string, lines [][]byte, found []int) {
	around := g.plan.Context
	next := 0 // first line not shown yet
	for k, i := range found {
		from, to := max(i-around, next), i+around
		if k+1 < len(found) {
			to = min(to, found[k+1]-1)
		}
		if around > 0 && g.b.Len() > 0 && (k == 0 || from > next) {
			g.line("--")
		}
		for j := from; j <= to && j < len(lines) && !g.full; j++ {
			sep := "-"
			if j == i {
				sep = ":"
			}
			text := strings.ToValidUTF8(strings.TrimSuffix(string(lines[j]), "\r"), "\uFFFD")
			if len(text) > maxGrepLine {
				text = CutHead(text, maxGrepLine) + "…"
			}
			g.line("%s%s%d%s%s", name, sep, j+1, sep, text)
		}
		next = max(next, to+1)
	}
}

func (g *grepOutput) line(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	if g.b.Len()+len(s) > MaxResult-300 {
		g.full = true
		return
	}
	g.b.WriteString(s)
	g.b.WriteByte('\n')
}

func (g *grepOutput) result(more bool) Result {
	if g.hits == 0 {
		fmt.Fprintf(&g.b, "no match in %s", g.plan.root)
	}
	if g.full {
		g.b.WriteString("[there is more; narrow the search, or use mode files]\n")
	}
	if g.skipped > 0 {
		fmt.Fprintf(&g.b, "[%d files over %d MiB were left out]\n", g.skipped, maxGrepFile>>20)
	}
	if g.secrets > 0 {
		fmt.Fprintf(&g.b, "[%d files that may hold secrets were left out; name one to search it]\n", g.secrets)
	}
	if more {
		fmt.Fprintf(&g.b, "[only the first %d files were looked at]\n", maxFiles)
	}
	return bounded(strings.TrimRight(g.b.String(), "\n"))
}
