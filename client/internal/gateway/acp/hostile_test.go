package acp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"sublet/client/internal/gateway"
	"sublet/client/internal/gateway/gatewaytest"
)

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}` + "\n"

// serve runs `serve acp` over the whole of in and returns what it answered.
func serve(w *gatewaytest.World, in io.Reader) (string, error) { return serveAt(w, in, 0) }

func serveAt(w *gatewaytest.World, in io.Reader, requestsPerSecond int) (string, error) {
	var out bytes.Buffer
	d := w.Daemon()
	d.Limits.RequestsPerSecond = requestsPerSecond
	err := Serve(context.Background(), Options{Daemon: d, In: in, Out: &out})
	return out.String(), err
}

// P11: an editor that goes at any byte of a message: what is no whole one is answered as such or not at all, and the server
// ends in order.
func TestDisconnectAtEveryByte(t *testing.T) {
	w := gatewaytest.New(t, common)
	message := `{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"` + w.Project + `","mcpServers":[]}}`
	for n := range len(message) {
		out, err := serve(w, strings.NewReader(hello+message[:n]))
		if err != nil || !strings.Contains(out, `"protocolVersion":1`) {
			t.Fatalf("byte %d: %v in %q", n, err, out)
		}
		if strings.Contains(out, `"sessionId"`) || strings.Contains(out, "-32700") != (n > 0) {
			t.Errorf("byte %d: answered %s", n, out)
		}
	}
}

// A message may come one byte at a time, and have 10 MiB with its newline: one byte more is answered, and reading goes on
// (N1). The SDK gave the connection up at the very limit that its callers were told.
func TestSlowWriterAndLimit(t *testing.T) {
	w := gatewaytest.New(t, nil)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- Serve(context.Background(), Options{Daemon: w.Daemon(), In: inR, Out: outW})
		outW.Close()
	}()
	out := bufio.NewReaderSize(outR, 1<<16)
	answer := func(want string) {
		t.Helper()
		line, err := out.ReadString('\n')
		if err != nil || !strings.Contains(line, want) {
			t.Errorf("got %.300s, %v; want %s", line, err, want)
		}
	}
	for _, b := range []byte(hello) {
		if _, err := inW.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	answer(`"protocolVersion":1`)
	for n, want := range map[int]string{gateway.MaxLine - 1: `-32601`, gateway.MaxLine: `10485759`} {
		head := `{"jsonrpc":"2.0","id":3,"method":"dance","params":{"a":"`
		if _, err := io.WriteString(inW, head+strings.Repeat("x", n-len(head)-3)+`"}}`+"\n"); err != nil {
			t.Fatal(err)
		}
		answer(want)
	}
	inW.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// N2: a flood is answered, each request with its id, and the editor is served afterwards; the daemon hears of no more than the
// limit.
func TestFlood(t *testing.T) {
	const n, limit = 300, 2 // so few that a slow machine refuses most, too
	w := gatewaytest.New(t, common)
	in := strings.Builder{}
	in.WriteString(hello)
	for i := range n {
		fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":"f%d","method":"session/new","params":{"cwd":%q,"mcpServers":[]}}`+"\n", i, w.Project)
	}
	out, err := serveAt(w, strings.NewReader(in.String()), limit)
	if err != nil {
		t.Fatal(err)
	}
	taken, refused := strings.Count(out, `"sessionId"`), strings.Count(out, "rate limit: more than 2 requests in a second")
	if taken+refused != n || taken < limit-1 || refused < n/2 {
		t.Errorf("%d were taken and %d refused", taken, refused)
	}
	for i := range n {
		if strings.Count(out, fmt.Sprintf(`"id":"f%d",`, i)) != 1 {
			t.Errorf("request f%d has no answer, or two", i)
		}
	}
}

// P11: a request wrong in any one byte has at most one answer, and the next one is answered as ever.
func TestEveryByteMangled(t *testing.T) {
	w := gatewaytest.New(t, common)
	var in strings.Builder
	in.WriteString(hello)
	list := gatewaytest.Mangled(`{"jsonrpc":"2.0","id":7,"method":"session/set_mode","params":{"sessionId":"é","modeId":"plan"}}`)
	for _, line := range list {
		in.WriteString(line + "\n")
	}
	in.WriteString(`{"jsonrpc":"2.0","id":"last","method":"session/list","params":{}}` + "\n")
	out, err := serveAt(w, strings.NewReader(in.String()), 1_000_000)
	if err != nil || !strings.Contains(out, `"sessions"`) {
		t.Fatalf("%v in %.2000q", err, out)
	}
	if n := strings.Count(out, "\n"); n > len(list)+2 || n < len(list)/2 {
		t.Errorf("%d lines answer %d", n, len(list)+2)
	}
}

// Whatever comes in, the SDK sees whole messages only, and each line that is none is answered, in one line.
func FuzzGate(f *testing.F) {
	for _, line := range []string{hello, "{}\n{", "[]\n\n7\n", `{"id":{},"method":"x"}`, "\xff\n", `{"id":1,"result":{}}` + "\n" + `{"method":"a"}`, strings.Repeat("[", 300)} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		var answers bytes.Buffer
		g := &gate{limit: 1000, out: gateway.NewWriter(&answers), ctx: t.Context(), log: slog.New(slog.DiscardHandler), quiet: make(chan struct{})}
		r, w := io.Pipe()
		var passed bytes.Buffer
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = io.Copy(&passed, r) // a pipe within this test
		}()
		g.read(gateway.NewLineReader(bytes.NewReader(input), 200), w)
		w.Close()
		<-done
		if err := g.out.Close(); err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(passed.Bytes()) {
			var m map[string]json.RawMessage
			if err := json.Unmarshal(line, &m); err != nil || len(line) > 201 {
				t.Fatalf("passed on: %q, %v", line, err)
			}
		}
		for line := range bytes.Lines(answers.Bytes()) {
			var m struct{ Error struct{ Code int } }
			if err := json.Unmarshal(line, &m); err != nil || m.Error.Code >= 0 {
				t.Fatalf("answered: %q, %v", line, err)
			}
		}
	})
}
