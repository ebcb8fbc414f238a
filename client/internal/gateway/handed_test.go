package gateway

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestHanded(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var h Handed
	one, err := h.Keep([]byte("pixels"), "image/png")
	if err != nil {
		t.Fatal(err)
	}
	two, err := h.Keep([]byte("more"), "../../x")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.Stat(filepath.Dir(one))
	if err != nil || dir.Mode().Perm() != 0o700 || filepath.Dir(one) != filepath.Dir(two) || filepath.Ext(one) != ".png" {
		t.Errorf("got %s and %s in %v, %v", one, two, dir.Mode(), err)
	}
	if info, err := os.Stat(one); err != nil || info.Mode().Perm() != 0o600 || info.Size() != 6 {
		t.Errorf("got %v, %v", info, err)
	}
	old := time.Now().Add(-handedAge - time.Hour)
	if err := os.Chtimes(two, old, old); err != nil {
		t.Fatal(err)
	}
	three, err := h.Keep(nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(two); err == nil {
		t.Error("what was left behind is still there")
	}
	h.Remove(one, one)
	if _, err := os.Stat(one); err == nil {
		t.Error("what was removed is still there")
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(three)); err == nil {
		t.Error("the folder is still there")
	}
	if _, err := h.Keep(nil, ""); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: got %v", err)
	}
}

// The oldest of too many files goes, and a folder that was removed is made anew.
func TestHandedBound(t *testing.T) {
	h := Handed{Parent: t.TempDir(), Folder: "mine-", File: "output-*.txt", Max: 2}
	keep := func() string {
		path, err := h.Keep([]byte("x"), "")
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := filepath.Match(filepath.Join(h.Parent, "mine-*", "output-*.txt"), path); !ok || err != nil {
			t.Errorf("got %s, %v", path, err)
		}
		return path
	}
	left := func() int {
		list, err := filepath.Glob(filepath.Join(h.Parent, "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	one, two := keep(), keep()
	h.Remove(two)
	keep()
	if _, err := os.Stat(one); err != nil {
		t.Errorf("one too many was removed: %v", err)
	}
	keep()
	if _, err := os.Stat(one); err == nil || left() != 2 {
		t.Errorf("%d files are kept, the oldest with %v", left(), err)
	}
	if err := os.RemoveAll(filepath.Dir(one)); err != nil {
		t.Fatal(err)
	}
	keep()
	if err := h.Close(); err != nil || left() != 0 {
		t.Errorf("%d files after Close, %v", left(), err)
	}
}

func TestDecode(t *testing.T) {
	for text, want := range map[string]string{"aGk=": "hi", "aGk": "hi", "": "", "YW\nJj": "abc"} {
		if got, err := Decode(text); err != nil || string(got) != want {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"a", "aGk*", "data:image/png;base64,aGk="} {
		if got, err := Decode(text); err == nil {
			t.Errorf("%q: got %q", text, got)
		}
	}
}
