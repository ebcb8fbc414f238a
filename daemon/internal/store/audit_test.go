package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func openAudit(t *testing.T, path string) *Audit {
	t.Helper()
	a, err := OpenAudit(path)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func record(t *testing.T, a *Audit, commands ...string) {
	t.Helper()
	for _, c := range commands {
		if err := a.Record(AuditEntry{At: time.Unix(1, 0), Event: "decision", Command: c}); err != nil {
			t.Fatal(err)
		}
	}
}

func audited(t *testing.T, path string) (commands []string) {
	t.Helper()
	if err := ReadAudit(path, func(e AuditEntry) error { commands = append(commands, e.Command); return nil }); err != nil {
		t.Fatal(err)
	}
	return commands
}

func verify(t *testing.T, path string) AuditReport {
	t.Helper()
	rep, err := VerifyAudit(path)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// A pipe in the place of a file of the log kept the daemon, and with it every decision, waiting for its other end.
func TestAuditWaitsForNoPipe(t *testing.T) {
	for _, name := range []string{"audit.log", "audit.log.head"} {
		path := filepath.Join(t.TempDir(), "audit.log")
		a := openAudit(t, path)
		record(t, a, "one")
		pipe := filepath.Join(filepath.Dir(path), name)
		if err := errors.Join(os.Remove(pipe), syscall.Mkfifo(pipe, 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := a.Record(AuditEntry{}); err == nil {
			t.Errorf("%s: an entry was recorded", name)
		}
		if _, err := OpenAudit(path); err == nil {
			t.Errorf("%s: the log was opened", name)
		}
		if rep, err := VerifyAudit(path); err == nil && len(rep.Faults) == 0 {
			t.Errorf("%s: the log was verified", name)
		}
	}
}

// A log goes on over restarts as one chain, and its files are for their owner alone.
func TestAuditChain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	if rep := verify(t, path); len(rep.Faults) != 0 || rep.Entries != 0 {
		t.Errorf("no log: got %+v", rep)
	}
	for i := range 3 {
		a := openAudit(t, path)
		record(t, a, fmt.Sprint(i, "a"), fmt.Sprint(i, "b\n\"quoted\" é"))
	}
	if rep := verify(t, path); len(rep.Faults)+len(rep.Notes) != 0 || rep.Entries != 6 || rep.First != 1 || rep.Last != 6 {
		t.Errorf("got %+v, want 6 entries without a fault", rep)
	}
	if got := audited(t, path); len(got) != 6 || got[5] != "2b\n\"quoted\" é" {
		t.Errorf("got %q", got)
	}
	for _, name := range []string{path, path + ".head"} {
		info, err := os.Stat(name)
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: got %v, %v; want mode 0600", name, info.Mode(), err)
		}
	}
}

// Whatever is done to a log shows, at once and also after the daemon has gone on with it.
func TestAuditTampering(t *testing.T) {
	lines := func(f func([]string) []string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			list := strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
			list[len(list)-1] += "\n"
			if err := os.WriteFile(path, []byte(strings.Join(f(list), "")), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	change := func(i int) func([]string) []string {
		return func(l []string) []string {
			l[i] = strings.Replace(l[i], "decision", "Decision", 1)
			return l
		}
	}
	for name, tamper := range map[string]func(t *testing.T, path string){
		"a line changed":           lines(change(2)),
		"the first line changed":   lines(change(0)),
		"the last line changed":    lines(change(4)),
		"a line taken out":         lines(func(l []string) []string { return append(l[:2:2], l[3:]...) }),
		"the first line taken out": lines(func(l []string) []string { return l[1:] }),
		"the last lines cut off":   lines(func(l []string) []string { return l[:3] }),
		"all lines taken out":      lines(func([]string) []string { return nil }),
		"two lines exchanged":      lines(func(l []string) []string { l[1], l[2] = l[2], l[1]; return l }),
		"a line put in":            lines(func(l []string) []string { return append(l[:2:2], append([]string{l[1]}, l[2:]...)...) }),
		"a line added":             lines(func(l []string) []string { return append(l, `{"seq":6,"prev":"","event":"decision"}`+"\n") }),
		"a line made unreadable":   lines(func(l []string) []string { l[2] = "x\n"; return l }),
		"the log removed":          remove,
		"the head changed": func(t *testing.T, path string) {
			if err := os.WriteFile(path+".head", []byte(auditHead{5, strings.Repeat("a", 64)}.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.log")
			a := openAudit(t, path)
			record(t, a, "one", "two", "three", "four", "five")
			tamper(t, path)
			if rep := verify(t, path); len(rep.Faults) == 0 {
				t.Errorf("at once: got %+v, want a fault", rep)
			}
			a = openAudit(t, path)
			record(t, a, "six", "seven")
			if rep := verify(t, path); len(rep.Faults) == 0 {
				t.Errorf("later: got %+v, want a fault", rep)
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// What is done to a log under a daemon that writes it is found at the next entry: that is in the log, after a line that says
// what was found, and the caller gets a *TouchedError.
func TestAuditTouchedWhileOpen(t *testing.T) {
	put := func(t *testing.T, path, text string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		touch func(t *testing.T, path string)
		why   string
	}{
		"removed":  {remove, "audit.log was removed after entry 2"},
		"replaced": {func(t *testing.T, path string) { put(t, path, "x") }, "audit.log was replaced after entry 2"},
		"emptied": {func(t *testing.T, path string) {
			if err := os.Truncate(path, 0); err != nil {
				t.Fatal(err)
			}
		}, "audit.log was changed after entry 2"},
		"the head removed":  {func(t *testing.T, path string) { remove(t, path+".head") }, "audit.log.head was removed after entry 2"},
		"the head replaced": {func(t *testing.T, path string) { put(t, path+".head", "x") }, "audit.log.head was replaced after entry 2"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.log")
			a := openAudit(t, path)
			record(t, a, "one", "two")
			c.touch(t, path)
			err := a.Record(AuditEntry{At: time.Unix(2, 0), Event: "decision", Command: "three"})
			if touched, ok := errors.AsType[*TouchedError](err); !ok || !strings.Contains(touched.Why, c.why) || touched.Hint() == "" {
				t.Errorf("got %v, want %q", err, c.why)
			}
			record(t, a, "four")
			var last []AuditEntry
			if err := ReadAudit(path, func(e AuditEntry) error { last = append(last, e); return nil }); err != nil {
				t.Fatal(err)
			}
			last = last[max(0, len(last)-3):]
			if len(last) < 3 || last[0].Event != "broken" || last[0].Seq != 3 || last[1].Command != "three" || last[2].Command != "four" {
				t.Errorf("got %+v", last)
			}
			if rep := verify(t, path); !strings.Contains(strings.Join(rep.Faults, "\n"), c.why) {
				t.Errorf("verify: got %q", rep.Faults)
			}
			a = openAudit(t, path) // nothing more is found at the next start
			record(t, a, "five")
			if got := audited(t, path); got[len(got)-1] != "five" || got[len(got)-2] != "four" {
				t.Errorf("after a restart: got %q", got)
			}
		})
	}
	// A place where nothing can be written is an error, not a log that ends unseen.
	path := filepath.Join(t.TempDir(), "audit.log")
	a := openAudit(t, path)
	record(t, a, "one")
	remove(t, path)
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := a.Record(AuditEntry{Command: "two"}); err == nil {
			t.Error("recorded in a folder")
		}
	}
	remove(t, path)
	if _, ok := errors.AsType[*TouchedError](a.Record(AuditEntry{Command: "three"})); !ok {
		t.Error("not recorded once it could be")
	}
}

// A crash is no tampering: a line that was cut off, and a head that is one line behind.
func TestAuditAfterACrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	a := openAudit(t, path)
	record(t, a, "one", "two")
	head, err := os.ReadFile(path + ".head")
	if err != nil {
		t.Fatal(err)
	}
	record(t, a, "three")
	if err := os.WriteFile(path+".head", head, 0o600); err != nil { // killed between line and head
		t.Fatal(err)
	}
	a = openAudit(t, path)
	record(t, a, "four")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"seq":5,"prev":"cut o`); err != nil { // killed in mid-line
		t.Fatal(err)
	}
	f.Close()
	if rep := verify(t, path); len(rep.Faults) != 0 {
		t.Errorf("before the restart: got %+v, want no fault", rep)
	}
	a = openAudit(t, path)
	record(t, a, "five", "six")
	if rep := verify(t, path); len(rep.Faults) != 0 || len(rep.Notes) != 1 || rep.Entries != 6 || rep.Last != 6 {
		t.Errorf("after the restart: got %+v, want 6 entries and one note", rep)
	}
	if got := strings.Join(audited(t, path), " "); got != "one two three four five six" {
		t.Errorf("got %q", got)
	}
}

// Full files are put aside, the oldest go, and the chain runs through what is left.
func TestAuditRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	a := openAudit(t, path)
	a.max = 2000
	const n = 200
	for i := range n {
		record(t, a, fmt.Sprint("command ", i))
		if i%50 == 49 {
			a = openAudit(t, path)
			a.max = 2000
		}
	}
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) != maxAuditFiles+2 { // the log and its head
		t.Errorf("got files %q, %v", files, err)
	}
	rep := verify(t, path)
	if len(rep.Faults) != 0 || rep.First <= 1 || rep.Last != n || rep.Entries != int(rep.Last-rep.First)+1 {
		t.Errorf("got %+v", rep)
	}
	for _, name := range files {
		if info, err := os.Stat(name); err != nil || info.Size() > a.max || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if err := os.Remove(auditFile(path, 3)); err != nil {
		t.Fatal(err)
	}
	if rep := verify(t, path); len(rep.Faults) == 0 {
		t.Error("a file is gone, and nothing shows it")
	}
}

// Many goroutines write one chain, and somebody reads it meanwhile.
func TestAuditConcurrent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	a := openAudit(t, path)
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for i := range 25 {
				if err := a.Record(AuditEntry{Command: fmt.Sprint(w, " ", i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		for range 10 {
			if rep, err := VerifyAudit(path); err != nil || len(rep.Faults) != 0 {
				t.Errorf("while it is written: %+v, %v", rep, err)
			}
		}
	})
	all.Wait()
	if rep := verify(t, path); len(rep.Faults) != 0 || rep.Entries != 100 {
		t.Errorf("got %+v", rep)
	}
}

// A head that is no head is an error that says what to do, and a long line is read whole.
func TestAuditOddFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	a := openAudit(t, path)
	record(t, a, "first", strings.Repeat("x", 1<<20))
	a = openAudit(t, path)
	record(t, a, "after a long one")
	if rep := verify(t, path); len(rep.Faults) != 0 || rep.Entries != 3 {
		t.Errorf("got %d entries, %q", rep.Entries, rep.Faults)
	}
	if err := os.WriteFile(path+".head", []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenAudit(path); err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("got %v, want an error that says what to do", err)
	}
	if rep := verify(t, path); len(rep.Faults) == 0 {
		t.Error("a head that cannot be read is no fault")
	}
	var e AuditEntry
	if err := json.Unmarshal([]byte(`{"exit_code":null}`), &e); err != nil || e.ExitCode != nil {
		t.Errorf("got %+v, %v", e, err)
	}
}

// envAuditWriter makes the test program write the log named by it until it is killed.
const envAuditWriter = "SUBLET_TEST_AUDIT_WRITER"

// A daemon that is killed at any moment leaves a log that the next one goes on with, and no fault in it.
func TestAuditSurvivesKill(t *testing.T) {
	if path := os.Getenv(envAuditWriter); path != "" {
		a, err := OpenAudit(path)
		if err != nil {
			t.Fatal(err)
		}
		a.max = 20_000 // files are put aside too
		for i := 0; ; i++ {
			if err := a.Record(AuditEntry{At: time.Now(), Event: "decision", Command: strings.Repeat("x", i%700)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "audit.log")
	var last int64
	for round := range 6 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestAuditSurvivesKill$")
		cmd.Env = append(os.Environ(), envAuditWriter+"="+path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for grown := false; !grown; { // until this round's process has written something
			if h, err := readHead(path); err == nil {
				grown = h.seq > last+int64(20+round*37)
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed
		a := openAudit(t, path)
		record(t, a, "after the kill")
		rep := verify(t, path)
		if len(rep.Faults) != 0 || rep.Last <= last {
			t.Fatalf("round %d: got %+v, want no fault", round, rep)
		}
		last = rep.Last
	}
}
