package gateway

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestHanded(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var h Handed
	one, err := h.Keep([]byte("pixels"), "image/png")
	if err != nil {
		t.Fatal(err)
	}
	two, err := h.Keep([]byte("more"), "../../x")
	if err != nil || filepath.Dir(one) != os.Getenv("TMPDIR") || filepath.Dir(two) != filepath.Dir(one) || filepath.Ext(one) != ".png" {
		t.Errorf("got %s and %s, %v", one, two, err)
	}
	if info, err := os.Stat(one); err != nil || info.Mode().Perm() != 0o600 || info.Size() != 6 {
		t.Errorf("got %v, %v", info, err)
	}
	h.Remove(one, one)
	if _, err := os.Stat(one); err == nil {
		t.Error("what was removed is still there")
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(two); err == nil {
		t.Error("a file is left after Close")
	}
	if _, err := h.Keep(nil, ""); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: got %v", err)
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
