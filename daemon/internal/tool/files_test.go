package tool

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

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
	if _, ok := env.Files.Known("", filepath.Join(env.Cwd, "long")); !ok {
		t.Error("got no digest, want that of the whole file though only a part was shown")
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

func TestWriteKeepsModeAndLeavesNothingBehind(t *testing.T) {
	env := newEnv(t)
	path := put(t, env.Cwd, "run.sh", "old\n")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	r := mustDo(t, Write(), env, m{"path": "run.sh", "content": "new\n"})
	if got := slurp(t, path); got != "new\n" {
		t.Errorf("got %q", got)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o755 {
		t.Errorf("got mode %v, want 0755 kept", info.Mode())
	}
	if len(r.FilesModified) != 1 || r.FilesModified[0] != path || !strings.Contains(r.Content, "+1 -1") {
		t.Errorf("got %+v", r)
	}
	mustDo(t, Write(), env, m{"path": "deep/er/file", "content": "x"})
	if got := slurp(t, filepath.Join(env.Cwd, "deep/er/file")); got != "x" {
		t.Errorf("got %q", got)
	}
	left, err := filepath.Glob(filepath.Join(env.Cwd, ".sublet-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("got %v left behind", left)
	}
	// A file with two names stays one file.
	if err := os.Link(path, filepath.Join(env.Cwd, "twin")); err != nil {
		t.Fatal(err)
	}
	mustDo(t, Write(), env, m{"path": "run.sh", "content": "3"})
	if got := slurp(t, filepath.Join(env.Cwd, "twin")); got != "3" {
		t.Errorf("got %q under the second name, want the same file", got)
	}
}

// what was judged is what is written, or nothing.
func TestWriteRefusesWhatChangedSinceThePlan(t *testing.T) {
	env := newEnv(t)
	path := put(t, env.Cwd, "f", "seen")
	raw := args(t, m{"path": "f", "content": "mine"})
	action, err := Write().Plan(t.Context(), env, raw)
	if err != nil {
		t.Fatal(err)
	}
	put(t, env.Cwd, "f", "theirs")
	if _, err := Write().Run(t.Context(), env, raw, action, nil); !errors.Is(err, ErrChanged) {
		t.Errorf("got %v, want ErrChanged", err)
	}
	if got := slurp(t, path); got != "theirs" {
		t.Errorf("got %q, want the file left alone", got)
	}
	// A file that appeared, and a path that became a link, are changes too.
	raw = args(t, m{"path": "fresh", "content": "mine"})
	if action, err = Write().Plan(t.Context(), env, raw); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, filepath.Join(env.Cwd, "fresh")); err != nil {
		t.Fatal(err)
	}
	if _, err := Write().Run(t.Context(), env, raw, action, nil); !errors.Is(err, ErrChanged) {
		t.Errorf("got %v, want ErrChanged", err)
	}
}

// Agents that work side by side do not write over each other's changes.
func TestChangesOfOneFileAtOnce(t *testing.T) {
	env := newEnv(t)
	path := put(t, env.Cwd, "f", "seen\n"+strings.Repeat("the rest\n", 100_000))
	mustDo(t, Read(), env, m{"path": "f"})
	const agents = 8
	var made atomic.Int32
	var planned, ran sync.WaitGroup
	planned.Add(agents)
	for i := range agents {
		ran.Go(func() {
			raw := args(t, m{"path": "f", "old": "seen", "new": fmt.Sprint("seen by ", i)})
			action, err := Edit().Plan(t.Context(), env, raw)
			planned.Done()
			planned.Wait()
			if err != nil {
				t.Error(err)
				return
			}
			if _, err = Edit().Run(t.Context(), env, raw, action, nil); err == nil {
				made.Add(1)
			} else if !errors.Is(err, ErrChanged) {
				t.Error(err)
			}
		})
	}
	ran.Wait()
	if made.Load() != 1 {
		t.Errorf("%d edits of the same text succeeded, and %.9q is left", made.Load(), slurp(t, path))
	}
}

// What a sub-agent read or wrote is not known to the agent beside it.
func TestWhatAnotherAgentWroteIsAChange(t *testing.T) {
	env := newEnv(t)
	path := put(t, env.Cwd, "f", "first")
	mustDo(t, Read(), env, m{"path": "f"})
	other := env
	other.Agent = "engineer-1"
	_, err := do(t, Edit(), other, m{"path": "f", "old": "first", "new": "second"})
	wantErr(t, err, "read it before you edit it")
	mustDo(t, Read(), other, m{"path": "f"})
	mustDo(t, Edit(), other, m{"path": "f", "old": "first", "new": "second"})
	_, err = do(t, Write(), env, m{"path": "f", "content": "of the first"})
	wantErr(t, err, "changed since you read it")
	if got := slurp(t, path); got != "second" {
		t.Errorf("got %q, want what the other agent wrote", got)
	}
	if _, err := env.Files.Undo(); err != nil {
		t.Fatal(err)
	}
	mustDo(t, Edit(), env, m{"path": "f", "old": "first", "new": "third"})
}

// A write of what an agent made of a file's old text would lose what its user did meanwhile.
func TestWriteRefusesWhatChangedSinceItWasRead(t *testing.T) {
	env := newEnv(t)
	path := put(t, env.Cwd, "f", "seen")
	mustDo(t, Read(), env, m{"path": "f"})
	put(t, env.Cwd, "f", "theirs")
	_, err := do(t, Write(), env, m{"path": "f", "content": "mine"})
	wantErr(t, err, "changed since you read it")
	if got := slurp(t, path); got != "theirs" {
		t.Errorf("got %q, want the file left alone", got)
	}
	mustDo(t, Read(), env, m{"path": "f"})
	mustDo(t, Write(), env, m{"path": "f", "content": "mine"})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	mustDo(t, Write(), env, m{"path": "f", "content": "again"}) // nothing is lost
}

func TestPreviewIsADiff(t *testing.T) {
	env := newEnv(t)
	put(t, env.Cwd, "f", "a\nb\nc\n")
	a, err := Write().Plan(t.Context(), env, args(t, m{"path": "f", "content": "a\nB\nc\n"}))
	if err != nil {
		t.Fatal(err)
	}
	want := "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
	if a.Preview.Type != "diff" || a.Preview.Content != want {
		t.Errorf("got %s %q, want %q", a.Preview.Type, a.Preview.Content, want)
	}
	a, err = Write().Plan(t.Context(), env, args(t, m{"path": "n", "content": "x\n"}))
	if err != nil || !strings.HasPrefix(a.Preview.Content, "--- /dev/null\n+++ b/") || !strings.HasSuffix(a.Preview.Content, "+x\n") {
		t.Errorf("got %q, %v", a.Preview.Content, err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(env.Cwd, link); err != nil {
		t.Fatal(err)
	}
	if got, _ := diffNames(link, filepath.Join(env.Cwd, "sub", "f")); got != "a/sub/f" {
		t.Errorf("a folder behind a link: got %q", got)
	}
	// What is not below the folder is named in full; a name cannot add lines to the header.
	elsewhere := put(t, t.TempDir(), "g", "a\n")
	if a, err = Write().Plan(t.Context(), env, args(t, m{"path": elsewhere, "content": "b\n"})); err != nil || !strings.HasPrefix(a.Preview.Content, "--- "+elsewhere+"\n+++ "+elsewhere+"\n@@") {
		t.Errorf("got %q, %v", a.Preview.Content, err)
	}
	if a, err = Write().Plan(t.Context(), env, args(t, m{"path": "x\n+++ b/y", "content": "b\n"})); err != nil || !strings.HasPrefix(a.Preview.Content, "--- /dev/null\n+++ \"b/x\\n+++ b/y\"\n") {
		t.Errorf("got %q, %v", a.Preview.Content, err)
	}
}

func TestEditReplacesOneText(t *testing.T) {
	env := newEnv(t)
	path := put(t, env.Cwd, "f.go", "a := 1\nb := 1\nend")
	edit := func(old, repl string, all bool) (Result, error) {
		return do(t, Edit(), env, m{"path": "f.go", "old": old, "new": repl, "replace_all": all})
	}
	_, err := edit("a := 1", "a := 2", false)
	wantErr(t, err, "read it before")
	mustDo(t, Read(), env, m{"path": "f.go"})
	if _, err := edit("a := 1", "a := 2", false); err != nil {
		t.Fatal(err)
	}
	if got := slurp(t, path); got != "a := 2\nb := 1\nend" { // the missing last line end stays missing
		t.Errorf("got %q", got)
	}
	_, err = edit(" := ", " = ", false)
	wantErr(t, err, "2 times, in lines 1 and 2")
	_, err = edit("nowhere", "x", false)
	wantErr(t, err, "does not occur")
	if r, err := edit(" := ", " = ", true); err != nil || !strings.Contains(r.Content, "2 times") {
		t.Errorf("got %+v, %v", r, err)
	}
	if got := slurp(t, path); got != "a = 2\nb = 1\nend" {
		t.Errorf("got %q", got)
	}
	put(t, env.Cwd, "f.go", "theirs")
	_, err = edit("theirs", "x", false)
	wantErr(t, err, "changed since you read it")
	_, err = do(t, Edit(), env, m{"path": "none", "old": "a", "new": "b"})
	wantErr(t, err, "does not exist")
}

// What a change of the model's did is counted right whatever its lines begin with, and however long it is.
func TestChangedLinesAreCounted(t *testing.T) {
	env := newEnv(t)
	put(t, env.Cwd, "a.sql", "-- one\nselect 1;\n")
	mustDo(t, Read(), env, m{"path": "a.sql"})
	r := mustDo(t, Edit(), env, m{"path": "a.sql", "old": "-- one\n", "new": "++two;\n-- three\n"})
	if !strings.Contains(r.Content, "+2 -1 lines") {
		t.Errorf("got %q, want +2 -1 lines", r.Content)
	}
	r = mustDo(t, Write(), env, m{"path": "long", "content": strings.Repeat(strings.Repeat("x", 99)+"\n", 2000)})
	if !strings.Contains(r.Content, "+2000 -0 lines") {
		t.Errorf("got %q, want +2000 -0 lines", r.Content)
	}
}

func TestEditKeepsCRLF(t *testing.T) {
	for _, tc := range []struct{ file, old, repl, want string }{
		{"a\r\nb\r\nc", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc"},
		{"a\r\nb\r\n", "b", "p\nq", "a\r\np\r\nq\r\n"},
		{"a\r\nb\r\n", "a\r\n", "", "b\r\n"},
		{"a\nb\n", "a\n", "x\ny\n", "x\ny\nb\n"},
	} {
		got, err := apply([]byte(tc.file), []edit{{Old: &tc.old, New: &tc.repl}})
		if err != nil || string(got.after) != tc.want {
			t.Errorf("%q: got %q, %v; want %q", tc.file, got.after, err, tc.want)
		}
	}
}

// The content that a model writes anew has the line ends that the file had: read shows none.
func TestWriteKeepsCRLF(t *testing.T) {
	env := newEnv(t)
	for _, tc := range []struct{ before, content, want string }{
		{"a\r\nb\r\n", "x\ny\n", "x\r\ny\r\n"},
		{"a\r\nb\n", "x\ny\n", "x\ny\n"}, // of both kinds
		{"a\r\nb\r\n", "x\r\ny\n", "x\r\ny\n"},
		{"a\nb\n", "x\n", "x\n"},
	} {
		path := put(t, env.Cwd, "f", tc.before)
		mustDo(t, Read(), env, m{"path": "f"})
		mustDo(t, Write(), env, m{"path": "f", "content": tc.content})
		if got := slurp(t, path); got != tc.want {
			t.Errorf("%q over %q: got %q, want %q", tc.content, tc.before, got, tc.want)
		}
	}
}

// The sign that stands for bytes that are no UTF-8 is neither searched for nor written over them.
func TestOtherEncodingsAreNotBroken(t *testing.T) {
	env := newEnv(t)
	path := put(t, env.Cwd, "latin1", "caf\xe9\ntwo\n")
	mustDo(t, Read(), env, m{"path": "latin1"})
	_, err := do(t, Edit(), env, m{"path": "latin1", "old": "caf\uFFFD", "new": "tea"})
	wantErr(t, err, "not UTF-8")
	_, err = do(t, Write(), env, m{"path": "latin1", "content": "caf\uFFFD\n2\n"})
	wantErr(t, err, "not UTF-8")
	mustDo(t, Edit(), env, m{"path": "latin1", "old": "two", "new": "2 \uFFFD"})
	if got := slurp(t, path); got != "caf\xe9\n2 \uFFFD\n" {
		t.Errorf("got %q", got)
	}
}

func TestUndoPutsTheLastChangeBack(t *testing.T) {
	env := newEnv(t)
	path := put(t, env.Cwd, "f", "one")
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	mustDo(t, Write(), env, m{"path": "f", "content": "two"})
	mustDo(t, Write(), env, m{"path": "new", "content": "x"})
	if c, err := env.Files.Undo(); err != nil || c.Existed || c.Path != filepath.Join(env.Cwd, "new") {
		t.Errorf("got %+v, %v", c, err)
	}
	if _, err := os.Stat(filepath.Join(env.Cwd, "new")); !os.IsNotExist(err) {
		t.Errorf("got %v, want the created file gone", err)
	}
	if _, err := env.Files.Undo(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || slurp(t, path) != "one" || info.Mode().Perm() != 0o600 {
		t.Errorf("got %q, %v; want the old content and mode", slurp(t, path), info.Mode())
	}
	if _, err := env.Files.Undo(); !errors.Is(err, ErrNothingToUndo) {
		t.Errorf("got %v, want ErrNothingToUndo", err)
	}
	mustDo(t, Write(), env, m{"path": "f", "content": "three"})
	put(t, env.Cwd, "f", "theirs")
}

// A file that was changed since, say by a formatter, is left alone. It does not keep the changes before from being undone.
func TestUndoPassesOverChangedFiles(t *testing.T) {
	env := newEnv(t)
	before, path := put(t, env.Cwd, "before", "one"), put(t, env.Cwd, "f", "one")
	mustDo(t, Write(), env, m{"path": "before", "content": "two"})
	mustDo(t, Write(), env, m{"path": "f", "content": "two"})
	put(t, env.Cwd, "f", "theirs")
	_, err := env.Files.Undo()
	wantErr(t, err, path+" was changed since")
	if _, err := env.Files.Undo(); err != nil || slurp(t, path) != "theirs" || slurp(t, before) != "one" {
		t.Errorf("got %v, %q, %q; want only the change before undone", err, slurp(t, path), slurp(t, before))
	}
}

// TestMade keeps a file from being taken for an agent's in which there is somebody else's work.
func TestMade(t *testing.T) {
	env := newEnv(t)
	path := filepath.Join(env.Cwd, "f")
	made := func(want bool, when string) {
		t.Helper()
		if got := env.Files.Made(path); got != want {
			t.Errorf("%s: got %t", when, got)
		}
	}
	made(false, "nothing was written")
	mustDo(t, Write(), env, m{"path": "f", "content": "one"})
	mustDo(t, Write(), env, m{"path": "f", "content": "two"})
	made(true, "made and changed by tools")
	put(t, env.Cwd, "f", "theirs")
	made(false, "changed by somebody else")
	mustDo(t, Read(), env, m{"path": "f"})
	mustDo(t, Write(), env, m{"path": "f", "content": "three"})
	made(false, "changed over somebody else's text")
}

func git(t *testing.T, dir string, arg ...string) {
	t.Helper()
	cmd := exec.Command("git", arg...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", arg, err, out)
	}
}

// Matching one name against a pattern of many alternatives did not end, and nothing could stop it.
func TestPatternsWithTooManyAlternativesAreRefused(t *testing.T) {
	env := newEnv(t)
	put(t, env.Cwd, strings.Repeat("a", 30), "x\n")
	many := strings.Repeat("{a,?,*}", 20) + "b"
	_, err := do(t, Glob(), env, m{"pattern": many})
	wantErr(t, err, "pattern: more alternatives than 4 times {}")
	_, err = do(t, Grep(), env, m{"pattern": "x", "include": many})
	wantErr(t, err, "include: more alternatives than 4 times {}")
}

// A path with brackets, as frameworks for web pages have them, names itself too.
func TestGlobOfAPathWithBrackets(t *testing.T) {
	env := newEnv(t)
	put(t, env.Cwd, "app/[id]/page.tsx", "")
	if r := mustDo(t, Glob(), env, m{"pattern": "app/[id]/page.tsx"}); r.Content != "app/[id]/page.tsx" {
		t.Errorf("got %q", r.Content)
	}
}

func TestGlobSeesWhatGitSees(t *testing.T) {
	env := newEnv(t)
	git(t, env.Cwd, "init", "-q")
	put(t, env.Cwd, ".gitignore", "*.log\nbuild/\n")
	put(t, env.Cwd, "a.go", "")
	put(t, env.Cwd, "sub/b.go", "")
	put(t, env.Cwd, "sub/c d.go", "")
	put(t, env.Cwd, "x.log", "")
	put(t, env.Cwd, "build/out.go", "")
	put(t, env.Cwd, ".github/w.yml", "")
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(env.Cwd, "a.go"), old, old); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(env.Cwd, "link.go")); err != nil {
		t.Fatal(err)
	}
	r := mustDo(t, Glob(), env, m{"pattern": "*.go"})
	lines := strings.Split(r.Content, "\n")
	if len(lines) != 3 || lines[2] != "a.go" {
		t.Errorf("got %q, want three files, the oldest last, no ignored one and no link", r.Content)
	}
	if r := mustDo(t, Glob(), env, m{"pattern": "**/*.yml"}); r.Content != ".github/w.yml" {
		t.Errorf("got %q", r.Content)
	}
	if r := mustDo(t, Glob(), env, m{"pattern": "b.go", "path": "sub"}); r.Content != "sub/b.go" {
		t.Errorf("got %q", r.Content)
	}
	if r := mustDo(t, Glob(), env, m{"pattern": env.Cwd + "/sub/*.go"}); !strings.Contains(r.Content, "sub/c d.go") {
		t.Errorf("got %q", r.Content)
	}
	if r := mustDo(t, Glob(), env, m{"pattern": "*.log"}); !strings.Contains(r.Content, "no file matches") {
		t.Errorf("got %q", r.Content)
	}
	_, err := do(t, Glob(), env, m{"pattern": "[a"})
	wantErr(t, err, "not a valid glob")
}

// Git lists a repository inside of another as one entry, whether it is a submodule, a clone beside the files, or empty.
func TestFilesOfARepositoryInside(t *testing.T) {
	env := newEnv(t)
	git(t, env.Cwd, "init", "-q")
	put(t, env.Cwd, "a.go", "alpha\n")
	put(t, env.Cwd, ".gitignore", "ignored/\n")
	for _, name := range []string{"sub/module", "clone", "empty", "ignored"} {
		dir := filepath.Join(env.Cwd, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		git(t, dir, "init", "-q")
		if name == "empty" {
			continue
		}
		put(t, dir, "b.go", "alpha\n")
		put(t, dir, ".gitignore", "*.log\n")
		put(t, dir, "b.log", "alpha\n")
		git(t, dir, "add", ".")
		git(t, dir, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")
	}
	git(t, env.Cwd, "-c", "advice.addEmbeddedRepo=false", "add", "sub/module")
	if r := mustDo(t, Grep(), env, m{"pattern": "alpha", "mode": "files"}); r.Content != "a.go\nclone/b.go\nsub/module/b.go" {
		t.Errorf("got %q", r.Content)
	}
	if r := mustDo(t, Glob(), env, m{"pattern": "b.*"}); len(strings.Fields(r.Content)) != 2 {
		t.Errorf("got %q, want the two that no git ignores", r.Content)
	}
}

// a repository's own configuration runs nothing when its files are listed.
func TestListingFilesRunsNothingOfTheRepository(t *testing.T) {
	env := newEnv(t)
	git(t, env.Cwd, "init", "-q")
	put(t, env.Cwd, "a.go", "x")
	proof := filepath.Join(env.Cwd, "proof")
	hook := put(t, env.Cwd, "hook.sh", "#!/bin/sh\ntouch '"+proof+"'\n")
	if err := os.Chmod(hook, 0o755); err != nil {
		t.Fatal(err)
	}
	git(t, env.Cwd, "config", "core.fsmonitor", hook)
	mustDo(t, Glob(), env, m{"pattern": "*.go"})
	if _, err := os.Stat(proof); !os.IsNotExist(err) {
		t.Errorf("got %v, want the repository's program not run", err)
	}
}
