package jsonrpc

import (
	"fmt"
	"strings"
	"testing"

	"sublet/client/internal/gateway"
)

// F4 to F6.
func TestF6_Blocks(t *testing.T) {
	for _, c := range []struct{ info, code, want string }{
		{"rust", "fn x() {}", "code rust   []"},
		{"rust src/main.rs:10-15", "fn x() {}", "code rust src/main.rs 10-15 []"},
		{"go file=a.go lines=3-4", "x // suggestion: shorter", "code go a.go 3-4 [{1 suggestion shorter}]"},
		{"diff", "--- a/x\n+++ b/x\n@@ -1,2 +10,5 @@\n-a\n+b", "diff diff x 10-14 []"},
		{"error", "main.go:3:2: warning: unused x", "error    [{1 warning unused x}]"},
		{"error", "error[E0308]: mismatched types\n --> src/main.rs:10:5", "error    [{2 error --> src/main.rs:10:5}]"},
	} {
		b := fenced(gateway.Piece{Text: c.code, Code: true, Info: c.info})
		if got := fmt.Sprintln(b.Type, b.Language, b.Metadata.File, b.Metadata.Lines, b.Annotations); got != c.want+"\n" || b.Content != c.code {
			t.Errorf("%q: got %q, want %q", c.info, got, c.want)
		}
	}
}

// P4: no line ends the server, and a line that is not a request is answered with an error.
func FuzzEnvelope(f *testing.F) {
	for _, seed := range []string{`{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}`, `[{}]`, `{"id":"\ud800"}`, `[`, `{"params":{"a":`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		line = strings.TrimSpace(line)
		if line == "" {
			return
		}
		list, _, bad := values([]byte(line))
		if bad != nil {
			return
		}
		for _, raw := range list {
			r, bad := parse(raw)
			if bad != nil {
				if bad.Code != codeRequest {
					t.Errorf("code %d for %s", bad.Code, raw)
				}
				continue
			}
			var p queryParams
			_ = r.decode(&p, "message") // must not panic
			if _, bad := p.request(); bad != nil && bad.Code != codeParams {
				t.Errorf("code %d for %s", bad.Code, raw)
			}
		}
	})
}

// F17: see suggest.go.
func TestF17_Suggestions(t *testing.T) {
	code := func(n int) *int { return &n }
	for _, c := range []struct {
		list []recentCommand
		want string
	}{
		{nil, ""},
		{[]recentCommand{{Command: "ls", ExitCode: code(0)}}, ""},
		{[]recentCommand{{Command: "make", ExitCode: code(2)}}, ""},
		{[]recentCommand{{Command: "git status", ExitCode: code(0), Timestamp: 1}, {Command: "gti diff", ExitCode: code(127), Timestamp: 2}}, "git diff"},
		{[]recentCommand{{Command: "grep x", ExitCode: code(0), Timestamp: 1}, {Command: "grpe y", ExitCode: code(127), Timestamp: 2}}, "grep y"},
		{[]recentCommand{{Command: "grep x", ExitCode: code(0), Timestamp: 1}, {Command: "zzz y", ExitCode: code(127), Timestamp: 2}}, ""},
		{[]recentCommand{
			{Command: "make", ExitCode: code(2), Timestamp: 1}, {Command: "make clean", ExitCode: code(0), Timestamp: 2}, {Command: "make", ExitCode: code(2), Timestamp: 3},
		}, "make clean"},
		{[]recentCommand{
			{Command: "make", ExitCode: code(2), Timestamp: 1}, {Command: "vi", ExitCode: code(1), Timestamp: 2}, {Command: "make", ExitCode: code(2), Timestamp: 3},
		}, ""},
	} {
		var h history
		h.merge(c.list)
		got := ""
		if s := h.next(); s != nil {
			got = s.Suggestion
			if s.Confidence <= 0 || s.Confidence >= 1 {
				t.Errorf("confidence %v", s.Confidence)
			}
		}
		if got != c.want {
			t.Errorf("%v: got %q, want %q", c.list, got, c.want)
		}
	}
}

// The failure right before the last command was not counted, so that the confidence was 1/2.
func TestSuggestionCountsTheFailureBeforeTheLast(t *testing.T) {
	h := history{
		{Command: "make", ExitCode: new(2), Timestamp: 1},
		{Command: "make clean", ExitCode: new(0), Timestamp: 2},
		{Command: "make", ExitCode: new(2), Timestamp: 3},
		{Command: "make", ExitCode: new(2), Timestamp: 4},
	}
	if s := h.next(); s == nil || s.Suggestion != "make clean" || s.Confidence != 1.0/3 {
		t.Errorf("got %+v, want make clean after one failure of three", s)
	}
}
