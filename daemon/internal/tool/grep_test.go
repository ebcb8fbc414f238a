package tool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sublet/daemon/internal/risk/secret"
	"sublet/wire/citest"
)

// A search leaves out what holds secrets, unless it was given that.
func TestGrepLeavesOutSecrets(t *testing.T) {
	env := newEnv(t)
	for _, name := range []string{"a.txt", "id_rsa", "vault/b.txt", "open/c.pem"} {
		put(t, env.Cwd, name, "alpha\n")
	}
	env.Secrets = secret.New("/h", []string{env.Cwd + "/vault"}, []string{env.Cwd + "/open"})
	for path, want := range map[string]string{
		".":      "a.txt:1:alpha\nopen/c.pem:1:alpha\n[left out: 2 (may hold secrets; name one to search it)]",
		"id_rsa": "id_rsa:1:alpha", "vault": "vault/b.txt:1:alpha",
	} {
		if r := mustDo(t, Grep(), env, m{"pattern": "alpha", "path": path}); r.Content != want {
			t.Errorf("%s: got %q, want %q", path, r.Content, want)
		}
	}
}

// Git's index still names the files of a folder that has become a link: what the link leads to is not searched.
func TestGrepDoesNotFollowAFolderThatBecameALink(t *testing.T) {
	env := newEnv(t)
	vault := t.TempDir()
	put(t, vault, "a.txt", "alpha\n")
	git(t, env.Cwd, "init", "-q")
	put(t, env.Cwd, "was/in/a.txt", "alpha\n")
	put(t, env.Cwd, "module/a.txt", "alpha\n")
	for _, dir := range []string{vault, filepath.Join(env.Cwd, "module")} {
		git(t, dir, "init", "-q")
		git(t, dir, "add", ".")
		git(t, dir, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")
	}
	git(t, env.Cwd, "-c", "advice.addEmbeddedRepo=false", "add", ".")
	for _, name := range []string{"was/in", "module"} {
		dir := filepath.Join(env.Cwd, name)
		if err := errors.Join(os.RemoveAll(dir), os.Symlink(vault, dir)); err != nil {
			t.Fatal(err)
		}
	}
	if r := mustDo(t, Grep(), env, m{"pattern": "alpha"}); !strings.HasPrefix(r.Content, "no match in ") {
		t.Errorf("got %q", r.Content)
	}
	if r := mustDo(t, Glob(), env, m{"pattern": "a.txt"}); !strings.HasPrefix(r.Content, "no file matches ") {
		t.Errorf("got %q", r.Content)
	}
}

func TestGrep(t *testing.T) {
	env := newEnv(t)
	put(t, env.Cwd, "a.go", "package a\n\nfunc Alpha() {}\nfunc beta() {}\n")
	put(t, env.Cwd, "sub/b.txt", "one\nalpha here\nthree\nfour\nalpha again\r\n")
	put(t, env.Cwd, ".hidden/c.txt", "alpha\n")
	put(t, env.Cwd, "bin", "alpha\x00")
	for _, tc := range []struct {
		args m
		want string
	}{
		{m{"pattern": "alpha"}, "sub/b.txt:2:alpha here\nsub/b.txt:5:alpha again"},
		{m{"pattern": "alpha", "ignore_case": true, "mode": "files"}, "a.go\nsub/b.txt"},
		{m{"pattern": "(?i)alpha", "mode": "count", "include": "*.txt"}, "sub/b.txt:2"},
		{m{"pattern": "^func \\w+\\(", "include": "*.go"}, "a.go:3:func Alpha() {}\na.go:4:func beta() {}"},
		{m{"pattern": "again$", "context": 1}, "sub/b.txt-4-four\nsub/b.txt:5:alpha again"},
		{m{"pattern": "alpha", "context": 1}, "sub/b.txt-1-one\nsub/b.txt:2:alpha here\nsub/b.txt-3-three\nsub/b.txt-4-four\nsub/b.txt:5:alpha again"},
		{m{"pattern": "^$", "path": "a.go"}, "a.go:2:"},
		{m{"pattern": "nowhere"}, "no match in " + env.Cwd},
	} {
		if tc.args["include"] == nil && tc.args["path"] == nil {
			tc.want += "\n[left out: 1 (not text)]"
		}
		if r := mustDo(t, Grep(), env, tc.args); r.Content != tc.want {
			t.Errorf("%v: got %q, want %q", tc.args, r.Content, tc.want)
		}
	}
	_, err := do(t, Grep(), env, m{"pattern": "("})
	wantErr(t, err, "pattern")
	_, err = do(t, Grep(), env, m{"pattern": "one\\ntwo"})
	wantErr(t, err, "contains a line end")
	put(t, env.Cwd, "many", strings.Repeat("alpha beta gamma\n", 10_000))
	if r := mustDo(t, Grep(), env, m{"pattern": "alpha"}); len(r.Content) > MaxResult || !strings.Contains(r.Content, "there is more") {
		t.Errorf("got %d bytes", len(r.Content))
	}
}

// A file is searched to its end, however large, and one that cannot be searched is named.
func TestGrepSearchesAllOfAFile(t *testing.T) {
	env := newEnv(t)
	line := strings.Repeat("x", 99) + "\n"
	put(t, env.Cwd, "big.log", strings.Repeat(line, 150_000)+"needle\n"+strings.Repeat(line, 3))
	want := "big.log-150000-" + line + "big.log:150001:needle\nbig.log-150002-" + strings.TrimSuffix(line, "\n")
	for _, path := range []string{"big.log", "."} {
		if r := mustDo(t, Grep(), env, m{"pattern": "needle", "context": 1, "path": path}); r.Content != want {
			t.Errorf("%s: got %q", path, r.Content)
		}
	}
	put(t, env.Cwd, "wide", strings.Repeat("y", maxGrepBlock)+"z needle\n")
	if r := mustDo(t, Grep(), env, m{"pattern": "z needle", "path": "wide", "mode": "count"}); r.Content != "wide:1\n[lines longer than 16 MiB were searched in pieces]" {
		t.Errorf("got %q", r.Content)
	}
	put(t, env.Cwd, "shut", "needle")
	if err := os.Chmod(filepath.Join(env.Cwd, "shut"), 0); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		return // who may read everything
	}
	if r := mustDo(t, Grep(), env, m{"pattern": "needle", "path": "shut"}); !strings.Contains(r.Content, "[left out: 1 (could not be read)]") {
		t.Errorf("got %q", r.Content)
	}
}

// What is found does not depend on how a file falls into blocks, nor on what is looked for first.
func TestGrepFindsWhatEachLineMatches(t *testing.T) {
	env := newEnv(t)
	words := []string{"alpha", "Beta", "GAMMA", "delta\r", "", "éé", "x=1", "K\u212Aelvin", "ſet", "foo bar", strings.Repeat("long ", 20)}
	patterns := []string{
		"alpha", "a", "(?i)beta", "(?i)gamma|DELTA", "delta$", "^$", "é", "foo|x=", "(foo )?bar", "(?i)kk", "(?i)set", "[a-z]+a\\b", "l.n{1,2}g", "(alpha){2}", "a+l", "^a", `\bbar\b`, "", ".",
		"(?i)k", "x=[0-9]", "(?:alpha|beta|gamma)", "\\Aalpha\\z", "\ufffd", "[^a]",
	}
	rapid.Check(t, func(r *rapid.T) {
		lines := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 3).Draw(r, "words"), "")
		}), 0, 60).Draw(r, "lines")
		pattern := rapid.SampledFrom(patterns).Draw(r, "pattern")
		around := rapid.IntRange(0, 3).Draw(r, "context")
		size := rapid.IntRange(1, 300).Draw(r, "block")
		text := strings.Join(lines, "\n")
		put(t, env.Cwd, "f", text)
		m, err := newLineMatcher(pattern)
		if err != nil {
			t.Fatal(err)
		}
		g := &grepOutput{args: &grepArgs{Context: around, lines: m}, cwd: env.Cwd, buf: make([]byte, size)}
		if err := g.file(t.Context(), filepath.Join(env.Cwd, "f")); err != nil {
			t.Fatal(err)
		}
		var want strings.Builder
		re, shown := regexp.MustCompile(pattern), -1
		if text != "" {
			lines = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		} else {
			lines = nil
		}
		hit := func(i int) bool {
			return i >= 0 && i < len(lines) && re.MatchString(strings.TrimSuffix(lines[i], "\r"))
		}
		for i, l := range lines {
			near := false
			for j := i - around; j <= i+around; j++ {
				near = near || hit(j)
			}
			if !near {
				continue
			}
			sep := "-"
			if hit(i) {
				sep = ":"
			}
			if around > 0 && shown >= 0 && shown != i-1 {
				want.WriteString("--\n")
			}
			shown = i
			fmt.Fprintf(&want, "f%s%d%s%s\n", sep, i+1, sep, strings.TrimSuffix(l, "\r"))
		}
		if got := g.b.String(); got != want.String() {
			t.Errorf("%q with %d around in blocks of %d of %q:\ngot  %q\nwant %q", pattern, around, size, text, got, want.String())
		}
	})
}

// A read may return less than was asked for: of files in /proc, and of those that grow or lie on a network.
func TestGrepOfShortReads(t *testing.T) {
	const file = "/proc/kallsyms"
	text, err := os.ReadFile(file)
	if err != nil || len(text) == 0 {
		citest.Skip(t, "there is no "+file)
	}
	env := newEnv(t)
	put(t, env.Cwd, "kallsyms", string(text))
	count := func(dir string) string {
		r := mustDo(t, Grep(), env, m{"pattern": "T", "path": dir + "/kallsyms", "mode": "count"})
		_, n, _ := strings.Cut(r.Content, ":")
		return n
	}
	if got, want := count("/proc"), count(env.Cwd); got != want {
		t.Errorf("got %s lines, want %s", got, want)
	}
	matcher, err := newLineMatcher("needle")
	if err != nil {
		t.Fatal(err)
	}
	g := &grepOutput{args: &grepArgs{Mode: "count", lines: matcher}, buf: []byte(strings.Repeat("needle\n", grepBlock/7))} // of the file before
	if err := g.file(t.Context(), file); err != nil || g.b.Len() > 0 {
		t.Errorf("got %q, %v, want nothing", g.b.String(), err)
	}
}
