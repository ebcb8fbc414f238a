package client

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWantsVi(t *testing.T) {
	home := t.TempDir()
	for text, want := range map[string]bool{
		"":                    false,
		"set editing-mode vi": true,
		"# a comment\n\tset  editing-mode\tvi\nset bell-style none\n": true,
		"set editing-mode vi\nset editing-mode emacs\n":               false,
		"# set editing-mode vi\n":                                     false,
		"set editing-mode vista\n":                                    false,
	} {
		if err := os.WriteFile(filepath.Join(home, ".inputrc"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := wantsVi([]string{"HOME=" + home}); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
	other := filepath.Join(home, "other")
	if err := os.WriteFile(other, []byte("set editing-mode vi\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !wantsVi([]string{"HOME=/nonexistent", "INPUTRC=" + other}) {
		t.Error("INPUTRC was not read")
	}
	if wantsVi([]string{"INPUTRC=" + home}) || wantsVi(nil) {
		t.Error("a folder, or nothing, asks for vi mode")
	}
}
