package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/creack/pty"

	"sublet/wire"
)

// shown is what is printed of pieces of output, and of an end.
func shown(t *testing.T, o func(*app) *borrowed, end *wire.CommandCompleted, pieces ...string) (out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	b := o(&app{stdout: &stdout, stderr: &stderr})
	b.show(&wire.CommandStarted{}) // prints nothing
	at := int64(0)
	for _, p := range pieces {
		b.show(&wire.CommandOutput{Offset: at, Data: []byte(p)})
		at += int64(len(p))
	}
	if err := b.finish(end); err != nil {
		t.Error(err)
	}
	return stdout.String(), stderr.String()
}

// What a terminal gets is what the command printed; a pipe's line ends, and --plain, are for who asked. The half of something
// at the end is printed, too; a control sequence that has none is left out, and nothing waits for it.
func TestBorrowedOutputAsItIs(t *testing.T) {
	raw := func(a *app) *borrowed { return newBorrowed(a, false, true, true, nil) }
	pipe := func(a *app) *borrowed { return newBorrowed(a, false, false, true, nil) }
	bare := func(a *app) *borrowed { return newBorrowed(a, false, false, false, nil) }
	endless := "\x1b]0;" + strings.Repeat("x", sequenceMost)
	for _, c := range []struct {
		name   string
		to     func(*app) *borrowed
		pieces []string
		want   string
	}{
		{"a terminal", raw, []string{"\x1b[1mbold\x1b[m\r\n", "\r"}, "\x1b[1mbold\x1b[m\r\n\r"},
		{"a pipe", pipe, []string{"\x1b[1mbold\x1b[m\r\n", "caf\xc3"}, "\x1b[1mbold\x1b[m\ncaf\xc3"},
		{"a pipe, at the end of a line", pipe, []string{"a\r", "\nb\r"}, "a\nb\r"},
		{"plain, and a title without an end", bare, []string{"a", endless, "b\x1b[1mc"}, "abc"},
	} {
		if got, _ := shown(t, c.to, nil, c.pieces...); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// A terminal gets a job's output without control sequences, wherever it was cut into pieces. A pipe gets it as it is.
func TestJobOutput(t *testing.T) {
	master, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	var pipe bytes.Buffer
	for _, stdout := range []io.Writer{terminal, &pipe} {
		out := (&app{stdout: stdout}).jobOutput()
		for _, piece := range []string{"a\x1b[3", "1mred\x1b[m caf\xc3", "\xa9\x05", "."} {
			out.write([]byte(piece), false)
		}
		if out.write(nil, true); out.err != nil {
			t.Error(out.err)
		}
	}
	got := make([]byte, 100)
	n, err := io.ReadAtLeast(master, got, len("ared café."))
	if terminal.Close(); err != nil || string(got[:n]) != "ared café." {
		t.Errorf("terminal: %q, %v", got[:n], err)
	}
	if want := "a\x1b[31mred\x1b[m café\x05."; pipe.String() != want {
		t.Errorf("pipe: %q, want %q", pipe.String(), want)
	}
}

// A standard output that fails is written to once.
func TestBorrowedOutputThatFails(t *testing.T) {
	var out broken
	_, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	o := newBorrowed(&app{stdout: &out, stderr: &out}, false, true, true, stop)
	for at := range int64(3) {
		o.show(&wire.CommandOutput{Offset: at, Data: []byte("\r")})
	}
	o.show(&wire.CommandOutput{Offset: 3, Data: []byte("x\r")})
	if err := o.finish(&wire.CommandCompleted{Notes: []string{"a note"}}); !errors.Is(err, errFull) || out != 1 {
		t.Errorf("got %v after %d writes", err, out)
	}
}

type broken int

var errFull = errors.New("no space left on device")

func (b *broken) Write([]byte) (int, error) { *b++; return 0, errFull }

// Notes and what is left running are told on standard error, one line each, whatever is in them; as JSON they are in the
// result, without the ids of the lease.
func TestBorrowedEnd(t *testing.T) {
	end := &wire.CommandCompleted{
		LeaseRef: wire.LeaseRef{LeaseID: "l", Fence: 7}, ExecutionID: "x", Status: wire.StatusOK,
		Notes: []string{"ran in a\nsubshell\x1b[2J"}, Leftovers: []wire.Process{{PID: 42, Command: "sleep\r1000"}},
	}
	text := func(a *app) *borrowed { return newBorrowed(a, false, true, true, nil) }
	if out, errs := shown(t, text, end); out != "" || errs != "sublet: ran in a; subshell[2J\nsublet: still running: 42 sleep1000\n" {
		t.Errorf("got %q, %q", out, errs)
	}
	inJSON := func(a *app) *borrowed { return newBorrowed(a, true, true, true, nil) }
	out, errs := shown(t, inJSON, end)
	for _, name := range []string{"lease_id", "fence", "execution_id"} {
		if strings.Contains(out, name) {
			t.Errorf("%s is in %s", name, out)
		}
	}
	if errs != "" || !strings.Contains(out, `"notes":["ran in a\nsubshell`) || !strings.Contains(out, `"pid":42`) {
		t.Errorf("got %q, %q", out, errs)
	}
}

// How a borrowed command ended is the exit status, and one line of why where that is not its own.
func TestLeaseStatus(t *testing.T) {
	zero, seven := 0, 7
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx    context.Context
		end    wire.CommandCompleted
		status int
		why    string
	}{
		{t.Context(), wire.CommandCompleted{Status: wire.StatusOK, ExitCode: &zero}, 0, ""},
		{t.Context(), wire.CommandCompleted{Status: wire.StatusOK, ExitCode: &zero, Signal: "SIGHUP"}, 0, ""},
		{stopped, wire.CommandCompleted{Status: wire.StatusOK, ExitCode: &seven}, 7, ""},
		{t.Context(), wire.CommandCompleted{Status: wire.StatusShellExited, ExitCode: &seven}, 7, ""},
		{t.Context(), wire.CommandCompleted{Status: wire.StatusShellExited}, exitLeaseFailed, "the shell ended with the command"},
		{t.Context(), wire.CommandCompleted{Status: wire.StatusRefused}, exitLeaseFailed, "the command was not run"},
		{t.Context(), wire.CommandCompleted{Status: wire.StatusCancelled}, exitLeaseFailed, "the command was cut off"},
		{t.Context(), wire.CommandCompleted{Status: wire.StatusTimeout, ExitCode: &seven}, exitLeaseTimeout, "took longer than its time-out"},
		{t.Context(), wire.CommandCompleted{Status: wire.StatusOK, Signal: "SIGKILL"}, exitLeaseFailed, "the command was ended by SIGKILL"},
		{t.Context(), wire.CommandCompleted{Status: "of a later version"}, exitLeaseFailed, "did not end as it should: of a later version"},
		{t.Context(), wire.CommandCompleted{Status: wire.StatusOK}, 0, ""},
	} {
		var errs bytes.Buffer
		got := 0
		if err := leaseStatus(c.ctx, &c.end); err != nil {
			got = (&app{stderr: &errs}).report(err)
		}
		if got != c.status || (c.why == "") != (errs.Len() == 0) || !strings.Contains(errs.String(), c.why) {
			t.Errorf("%+v: got %d, %q, want %d, %q", c.end, got, errs.String(), c.status, c.why)
		}
	}
}

// One line for each shell and for each who waits, whatever they call themselves.
func TestLeaseList(t *testing.T) {
	list := func(leases ...wire.LeaseStatus) string {
		t.Helper()
		var out bytes.Buffer
		if err := (&app{stdout: &out}).printLeases(&wire.StatusReply{Leases: leases}, false); err != nil {
			t.Error(err)
		}
		return out.String()
	}
	if got := list(); got != "no shell is open to be lent\n" {
		t.Errorf("got %q", got)
	}
	got := list(
		wire.LeaseStatus{ClientPID: 7},
		wire.LeaseStatus{
			ClientPID: 8, Holder: "lease\trun\n9", HeldMS: 61_000, TermMS: 30_000, Purpose: "make\ttest\nall", LeaseID: "l1",
			Queue: []wire.LeaseWaiter{{LeaseID: "l2", Agent: "an\x1bagent\nx", Purpose: "ls", WaitedMS: 1500}},
		},
	)
	want := "" +
		"CLIENT  HOLDER       FOR   TERM  PURPOSE       WAITING  LEASE\n" +
		"7       not lent                               0        \n" +
		"8       lease   run  1m1s  30s   make    test  1        l1\n" +
		"        an␛agent     1.5s        ls            waits    l2\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
