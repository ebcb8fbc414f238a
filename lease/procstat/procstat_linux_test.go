package procstat

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sublet/lease/procstat/procstattest"
)

// called runs a copy of cat by another name until the test ends; it runs when called returns.
func called(t *testing.T, name string) (pid int) {
	t.Helper()
	cat, err := exec.LookPath("cat")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(cat)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, program, 0o700); err != nil {
		t.Fatal(err)
	}
	p := procstattest.Start(t, path)
	if _, err := io.WriteString(p.In, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Out.Read(make([]byte, 1)); err != nil { // it was executed: its name is its own
		t.Fatal(err)
	}
	return p.PID
}

// A process may call itself what it likes: nothing of it is taken for the fields behind it.
func TestReadOfAnyName(t *testing.T) {
	for _, name := range []string{"cat", "a b", "a) Z 1 1 (b", ")", "((", ") T 1", "a\nb) R 0", "fifteen bytes of it and more"} {
		pid := called(t, name)
		st, err := Read(pid)
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		if want := name[:min(15, len(name))]; st.PID != pid || st.Name != want || st.Parent != os.Getpid() || !strings.ContainsRune("RSD", rune(st.State)) {
			t.Errorf("%q: got %+v, want process %d, child of %d, that runs", name, st, pid, os.Getpid())
		}
		if children, err := Children(os.Getpid()); err != nil || !slices.Contains(children, pid) {
			t.Errorf("%q: got children %v, %v; want %d among them", name, children, err, pid)
		}
		self, err := Read(os.Getpid())
		if err != nil || st.Start < self.Start || self.Start <= 0 || st.Session != self.Session {
			t.Errorf("%q: started at %d, its parent at %d, %v", name, st.Start, self.Start, err)
		}
		for _, c := range []struct {
			pid, ancestor int
			want          bool
		}{{pid, os.Getpid(), true}, {pid, pid, true}, {pid, os.Getppid(), true}, {os.Getpid(), pid, false}, {0, 0, false}, {-1, -1, false}, {pid, 0, false}} {
			list, err := Ancestors(c.pid)
			if slices.Contains(list, c.ancestor) != c.want || err != nil {
				t.Errorf("%q: Ancestors(%d) = %v, %v; want %d in it: %v", name, c.pid, list, err, c.ancestor, c.want)
			}
		}
	}
	for _, pid := range []int{-1, 0, 1 << 30} {
		if st, err := Read(pid); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("process %d: got %+v, %v", pid, st, err)
		}
	}
	if list, err := Ancestors(1 << 30); len(list) != 1 || err == nil {
		t.Errorf("of a process that is not there: got %v, %v", list, err)
	}
}

// What is no such line is an error, not a process with zeros for answers.
func TestParseRefuses(t *testing.T) {
	const good = "7 (x) S 6 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 0"
	if st, err := parse([]byte(good)); err != nil || st.Start != 99 || st.Parent != 6 || st.State != 'S' {
		t.Fatalf("got %+v, %v", st, err)
	}
	for _, bad := range []string{"", "7", "7 (x", "7 x) S 6", ") (", "7 (x) S 6 0", strings.Replace(good, "S 6", "S x", 1), strings.Replace(good, " 99 ", " x ", 1)} {
		if st, err := parse([]byte(bad)); err == nil {
			t.Errorf("%q: got %+v, want an error", bad, st)
		}
	}
}

// A mark is passed on to what a process starts, also to what leaves its parents and its session.
func TestMark(t *testing.T) {
	switch marked, err := Marked(os.Getpid()); {
	case err != nil:
		t.Fatal(err)
	case marked: // by what started the tests, such as a shell that sublet lends
		if marked, err := Marked(procstattest.Start(t, "cat").PID); err != nil || !marked {
			t.Errorf("a child of this marked process is marked: %v, %v", marked, err)
		}
		return
	}
	p := procstattest.Start(t, "sh", "-c", `read x; (setsid sh -c 'ulimit -H -x unlimited 2>/dev/null; echo $$; exec sleep 100' &) ; read x`)
	for range 2 {
		if err := Mark(p.PID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(p.In, "\n"); err != nil {
		t.Fatal(err)
	}
	var left int
	if _, err := fmt.Fscan(p.Out, &left); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if leftover, err := os.FindProcess(left); err == nil {
			_ = leftover.Kill()
		}
	})
	for _, pid := range []int{p.PID, left} {
		if marked, err := Marked(pid); err != nil || !marked {
			t.Errorf("process %d is marked: %v, %v", pid, marked, err)
		}
	}
}
