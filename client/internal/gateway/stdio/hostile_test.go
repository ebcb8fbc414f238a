package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"sublet/client/internal/gateway"
	"sublet/client/internal/gateway/gatewaytest"
	"sublet/wire"
)

// serve runs `serve stdio` over the whole of in and returns the lines it answered, ready among them.
func serve(w *gatewaytest.World, in io.Reader) (lines []map[string]any, err error) {
	var out bytes.Buffer
	if err := Serve(context.Background(), Options{Daemon: w.Daemon(), In: in, Out: &out, Mode: "ask"}); err != nil {
		return nil, err
	}
	for d := json.NewDecoder(&out); ; {
		var m map[string]any
		if err := d.Decode(&m); err == io.EOF {
			return lines, nil
		} else if err != nil {
			return lines, err
		}
		check(w.T, m)
		lines = append(lines, m)
	}
}

// P11: a parent that goes at any byte of a message; what is no whole one is nothing, and the runtime ends in order.
func TestDisconnectAtEveryByte(t *testing.T) {
	w := gatewaytest.New(t, common)
	message := ask("1", "say", `,"metadata":{"conversationId":"é"}`)
	for n := range len(message) + 1 {
		lines, err := serve(w, strings.NewReader(message[:n]))
		if err != nil || lines[0]["type"] != "ready" {
			t.Fatalf("byte %d: %v, %v", n, lines, err)
		}
		if whole := n == len(message); (len(lines) > 1) != whole {
			t.Errorf("byte %d: answered %v", n, lines[1:])
		}
	}
}

// T10: a message may come one byte at a time.
func TestSlowWriter(t *testing.T) {
	w := gatewaytest.New(t, common)
	r := start(t, w)
	for _, b := range []byte(ask("1", "say") + "\r\n") {
		if _, err := r.in.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	if got := text(r.answer("1")); got != "hello there" {
		t.Errorf("got %q", got)
	}
}

// N1: 10 MB are a message, one byte more is none, and reading goes on.
func TestLimit(t *testing.T) {
	w := gatewaytest.New(t, common)
	r := start(t, w)
	for _, n := range []int{gateway.MaxLine, gateway.MaxLine + 1} {
		head := `{"id":"big","kind":"dance","message":"`
		r.send(head + strings.Repeat("x", n-len(head)-2) + `"}`)
	}
	r.send(ask("ok", "say"))
	if m := r.next(); m["id"] != "big" || !strings.Contains(m["error"].(string), "dance") {
		t.Errorf("at the limit: %v", m)
	}
	if got := text(r.answer("ok")); got != "hello there" || strings.Count(r.log.String(), "10485760") != 1 {
		t.Errorf("got %q, log %s", got, r.log)
	}
}

// N2: a flood is answered line by line, and what is over the rate says so.
func TestFlood(t *testing.T) {
	const n = 300
	w := gatewaytest.New(t, common)
	var in strings.Builder
	for i := range n {
		fmt.Fprintf(&in, `{"id":"f%d","kind":"dance"}`+"\n", i)
	}
	lines, err := serve(w, strings.NewReader(in.String()))
	if err != nil || len(lines) != n+1 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	refused := 0
	for i, m := range lines[1:] {
		if m["id"] != fmt.Sprint("f", i) {
			t.Fatalf("line %d: %v", i, m)
		}
		if strings.Contains(m["error"].(string), "rate limit: more than 100 requests in a second") {
			refused++
		}
	}
	if refused == 0 || refused > n-100 {
		t.Errorf("%d of %d were over the rate", refused, n)
	}
}

// G2, L33: what a tool's result says, of one that worked and of one that failed.
func TestResult(t *testing.T) {
	three := 3
	m := &wire.CommandResult{Status: wire.StatusSuccess, Output: []byte("made"), FilesModified: []wire.OSString{"a", "b"}, DurationMS: 125, ExitCode: &three}
	want := map[string]any{"status": "success", "output": "made", "filesModified": []wire.OSString{"a", "b"}, "durationMs": int64(125), "exitCode": 3}
	if got := resultOf(m); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	m.Status, want["status"], want["error"] = wire.StatusError, "error", "made"
	if got := resultOf(m); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// P11: a request wrong in any one byte is answered where it tells an id, else logged; the runtime goes on.
func TestEveryByteMangled(t *testing.T) {
	w := gatewaytest.New(t, common, "[limits]\nrequests_per_second = 100000")
	w.Limits.RequestsPerSecond = 100_000
	var in strings.Builder
	list := gatewaytest.Mangled(`{"id":"1","kind":"get_status","metadata":{"userId":"é"}}`)
	for _, line := range list {
		in.WriteString(line + "\n")
	}
	in.WriteString(ask("last", "say"))
	lines, err := serve(w, strings.NewReader(in.String()))
	if err != nil || text(lines) != "hello there" || last(lines)["id"] != "last" {
		t.Fatalf("%v, %v", last(lines), err)
	}
	kinds := map[any]int{}
	for _, m := range lines {
		kinds[m["type"]]++
		if e, _ := m["error"].(string); strings.Contains(e, "rate limit") {
			t.Fatalf("got %v", m)
		}
	}
	if kinds["error"] == 0 || kinds["status"] == 0 || len(lines) > len(list)+6 {
		t.Errorf("answers: %v of %d", kinds, len(list))
	}
}

// What comes in is taken, or refused with a reason; its id is UTF-8.
func FuzzParse(f *testing.F) {
	for _, line := range []string{
		ask("1", "say"), `{"id":5,"kind":"get_status"}`, `{"id":"x","kind":7}`, `{}`, `[]`, `{"id":{"a":1}}`, "\xff", `{"id":"\ud800","metadata":[]}`,
		`{"id":"a","id":"b","kind":"clear_history","metadata":{"conversationId":"c"}}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		r, id, err := parse(line)
		if r == nil || !utf8.ValidString(id) {
			t.Fatalf("got %v, id %q", r, id)
		}
		if err == nil && (r.ID == "" || r.ID != id) {
			t.Fatalf("id %q of %q was taken", r.ID, id)
		}
		if err != nil && err.Error() == "" {
			t.Fatal("no reason")
		}
	})
}
