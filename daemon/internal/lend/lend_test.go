package lend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/tool"
	"sublet/lease"
	"sublet/lease/procstat"
	"sublet/wire"
)

// A window that was killed does not come back: who waits for its shell, or for the end of a command in it, is told within
// a second. They waited out the minute that a window has whose link alone was lost.
func TestEndOfAClientIsSeen(t *testing.T) {
	s := newShells(t)
	ended := exec.Command("true")
	if err := ended.Start(); err != nil {
		t.Fatal(err)
	}
	was := OwnerOf(1, ended.Process.Pid)
	if err := ended.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		owner Owner
		after time.Duration
	}{
		{"alive", OwnerOf(1, os.Getpid()), lease.Grace},
		{"not told by the kernel", Owner{reported: 1}, lease.Grace},
		{"ended", was, goneEvery},
		{"its pid was used again", Owner{reported: 1, pid: os.Getpid(), started: 1}, goneEvery},
	} {
		if c.owner.started == 1 && runtime.GOOS != "linux" {
			continue // cannot be told there
		}
		synctest.Test(t, func(t *testing.T) {
			w := &window{t: t}
			ln := s.Link(w, c.owner, &wire.EnvSnapshot{}, &wire.Ready{})
			b := ln.enqueue(t.Context(), request{Terms: Terms{Holder: "lease run", Wait: time.Hour}})
			begun := time.Now()
			ln.Unlink(w)
			<-b.ended
			if waited := time.Since(begun); waited != c.after || b.outcome != lease.NoShell {
				t.Errorf("%s: told %s after %v, want %s after %v", c.name, b.outcome, waited, lease.NoShell, c.after)
			}
			synctest.Wait()
			if next := s.of(c.owner); next == ln {
				t.Errorf("%s: the shell is still lent", c.name)
			} else {
				next.close(lease.NoShell)
			}
		})
	}
}

// A window that connects again replaces its earlier connection: that one gets an error with the reason, then no more messages, and
// what it still sends changes nothing.
func TestAReplacedConnection(t *testing.T) {
	old := openWindow(t, newShells(t))
	w := openWindow(t, old.shells)
	defer w.ln.close(lease.NoShell)
	before := len(old.sent)
	w.ln.giveBack(w.ln.enqueue(t.Context(), request{Terms: Terms{Wait: time.Hour}}))
	if e, ok := old.last.(*wire.Error); !ok || len(old.sent) > before || e.Code != wire.CodeDuplicateID || e.Recoverable || e.Details["client_pid"] != "1" || !strings.Contains(e.Hint, "client.pid") {
		t.Errorf("the replaced connection was ended with %+v, and sent %+v", old.last, old.sent[before:])
	}
	w.state("new")
	for _, err := range []error{
		old.ln.Report(old, &wire.ShellLeaseReleased{}), old.ln.StateChanged(old, &wire.ShellState{Digest: "old"}), old.ln.Report(old, &wire.CommandCompleted{}),
	} {
		if !errors.Is(err, ErrNotShellOwner) {
			t.Errorf("got %v, want ErrNotShellOwner", err)
		}
	}
	if at := w.ln.Where(t.Context()); at.StateDigest != "new" || old.ln != w.ln {
		t.Errorf("its state is taken: %+v", at)
	}
}

// What is known of a shell is known for the state that it is in: not before it is told on this link, nor when the lease says
// that it is another by now. A command's place is waited for then, unless the window is away or who asks has gone.
func TestWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := openWindow(t, newShells(t))
		ln := w.ln
		defer ln.close(lease.NoShell)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		check := func(name string, ctx context.Context, known bool, want time.Duration) {
			t.Helper()
			if got := ln.Facts(gone, &risk.Context{}); got != known {
				t.Errorf("%s: known is %v", name, got)
			}
			begun := time.Now()
			ln.Where(ctx)
			if waited := time.Since(begun); waited != want {
				t.Errorf("%s: waited %v, want %v", name, waited, want)
			}
		}
		check("nothing told", t.Context(), false, settleBound)
		check("nothing told, and nobody asks", gone, false, 0)
		if ln.Busy() {
			t.Error("busy")
		}
		w.state("old")
		check("told", t.Context(), true, 0)
		ln.EnvChanged(w, &wire.EnvSnapshot{Cwd: "/elsewhere", Env: map[string]wire.OSString{"NEW": "1"}})
		environ := func(name string) wire.OSString {
			env, _ := ln.Environ()
			return env[name]
		}
		if cwd := ln.Where(t.Context()).Cwd; cwd != "/elsewhere" || environ("NEW") != "1" {
			t.Errorf("in %q with %v: not what came last", cwd, environ("NEW"))
		}
		ln.EnvChanged(&window{}, &wire.EnvSnapshot{Env: map[string]wire.OSString{"NEW": "2"}})
		if environ("NEW") != "1" {
			t.Error("a connection that was replaced is believed")
		}
		b := ln.enqueue(t.Context(), request{Command: Command{Command: tool.Command{ExecutionID: "x"}}, own: true})
		if !ln.Busy() {
			t.Error("not busy")
		}
		ref := wire.LeaseRef{LeaseID: wire.LeaseID(b.lease.ID), Fence: b.lease.Fence}
		w.says(&wire.ShellLeaseAcquired{LeaseRef: ref, State: "newer"})
		check("another by now", t.Context(), false, settleBound)
		ln.Unlink(w)
		check("away", t.Context(), false, 0)
	})
}

// A client says which shell it lends: commands are written for it, and judged in its dialect. Why the shell cannot be had goes
// to the borrower.
func TestWhichShellAndWhyNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShells(t)
		w := openWindow(t, s)
		ln := w.ln
		defer ln.close(lease.NoShell)
		for _, c := range []struct {
			info          wire.ShellInfo
			name, dialect string
		}{
			{wire.ShellInfo{Name: "zsh", Version: "5.9"}, "zsh 5.9", "zsh"},
			{wire.ShellInfo{Version: "5.2"}, "bash 5.2", ""}, // an older client
		} {
			ln.link(w, &wire.EnvSnapshot{Shell: c.info}, &wire.Ready{})
			var facts risk.Context
			ln.Facts(t.Context(), &facts)
			if name := ln.Name(); name != c.name || facts.Dialect != c.dialect {
				t.Errorf("%+v: written for %q, judged as %q", c.info, name, facts.Dialect)
			}
		}
		ask := func() (*borrow, wire.LeaseRef) {
			b := ln.enqueue(t.Context(), request{Terms: Terms{Wait: time.Minute}, Command: Command{Command: tool.Command{ExecutionID: "x"}}})
			return b, wire.LeaseRef{LeaseID: wire.LeaseID(b.lease.ID), Fence: b.lease.Fence}
		}
		b, ref := ask()
		w.says(&wire.ShellLeaseDenied{LeaseRef: ref, Reason: wire.DeniedBroken, Why: "it is\x1b[2J broken"})
		<-b.ended
		if broken, ok := errors.AsType[*tool.BrokenError](b.refusal(0)); !ok || broken.Why != "it is␛[2J broken" {
			t.Errorf("got %v, want what is broken", b.refusal(0))
		}
		b, ref = ask()
		w.says(&wire.ShellLeaseQueued{LeaseRef: ref, Holder: "user", Why: "the user is typing"})
		time.Sleep(time.Minute)
		<-b.ended
		if err := b.refusal(time.Minute); err.Error() != "the shell is taken: user has held it for 1m0s (the user is typing); waited 1m0s for it" {
			t.Errorf("got %v, want who and why", err)
		}
	})
}

// A new link begins with Ready; what the one before had to answer is not waited for, and its end, noticed late, ends nothing.
func TestANewLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShells(t)
		w := openWindow(t, s)
		ln := w.ln
		defer ln.close(lease.NoShell)
		w.state("old")
		b, ref := w.lend(request{})
		w.says(&wire.CommandCompleted{LeaseRef: ref, ExecutionID: "x"})
		ln.giveBack(b) // not answered
		ln.enqueue(t.Context(), request{Terms: Terms{Holder: "next", Wait: time.Hour}})
		w.mu.Lock()
		w.sent = nil
		w.mu.Unlock()
		ln.link(w, &wire.EnvSnapshot{Cwd: "/w"}, &wire.Ready{})
		var kinds []string
		for _, m := range w.sent {
			kinds = append(kinds, wire.KindOf(m))
		}
		if want := []string{"Ready", "AcquireShellLease"}; !slices.Equal(kinds, want) {
			t.Errorf("sent %q, want %q", kinds, want)
		}
		if cwd := ln.Where(t.Context()).Cwd; cwd != "/w" {
			t.Errorf("in %q, want where it says it is", cwd)
		}
		w.state("new")
		begun := time.Now()
		if ln.Where(t.Context()); time.Since(begun) > 0 {
			t.Errorf("waited %v for what was lost with the link", time.Since(begun))
		}
		ln.Unlink(&window{})
		if linked, _ := ln.Linked(); !linked {
			t.Error("the end of a connection that was replaced ended the new one")
		}
	})
}

// The commands that a person wanted are remembered for as long as what they changed may be told late, and no longer.
func TestCommandsOfAPersonAreRemembered(t *testing.T) {
	w := openWindow(t, newShells(t))
	w.state("old")
	ln := w.ln
	for n := range 2 * maxByPerson {
		b := ln.enqueue(t.Context(), request{Command: Command{Command: tool.Command{ExecutionID: fmt.Sprint("x", n), Approval: tool.Approval{Person: true}}}, own: true})
		ln.markReady(b)
		ref := wire.LeaseRef{LeaseID: wire.LeaseID(b.lease.ID), Fence: b.lease.Fence}
		w.says(&wire.ShellLeaseAcquired{LeaseRef: ref, State: "old"})
		w.says(&wire.CommandCompleted{LeaseRef: ref, ExecutionID: wire.ExecutionID(b.request.ExecutionID)})
		ln.giveBack(b)
	}
	if len(ln.trust.byPerson) != maxByPerson {
		t.Errorf("%d are remembered, want %d", len(ln.trust.byPerson), maxByPerson)
	}
	for id, want := range map[int]int{maxByPerson: 0, maxByPerson - 1: 2} {
		ln.trust.all(ln.view.state)
		w.stateBy(fmt.Sprint("of ", id), wire.ExecutionID(fmt.Sprint("x", id)))
		if names, _ := ln.Suspects(t.Context()); len(names) != want {
			t.Errorf("of x%d: suspect is %q", id, names)
		}
	}
}

// Live output is passed on in order and in few pieces, is bounded while nobody takes it, and ends with close.
func TestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got bytes.Buffer
		pieces := 0
		b := batch{to: func(p []byte) { got.Write(p); pieces++ }}
		for i := range 1000 {
			b.add(fmt.Appendf(nil, "%03d ", i))
			if i == 0 {
				synctest.Wait()
			}
		}
		time.Sleep(batchEvery)
		synctest.Wait()
		b.add(bytes.Repeat([]byte("x"), 2*maxBatch)) // more than is kept for the eye: left out
		b.add([]byte("end"))
		b.flush()
		if pieces > 4 || got.Len() != 4*1000+3 || !strings.HasSuffix(got.String(), "998 999 end") {
			t.Errorf("%d bytes in %d pieces, ending in %q", got.Len(), pieces, got.String()[max(0, got.Len()-20):])
		}
	})
}

// A private shell gets the client's environment without secrets, but for those that the settings name.
func TestPrivateEnv(t *testing.T) {
	t.Setenv("DEPLOY_TOKEN", "from the daemon")
	env := map[string]wire.OSString{"HOME": "/h", "GITHUB_TOKEN": "secret", "AWS_SECRET_ACCESS_KEY": "secret"}
	got := PrivateEnv(env, []string{"GITHUB_TOKEN", "DEPLOY_TOKEN"})
	want := []string{"DEPLOY_TOKEN=from the daemon", "GITHUB_TOKEN=secret", "HOME=/h"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Nobody who waits is told less than who has the shell and for how long.
func TestRefusal(t *testing.T) {
	for outcome, want := range map[string]string{
		lease.TimedOut:     "the shell is taken: vim has held it for 5s; waited 1m0s for it",
		lease.NoShell:      tool.ErrNoShell.Error(),
		lease.Disconnected: tool.ErrNoShell.Error(),
		lease.Revoked:      "the user took it back",
		lease.ShuttingDown: "the daemon is stopping",
		lease.Expired:      "its term ran out",
		lease.Denied:       "the user refused",
	} {
		b := &borrow{outcome: outcome, holder: "vim", heldFor: 5 * time.Second}
		if err := b.refusal(time.Minute); !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q, want %q", outcome, err, want)
		}
	}
}

// A shell is its process's: two clients of two pid namespaces call themselves by the same pid, and the pid of one that is
// gone may be the next one's. Who came second had the first one's queue, leases and state.
func TestOwnerOfAShell(t *testing.T) {
	s := newShells(t)
	lenderOf := func(says, pid int) *Lender {
		return s.of(OwnerOf(says, pid))
	}
	first := lenderOf(7, os.Getpid())
	if lenderOf(7, os.Getpid()) != first {
		t.Error("a client that came back has another lender")
	}
	if lenderOf(7, os.Getppid()) == first {
		t.Error("a client with the same pid in another namespace has the lender of the first")
	}
	if lenderOf(8, os.Getpid()) == first {
		t.Error("another client behind the same relay has the lender of the first")
	}
	old := OwnerOf(7, os.Getpid())
	if runtime.GOOS != "linux" {
		return // which process it is cannot be told from another of the same pid
	}
	if old.started == 0 {
		t.Fatal("when this process was started is not known")
	}
	again := old
	again.started++
	if s.of(again) == first {
		t.Error("a client with a pid that was used before has the lender of the first")
	}
	for _, n := range []int{-1, 0, 1 << 30} {
		if o := OwnerOf(7, n); o.started != 0 {
			t.Errorf("process %d: got something, want nothing", n)
		}
	}
}

// The bodies of functions that are gone are forgotten: a shell that defines new ones at each prompt would fill the daemon.
func TestBodiesOfFunctions(t *testing.T) {
	s := newShells(t)
	w := openWindow(t, s)
	ln := w.ln
	state := func(list ...wire.ShellFunction) {
		t.Helper()
		if err := ln.StateChanged(w, &wire.ShellState{Functions: list}); err != nil {
			t.Error(err)
		}
	}
	f := func(name, hash, body string) wire.ShellFunction {
		return wire.ShellFunction{Name: name, Hash: hash, Body: wire.OSString(body)}
	}
	for n := range 100 {
		hash := fmt.Sprint("h", n)
		state(f("kept", "k", map[bool]string{true: "kept () { :; }"}[n == 0]), f("new", hash, "new () { :; }"), f("same", hash, ""))
		if ln.view.state.Functions["kept"] != "kept () { :; }" || ln.view.state.Functions["same"] != "new () { :; }" {
			t.Fatalf("state %d: got %q, want the bodies that were told", n, ln.view.state.Functions)
		}
	}
	if len(ln.view.bodies) != 2 {
		t.Errorf("got %d bodies kept, want 2", len(ln.view.bodies))
	}
	state(f("back", "h3", ""))
	if body := ln.view.state.Functions["back"]; body != "" {
		t.Errorf("got %q for a body that was forgotten, want none: it is asked about", body)
	}
}

// Who has a shell is told with for how long, and so is who waits: the borrower, the user as far as somebody waits for them or
// their window said so, and a window that does not answer.
func TestLeaseStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := openWindow(t, newShells(t))
		ln := w.ln
		defer ln.close(lease.NoShell)
		check := func(name string, use *usage, want wire.LeaseStatus) {
			t.Helper()
			want.ClientPID = 1
			if want.Queue == nil {
				want.Queue = []wire.LeaseWaiter{}
			}
			if got := ln.status(time.Now(), use); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: got %+v, want %+v", name, got, want)
			}
		}
		said := &usage{&wire.ShellUseReply{Holder: "user", HeldMS: 3000}}
		check("nobody", nil, wire.LeaseStatus{})
		check("the user, by their window's word", said, wire.LeaseStatus{Holder: "user", HeldMS: 3000})
		check("a silent window", &usage{}, wire.LeaseStatus{Silent: true})
		first := ln.enqueue(t.Context(), request{Terms: Terms{Holder: "engineer", Wait: time.Hour, Term: time.Minute}, Command: Command{Command: tool.Command{Purpose: "make"}}})
		id := wire.LeaseID(first.lease.ID)
		ref := wire.LeaseRef{LeaseID: id, Fence: first.lease.Fence}
		check("asked for meanwhile", &usage{}, wire.LeaseStatus{Queue: []wire.LeaseWaiter{{LeaseID: id, Agent: "engineer", Purpose: "make"}}})
		w.says(&wire.ShellLeaseQueued{LeaseRef: ref, Holder: "user", HeldMS: 5000})
		time.Sleep(2 * time.Second)
		waits := wire.LeaseWaiter{LeaseID: id, Agent: "engineer", Purpose: "make", WaitedMS: 2000}
		check("the user, whom somebody waits for", said, wire.LeaseStatus{Holder: "user", HeldMS: 7000, Queue: []wire.LeaseWaiter{waits}})
		if !ln.Busy() {
			t.Error("not busy with one who waits")
		}
		w.says(&wire.ShellLeaseAcquired{LeaseRef: ref})
		next := ln.enqueue(t.Context(), request{Terms: Terms{Holder: "lease run", Wait: time.Hour}, Command: Command{Command: tool.Command{Purpose: "ls"}}})
		time.Sleep(time.Second)
		check("lent", &usage{}, wire.LeaseStatus{
			LeaseID: id, Holder: "engineer", Purpose: "make", HeldMS: 1000, TermMS: 60_000,
			Queue: []wire.LeaseWaiter{{LeaseID: wire.LeaseID(next.lease.ID), Agent: "lease run", Purpose: "ls", WaitedMS: 1000}},
		})
	})
}

// A client's word on who has its shell counts once, by the connection that was asked: a second one neither counts nor waits.
func TestShellUseCountsOnce(t *testing.T) {
	w := openWindow(t, newShells(t))
	ln := w.ln
	ln.conn.capabilities = append(ln.conn.capabilities, wire.CapUse)
	answer, forget := ln.askUse()
	for _, from := range []*window{{}, w, w, w} {
		ln.ShellUse(from, &wire.ShellUseReply{Nonce: 1, Holder: map[bool]string{true: "user\x1b[2J", false: "nobody"}[from == w], HeldMS: -1})
	}
	if r := <-answer; strings.ContainsRune(r.Holder, 0x1b) || !strings.HasPrefix(r.Holder, "user") || r.HeldMS != 0 {
		t.Errorf("got %+v", r)
	}
	if len(answer) > 0 || len(ln.uses.asked) > 0 {
		t.Error("an answer counted twice")
	}
	forget()
	if _, forget = ln.askUse(); len(ln.uses.asked) != 1 {
		t.Error("it was not asked")
	}
	if forget(); len(ln.uses.asked) != 0 {
		t.Error("what nobody waits for is remembered")
	}
	ln.Unlink(w)
	if answer, _ := ln.askUse(); answer != nil {
		t.Error("a window that is away was asked")
	}
	ln.close(lease.NoShell)
}

// Of several windows the one last typed in is borrowed, and the same one from the question where a command would run to the run
// itself: it was whichever came first out of a map, anew each time.
func TestLastTyped(t *testing.T) {
	s := newShells(t)
	for n := range 10 {
		w := &window{t: t}
		ln := s.Link(w, Owner{reported: 100 + n}, &wire.EnvSnapshot{}, &wire.Ready{})
		ln.typedAt = time.Unix(int64(n%5), 0) // 4 and 9 were typed in last, at the same time
		if n == 0 {
			ln.Unlink(w)
			ln.typedAt = time.Unix(10, 0) // later still, and its link is down
		}
	}
	for range 50 {
		if got := s.Find(0); got == nil || got.PID() != 104 {
			t.Fatalf("got %+v, want the shell of 104", got)
		}
	}
}

// A window that is away is listed while somebody waits for it or has its shell.
func TestWhatIsListed(t *testing.T) {
	s := newShells(t)
	w := openWindow(t, s)
	b := w.ln.enqueue(t.Context(), request{Terms: Terms{Holder: "engineer", Wait: time.Hour}})
	w.ln.Unlink(w)
	if list := s.Status(t.Context(), false); len(list) != 1 || len(list[0].Queue) != 1 {
		t.Errorf("away, and waited for: listed are %+v", list)
	}
	w.ln.giveBack(b)
	if list := s.Status(t.Context(), false); len(list) != 0 {
		t.Errorf("away: listed are %+v", list)
	}
}

// A revoke of what is not there is an error where it was named, and all of a shell's leases end without one of them being offered.
func TestRevoke(t *testing.T) {
	s := newShells(t)
	if err := s.Revoke("l", 0); !errors.Is(err, ErrNoLease) {
		t.Errorf("a lease, where no shell is lent: got %v", err)
	}
	if err := s.Revoke("", 1); !errors.As(err, new(*NoShellError)) {
		t.Errorf("a shell that is not lent: got %v", err)
	}
	w := openWindow(t, s)
	if err := s.Revoke("", 1); err != nil {
		t.Errorf("nothing of a shell: got %v", err)
	}
	w.lend(request{Terms: Terms{Holder: "first"}})
	w.ln.enqueue(t.Context(), request{Terms: Terms{Holder: "next", Wait: time.Hour}})
	if err := s.Revoke("", 1); err != nil {
		t.Errorf("all: got %v", err)
	}
	if st := w.ln.status(time.Now(), nil); len(st.Queue) > 0 {
		t.Errorf("%+v still wait", st.Queue)
	}
	for _, m := range w.sent {
		if a, ok := m.(*wire.AcquireShellLease); ok && a.Agent == "next" {
			t.Error("the shell was offered to one whose lease was to end")
		}
	}
}

// A command that nobody but the user can have stopped says so.
func TestWhoStoppedIt(t *testing.T) {
	for _, c := range []struct {
		m    wire.CommandCompleted
		ours bool
		want []string
	}{
		{wire.CommandCompleted{Status: wire.StatusCancelled}, true, nil},
		{wire.CommandCompleted{Status: wire.StatusOK}, false, nil},
		{wire.CommandCompleted{Status: wire.StatusCancelled, Notes: []string{"why"}}, false, []string{"why"}},
	} {
		if got := resultOf(&c.m, c.ours).Notes; !slices.Equal(got, c.want) {
			t.Errorf("%+v, ours %v: got %q, want %q", c.m, c.ours, got, c.want)
		}
	}
}

// A process that has the number of a shell that ended is not protected in its place.
func TestOwnIsWhatRuns(t *testing.T) {
	st, err := procstat.Read(os.Getppid())
	if err != nil && runtime.GOOS != "linux" {
		t.Skip("there is no /proc:", err)
	} else if err != nil {
		t.Fatal(err)
	}
	s := &Shells{}
	for _, c := range []struct {
		started int64
		own     bool
	}{{st.Start, true}, {st.Start - 1, false}} {
		s.agentSessions.started = map[int]int64{os.Getppid(): c.started}
		if got := slices.Contains(s.Own(), os.Getppid()); got != c.own {
			t.Errorf("started %d: own: got %v, want %v", c.started, got, c.own)
		}
	}
}
