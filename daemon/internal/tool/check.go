package tool

import (
	"bytes"
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
	serverAlone = 500 * time.Millisecond // how long a language server may take before go vet is started, too
	maxProblems = 10                     // lines of one report
	slowSkips   = 10                     // changes in a folder after which a check that was too slow there is tried again
	maxProblem  = 300                    // bytes of a line
)

// Held runs a program that the kernel confines to reading, in dir, and returns its output. It is nil if programs cannot be
// confined. The error is fs.ErrNotExist if there is no such program.
type Held func(ctx context.Context, dir string, args []string, stdin []byte) (output []byte, err error)

// Languages asks a language server what would be wrong with a file with this content. by is the server that answered, "" if none
// answered; fault is why a server is not used any more, the first time. It returns when ctx ends. It is nil if there are none.
type Languages func(ctx context.Context, path string, text []byte) (by string, problems []string, fault error)

// checked is the result of checking a file.
type checked struct {
	by     string   // the checker's name
	lines  []string // problems; none if the file is fine
	served bool     // by is a language server
	fault  error    // of a language server: see Languages
}

// checkChange checks a changed file and returns its new problems as lines for the model, "" for none. Problems that existed before are only
// counted. It ends within Env.CheckTime.
func (env Env) checkChange(ctx context.Context, path string, before, after []byte, existed bool) string {
	ctx, cancel := context.WithTimeout(ctx, env.CheckTime)
	defer cancel()
	check, now, notes := env.syntax, env.syntax(ctx, path, after), ""
	if len(now.lines) == 0 {
		c, n := env.checkDeeper(ctx, path, after)
		if c.by != "" || n != "" {
			now, notes = c, n
		}
		switch {
		case now.served:
			check, before = env.askServer, env.Files.checkedBefore(path, before)
		case env.Languages != nil && ctx.Err() != nil:
			env.Files.notChecked(path, before)
			if c.by == "" && n == "" {
				notes = "\n[not checked in time; the next change of this file is checked together with this one]"
			}
		}
	}
	was, known := env.Files.reported(path, now)
	if !known && existed && len(now.lines) > 0 {
		was = check(ctx, path, before).lines
	}
	old := map[string]bool{}
	for _, l := range was {
		old[withoutNumbers(l)] = true
	}
	var b strings.Builder
	fresh, same := 0, 0
	for _, l := range now.lines {
		if old[withoutNumbers(l)] {
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
	if b.Len() == 0 {
		return notes
	}
	return fmt.Sprintf("%s\n[%s reports of %s:%s]", notes, now.by, filepath.Base(path), b.String())
}

// checkDeeper checks more than the syntax: it asks a language server and, for Go, runs go vet at the same time. A server's answer counts even if
// go vet ended sooner, since go vet names only the first of several problems, and the report must not depend on the load of the machine.
// notes are lines about the checkers.
func (env Env) checkDeeper(ctx context.Context, path string, text []byte) (c checked, notes string) {
	vetting, stop := context.WithCancel(ctx)
	defer stop()
	headStart, begin := context.WithTimeout(vetting, serverAlone)
	defer begin()
	var vetted checked
	var slow string
	var beside sync.WaitGroup
	beside.Go(func() {
		<-headStart.Done()
		vetted, slow = env.vet(vetting, path)
	})
	served := env.askServer(ctx, path, text)
	if served.by != "" {
		stop()
	}
	begin()
	beside.Wait()
	if served.fault != nil {
		notes = fmt.Sprintf("\n[%s]", visible.Cut(visible.Line(served.fault.Error()), maxProblem))
	}
	if served.by != "" {
		return served, notes
	}
	return vetted, notes + slow
}

// askServer asks the language server for path.
func (env Env) askServer(ctx context.Context, path string, text []byte) checked {
	if env.Languages == nil {
		return checked{}
	}
	by, lines, fault := env.Languages(ctx, path, text)
	return checked{by: by, lines: lines, served: by != "", fault: fault}
}

var digits = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[0-9]+`) })

// withoutNumbers returns a problem without its line number, which changes when lines are inserted above.
func withoutNumbers(problem string) string { return digits().ReplaceAllString(problem, "#") }

// pyCompile does what the module py_compile does, but writes no file.
const pyCompile = "import sys; compile(sys.stdin.buffer.read(), sys.argv[1], 'exec')"

// syntax checks the syntax of a file. It runs nothing of the project.
func (env Env) syntax(ctx context.Context, path string, text []byte) checked {
	var args []string
	switch ext := filepath.Ext(path); {
	case ext == ".go":
		return checked{by: "gofmt", lines: goSyntax(path, text)}
	case ext == ".py":
		args = []string{"python3", "-I", "-S", "-c", pyCompile, filepath.Base(path)}
	case ext == ".sh", ext == ".bash", ext == "" && shebang().Match(text):
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
	return checked{by: args[0], lines: problems(out)}
}

var (
	shebang = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\A#!\s*/(usr/)?bin/(env\s+)?(ba)?sh\b`) })
	modular = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^(import|export)\b`) })
	frame   = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(    at |Traceback |  File "<string>"|Node\.js v|\s*\^+\s*$)`)
	})
)

// problems returns the lines of a report, without those about the checker itself.
func problems(out []byte) (lines []string) {
	for l := range strings.Lines(visible.Clean(string(out))) {
		if l = strings.TrimRight(l, " \n"); l != "" && !frame().MatchString(l) {
			lines = append(lines, l)
		}
	}
	return lines
}

// goSyntax returns the syntax errors of a Go file, a line each, with the file's base name and the position.
func goSyntax(path string, text []byte) (lines []string) {
	_, err := parser.ParseFile(token.NewFileSet(), filepath.Base(path), text, parser.AllErrors|parser.SkipObjectResolution)
	if list, ok := errors.AsType[scanner.ErrorList](err); ok {
		for _, e := range list {
			lines = append(lines, e.Error())
		}
	}
	return lines
}

// vet runs go vet for the file's package and returns what it reports about the file; slow reports that it did not end in
// time. A build by the agent may make it faster, so it is tried again some changes later.
func (env Env) vet(ctx context.Context, path string) (c checked, slow string) {
	dir, name := filepath.Split(path)
	if filepath.Ext(name) != ".go" || env.Held == nil || errors.Is(ctx.Err(), context.Canceled) || env.Files.skips(dir) {
		return checked{}, ""
	}
	out, err := env.Held(ctx, dir, []string{"go", "vet", "."}, nil)
	if errors.Is(ctx.Err(), context.Canceled) { // by the user, or a language server answered
		return checked{}, ""
	}
	if ctx.Err() != nil {
		env.Files.skip(dir, slowSkips)
		return checked{}, fmt.Sprintf("\n[go vet did not end within %s here; the next %d changes are not checked by it]", env.CheckTime, slowSkips)
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
