package tool

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// unheld runs checkers as they are installed here; what holds them is the hub's.
func unheld(ctx context.Context, dir string, args []string, stdin []byte) ([]byte, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(string(stdin))
	return cmd.CombinedOutput()
}

// The result of a change lists what is newly wrong with the file, and counts what was wrong before.
func TestChangesAreChecked(t *testing.T) {
	for _, tc := range []struct{ file, good, bad, want string }{
		{"a.go", "package a\n", "package a\nfunc {\n", "[gofmt reports of a.go:\na.go:2:6: expected 'IDENT', found '{'"},
		{"a.py", "x = 1\n", "def f(:\n", "[python3 reports of a.py:\n"},
		{"a.sh", "true\n", "if true\n", "[bash reports of a.sh:\nbash: "},
		{"run", "#!/bin/bash\ntrue\n", "#!/bin/bash\nif true\n", "[bash reports of run:\nbash: "},
		{"a.js", "import x from 'y'\n", "import x from 'y'\nlet z = ;\n", "[node reports of a.js:\n"},
		{"a.cjs", "let z = 1\n", "let z = ;\n", "[node reports of a.cjs:\n"},
		{"a.txt", "if\n", "if true\n", ""},
	} {
		env := newEnv(t)
		env.Held, env.CheckTime = unheld, time.Minute
		write := func(text string) string {
			content := mustDo(t, Write(), env, m{"path": tc.file, "content": text}).Content
			_, report, _ := strings.Cut(content, "\n")
			return report
		}
		if got := write(tc.good); got != "" {
			t.Errorf("%s: a good file: got %q", tc.file, got)
		}
		if got := write(tc.bad); !strings.HasPrefix(got, tc.want) || (got == "") != (tc.want == "") || strings.Contains(got, "    at ") {
			t.Errorf("%s: got %q, want %q", tc.file, got, tc.want)
		}
		if got := write(strings.Replace(tc.bad, "\n", "\n\n", 1)); tc.want != "" && !strings.Contains(got, " as before]") {
			t.Errorf("%s: the same again: got %q", tc.file, got)
		}
		put(t, env.Cwd, "old-"+tc.file, tc.bad)
		mustDo(t, Read(), env, m{"path": "old-" + tc.file})
		r := mustDo(t, Edit(), env, m{"path": "old-" + tc.file, "old": tc.bad, "new": tc.bad + "\n"})
		if tc.want != "" && !strings.Contains(r.Content, " as before]") {
			t.Errorf("%s: what was wrong before the first change: got %q", tc.file, r.Content)
		}
	}
}

func TestGoIsVetted(t *testing.T) {
	env := newEnv(t)
	env.Held, env.CheckTime = unheld, time.Minute
	put(t, env.Cwd, "go.mod", "module x\n\ngo 1.26\n")
	put(t, env.Cwd, "b.go", "package x\n\nvar Other = 1\n")
	r := mustDo(t, Write(), env, m{"path": "a.go", "content": "package x\n\nvar A = Other + missing\n"})
	if want := "[go vet reports of a.go:\na.go:3:17: undefined: missing]"; !strings.HasSuffix(r.Content, want) {
		t.Errorf("got %q, want %q", r.Content, want)
	}
	if r = mustDo(t, Write(), env, m{"path": "a.go", "content": "package x\n\nvar A = Other\n"}); strings.Contains(r.Content, "\n") {
		t.Errorf("got %q", r.Content)
	}
}

// What a checker that is missing, cannot run or takes too long does not say is not made up.
func TestCheckersThatDoNotAnswer(t *testing.T) {
	env := newEnv(t)
	env.Held = func(ctx context.Context, _ string, _ []string, _ []byte) ([]byte, error) {
		return []byte("not held"), errors.New("the kernel holds nothing")
	}
	if r := mustDo(t, Write(), env, m{"path": "a.py", "content": "def f(:\n"}); strings.Contains(r.Content, "\n") {
		t.Errorf("got %q", r.Content)
	}
	runs := 0
	env.Held = func(ctx context.Context, _ string, _ []string, _ []byte) ([]byte, error) {
		runs++
		return nil, errors.New("late")
	}
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	if got := env.checkChange(ctx, env.Cwd+"/a.go", nil, []byte("package a\n"), false); !strings.Contains(got, "the next 10 changes") {
		t.Errorf("got %q", got)
	}
	for i := range slowSkips + 1 {
		got := env.checkChange(t.Context(), env.Cwd+"/a.go", nil, []byte("package a\n"), false)
		if want := 1 + i/slowSkips; got != "" || runs != want {
			t.Errorf("change %d: got %q after %d runs, want %d", i, got, runs, want)
		}
	}
}

// A server in memory: words of a text that begin with bad are problems.
type words struct {
	late  time.Duration // how long it takes
	fault error
}

func (w *words) Check(ctx context.Context, path string, text []byte) (by string, problems []string, fault error) {
	select {
	case <-time.After(w.late):
	case <-ctx.Done():
		return "", nil, nil
	}
	if w.fault != nil {
		fault, w.fault = w.fault, nil
		return "", nil, fault
	}
	for i, word := range strings.Fields(string(text)) {
		if strings.HasPrefix(word, "bad") {
			problems = append(problems, fmt.Sprintf("%s:1:%d: %s", filepath.Base(path), i, strings.TrimRight(word, "0123456789")))
		}
	}
	return "words", problems, nil
}

// A language server's report that comes in time replaces that of go vet, which ends sooner on a loaded machine and names only the
// first of several problems.
func TestLanguageServers(t *testing.T) {
	for _, c := range []struct {
		name, file, text, want string
		servers                words
		vets                   int
	}{
		{"at once", "a.go", "package bad", "[words reports of a.go:\na.go:1:1: bad]", words{}, 0},
		{"after go vet", "a.go", "package bad", "[words reports of a.go:\na.go:1:1: bad]", words{late: 2 * time.Second}, 1},
		{"a language without another check", "a.rs", "bad", "[words reports of a.rs:\na.rs:1:0: bad]", words{}, 0},
		{"it does not answer", "a.go", "package bad", "[go vet reports of a.go:\na.go:1:1: vetted]", words{late: time.Hour}, 1},
		{"it does not answer, no other check", "a.rs", "bad", "[not checked in time; the next change of this file is checked together with this one]", words{late: time.Hour}, 0},
		{"it died", "a.go", "package bad", "[it\u241bdied]\n[go vet reports of a.go:\na.go:1:1: vetted]", words{fault: errors.New("it\x1bdied")}, 1},
		{"it died before", "a.rs", "bad", "[it died]", words{fault: errors.New("it died")}, 0},
		{"the syntax is wrong", "a.go", "package", "[gofmt reports of a.go:\na.go:1:8: expected ';', found 'EOF'\na.go:1:8: expected 'IDENT', found 'EOF']", words{}, 0},
	} {
		env, vets := newEnv(t), 0
		env.Languages = c.servers.Check
		env.Held = func(context.Context, string, []string, []byte) ([]byte, error) {
			vets++
			return []byte("a.go:1:1: vetted"), errors.New("exit status 1")
		}
		synctest.Test(t, func(t *testing.T) {
			_, got, _ := strings.Cut(mustDo(t, Write(), env, m{"path": c.file, "content": c.text}).Content, "\n")
			if got != c.want || vets != c.vets {
				t.Errorf("%s: got %q after %d runs of go vet, want %q after %d", c.name, got, vets, c.want, c.vets)
			}
		})
	}
	env := newEnv(t)
	env.Languages = (&words{}).Check
	put(t, env.Cwd, "a.rs", "bad1")
	mustDo(t, Read(), env, m{"path": "a.rs"})
	r := mustDo(t, Edit(), env, m{"path": "a.rs", "old": "bad1", "new": "bad2 badly"})
	if !strings.HasSuffix(r.Content, "[words reports of a.rs:\na.rs:1:1: badly\n1 as before]") {
		t.Errorf("what was wrong before the first change: got %q", r.Content)
	}
	synctest.Test(t, func(t *testing.T) { // a server that is slow to start: what it missed is new to the agent
		slow := &words{late: time.Hour}
		env.Languages = slow.Check
		mustDo(t, Write(), env, m{"path": "b.rs", "content": "worse1"})
		mustDo(t, Edit(), env, m{"path": "b.rs", "old": "worse1", "new": "bad1"})
		slow.late = 0
		r := mustDo(t, Edit(), env, m{"path": "b.rs", "old": "bad1", "new": "bad1 badly"})
		if !strings.HasSuffix(r.Content, "[words reports of b.rs:\nb.rs:1:0: bad\nb.rs:1:1: badly]") {
			t.Errorf("after a change that was not checked in time: got %q", r.Content)
		}
	})
}
