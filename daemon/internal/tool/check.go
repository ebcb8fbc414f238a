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

	"sublet/wire/visible"
)

const (
	checkTime   = 3 * time.Second // for all checks of one change, unless Env sets another
	maxProblems = 10              // lines of one report
	slowSkips   = 10              // changes in a folder after which a check that was too slow there is tried again
	maxProblem  = 300             // bytes of a line
)

// Held runs a program that the kernel confines to reading, in dir, and returns its output. It is nil if programs cannot be
// confined. The error is fs.ErrNotExist if there is no such program.
type Held func(ctx context.Context, dir string, args []string, stdin []byte) (output []byte, err error)

// checked is the result of checking a file.
type checked struct {
	by    string   // the checker's name
	lines []string // problems; none if the file is fine
}

func (env Env) checkTime() time.Duration { return cmp.Or(env.CheckTime, checkTime) }

// report returns new problems of a changed file as lines for the model, "" for none. Problems that existed before are only
// counted. It ends within Env.CheckTime.
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
			fmt.Fprintf(&b, "\n%s", visible.Cut(l, maxProblem))
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

// numberless returns a problem without its line number, which changes when lines are inserted above.
func numberless(problem string) string { return digits().ReplaceAllString(problem, "#") }

// pyCompile does what the module py_compile does, but writes no file.
const pyCompile = "import sys; compile(sys.stdin.buffer.read(), sys.argv[1], 'exec')"

// syntax checks the syntax of a file. It runs nothing of the project.
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
		return checked{by: args[0]} // no problem, too slow, or no such program
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

// problems returns the lines of a report, without those about the checker itself.
func problems(out []byte) (lines []string) {
	for l := range strings.Lines(visible.Clean(string(out))) {
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

// vet runs go vet for the file's package and returns what it reports about the file; slow reports that it did not end in
// time. A build by the agent may make it faster, so it is tried again some changes later.
func (env Env) vet(ctx context.Context, path string) (c checked, slow string) {
	dir, name := filepath.Split(path)
	if env.Held == nil || env.Files.skips(dir) {
		return checked{}, ""
	}
	out, err := env.Held(ctx, dir, []string{"go", "vet", "."}, nil)
	if errors.Is(ctx.Err(), context.Canceled) { // cancelled by the user
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
