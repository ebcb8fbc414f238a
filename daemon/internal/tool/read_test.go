package tool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sublet/daemon/internal/risk"
	"sublet/wire/visible"
)

func TestReadNumbersLines(t *testing.T) {
	env := newEnv(t)
	path := put(t, env.Cwd, "a.txt", "one\ntwo\r\nthree")
	r := mustDo(t, Read(), env, m{"path": "a.txt"})
	if want := "     1\tone\n     2\ttwo\n     3\tthree\n[3 lines, 14 bytes]"; r.Content != want {
		t.Errorf("got %q, want %q", r.Content, want)
	}
	if d, ok := env.Files.Known("", path); !ok || d != Digest([]byte("one\ntwo\r\nthree")) {
		t.Error("got no digest noted, want that of the file")
	}
	r = mustDo(t, Read(), env, m{"path": "./x/../a.txt", "offset": 2, "limit": 1})
	if want := "     2\ttwo\n[lines 2-2 of 3, 14 bytes; more follows: read on with offset 3]"; r.Content != want {
		t.Errorf("got %q, want %q", r.Content, want)
	}
	_, err := do(t, Read(), env, m{"path": "a.txt", "offset": 9})
	wantErr(t, err, "has only 3 lines")
	put(t, env.Cwd, "short", "x")
	if r := mustDo(t, Read(), env, m{"path": "short"}); r.Content != "     1\tx\n[1 line, 1 byte]" {
		t.Errorf("got %q", r.Content)
	}
	_, err = do(t, Read(), env, m{"path": "short", "offset": 2})
	wantErr(t, err, "has only 1 line")
	put(t, env.Cwd, "empty", "")
	if r := mustDo(t, Read(), env, m{"path": "empty"}); r.Content != "[the file is empty]" {
		t.Errorf("got %q", r.Content)
	}
}

func TestReadSeveralRanges(t *testing.T) {
	env := newEnv(t)
	put(t, env.Cwd, "ten", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n")
	type r = []m
	for _, tc := range []struct {
		ranges r
		want   string
	}{
		{r{{"offset": 8, "limit": 1}, {"offset": 2, "limit": 2}}, "     2\t2\n     3\t3\n--\n     8\t8\n[lines 2-3, 8-8 of 10, 21 bytes; more follows: read on with offset 9]"},
		{r{{"offset": 2, "limit": 2}, {"offset": 3, "limit": 2}, {"offset": 5, "limit": 1}}, "     2\t2\n     3\t3\n     4\t4\n     5\t5\n[lines 2-5 of 10, 21 bytes; more follows: read on with offset 6]"},
		{r{{"offset": 10, "limit": 1}, {"offset": 20}}, "    10\t10\n[lines 10-10 of 10, 21 bytes; offset 20 is beyond the end]"},
		{r{{"offset": 1, "limit": 9}, {"offset": 10}}, "     1\t1\n     2\t2\n     3\t3\n     4\t4\n     5\t5\n     6\t6\n     7\t7\n     8\t8\n     9\t9\n    10\t10\n[10 lines, 21 bytes]"},
	} {
		if got := mustDo(t, Read(), env, m{"path": "ten", "ranges": tc.ranges}).Content; got != tc.want {
			t.Errorf("%v: got %q, want %q", tc.ranges, got, tc.want)
		}
	}
	_, err := do(t, Read(), env, m{"path": "ten", "ranges": r{{"offset": 20}, {"offset": 30}}})
	wantErr(t, err, "has only 10 lines")
	_, err = do(t, Read(), env, m{"path": "ten", "offset": 1, "ranges": r{{"offset": 2}}})
	wantErr(t, err, "either ranges or offset and limit")
	// What is next after a cut is the first line that did not fit, also in a later range.
	put(t, env.Cwd, "wide", strings.Repeat(strings.Repeat("x", 1900)+"\n", 100))
	got := mustDo(t, Read(), env, m{"path": "wide", "ranges": r{{"offset": 1, "limit": 2}, {"offset": 50, "limit": 40}}}).Content
	shown := strings.Count(got, "\t") - 2
	if want := fmt.Sprintf("[lines 1-2, 50-%d of 100, 190100 bytes; more follows: read on with offset %d]", 49+shown, 50+shown); len(got) > MaxResult || !strings.HasSuffix(got, want) {
		t.Errorf("got %d bytes that end in %q, want %q", len(got), visible.CutTail(got, 100), want)
	}
}

func TestReadIsBounded(t *testing.T) {
	env := newEnv(t)
	put(t, env.Cwd, "long", strings.Repeat(strings.Repeat("é", 5000)+"\n", 200))
	r := mustDo(t, Read(), env, m{"path": "long"})
	if len(r.Content) > MaxResult || !strings.Contains(r.Content, "read on with offset") || !strings.Contains(r.Content, "[line cut]") {
		t.Errorf("got %d bytes ending in %q", len(r.Content), visible.CutTail(r.Content, 80))
	}
	if strings.ContainsRune(r.Content, '\uFFFD') {
		t.Error("got a character cut in two")
	}
	put(t, env.Cwd, "one", strings.Repeat("x", maxLineBytes+7))
	if r = mustDo(t, Read(), env, m{"path": "one"}); r.TruncatedBy != 7 { // the words about the cut are no part of it
		t.Errorf("got %d bytes left out, want 7", r.TruncatedBy)
	}
	if _, ok := env.Files.Known("", filepath.Join(env.Cwd, "long")); !ok {
		t.Error("got no digest, want that of the whole file though only a part was shown")
	}
}

// The beginning of a long log is sent with every later request, and is seldom what was looked for.
func TestReadShowsLittleOfALargeFile(t *testing.T) {
	env := newEnv(t)
	put(t, env.Cwd, "log", strings.Repeat("nothing happened\n", 100_000))
	for _, tc := range []struct {
		args m
		want string
	}{
		{m{"path": "log"}, "[lines 1-100 of 100000, 1700000 bytes; more follows: read on with offset 101]"},
		{m{"path": "log", "limit": 200}, "[lines 1-200 of 100000, 1700000 bytes; more follows: read on with offset 201]"},
	} {
		if got := mustDo(t, Read(), env, tc.args).Content; !strings.HasSuffix(got, tc.want) {
			t.Errorf("%v: got %s, want %s", tc.args, got[strings.LastIndexByte(got, '\n')+1:], tc.want)
		}
	}
}

func TestReadRefusesWhatIsNoText(t *testing.T) {
	env := newEnv(t)
	put(t, env.Cwd, "pic", "\x89PNG\x0d\x0a\x1a\x0a0000")
	put(t, env.Cwd, "pic.bmp", "BM\x00\x00")
	put(t, env.Cwd, "bin", "ab\x00cd")
	put(t, env.Cwd, "doc.pdf", "%PDF-1.7 xx")
	if err := syscall.Mkfifo(filepath.Join(env.Cwd, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"pic": "a broken header", "pic.bmp": "an image (image/bmp)", "bin": "binary", "doc.pdf": "a PDF", ".": "a folder", "pipe": "a pipe", "/dev/zero": "a device", "none": "no such file",
	} {
		_, err := do(t, Read(), env, m{"path": name})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, want)
		}
	}
}

// the policy sees the file that would be touched, not the name it goes by.
func TestPathsAreResolvedInThePlan(t *testing.T) {
	env := newEnv(t)
	outside, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put(t, outside, "key", "secret")
	for link, to := range map[string]string{
		"link": filepath.Join(outside, "key"), "dir": outside, "dangling": filepath.Join(outside, "new"), "rel": "dir/../dir/key",
		"loop": "loop",
	} {
		if err := os.Symlink(to, filepath.Join(env.Cwd, link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"link": outside + "/key", "dir/key": outside + "/key", "dangling": outside + "/new", "dir/deep/new": outside + "/deep/new",
		"sub/../plain": env.Cwd + "/plain", "../../../../../../../../etc/passwd": "/etc/passwd",
		outside + "/./x/../key": outside + "/key",
	} {
		a, err := Write().Plan(t.Context(), env, args(t, m{"path": name, "content": "x"}))
		if err != nil || len(a.Writes) != 1 || a.Writes[0] != want {
			t.Errorf("%s: got %v, %v; want %s", name, a.Writes, err, want)
		}
	}
	if _, err := Write().Plan(t.Context(), env, args(t, m{"path": "loop", "content": "x"})); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("got %v, want ELOOP", err)
	}
}

// A dotfile that the home folder links to from elsewhere is judged as what it is, not only as the file in that other place.
func TestLinkedDotfilesAreJudgedByTheirNames(t *testing.T) {
	env := newEnv(t)
	home, real := filepath.Join(t.TempDir(), "home"), newEnv(t).Cwd
	put(t, env.Cwd, "rc", "x\n")
	put(t, env.Cwd, "units/x", "x\n")
	put(t, real, "plain", "x\n")
	if err := errors.Join(os.Symlink(real, home), os.MkdirAll(filepath.Join(home, ".config/systemd"), 0o700), os.Symlink(filepath.Join(env.Cwd, "rc"), filepath.Join(home, ".bashrc")),
		os.Symlink(filepath.Join(env.Cwd, "rc"), filepath.Join(home, ".netrc")), os.Symlink(filepath.Join(env.Cwd, "units"), filepath.Join(home, ".config/systemd/user"))); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	for _, tc := range []struct {
		tool Tool
		args m
		want []string
	}{
		{Write(), m{"path": "~/.bashrc", "content": "y"}, []string{real + "/.bashrc", env.Cwd + "/rc"}},
		{Write(), m{"path": real + "/.bashrc", "content": "y"}, []string{real + "/.bashrc", env.Cwd + "/rc"}},
		{Write(), m{"path": "~/.config/systemd/user/x.service", "content": "y"}, []string{real + "/.config/systemd/user/x.service", env.Cwd + "/units/x.service"}},
		{Read(), m{"path": "~/.netrc"}, []string{real + "/.netrc", env.Cwd + "/rc"}},
		{Grep(), m{"pattern": "x", "path": "~/.netrc"}, []string{real + "/.netrc", env.Cwd + "/rc"}},
		{Write(), m{"path": "~/plain", "content": "y"}, []string{real + "/plain"}},
		{Write(), m{"path": "rc", "content": "y"}, []string{env.Cwd + "/rc"}},
	} {
		raw := args(t, tc.args)
		a, err := tc.tool.Plan(t.Context(), env, raw)
		got := slices.Concat(a.Reads, a.Writes)
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%v: got %q, %v, want %q", tc.args, got, err, tc.want)
			continue
		}
		if v := risk.AnalyzeFile(risk.FileAction{Reads: a.Reads, Writes: a.Writes}, risk.Context{Cwd: env.Cwd, ProjectRoot: env.Cwd, Home: real}); len(got) > 1 && v.Level < risk.High {
			t.Errorf("%v: got %v", tc.args, v.Level)
		}
		if _, err := tc.tool.Run(t.Context(), env, raw, a, nil); err != nil {
			t.Errorf("%v: %v", tc.args, err)
		}
	}
}

// A project that the home folder links to, in which the shell is by that link, is one place: its files were judged as files in the
// home folder as well, and each write was asked about.
func TestProjectThatTheHomeLinksTo(t *testing.T) {
	env := newEnv(t)
	at, home := env.Cwd, newEnv(t).Cwd
	env.Cwd = filepath.Join(home, "proj", "cmd")
	if err := errors.Join(os.MkdirAll(filepath.Join(at, "cmd"), 0o700), os.Mkdir(filepath.Join(at, ".git"), 0o700), os.Symlink(at, filepath.Join(home, "proj"))); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	for path, want := range map[string]string{"a.go": at + "/cmd/a.go", "../b.go": at + "/b.go", env.Cwd + "/c.go": at + "/cmd/c.go", "~/proj/d.go": at + "/d.go"} {
		a, err := Write().Plan(t.Context(), env, args(t, m{"path": path, "content": "y"}))
		if err != nil || !slices.Equal(a.Writes, []string{want}) {
			t.Errorf("%s: got %q, %v, want %q", path, a.Writes, err, want)
		}
		if v := risk.AnalyzeFile(risk.FileAction{Writes: a.Writes}, risk.Context{Cwd: at + "/cmd", ProjectRoot: at, Home: home}); v.Level > risk.Medium {
			t.Errorf("%s: got %v", path, v)
		}
	}
	// Settings that the home folder links to are what they are, also for a shell in them.
	env.Cwd = filepath.Join(home, ".config")
	if err := os.Symlink(at, env.Cwd); err != nil {
		t.Fatal(err)
	}
	a, err := Write().Plan(t.Context(), env, args(t, m{"path": "x", "content": "y"}))
	if want := []string{home + "/.config/x", at + "/x"}; err != nil || !slices.Equal(a.Writes, want) {
		t.Errorf("got %q, %v, want %q", a.Writes, err, want)
	}
}

// A file that is read whole is opened for the checks of a later edit, whichever lines were shown.
func TestReadOpensAFile(t *testing.T) {
	env := newEnv(t)
	put(t, env.Cwd, "a.go", "one\ntwo\nthree\n")
	put(t, env.Cwd, "large.go", strings.Repeat("x\n", largeFile))
	var opened []string
	env.Opened = func(path string, text []byte) { opened = append(opened, filepath.Base(path)+" "+string(text)) }
	mustDo(t, Read(), env, m{"path": "a.go", "offset": 2, "limit": 1})
	mustDo(t, Read(), env, m{"path": "large.go"})
	if want := []string{"a.go one\ntwo\nthree\n"}; !slices.Equal(opened, want) {
		t.Errorf("got %q, want %q", opened, want)
	}
}
