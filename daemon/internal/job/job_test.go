package job

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sublet/lease/confine"
	"sublet/lease/confine/confinetest"
	"sublet/lease/procstat"
	"sublet/lease/shell"
	"sublet/lease/shell/procs"
	"sublet/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 30 * time.Second

// world is a Manager and a real shell that starts its jobs.
type world struct {
	*Manager
	sh    *shell.Shell
	dir   string
	woken chan Info
}

func newWorld(t *testing.T) *world {
	t.Helper()
	sh, err := shell.Start(shell.Options{Path: "/bin/bash", Private: true, Dir: t.TempDir(), Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{sh: sh, dir: filepath.Join(t.TempDir(), "jobs"), woken: make(chan Info, 16)}
	w.open(t)
	t.Cleanup(func() {
		for _, i := range w.List("") {
			procs.SignalGroup(i.PID, syscall.SIGKILL)
		}
		w.Close()
		if err := sh.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) open(t *testing.T) {
	t.Helper()
	m, err := Open(w.dir, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	w.Manager = m
	if err := m.Follow(func(i Info) {
		if i.Due != "" {
			w.woken <- i
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// start has the shell start a job.
func (w *world) start(t *testing.T, text, wake string) Info {
	t.Helper()
	d, err := w.New(wire.Job{SessionID: "s", Agent: "orchestrator", Command: wire.OSString(text), Wake: wake}, 4)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := w.sh.Run(ctx, shell.Command{Text: text, Job: d.Folder}); err != nil {
		t.Fatal(err)
	}
	i, ok := d.Started()
	if !ok {
		t.Fatalf("%q was not started", text)
	}
	return i
}

// ends waits for a job's end.
func (w *world) ends(t *testing.T, id string) Info {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := w.Await(ctx, "s", id, nil); err != nil {
		t.Fatal(err)
	}
	i, err := w.Get("s", id)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// A job is listed while it runs, its output is shown once and waited for, and its end has its exit status.
func TestJob(t *testing.T) {
	w := newWorld(t)
	i := w.start(t, "echo one; echo ready; until [ -e go ]; do sleep 0.01; done; echo two; exit 3", "")
	if i.JobID != "j1" || i.PID == 0 {
		t.Fatalf("got %+v", i)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if line, err := w.Await(ctx, "s", i.JobID, regexp.MustCompile("^rea")); line != "ready" || err != nil {
		t.Fatalf("got %q, %v", line, err)
	}
	if list := w.List("s"); len(list) != 1 || list[0].State != Running || list[0].Bytes != 10 {
		t.Errorf("got %+v", list)
	}
	if list := w.List("another"); len(list) != 0 {
		t.Errorf("another session has %+v", list)
	}
	if head, tail, left, err := w.ReadNew("s", i.JobID, 100); string(head) != "one\nready\n" || len(tail) > 0 || left != 0 || err != nil {
		t.Errorf("got %q %q %d %v", head, tail, left, err)
	}
	if err := os.WriteFile(filepath.Join(w.sh.Dir(), "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	end := w.ends(t, i.JobID)
	if end.State != Ended || end.ExitCode == nil || *end.ExitCode != 3 || end.End() != "ended with exit code 3" {
		t.Errorf("got %+v", end)
	}
	if head, _, _, err := w.ReadNew("s", i.JobID, 100); string(head) != "two\n" || err != nil {
		t.Errorf("the rest: %q, %v", head, err)
	}
	if _, err := w.Get("another", i.JobID); err == nil {
		t.Error("another session sees the job")
	}
}

// Kill ends all of the process group, also what is deaf to SIGTERM or stopped, and is sure of it.
func TestKill(t *testing.T) {
	w := newWorld(t)
	for _, text := range []string{"sleep 100 & sleep 100", "trap '' TERM; sleep 100 & sleep 100; sleep 100", "kill -STOP 0"} {
		i := w.start(t, text, "")
		end, err := w.Kill("s", i.JobID, "you")
		if err != nil || end.State != Ended || !strings.Contains(end.End(), "ended by you") {
			t.Errorf("%q: %+v, %v", text, end, err)
		}
		if left := procs.Group(i.PID); len(left) > 0 {
			t.Errorf("%q: still running: %v", text, left)
		}
	}
}

// A job that the next daemon finds running is followed to its end; one that ended meanwhile has its exit status, and one
// whose number another process has by now is left alone.
func TestFoundAgain(t *testing.T) {
	w := newWorld(t)
	runs := w.start(t, "echo begun; until [ -e go ]; do sleep 0.01; done; exit 5", WakeEnd)
	ended := w.start(t, "until [ -e go-1 ]; do sleep 0.01; done; exit 6", "")
	other := w.start(t, "sleep 100", "")
	left := w.start(t, "until [ -e go-2 ]; do sleep 0.01; done & exit 8", "")
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if st, err := procstat.Read(left.PID); err != nil || st.State == 'Z' {
			break
		}
	}
	w.Close()
	for _, name := range []string{"go-1"} {
		if err := os.WriteFile(filepath.Join(w.sh.Dir(), name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(patience); len(procs.Group(ended.PID)) > 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	other.Born-- // as if its number had been used again
	if err := w.write(other); err != nil {
		t.Fatal(err)
	}
	for id, born := range map[string]int64{"j8": 1, "j9": 0} { // 0: its leader ended before it was looked at
		copied := left // as if its number had been used again, for a group of another session
		copied.JobID, copied.Born = id, born
		copied.SID--
		if err := errors.Join(os.Mkdir(w.folder(copied.JobID), 0o700), w.write(copied)); err != nil {
			t.Fatal(err)
		}
	}
	draft := left
	draft.JobID, draft.PID = "j7", 0
	if err := errors.Join(os.Mkdir(w.folder(draft.JobID), 0o700), w.write(draft)); err != nil {
		t.Fatal(err)
	}
	w.open(t)
	if i, _ := w.Get("s", draft.JobID); i.State != Ended || !strings.HasPrefix(i.Note, "lost: ") {
		t.Errorf("that was being made: %+v", i)
	}
	for _, id := range []string{"j8", "j9"} {
		if i, _ := w.Get("s", id); i.State != Ended {
			t.Errorf("whose group's number is another's: %+v", i)
		}
	}
	if i, _ := w.Get("s", left.JobID); i.State != Running || i.Note != foundAgain {
		t.Errorf("whose leader ended: %+v", i)
	}
	if err := os.WriteFile(filepath.Join(w.sh.Dir(), "go-2"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if i := w.ends(t, left.JobID); i.ExitCode == nil || *i.ExitCode != 8 {
		t.Errorf("whose leader ended: %+v", i)
	}
	if i, _ := w.Get("s", runs.JobID); i.State != Running || i.Note != "found again by a new daemon" {
		t.Errorf("that runs: %+v", i)
	}
	if i, _ := w.Get("s", ended.JobID); i.State != Ended || i.ExitCode == nil || *i.ExitCode != 6 || i.Note != "ended while no daemon ran" {
		t.Errorf("that ended: %+v", i)
	}
	if i, err := w.Kill("s", other.JobID, "you"); i.State != Ended || i.ExitCode != nil || err != nil || len(procs.Group(other.PID)) == 0 {
		t.Errorf("whose number is another's: %+v, %v", i, err)
	}
	procs.SignalGroup(other.PID, syscall.SIGKILL)
	if err := os.WriteFile(filepath.Join(w.sh.Dir(), "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if i := <-w.woken; i.JobID != runs.JobID || !strings.HasPrefix(i.Due, "ended with exit code 5") {
		t.Errorf("woken for %+v", i)
	}
	var told atomic.Int32
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			if w.ClaimReport(runs.JobID) {
				told.Add(1)
			}
		})
	}
	if callers.Wait(); told.Load() != 1 {
		t.Errorf("%d callers have the report to pass on, want one", told.Load())
	}
	if i, _ := w.Get("s", runs.JobID); i.Due != "" {
		t.Errorf("still due: %q", i.Due)
	}
}

// The record of a job that an earlier version began has other names for its session and its times. Without them the agent was not
// found that the job is to wake, and a job that had ended was removed at once.
func TestRecordOfAnEarlierVersion(t *testing.T) {
	w := &world{dir: t.TempDir()}
	at := time.Now().Truncate(time.Millisecond)
	for id, ended := range map[string]time.Time{"j1": at, "j2": {}} {
		text, err := json.Marshal(map[string]any{"Session": "s", "ID": id, "Started": at, "Ended": ended, "State": map[bool]string{true: Running, false: Ended}[ended.IsZero()]})
		if err = errors.Join(err, os.Mkdir(filepath.Join(w.dir, id), 0o700), os.WriteFile(filepath.Join(w.dir, id, "job.json"), text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	w.open(t)
	defer w.Close()
	list := w.List("s")
	if len(list) != 2 || list[0].StartedAtMS != at.UnixMilli() || list[0].EndedAtMS != at.UnixMilli() || list[1].StartedAtMS != at.UnixMilli() {
		t.Errorf("got %+v", list)
	}
}

// What is written down of a job is what was known of it last, whoever wrote it.
func TestRecord(t *testing.T) {
	w, err := Open(t.TempDir(), slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	d, err := w.New(wire.Job{SessionID: "s"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	i := d.info
	j := &job{info: i}
	w.jobs[i.JobID] = j
	for range 50 {
		var writers sync.WaitGroup
		for n := range 8 {
			writers.Go(func() {
				w.due(j, strings.Repeat("x", 1+n*1000), false)
				w.ClaimReport(i.JobID)
			})
		}
		writers.Wait()
		text, err := os.ReadFile(filepath.Join(w.folder(i.JobID), "job.json"))
		if err != nil {
			t.Fatal(err)
		}
		want, _ := w.Get("s", i.JobID)
		var got Info
		if err := json.Unmarshal(text, &got); err != nil || got.Due != want.Due {
			t.Fatalf("%d bytes, %v; it holds %.20q, want %.20q", len(text), err, got.Due, want.Due)
		}
	}
}

// A pattern wakes once, by its line or by an end without it.
func TestWake(t *testing.T) {
	w := newWorld(t)
	w.start(t, "echo one; echo listening on 80; echo listening on 81", "^listening")
	if i := <-w.woken; i.Due != `printed a line that matches "^listening"` {
		t.Errorf("got %q", i.Due)
	}
	w.ends(t, "j1")
	w.start(t, "echo broken; exit 1", "^listening")
	if i := <-w.woken; i.JobID != "j2" || i.Due != "ended with exit code 1" {
		t.Errorf("got %s %q", i.JobID, i.Due)
	}
}

// What a job's leader left in its process group is followed as the leader was: its lines are seen, its output is bounded, and
// its end is the job's.
func TestGroupOutlivesLeader(t *testing.T) {
	w := newWorld(t)
	i := w.start(t, "{ until [ -e go ]; do sleep 0.01; done; echo listening; head -c 20000000 /dev/zero; until [ -e end ]; do sleep 0.01; done; } & exit 4", "^listening")
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if st, err := procstat.Read(i.PID); err != nil || st.State == 'Z' {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the leader does not end")
		}
	}
	write := func(name string) {
		if err := os.WriteFile(filepath.Join(w.sh.Dir(), name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go")
	select {
	case got := <-w.woken:
		if got.Due != `printed a line that matches "^listening"` || got.State == Ended {
			t.Errorf("woken by %q, %s", got.Due, got.State)
		}
	case <-time.After(patience):
		t.Fatal("its line was not seen")
	}
	for end := time.Now().Add(patience); w.dropped(w.jobs[i.JobID]) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing was dropped")
		}
	}
	write("end")
	if end := w.ends(t, i.JobID); end.ExitCode == nil || *end.ExitCode != 4 {
		t.Errorf("got %+v", end)
	}
}

// Of a long output the newest is kept, and what is missing is counted.
func TestTrim(t *testing.T) {
	w := newWorld(t)
	i := w.start(t, "head -c "+strconv.Itoa(OutputMost)+" /dev/zero | tr '\\0' x; until [ -e on ]; do sleep 0.01; done; echo last; until [ -e go ]; do sleep 0.01; done; echo behind", "")
	until := func(what string, is func(i Info) bool) {
		t.Helper()
		for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
			if now, err := w.Get("s", i.JobID); err != nil || is(now) {
				return
			}
			if time.Now().After(end) {
				t.Fatal(what)
			}
		}
	}
	touch := func(name string) {
		if err := os.WriteFile(filepath.Join(w.sh.Dir(), name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	until("it is not all there", func(i Info) bool { return i.Bytes == OutputMost })
	if w.dropped(w.jobs[i.JobID]) != 0 {
		t.Error("something was dropped before it was too much")
	}
	touch("on")
	until("nothing was dropped", func(i Info) bool { return i.Dropped > 0 })
	if info, err := os.Stat(string(i.OutputPath)); err != nil || info.Size() != OutputMost/2 {
		t.Errorf("kept %d, %v", info.Size(), err)
	}
	touch("go")
	w.ends(t, i.JobID)
	const all = OutputMost + 5 + 7
	head, tail, left, err := w.ReadNew("s", i.JobID, 100)
	if got := w.List("s")[0].Bytes; got != all || left != got-100 || !strings.HasSuffix(string(tail), "xlast\nbehind\n") || len(head) != 50 || err != nil {
		t.Errorf("of %d: %d left out, %q … %q, %v", got, left, head, tail, err)
	}
	if data, from, err := w.Read("s", i.JobID, -1, 7); string(data) != "behind\n" || from != all-7 || err != nil {
		t.Errorf("the newest: %q at %d, %v", data, from, err)
	}
}

// An output is cut as it grows: it was looked at every 2 s, in which a job can fill a disk.
func TestTrimWhileItGrows(t *testing.T) {
	w := newWorld(t)
	i := w.start(t, "sleep 100", "")
	f, err := os.OpenFile(string(i.OutputPath), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	end := time.Now().Add(patience)
	const rounds = 20 // more than there are looks at a silent job within patience
	for range rounds {
		before := w.dropped(w.jobs[i.JobID])
		if _, err := f.Write(make([]byte, OutputMost+1)); err != nil {
			t.Fatal(err)
		}
		for w.dropped(w.jobs[i.JobID]) == before {
			if time.Sleep(time.Millisecond); time.Now().After(end) {
				t.Fatal("it grows without bound")
			}
		}
	}
}

// Who looks at a job's output while it is cut, or after somebody emptied it, is given no byte twice and counts all.
func TestLookMeanwhile(t *testing.T) {
	w := newWorld(t)
	i := w.start(t, "sleep 100", "")
	j := w.jobs[i.JobID]
	f, err := os.OpenFile(string(i.OutputPath), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w.cancel() // nobody follows it: it is cut between two writes only
	w.work.Wait()
	const rounds, chunk = 40, 4 << 20
	var writer sync.WaitGroup
	defer writer.Wait()
	writer.Go(func() {
		data := make([]byte, chunk)
		for range rounds {
			if _, err := f.Write(data); err != nil {
				t.Error(err)
			}
			w.trim(j)
		}
	})
	var got int64
	look := func() {
		head, tail, left, err := w.ReadNew("s", i.JobID, 1000)
		if err != nil || left < 0 {
			t.Fatalf("left out %d, %v", left, err)
		}
		got += int64(len(head)+len(tail)) + left
	}
	for got < rounds*chunk/2 {
		look()
	}
	writer.Wait()
	if look(); got != rounds*chunk {
		t.Errorf("looked at %d bytes, want %d", got, rounds*chunk)
	}
	if err := os.Truncate(string(i.OutputPath), 0); err != nil {
		t.Fatal(err)
	}
	if look(); got != rounds*chunk {
		t.Errorf("looked at %d bytes of an empty output", got-rounds*chunk)
	}
}

// Nothing stays in the project of what stood for protected places where a held job is killed: all of it, or its launcher alone.
func TestKilledHeld(t *testing.T) {
	launcher := confinetest.Beside(t)
	w := newWorld(t)
	for _, whole := range []bool{true, false} {
		project, err := os.MkdirTemp("/var/tmp", "sublet-test") // a held command has a /tmp of its own
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(project)
		d, err := w.New(wire.Job{SessionID: "s", Reach: confine.Project}, 4)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if _, err := w.sh.Run(ctx, shell.Command{
			Text: "ls -a; echo listed; sleep 1000", Dir: project, Job: d.Folder, Launcher: launcher, Confine: &confine.Spec{Reach: confine.Project, Project: project},
		}); err != nil {
			t.Fatal(err)
		}
		i, ok := d.Started()
		if !ok {
			t.Fatal("the job was not started")
		}
		if line, err := w.Await(ctx, "s", i.JobID, regexp.MustCompile("^listed")); line == "" || err != nil {
			t.Fatalf("got %q, %v", line, err)
		}
		if list, err := os.ReadDir(project); err != nil || len(list) == 0 {
			t.Fatalf("nothing stands for protected places: %v", err)
		}
		for _, pid := range procs.Group(i.PID) {
			if whole || procs.Name(pid) == confine.Program {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended with another
			}
		}
		w.ends(t, i.JobID)
		for { // the keeper removes them when it has ended what the command left
			if list, err := os.ReadDir(project); err == nil && len(list) == 0 {
				break
			} else if ctx.Err() != nil {
				t.Fatalf("whole %v: the project holds %v, %v", whole, list, err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// Too many are refused, and what ended long ago is forgotten.
func TestLimits(t *testing.T) {
	w := newWorld(t)
	for range 4 {
		w.start(t, "sleep 100", "")
	}
	if _, err := w.New(wire.Job{}, 4); !errors.As(err, new(*LimitError)) {
		t.Errorf("got %v", err)
	}
	if _, err := w.Kill("s", "j4", "you"); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	w.jobs["j4"].info.EndedAtMS = time.Now().Add(-keptAge - time.Hour).UnixMilli()
	w.mu.Unlock()
	d, err := w.New(wire.Job{}, 4)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.New(wire.Job{}, 4); !errors.As(err, new(*LimitError)) {
		t.Errorf("while another is started: %v", err)
	}
	if _, ok := d.Started(); ok {
		t.Error("what no shell started was")
	}
	if d, err = w.New(wire.Job{}, 4); err != nil {
		t.Fatalf("after that: %v", err)
	}
	d.Started()
	if _, err := w.Get("", "j4"); err == nil {
		t.Error("an old job is still there")
	}
	if list, _ := os.ReadDir(w.dir); len(list) != 3 {
		t.Errorf("folders: %v", list)
	}
	if _, err := w.Kill("s", "j9", "you"); !errors.As(err, new(*NotFoundError)) {
		t.Errorf("got %v", err)
	}
}
