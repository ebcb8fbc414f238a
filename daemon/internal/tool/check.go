package tool

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/scanner"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

const (
	checkTime   = 3 * time.Second // of all that looks at one change, where Env says nothing else
	maxProblems = 10              // lines of one report
	slowSkips   = 10              // changes in a folder after which what was too slow there is tried again
	maxProblem  = 300             // bytes of a line
)

// Held runs a program that the kernel holds to reading, in dir, and returns what it printed. It is nil where nothing can hold
// one. The error is fs.ErrNotExist where there is no such program.
type Held func(ctx context.Context, dir string, args []string, stdin []byte) (output []byte, err error)

// checked is what a checker made of a file.
type checked struct {
	by    string   // the checker's name
	lines []string // problems, none where the file is fine
}

func (env Env) checkTime() time.Duration { return cmp.Or(env.CheckTime, checkTime) }

// report returns what a checker newly reports for a file that was changed, as lines for the model, "" for nothing. A problem that
// was there before is counted only. It ends within Env.CheckTime.
func (env Env) report(ctx context.Context, path string, before, after []byte, existed bool) string {
	ctx, cancel := context.WithTimeout(ctx, env.checkTime())
	defer cancel()
	now := env.syntax(ctx, path, after)
	slow := ""
	if now.by != "" && len(now.lines) == 0 && filepath.Ext(path) == ".go" {
		now, slow = env.vet(ctx, path)
	}
	was, known := env.Files.reported(path, now.lines)
	if !known && existed && len(now.lines) > 0 {
		was = env.syntax(ctx, path, before).lines
	}
	old := map[string]bool{}
	for _, l := range was {
		old[numberless(l)] = true
	}
	var b strings.Builder
	b.WriteString(slow)
	fresh, same := 0, 0
	for _, l := range now.lines {
		if old[numberless(l)] {
			same++
		} else if fresh++; fresh <= maxProblems {
			fmt.Fprintf(&b, "\n%s", CutHead(l, maxProblem))
		}
	}
	if more := fresh - maxProblems; more > 0 {
		fmt.Fprintf(&b, "\nand %d more", more)
	}
	if same > 0 {
		fmt.Fprintf(&b, "\n%d as before", same)
	}
	if b.Len() == len(slow) {
		return slow
	}
	return fmt.Sprintf("\n[%s reports of %s:%s]", now.by, filepath.Base(path), b.String())
}

var digits = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[0-9]+`) })

// numberless is a problem without its line, which moves with what is put in above it.
func numberless(problem string) string { return digits().ReplaceAllString(problem, "#") }

// pyCompile is what py_compile does, without the file that it writes.
const pyCompile = "import sys; compile(sys.stdin.buffer.read(), sys.argv[1], 'exec')"

// syntax checks the text of a file. Nothing of the project is run for that.
func (env Env) syntax(ctx context.Context, path string, text []byte) checked {
	var args []string
	switch ext := filepath.Ext(path); {
	case ext == ".go":
		return checked{"gofmt", goSyntax(path, text)}
	case ext == ".py":
		args = []string{"python3", "-I", "-S", "-c", pyCompile, filepath.Base(path)}
	case ext == ".sh", ext == ".bash", isShell(text) && ext == "":
		args = []string{"bash", "--norc", "-n"}
	case ext == ".js", ext == ".cjs":
		args = []string{"node", "--check", "-"}
		if ext == ".js" && modular().Match(text) {
			args = []string{"node", "--check", "--input-type=module", "-"}
		}
	case ext == ".mjs":
		args = []string{"node", "--check", "--input-type=module", "-"}
	}
	if args == nil || env.Held == nil {
		return checked{}
	}
	out, err := env.Held(ctx, filepath.Dir(path), args, text)
	if err == nil || ctx.Err() != nil || !errors.As(err, new(interface{ ExitCode() int })) {
		return checked{by: args[0]} // fine, too slow, or there is none
	}
	return checked{args[0], problems(out)}
}

var (
	shebang = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\A#!\s*/(usr/)?bin/(env\s+)?(ba)?sh\b`) })
	modular = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^(import|export)\b`) })
	frame   = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(    at |Traceback |  File "<string>"|Node\.js v|\s*\^+\s*$)`)
	})
)

func isShell(text []byte) bool { return shebang().Match(text) }

// problems are the lines of a report without those that only say where in the checker it came up.
func problems(out []byte) (lines []string) {
	for l := range strings.Lines(Clean(string(out))) {
		if l = strings.TrimRight(l, " \n"); l != "" && !frame().MatchString(l) {
			lines = append(lines, l)
		}
	}
	return lines
}

func goSyntax(path string, text []byte) (lines []string) {
	_, err := parser.ParseFile(token.NewFileSet(), filepath.Base(path), text, parser.AllErrors|parser.SkipObjectResolution)
	if list, ok := errors.AsType[scanner.ErrorList](err); ok {
		for _, e := range list {
			lines = append(lines, e.Error())
		}
	} else if err != nil {
		lines = []string{err.Error()}
	}
	return lines
}

// vet has go check the file's package, and returns what it says of the file; slow says that it does not end in time. A
// build by the agent may make it faster, so it is tried again some changes later.
func (env Env) vet(ctx context.Context, path string) (c checked, slow string) {
	dir, name := filepath.Split(path)
	if env.Held == nil || env.Files.skips(dir) {
		return checked{}, ""
	}
	out, err := env.Held(ctx, dir, []string{"go", "vet", "."}, nil)
	if errors.Is(ctx.Err(), context.Canceled) { // by the user
		return checked{}, ""
	}
	if ctx.Err() != nil {
		env.Files.skip(dir, slowSkips)
		return checked{}, fmt.Sprintf("\n[go vet takes longer than %s here; the next %d changes are not checked by it]", env.checkTime(), slowSkips)
	}
	if err == nil {
		return checked{by: "go vet"}, ""
	}
	for _, l := range problems(out) {
		if _, rest, ok := bytes.Cut([]byte(l), []byte(name+":")); ok {
			c.lines = append(c.lines, name+":"+string(rest))
		}
	}
	c.by = "go vet"
	return c, ""
}
