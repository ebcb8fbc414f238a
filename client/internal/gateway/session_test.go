package gateway_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"sublet/client/internal/gateway"
	"sublet/client/internal/gateway/gatewaytest"
	"sublet/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	scene = gatewaytest.Scene
	step  = gatewaytest.Step
)

func connect(t *testing.T, d *gateway.Daemon, o gateway.Options) *gateway.Session {
	t.Helper()
	o.Name = "test"
	s, err := d.Connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// ask begins a turn.
func ask(t *testing.T, s *gateway.Session, prompt string) wire.RequestID {
	t.Helper()
	r := &wire.AgentRequest{Prompt: prompt}
	begin(t, &gateway.Turns{}, &gateway.Turn{}, s, r)
	return r.RequestID
}

// begin begins a turn whose end turns delivers.
func begin(t *testing.T, turns *gateway.Turns, one *gateway.Turn, s *gateway.Session, r *wire.AgentRequest) {
	t.Helper()
	if err := turns.Begin(one, 0); err != nil {
		t.Fatal(err)
	}
	if err := one.Ask(t.Context(), s, r); err != nil {
		t.Fatal(err)
	}
}

// next returns the next message.
func next(ctx context.Context, s *gateway.Session) (wire.Message, error) {
	list, err := s.Next(ctx, 1)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// turn reads one turn: its text, and its end.
func turn(t *testing.T, s *gateway.Session, id wire.RequestID) (text string, end *wire.AgentComplete) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), gatewaytest.Patience)
	defer cancel()
	var b strings.Builder
	begun := 0
	for {
		m, err := next(ctx, s)
		if err != nil {
			t.Fatalf("%v after %d bytes", err, b.Len())
		}
		switch m := m.(type) {
		case *wire.TurnStarted:
			if m.RequestID == id {
				begun++
			}
		case *wire.AgentStreamChunk:
			if m.RequestID == id && m.Chunk.Type == wire.ChunkText {
				b.WriteString(m.Chunk.Text)
			}
		case *wire.Error:
			if m.RequestID == id && m.TurnID == "" {
				t.Fatalf("refused: %v", m)
			}
		case *wire.AgentComplete:
			if m.RequestID == id {
				if begun != 1 {
					t.Errorf("it began %d times", begun)
				}
				return b.String(), m
			}
		}
	}
}

// F19: who does not read holds up nobody, and gets all of it later, once and in order, also where the connection was cut off meanwhile.
func TestASessionThatIsNotRead(t *testing.T) {
	var long strings.Builder
	for i := range 500 {
		long.WriteString("piece ")
		long.WriteString(strings.Repeat(string(rune('a'+i%26)), 3))
		long.WriteByte('\n')
	}
	w := gatewaytest.New(t, []scene{{Match: "^flood$", Steps: []step{{Text: long.String(), ChunkBytes: 10}}}, {Match: "^say$", Steps: []step{{Text: "hello"}}}})
	d := w.Daemon()
	d.Inbox = 4 << 10
	links := linksOf(d)
	s := connect(t, d, gateway.Options{})
	other := connect(t, w.Daemon(), gateway.Options{Session: s.ID()})
	id := ask(t, s, "flood")
	// Another one waits for the turn's end: nothing of it waits for the first.
	if text, end := turn(t, other, id); text != long.String() || end.Status != wire.StatusSuccess {
		t.Fatalf("other: got %d bytes, %v", len(text), end.Status)
	}
	(<-links).Close()
	if text, end := turn(t, s, id); text != long.String() || end.Status != wire.StatusSuccess {
		t.Errorf("got %d bytes, want %d; %v", len(text), long.Len(), end.Status)
	}
	if text, _ := turn(t, s, ask(t, s, "say")); text != "hello" {
		t.Errorf("afterwards: got %q", text)
	}
}

// linksOf sends each connection that d opens from now on, two at most.
func linksOf(d *gateway.Daemon) <-chan *wire.Conn {
	open := d.Open
	links := make(chan *wire.Conn, 2)
	d.Open = func(ctx context.Context, s *wire.EnvSnapshot) (*wire.Conn, *wire.Ready, error) {
		wc, ready, err := open(ctx, s)
		if err == nil {
			links <- wc
		}
		return wc, ready, err
	}
	return links
}

// A question that is open when the link is lost stays with whoever was asked: it is handed on once, and the first answer counts.
func TestAQuestionIsHandedOnOnce(t *testing.T) {
	w := gatewaytest.New(t, []scene{{Match: "^clean$", Steps: []step{{ToolCalls: []gatewaytest.Call{gatewaytest.Bash("rm -rf build")}}, {Text: "kept"}}}})
	d := w.Daemon()
	links := linksOf(d)
	s := connect(t, d, gateway.Options{Confirm: true})
	var turns gateway.Turns
	asked := make(chan *gateway.Question, 2)
	one := &gateway.Turn{Handle: func(wire.EventMessage) {}, Asked: func(q *gateway.Question) { asked <- q }}
	var work sync.WaitGroup
	work.Go(func() { turns.Deliver(t.Context(), s) })
	t.Cleanup(work.Wait)
	begin(t, &turns, one, s, &wire.AgentRequest{Prompt: "clean"})
	q := <-asked
	(<-links).Close()
	<-links // it is back
	if turns.Question(q.ConfirmationID) != q {
		t.Error("the question is not open")
	}
	refused := make(chan *wire.Error, 1)
	never := wire.ConfirmationResponse{Decision: wire.DecisionDenyAlways, Grant: &wire.Grant{Scope: "session", Rule: "not offered"}}
	if err := q.Answer(never, func(e *wire.Error) { refused <- e }); err != nil {
		t.Fatal(err)
	}
	if e := <-refused; e.Code != wire.CodeInvalidMessage { // it can be answered again
		t.Error(e)
	}
	if err := q.Answer(wire.ConfirmationResponse{Decision: wire.DecisionDeny}, nil); err != nil {
		t.Fatal(err)
	}
	if err := q.Answer(wire.ConfirmationResponse{Decision: wire.DecisionAllow}, nil); !errors.Is(err, gateway.ErrAnswered) {
		t.Errorf("the second answer: %v", err)
	}
	<-one.Done()
	if q.Context().Err() == nil || turns.Question(q.ConfirmationID) != nil {
		t.Error("the question is still open")
	}
	if one.End == nil || one.End.Status != wire.StatusSuccess || len(one.End.Refused) != 1 || len(asked) != 0 {
		t.Errorf("asked %d times more, ended %+v", len(asked), one.End)
	}
}

// C6: what ran when the daemon went ends with an error; what waited is asked again, and plays once.
func TestARestartedDaemonIsFoundAgain(t *testing.T) {
	w := gatewaytest.New(t, []scene{
		{Match: "^hang$", Steps: []step{{Text: "begun", ChunkBytes: 1}, {}}},
		{Match: "^wait$", Steps: []step{{Text: "begun", WaitFile: "/nowhere/at/all"}}},
		{Match: "^say$", Steps: []step{{Text: "hello"}}},
	})
	s := connect(t, w.Daemon(), gateway.Options{})
	first := ask(t, s, "wait")
	for {
		m, err := next(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := m.(*wire.TurnStarted); ok {
			break
		}
	}
	second := ask(t, s, "say") // waits behind the first
	w.Stop()
	w.Start()
	ended := map[wire.RequestID]string{}
	ctx, cancel := context.WithTimeout(t.Context(), gatewaytest.Patience)
	defer cancel()
	for len(ended) < 2 {
		m, err := next(ctx, s)
		if err != nil {
			t.Fatalf("%v; ended: %v", err, ended)
		}
		switch m := m.(type) {
		case *wire.AgentComplete:
			ended[m.RequestID] += m.Status
		case *wire.Error:
			if m.TurnID == "" {
				ended[m.RequestID] += m.Code
			}
		}
	}
	if ended[first] == "" || ended[first] == wire.StatusSuccess {
		t.Errorf("what ran: got %q", ended[first])
	}
	// A daemon that stops in order may have told that the second one was cancelled before it began.
	if got := ended[second]; got != wire.StatusSuccess && got != wire.CodeCancelled && got != wire.CodeShuttingDown {
		t.Errorf("what waited: got %q", got)
	}
	if text, _ := turn(t, s, ask(t, s, "say")); text != "hello" {
		t.Errorf("afterwards: got %q", text)
	}
}

func TestConnectErrors(t *testing.T) {
	w := gatewaytest.New(t, nil)
	if _, err := w.Daemon().Connect(t.Context(), gateway.Options{Session: "none"}); !errors.Is(err, wire.ErrNotFoundSession) {
		t.Errorf("got %v", err)
	}
	w.Stop()
	if _, err := w.Daemon().Connect(t.Context(), gateway.Options{}); err == nil {
		t.Error("connected to a daemon that is not there")
	}
	if err := w.Daemon().Check(t.Context()); err == nil {
		t.Error("Check found a daemon that is not there")
	}
}

// What a launcher finds out about a daemon that does not answer, and what to do about it, is not lost to a shorter wait.
func TestConnectWaitsForTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := errors.New("no answer to the handshake")
		d := &gateway.Daemon{Open: func(context.Context, *wire.EnvSnapshot) (*wire.Conn, *wire.Ready, error) {
			time.Sleep(15 * time.Second) // as launch.Options.Answer
			return nil, nil, silent
		}}
		if _, err := d.Connect(t.Context(), gateway.Options{}); !errors.Is(err, silent) {
			t.Errorf("got %v", err)
		}
	})
}

// A session attached to without its old events is told only what happens from there on, also after another attach.
func TestAttachWithoutThePast(t *testing.T) {
	w := gatewaytest.New(t, []scene{{Match: "say", Steps: []step{{Text: "hello"}}}})
	one, two := connect(t, w.Daemon(), gateway.Options{}), connect(t, w.Daemon(), gateway.Options{})
	turn(t, one, ask(t, one, "say one"))
	turn(t, two, ask(t, two, "say two"))
	if err := one.Attach(t.Context(), two.ID()); err != nil {
		t.Fatal(err)
	}
	id := ask(t, one, "say three")
	m, err := next(t.Context(), one)
	if started, ok := m.(*wire.TurnStarted); err != nil || !ok || started.RequestID != id {
		t.Errorf("first: got %T %v", m, err)
	}
	if err := one.Attach(t.Context(), "none"); !errors.Is(err, wire.ErrNotFoundSession) || one.ID() != two.ID() {
		t.Errorf("got %v, now at %s", err, one.ID())
	}
}

// A request that a lost link swallowed while another client's turn ran is asked again when that turn ends.
func TestALostRequestIsAskedAfterAnothersTurn(t *testing.T) {
	w := gatewaytest.New(t, nil)
	gate := w.Path("gate")
	w.Script([]scene{{Match: "^wait$", Steps: []step{{Text: "begun", WaitFile: gate}}}, {Match: "^say$", Steps: []step{{Text: "hello"}}}})
	two := connect(t, w.Daemon(), gateway.Options{})
	ask(t, two, "wait")
	for started := false; !started; {
		m, err := next(t.Context(), two)
		if err != nil {
			t.Fatal(err)
		}
		_, started = m.(*wire.TurnStarted)
	}
	d := w.Daemon()
	open := d.Open
	var first *wire.Conn // whose other end reads, and does nothing
	d.Open = func(ctx context.Context, s *wire.EnvSnapshot) (*wire.Conn, *wire.Ready, error) {
		c, ready, err := open(ctx, s)
		if err != nil || first != nil {
			return c, ready, err
		}
		c.Close()
		ours, theirs := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, theirs) }() // ends with ours
		first = wire.NewConn(ours)
		return first, ready, nil
	}
	one := connect(t, d, gateway.Options{Session: two.ID()})
	id := ask(t, one, "say")
	first.Close()
	if _, err := one.Request(t.Context(), &wire.SessionRequest{Op: "get"}); err != nil { // over the next link, behind what it asks first
		t.Fatal(err)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if text, _ := turn(t, one, id); text != "hello" {
		t.Errorf("got %q", text)
	}
}
