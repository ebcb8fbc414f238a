package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A log that is full begins anew and keeps the one before; who has it open goes on in it. One that is not full is left alone.
func TestLogRotates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daemon.log")
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	full := strings.Repeat("a record\n", 100)
	for _, c := range []struct{ write, kept, now string }{{full[:900], "", full[:900]}, {"one more\n", full + "one more\n", ""}, {"after it\n", full + "one more\n", "after it\n"}} {
		if _, err := log.WriteString(c.write); err != nil {
			t.Fatal(err)
		}
		if err := rotateLog(path, 900); err != nil {
			t.Fatal(err)
		}
		kept, _ := os.ReadFile(path + ".1") // there is none at first
		now, err := os.ReadFile(path)
		if err != nil || string(kept) != c.kept || string(now) != c.now {
			t.Errorf("after %q: %d bytes kept, %d in the log, %v", c.write[:9], len(kept), len(now), err)
		}
	}
	for _, name := range []string{path, path + ".1"} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}
