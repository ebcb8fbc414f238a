package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"sublet/wire"

	"sublet/wire/visible"
)

func same(s string) string { return s }

// Of a long result both ends stay, and what says in between what failed; the whole is in a file.
func TestFitKeepsEndsAndFailures(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		switch i {
		case 2000:
			b.WriteString("--- FAIL: TestMiddle (0.00s)\n")
		case 2001:
			b.WriteString("    x_test.go:12: got 1, want 2\n")
		case 2002:
			b.WriteString("ok   2 passed, 0 failed, no errors\n")
		case 3000:
			b.WriteString("\x1b[31mTypeError: x is undefined\x1b[0m\n")
		default:
			fmt.Fprintf(&b, "line é %d\n", i)
		}
	}
	text := b.String()
	folder := filepath.Join(t.TempDir(), "spool")
	r := Result{Content: text}
	if err := r.Fit(MaxResult, folder, func(s string) string { return strings.ReplaceAll(s, "TypeError", "***") }); err != nil {
		t.Fatal(err)
	}
	if got := slurp(t, r.SpoolPath); got != text || filepath.Dir(r.SpoolPath) != folder {
		t.Errorf("got %d bytes in %s, want the whole", len(got), r.SpoolPath)
	}
	if info, err := os.Stat(r.SpoolPath); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info, err)
	}
	head, rest, _ := strings.Cut(r.Content, "\n[… ")
	note, tail, _ := strings.Cut(rest, "\n[…]\n")
	want := "bytes left out; the whole is in " + r.SpoolPath + "; these of its lines say what failed …]\n  2001\t--- FAIL: TestMiddle (0.00s)\n  3001\t*** is undefined"
	if !strings.HasSuffix(note, strings.ReplaceAll(want, "*** is", "***: x is")) {
		t.Errorf("got %q, want %q", note, want)
	}
	if !strings.HasPrefix(text, head+"\n") || !strings.HasSuffix(text, "\n"+tail) {
		t.Errorf("got parts of lines, %q and %q", visible.CutTail(head, 20), visible.Cut(tail, 20))
	}
	if len(r.Content) > MaxResult || len(r.Content) < MaxResult-1000 || !utf8.ValidString(r.Content) || !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) ||
		int(r.TruncatedBy) != len(text)-len(head)-len(tail)-1 && int(r.TruncatedBy) != len(text)-len(head)-len(tail) {
		t.Errorf("got %d bytes, %d left out, that begin %.40q and end %q", len(r.Content), r.TruncatedBy, head, visible.CutTail(tail, 40))
	}
}

// The list of failures takes the place of the ends' inner parts; a failure that stood there is in the list instead.
func TestFitKeepsFailuresThatItsOwnListDisplaces(t *testing.T) {
	fine := strings.Repeat("fine\n", 2250)
	text := fine + "error: by the head\n" + strings.Repeat("fine\n", 2000) + strings.Repeat("error: "+strings.Repeat("x", 200)+"\n", 17) +
		strings.Repeat("fine\n", 2000) + "error: by the tail\n" + fine
	r := Result{Content: text}
	if err := r.Fit(MaxResult, "", same); err != nil || len(r.Content) > MaxResult {
		t.Fatalf("got %v, %d bytes", err, len(r.Content))
	}
	for _, want := range []string{"error: by the head\n", "error: by the tail\n"} {
		if !strings.Contains(r.Content, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

// Where a shell kept the ends only, the failures are those of its file.
func TestFitReadsTheFileOfTheShell(t *testing.T) {
	path := put(t, t.TempDir(), "output.raw", strings.Repeat("fine\r\n", 50_000)+strings.Repeat("make: *** [x] Error 1\r\n", 3)+strings.Repeat("x", 1<<20)+" panic: late in a long line\n"+strings.Repeat("fine\r\n", 50_000))
	r := Result{Content: strings.Repeat("fine\n", 10_000), TruncatedBy: 550_000, SpoolPath: path}
	if err := r.Fit(MaxResult, "", same); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.Content, " 50001\tmake: *** [x] Error 1\n") || !strings.Contains(r.Content, "the whole is in "+path) || len(r.Content) > MaxResult {
		t.Errorf("got %d bytes: %q", len(r.Content), r.Content[11_000:13_000])
	}
	r = Result{Content: strings.Repeat("error: bad\n", 10_000), SpoolPath: "/nowhere"}
	if err := r.Fit(MaxResult, "", same); err == nil || len(r.Content) > MaxResult {
		t.Errorf("got %v, %d bytes", err, len(r.Content))
	}
	var many strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&many, "error %d\n", i)
	}
	r = Result{Content: many.String()}
	if err := r.Fit(MaxResult, "", same); err != nil || strings.Count(r.Content, "\terror ") != maxFailing || !strings.Contains(r.Content, " more …]\n") {
		t.Errorf("got %v, %q", err, r.Content[11_000:13_000])
	}
	// Who pressed Esc in 200 MB of output waited for seconds until 64 MB of it were searched.
	r = Result{Content: many.String(), Status: wire.StatusCancelled}
	if err := r.Fit(MaxResult, "", same); err != nil || strings.Contains(r.Content, "\terror ") {
		t.Errorf("a cancelled call was searched: %v, %q", err, r.Content[11_000:13_000])
	}
	r = Result{Content: "short"}
	if err := r.Fit(MaxResult, "/nowhere", same); err != nil || r.Content != "short" || r.SpoolPath != "" {
		t.Errorf("got %+v, %v", r, err)
	}
}

func BenchmarkFit(b *testing.B) {
	text := strings.Repeat("2026-11-25 12:00:00 INFO  some.component - did something to a thing in 12 ms\n", 50_000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r := Result{Content: text}
		if err := r.Fit(MaxResult, "", same); err != nil {
			b.Fatal(err)
		}
	}
}
