package tool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sublet/daemon/internal/store"
)

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
	put(t, env.Cwd, "f", "first")
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
	env := undoable(t)
	path := put(t, env.Cwd, "f", "one")
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	mustDo(t, Write(), env, m{"path": "f", "content": "two"})
	mustDo(t, Write(), env, m{"path": "new", "content": "x"})
	if c, more, err := env.Files.Undo(t.Context()); err != nil || more != 1 || c.Existed || c.Path != filepath.Join(env.Cwd, "new") {
		t.Errorf("got %+v, %v", c, err)
	}
	if _, err := os.Stat(filepath.Join(env.Cwd, "new")); !os.IsNotExist(err) {
		t.Errorf("got %v, want the created file gone", err)
	}
	if _, _, err := env.Files.Undo(t.Context()); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || slurp(t, path) != "one" || info.Mode().Perm() != 0o600 {
		t.Errorf("got %q, %v; want the old content and mode", slurp(t, path), info.Mode())
	}
	if _, _, err := env.Files.Undo(t.Context()); !errors.Is(err, ErrNothingToUndo) {
		t.Errorf("got %v, want ErrNothingToUndo", err)
	}
}

// A file that was changed since, say by a formatter, is left alone. It does not keep the changes before from being undone.
func TestUndoPassesOverChangedFiles(t *testing.T) {
	env := undoable(t)
	before, path := put(t, env.Cwd, "before", "one"), put(t, env.Cwd, "f", "one")
	mustDo(t, Write(), env, m{"path": "before", "content": "two"})
	mustDo(t, Write(), env, m{"path": "f", "content": "two"})
	mustDo(t, Write(), env, m{"path": "now-a-folder", "content": "two"})
	put(t, env.Cwd, "f", "theirs")
	folder := filepath.Join(env.Cwd, "now-a-folder")
	if err := errors.Join(os.Remove(folder), os.Mkdir(folder, 0o700)); err != nil {
		t.Fatal(err)
	}
	_, _, err := env.Files.Undo(t.Context())
	wantErr(t, err, folder+" stays as it is, as it cannot be read ("+folder+": is a folder, not a file)")
	_, _, err = env.Files.Undo(t.Context())
	wantErr(t, err, path+" was changed since")
	if _, _, err := env.Files.Undo(t.Context()); err != nil || slurp(t, path) != "theirs" || slurp(t, before) != "one" {
		t.Errorf("got %v, %q, %q; want only the change before undone", err, slurp(t, path), slurp(t, before))
	}
}

// The daemon may be killed after it recorded a change and before it made it, or after it undid one and before it forgot it: that
// change is passed over, and no other one is undone in its place.
func TestUndoPassesOverChangesThatWereNotMade(t *testing.T) {
	env := undoable(t)
	path := put(t, env.Cwd, "f", "one")
	mustDo(t, Write(), env, m{"path": "f", "content": "two"})
	for _, c := range []store.FileChange{
		{Path: path, Existed: true, Before: []byte("two"), After: Digest([]byte("three"))},
		{Path: filepath.Join(env.Cwd, "new"), After: Digest([]byte("three"))},
	} {
		if err := env.Files.Changes.Add(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
		_, _, err := env.Files.Undo(t.Context())
		wantErr(t, err, c.Path+" is as it was before the change already")
		if got := slurp(t, path); got != "two" {
			t.Errorf("%s: got %q, want the change before not undone", c.Path, got)
		}
	}
	_, _, err := env.replace(t.Context(), located{path: filepath.Join(env.Cwd, "sub/new")}, "", func([]byte) ([]byte, error) {
		put(t, env.Cwd, "sub", "not a folder")
		return []byte("x"), nil
	})
	wantErr(t, err, "not a directory")
	if _, more, err := env.Files.Undo(t.Context()); err != nil || more != 0 || slurp(t, path) != "one" {
		t.Errorf("got %q, %v; want the change that was made undone", slurp(t, path), err)
	}
}

// What a file held that holds secrets is nowhere else than in it.
func TestSecretsAreNotKeptForUndo(t *testing.T) {
	env := undoable(t)
	path := put(t, env.Cwd, ".env", "KEY=one")
	mustDo(t, Write(), env, m{"path": ".env", "content": "KEY=two"})
	if c, _, err := env.Files.Changes.Last(t.Context()); err != nil || c.Before != nil {
		t.Errorf("got %q, %v; want no content kept", c.Before, err)
	}
	_, _, err := env.Files.Undo(t.Context())
	wantErr(t, err, path+" holds secrets, so what it was before the change is not kept")
	mustDo(t, Write(), env, m{"path": "sub/.env", "content": "KEY=x"})
	if _, _, err := env.Files.Undo(t.Context()); err != nil {
		t.Errorf("a file that a tool made: got %v, want it removed", err)
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
