package e2e

import (
	"strings"
	"testing"
	"time"
)

// A daemon that was told to stop stays stopped while windows are open; one started by anybody takes them back, and a
// question starts one. The windows used to start a new one after a second (C4).
func TestStopWithAWindowOpen(t *testing.T) {
	w := newWorld(t, "", script{{Match: "^go", Steps: []step{{Text: "here again"}}}})
	term := w.openShell()
	w.await("the window at the daemon", func() bool { return w.daemonPID() != 0 && w.status()["clients"] == float64(1) })
	if out, errs, code := w.sublet("daemon", "stop"); code != 0 {
		t.Fatalf("daemon stop: exit %d, %s%s", code, out, errs)
	}
	term.see(`the daemon was stopped; your next question starts it again`)
	term.run("echo still a sh''ell", `^still a shell$`)
	// Three times as long as windows used to wait. That nothing happens cannot be awaited.
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if _, errs, code := w.sublet("daemon", "status"); code != 4 || !strings.Contains(errs, "no daemon") {
			t.Fatalf("daemon status: exit %d, %s; want none running", code, errs)
		}
	}
	if _, errs, code := w.sublet("daemon", "start"); code != 0 {
		t.Fatalf("daemon start: exit %d, %s", code, errs)
	}
	w.await("the window back", func() bool { return w.status()["clients"] == float64(1) })
	term.see(`the daemon runs again`)
	if _, errs, code := w.sublet("daemon", "restart"); code != 0 {
		t.Fatalf("daemon restart: exit %d, %s", code, errs)
	}
	w.await("the window back again", func() bool { return w.status()["clients"] == float64(1) })
	if _, errs, code := w.sublet("daemon", "stop"); code != 0 {
		t.Fatalf("daemon stop: exit %d, %s", code, errs)
	}
	term.ask("go")
	term.see(`here again`)
}
