package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A log that is full begins anew and keeps the one before; no record is lost or torn on the way, whoever writes it, and
// the error stream of the process, which is the same file, goes on in it.
func TestLogTurns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daemon.log")
	const most = 4096
	log, err := openLog(path, most)
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	const writers, records = 4, 30 // fits into two files
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range records {
				if _, err := fmt.Fprintf(log, "writer %d record %03d %s\n", w, i, strings.Repeat("x", 20)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if _, err := stderr.WriteString("panic: the end\n"); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, name := range []string{path + ".1", path} {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != 0o600 || info.Size() > most {
			t.Errorf("%s: %v, %v", name, info, err)
		}
		text += string(raw)
	}
	for w := range writers {
		for i := range records {
			if want := fmt.Sprintf("writer %d record %03d xxxx", w, i); strings.Count(text, want) != 1 {
				t.Errorf("%q is there %d times", want, strings.Count(text, want))
			}
		}
	}
	if !strings.HasSuffix(text, "\npanic: the end\n") {
		t.Errorf("the error stream went elsewhere: %q", text[len(text)-100:])
	}
}
