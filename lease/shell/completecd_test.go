package shell

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// Behind cd only folders are offered, where nothing of bash-completion says so already.
func TestCompleteFolders(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, name := range []string{"sub", "sum"} {
		if err := os.Mkdir(filepath.Join(s.Dir(), name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.Dir(), "such"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string][]string{
		"cd su": {"sub/", "sum/"}, "pushd su": {"sub/", "sum/"}, "rmdir su": {"sub/", "sum/"}, "cat su": {"sub/", "such", "sum/"},
		"true && cd su": {"sub/", "sum/"}, `cat "suc`: {`"such"`}, `cd "su`: {`"sub/`, `"sum/`},
	} {
		var got []string
		for end := time.Now().Add(patience); len(got) == 0 && time.Now().Before(end); { // given up after 500 ms, which a busy machine may need
			_, cs, err := s.Complete(t.Context(), line, len(line))
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range cs {
				got = append(got, c.Text)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}
