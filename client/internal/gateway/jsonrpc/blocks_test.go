package jsonrpc

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func split(text string, size int) (out []piece) {
	var s splitter
	for len(text) > 0 {
		n := min(size, len(text))
		out = append(out, s.add(text[:n])...)
		text = text[n:]
	}
	return append(out, s.end()...)
}

// show writes what a splitter gave, texts joined: «text» and [type language file lines|content|annotations].
func show(list []piece) string {
	var b strings.Builder
	text := ""
	flush := func() {
		if text != "" {
			fmt.Fprintf(&b, "«%s»", text)
		}
		text = ""
	}
	for _, p := range list {
		if p.block == nil {
			text += p.text
			continue
		}
		flush()
		fmt.Fprintf(&b, "[%s %s %s %s|%s|%v]", p.block.Type, p.block.Language, p.block.Metadata.File, p.block.Metadata.Lines, p.block.Content, p.block.Annotations)
	}
	flush()
	return b.String()
}

// F4 to F6.
func TestF6_Blocks(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain text", "«plain text»"},
		{"a `code` and ```inline``` here\n", "«a `code` and ```inline``` here\n»"},
		{"```inline``` first\n", "«```inline``` first\n»"},
		{"before\n```rust\nfn x() {}\n```\nafter", "«before\n»[code rust  |fn x() {}|[]]«after»"},
		{"~~~~ python\na\n~~~\nb\n~~~~\n", "[code python  |a\n~~~\nb|[]]"},
		{"````md\n```\nx\n```\n````", "[code md  |```\nx\n```|[]]"},
		{"  ```sh\n  ls\n  ```\n", "[code sh  |  ls|[]]"},
		{"    ```\nindented code is text\n", "«    ```\nindented code is text\n»"},
		{"```\nnever closed", "[code   |never closed|[]]"},
		{"```\n```\n", "[code   ||[]]"},
		{"```rust src/main.rs:10-15\nfn x() {}\n```", "[code rust src/main.rs 10-15|fn x() {}|[]]"},
		{"```go file=a.go lines=3-4\nx // suggestion: shorter\n```", "[code go a.go 3-4|x // suggestion: shorter|[{1 suggestion shorter}]]"},
		{"```diff\n--- a/x\n+++ b/x\n@@ -1,2 +10,5 @@\n-a\n+b\n```\n", "[diff diff x 10-14|--- a/x\n+++ b/x\n@@ -1,2 +10,5 @@\n-a\n+b|[]]"},
		{"so:\n--- a/x.go\n+++ b/x.go\n@@ -1 +1 @@\n-a\n+b\n\nthat's all\n", "«so:\n»[diff diff x.go 1-1|--- a/x.go\n+++ b/x.go\n@@ -1 +1 @@\n-a\n+b|[]]«\nthat's all\n»"},
		{"--- not a diff\ntext\n", "«--- not a diff\ntext\n»"},
		{"---\ntitle\n---\n", "«---\ntitle\n---\n»"},
		{"diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\ndone\n", "[diff diff x 1-1|diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b|[]]«done\n»"},
		{"error[E0308]: mismatched types\n --> src/main.rs:10:5\n\nso", "[error   |error[E0308]: mismatched types\n --> src/main.rs:10:5|[{2 error --> src/main.rs:10:5}]]«\nso»"},
		{"Errors are fine\nError: no\n", "«Errors are fine\n»[error   |Error: no|[]]"},
		{"```error\nmain.go:3:2: warning: unused x\n```\n", "[error   |main.go:3:2: warning: unused x|[{1 warning unused x}]]"},
		{"café ``` é\n```é\nü\n```\n", "«café ``` é\n»[code é  |ü|[]]"},
	} {
		for _, size := range []int{1, 2, 3, 7, 1000} {
			if got := show(split(c.in, size)); got != c.want {
				t.Errorf("%q in pieces of %d:\n got %s\nwant %s", c.in, size, got, c.want)
			}
		}
	}
}

// Plain text is not held back: a token that cannot begin a block goes out at once.
func TestO3_TextPassesAtOnce(t *testing.T) {
	var s splitter
	for _, token := range []string{"The", " ls", " command\n", "lists", " `files`", "\n\n", "- and"} {
		if got := show(s.add(token)); got != "«"+token+"»" && !strings.Contains(token, "- and") {
			t.Errorf("%q: got %s", token, got)
		}
	}
}

// A block that never ends comes in pieces: memory is bounded.
func TestABlockIsBounded(t *testing.T) {
	var s splitter
	n, most := 0, 0
	count := func(list []piece) {
		for _, p := range list {
			n += len(p.block.Content)
			most = max(most, len(p.block.Content))
		}
	}
	line := strings.Repeat("x", 99999) + "\n"
	count(s.add("```\n"))
	for range 50 {
		count(s.add(line))
	}
	for range 50 {
		count(s.add(line[:99999])) // one line that never ends
	}
	count(s.end())
	if most > 2*maxBlock || n < 100*99999 {
		t.Errorf("got %d bytes, the largest block has %d", n, most)
	}
}

// The parts of a long block end with whole lines, also where the text arrives in pieces of lines: the end of a part was in the middle
// of a line, so that a client which joined the parts by lines had a broken one.
func TestALongBlockIsCutBetweenLines(t *testing.T) {
	var lines []string
	for i := range 30_000 {
		lines = append(lines, fmt.Sprintf("line %d %s", i, strings.Repeat("x", 90)))
	}
	code := strings.Join(lines, "\n")
	var parts []string
	for _, p := range split("```go\n"+code+"\n```\n", 70) {
		parts = append(parts, p.block.Content)
	}
	if len(parts) < 2 || strings.Join(parts, "\n") != code {
		t.Errorf("%d parts do not join to the code", len(parts))
	}
}

// What an answer costs grows with its length, not with its square: neither a line that could begin a block for ever, nor many
// lines that come at once.
func TestLongTextIsCheap(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const n = 10_000
	var s splitter
	first := s.add("--- ")
	for range n {
		first = append(first, s.add("abcd ")...)
	}
	if len(first) == 0 || !strings.HasPrefix(first[0].text, "--- abcd ") {
		t.Errorf("a line that goes on was held back: %d pieces", len(first))
	}
	lines := strings.Repeat("a line\n", n)
	if out := split(lines, len(lines)); len(out) != 1 || out[0].text != lines {
		t.Errorf("got %d pieces", len(out))
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 400<<20 { // the race detector alone costs 200 MB
		t.Errorf("%d bytes for %d", got, 12*n)
	}
}

// A very long line behind one that may begin a diff became a block of type maybe.
func TestLongLineIsNoDiff(t *testing.T) {
	text := "--- a\n" + strings.Repeat("x", 2*maxBlock)
	for _, size := range []int{1000, len(text)} {
		if got := show(split(text, size)); got != "«"+text+"»" {
			t.Errorf("in pieces of %d: got %.40q", size, got)
		}
	}
}

func FuzzSplitter(f *testing.F) {
	for _, seed := range []string{"a\n```go\nx\n```\nb", "--- a\n+++ b\n@@\n-x\n", "error: x\n\n", "~~~\n", "diff --git \n+\n"} {
		f.Add(seed, 3)
	}
	f.Fuzz(func(t *testing.T, text string, size int) {
		if size < 1 || size > 1000 || len(text) > 10000 {
			return
		}
		if a, b := show(split(text, size)), show(split(text, len(text)+1)); a != b {
			t.Errorf("depends on the pieces: %s and %s", a, b)
		}
	})
}

// P4: no line makes the server fall, and what is no request is told so.
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
		{Command: "make", ExitCode: new(2), Timestamp: 1}, {Command: "make clean", ExitCode: new(0), Timestamp: 2},
		{Command: "make", ExitCode: new(2), Timestamp: 3}, {Command: "make", ExitCode: new(2), Timestamp: 4},
	}
	if s := h.next(); s == nil || s.Suggestion != "make clean" || s.Confidence != 1.0/3 {
		t.Errorf("got %+v, want make clean after one failure of three", s)
	}
}
