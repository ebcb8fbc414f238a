package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sublet/wire/citest"
)

// A disk that is full before the daemon starts is named, with what to do, by `ask` and by the window, which is a shell all the
// same. The daemon's log cannot say it there: all that was shown was "connection reset by peer".
func TestDiskFullBeforeTheStart(t *testing.T) {
	w := newWorld(t, "", script{{Match: "hello", Steps: []step{{Text: "hello to you"}}}})
	if err := syscall.Mount("tmpfs", w.state, "tmpfs", 0, "size=512k,mode=700"); err != nil {
		citest.Skip(t, "making a small disk needs root: ", err)
	}
	t.Cleanup(func() { // detached: the programs end afterwards
		if err := syscall.Unmount(w.state, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	filler := filepath.Join(w.state, "filler")
	if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	out, errs, status := w.sublet("ask", "hello")
	if status != 4 || out != "" || !strings.Contains(errs, "the daemon did not start: ") || !strings.Contains(errs, "full") ||
		!strings.Contains(errs, "hint: make room on the disk of "+w.state) {
		t.Errorf("ask: exit %d, %q, %q", status, out, errs)
	}
	term := w.open()
	term.run("echo a sh''ell", `^a shell$`)
	term.mode(true)
	term.see(`make room on the disk of`)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	term.ask("hello")
	term.see(`hello to you`)
}
