package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"sublet/client"
	"sublet/daemon"
	"sublet/wire"
)

func TestParseTool(t *testing.T) {
	for _, c := range []struct {
		args string
		want map[string]any
		err  string
	}{
		{"read --path go.mod --limit 10", map[string]any{"path": "go.mod", "limit": "10"}, ""},
		{"grep --pattern=42 --ignore-case --path .", map[string]any{"pattern": "42", "ignore_case": "true", "path": "."}, ""},
		{"edit --replace-all=false --old a --new --b", map[string]any{"replace_all": "false", "old": "a", "new": "--b"}, ""},
		{"bash --command=a=b", map[string]any{"command": "a=b"}, ""},
		{"mcp__db__query --sql x --limit 5 --all=true --ids [1,2] --dry-run \"yes\"", map[string]any{
			"sql": "x", "limit": json.RawMessage("5"), "all": json.RawMessage("true"), "ids": json.RawMessage("[1,2]"), "dry-run": json.RawMessage(`"yes"`),
		}, ""},
		{"read --path", nil, "lacks its value"},
		{"read path", nil, "not a --argument"},
		{"read --=x", nil, "not a --argument"},
		{"--path x", nil, "name comes first"},
	} {
		call, err := parseTool(strings.Fields(c.args))
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: got %v, want %q", c.args, err, c.err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(call.arguments, c.want) {
			t.Errorf("%s: got %v, %v, want %v", c.args, call.arguments, err, c.want)
		}
	}
}

// Each turn of a call could use all of --timeout and --max-turns again.
func TestTurnsShareTheirBounds(t *testing.T) {
	one := wire.RequestOptions{MaxSteps: 5, TimeoutMS: 2000, MaxCostUSD: 1}
	used := &wire.AgentComplete{Steps: 2, DurationMS: 500, Usage: wire.Usage{CostUSD: new(0.25)}}
	o := one
	if flag := spend(&o, used); flag != "" || o.MaxSteps != 3 || o.TimeoutMS != 1500 || o.MaxCostUSD != 0.75 {
		t.Errorf("got %q, %+v", flag, o)
	}
	for _, c := range []struct {
		used wire.AgentComplete
		want string
	}{
		{wire.AgentComplete{Steps: 5}, "--max-turns"},
		{wire.AgentComplete{DurationMS: 2000}, "--timeout"},
		{wire.AgentComplete{Usage: wire.Usage{CostUSD: new(1.0)}}, "--max-cost"},
	} {
		o := one
		if got := spend(&o, &c.used); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
		if got := spend(&wire.RequestOptions{}, &c.used); got != "" {
			t.Errorf("without bounds: got %q", got)
		}
	}
}

// Arguments beyond the limit were cut, and then refused as no JSON.
func TestLongToolArguments(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "arguments"))
	if err == nil {
		err = f.Truncate(maxStdin + 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := (&app{stdin: f}).runTool(toolCall{name: "read", jsonIn: true}); err == nil || !strings.Contains(err.Error(), "over 16 MiB") {
		t.Errorf("got %v", err)
	}
}

// Several arguments of lease run are the words of one command, whatever is in them.
func TestShellWords(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"make", "-j2", "a/b.c=d"}, "make '-j2' 'a/b.c=d'"},
		{[]string{"echo", "", "it's", "$HOME", "a b"}, `echo '' 'it'\''s' '$HOME' 'a b'`},
		{[]string{"FOO=1", "x\ny"}, "'FOO=1' 'x\ny'"},
	} {
		got := shellWords(c.words)
		want := strings.ReplaceAll(c.want, "'-j2'", "-j2")
		if got != want {
			t.Errorf("%q: got %s, want %s", c.words, got, want)
		}
	}
}

// A borrowed command's output comes in pieces: no character is torn, line ends are those of a pipe, and what was left
// out is told.
func TestBorrowedOutput(t *testing.T) {
	pieces := func(sizes int, data string) []*wire.CommandOutput {
		var all []*wire.CommandOutput
		for i := 0; i < len(data); i += sizes {
			all = append(all, &wire.CommandOutput{Offset: int64(i), Data: []byte(data[i:min(i+sizes, len(data))])})
		}
		return all
	}
	const data = "ä€𝔘\r\nx\ry\r\n\xff\xfe"
	for size := 1; size <= len(data); size++ {
		var out bytes.Buffer
		o := newBorrowed(&app{stdout: &out, stderr: &out}, false, false, true, nil)
		for _, p := range pieces(size, data) {
			o.show(p)
		}
		if err := o.finish(&wire.CommandCompleted{}); err != nil {
			t.Fatal(err)
		}
		if want := "ä€𝔘\nx\ry\n\xff\xfe"; out.String() != want {
			t.Errorf("pieces of %d: got %q, want %q", size, out.String(), want)
		}
	}
	var out, errs bytes.Buffer
	o := newBorrowed(&app{stdout: &out, stderr: &errs}, true, true, true, nil)
	o.show(&wire.CommandOutput{Offset: 0, Data: []byte("caf\xc3")})
	o.show(&wire.CommandOutput{Offset: 4, Data: []byte("\xa9\xff")})
	code := 3
	if err := o.finish(&wire.CommandCompleted{Status: wire.StatusOK, ExitCode: &code, Output: []byte("café"), Cwd: "/"}); err != nil {
		t.Fatal(err)
	}
	want := []string{`{"data":"caf"}`, `{"data_base64":"w6n/"}`}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || lines[0] != want[0] || lines[1] != want[1] {
		t.Errorf("got %q, want %q and the result", lines, want)
	}
	for _, part := range []string{`"exit_code":3`, `"status":"ok"`, `"output":"café"`, `"cwd":"/"`, `"duration_ms":0`, `"truncated":null`} {
		if !strings.Contains(lines[len(lines)-1], part) {
			t.Errorf("%s is not in %s", part, lines[len(lines)-1])
		}
	}
	errs.Reset()
	o = newBorrowed(&app{stdout: &out, stderr: &errs}, false, true, true, nil)
	o.show(&wire.CommandOutput{Offset: 100, Data: []byte("x")})
	if err := o.finish(&wire.CommandCompleted{}); err != nil || !strings.Contains(errs.String(), "100 bytes of output were left out") {
		t.Errorf("got %v, %q", err, errs.String())
	}
}

// --plain leaves out colours, titles and the like, wherever the pieces of output are cut.
func TestBorrowedPlain(t *testing.T) {
	const data = "\x1b[01;31merr\x1b[Kor\x1b[m ä\x1b]0;a title\x07\r\n\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\t\x1b(B.\x1b7\x1b[?25l\x1b["
	for size := 1; size <= len(data); size++ {
		var out bytes.Buffer
		o := newBorrowed(&app{stdout: &out, stderr: &out}, false, false, false, nil)
		for i := 0; i < len(data); i += size {
			o.show(&wire.CommandOutput{Offset: int64(i), Data: []byte(data[i:min(i+size, len(data))])})
		}
		if err := o.finish(nil); err != nil || out.String() != "error ä\nlink\t." {
			t.Errorf("pieces of %d: got %q, %v", size, out.String(), err)
		}
	}
}

// A standard output that is gone ends the command.
func TestBorrowedOutputAndItsReader(t *testing.T) {
	full := errors.New("no space left on device")
	r, w := io.Pipe()
	r.CloseWithError(full)
	ctx, stop := context.WithCancelCause(t.Context())
	o := newBorrowed(&app{stdout: w, stderr: w}, false, true, true, stop)
	o.show(&wire.CommandOutput{Data: []byte("x")})
	if err := o.finish(&wire.CommandCompleted{}); !errors.Is(err, full) || !errors.Is(context.Cause(ctx), full) {
		t.Errorf("got %v and cause %v, want %v", err, context.Cause(ctx), full)
	}
}

func TestExitStatus(t *testing.T) {
	code := 7
	done := context.Background()
	stopped, cancel := context.WithCancelCause(done)
	cancel(errInterrupted)
	for _, c := range []struct {
		name string
		err  error
		want int
	}{
		{"success", statusOfTurn(&wire.AgentComplete{Status: wire.StatusSuccess}), 0},
		{"refused", statusOfTurn(&wire.AgentComplete{Status: wire.StatusSuccess, Refused: []wire.RefusedTool{{Tool: "bash"}}}), exitDenied},
		{"failed", statusOfTurn(&wire.AgentComplete{Status: wire.StatusError}), exitFailed},
		{"timeout", statusOfTurn(&wire.AgentComplete{Status: wire.StatusTimeout}), exitTimeout},
		{"cancelled", statusOfTurn(&wire.AgentComplete{Status: wire.StatusCancelled}), exitCancelled},
		{"usage", &usageError{errors.New("x")}, exitUsage},
		{"no daemon", fmt.Errorf("x: %w", client.ErrNoDaemon), exitNoDaemon},
		{"did not start", &client.StartError{}, exitNoDaemon},
		{"no protocol in common", &wire.Error{Code: wire.CodeVersion}, exitNoDaemon},
		{"denied", &wire.Error{Code: wire.CodePermissionDenied}, exitDenied},
		{"cancelled before it began", &wire.Error{Code: wire.CodeCancelled}, exitCancelled},
		{"other", &wire.Error{Code: wire.CodeInternal}, exitFailed},
		{"interrupted", errInterrupted, exitCancelled},
		{"lease: exit code", leaseStatus(done, &wire.CommandCompleted{Status: wire.StatusOK, ExitCode: &code}), 7},
		{"lease: timeout", leaseStatus(done, &wire.CommandCompleted{Status: wire.StatusTimeout}), exitLeaseTimeout},
		{"lease: taken back", leaseStatus(done, &wire.CommandCompleted{Status: wire.StatusCancelled, ExitCode: &code}), exitLeaseFailed},
		{"lease: interrupted", leaseStatus(stopped, &wire.CommandCompleted{Status: wire.StatusCancelled}), exitCancelled},
		{"lease: refused", leaseStatus(done, &wire.CommandCompleted{Status: wire.StatusRefused}), exitLeaseFailed},
		{"lease: signal", leaseStatus(done, &wire.CommandCompleted{Status: wire.StatusOK, Signal: "SIGKILL"}), exitLeaseFailed},
	} {
		got := 0
		if c.err != nil {
			got = (&app{stderr: &bytes.Buffer{}, called: Commands()}).report(c.err)
		}
		if got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

// What models and programs say must not steer the terminal, and an error is one line.
func TestTextOfOthers(t *testing.T) {
	if got, want := plain("a\x1b[2J\u202eb\u009bc\r\n\td\xff"), "a[2Jbc\n\td\uFFFD"; got != want {
		t.Errorf("plain: got %q, want %q", got, want)
	}
	var errs bytes.Buffer
	(&app{stderr: &errs}).report(&wire.Error{Code: wire.CodeInternal, Message: "first\nsecond\x1b[0m", Hint: "do\nthis"})
	if want := "sublet: error: first; second[0m\nsublet: hint: do; this\n"; errs.String() != want {
		t.Errorf("got %q, want %q", errs.String(), want)
	}
}

// Text is cut where it is too wide, in whatever script it is.
func TestFirstLine(t *testing.T) {
	for in, want := range map[string]string{
		"привет, мир\nда": "привет, мир", "привет, миру": "привет, ми…", "日本語日本語": "日本語日本…", "\n abc": "abc",
	} {
		if got := firstLine(in, 11); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// An agent that cannot be used is shown with what to do, in JSON as it is written.
func TestAgentsThatFail(t *testing.T) {
	list := []daemon.AgentCheck{{Name: "a", Configured: true, Err: fmt.Errorf("x && y: %w", &wire.Error{Message: "no", Hint: "do this"})}}
	var out, errs bytes.Buffer
	a := &app{stdout: &out, stderr: &errs}
	if err := errors.Join(a.printAgentTable(list), a.printAgentsJSON(list)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(errs.String(), "do this") || !strings.Contains(out.String(), `"error":"x && y: `) {
		t.Errorf("got %q and %q", errs.String(), out.String())
	}
}

// What the daemon warns of beside a turn is on standard error, in lines that cannot hide anything; mere information is not.
func TestWarn(t *testing.T) {
	var errs bytes.Buffer
	a := &app{stderr: &errs}
	a.warn(&wire.Notice{Level: "warning", Text: "left\nout\x1b[0m", Hint: "start anew"})
	a.warn(&wire.Notice{Level: "info", Text: "settings read again"})
	a.warn(&wire.Error{Message: "an error"})
	if got := errs.String(); strings.Count(got, "\n") != 2 || !strings.HasPrefix(got, "sublet: warning: left") || !strings.HasSuffix(got, "sublet: hint: start anew\n") || strings.Contains(got, "\x1b") {
		t.Errorf("got %q", got)
	}
}

// A turn that this program interrupts is reported as interrupted, one that another client ends as cancelled by that client.
func TestInterruptedTurn(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	var stderr bytes.Buffer
	o := &answer{app: &app{stdout: io.Discard, stderr: &stderr}}
	o.show(ctx, &wire.Error{Code: wire.CodeCancelled, Message: "cancelled by client other 1"})
	cancel(errInterrupted)
	o.show(ctx, &wire.Error{Code: wire.CodeCancelled, Message: "cancelled by client sublet ask 2"})
	if got, want := stderr.String(), "sublet: error: cancelled by client other 1\nsublet: error: interrupted\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The log's last lines are printed, safe for a terminal; the last one has no newline while it is being written.
func TestLastLinesOfTheLog(t *testing.T) {
	var out bytes.Buffer
	a := &app{stdout: &out}
	path := filepath.Join(t.TempDir(), "daemon.log")
	if err := os.WriteFile(path, []byte("one\ntwo\x1b[2J\nthree"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.logs(path, 2, false); err != nil || out.String() != "two[2J\nthree" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

// What prevents reading the log is named: tail's exit status alone does not.
func TestLogThatCannotBeRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, follow := range []bool{false, true} {
		if err := (&app{stdout: io.Discard}).logs(filepath.Join(file, "daemon.log"), 2, follow); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("follow %v: got %v", follow, err)
		}
	}
}

// --since takes a time back from now, a date or a time, and nothing that could be read in two ways.
func TestSinceTime(t *testing.T) {
	here := time.FixedZone("here", 2*3600)
	now := time.Date(2026, 3, 31, 12, 0, 0, 0, here)
	for in, want := range map[string]time.Time{
		"": {}, "90m": now.Add(-90 * time.Minute), "24h": now.Add(-24 * time.Hour), "1h30m": now.Add(-90 * time.Minute), "0s": now,
		"7d": now.AddDate(0, 0, -7), "0d": now, "2026-03-01": time.Date(2026, 3, 1, 0, 0, 0, 0, here),
		"2026-03-01 08:30":          time.Date(2026, 3, 1, 8, 30, 0, 0, here),
		"2026-03-01 08:30:15":       time.Date(2026, 3, 1, 8, 30, 15, 0, here),
		"2026-03-01T08:30:15Z":      time.Date(2026, 3, 1, 8, 30, 15, 0, time.UTC),
		"2026-03-01T08:30:15+05:00": time.Date(2026, 3, 1, 3, 30, 15, 0, time.UTC),
	} {
		if got, err := sinceTime(in, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: got %v, %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"-1h", "-2d", "d", "1.5d", "yesterday", "2026-13-01", "01/02/2026", "7", "10 minutes"} {
		if got, err := sinceTime(in, now); err == nil || !strings.Contains(err.Error(), in) {
			t.Errorf("%q: got %v, %v, want an error that names it", in, got, err)
		}
	}
}

// `lease ls` said that nobody had a shell in which a command of the user's ran, or, once somebody waited for it, that the user
// had it for a term of 0 s.
func TestLeaseListSaysWhatIsKnown(t *testing.T) {
	var out bytes.Buffer
	err := (&app{stdout: &out}).printLeases(&wire.StatusReply{Leases: []wire.LeaseStatus{
		{ClientPID: 1},
		{ClientPID: 2, Holder: "user", HeldMS: 2000, Queue: []wire.LeaseWaiter{{LeaseID: "l9", Agent: "lease run", Purpose: "make", WaitedMS: 1000}}},
		{ClientPID: 4, Silent: true},
		{ClientPID: 3, LeaseID: "l3", Holder: "orchestrator", HeldMS: 3000, TermMS: 30000, Purpose: "ls"},
	}}, false)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.TrimRight(line, " \n"))
	}
	want := []string{
		"CLIENT  HOLDER        FOR  TERM  PURPOSE                     WAITING  LEASE",
		"1       not lent                                             0",
		"2       user          2s         the user's own command      1",
		"        lease run     1s         make                        waits    l9",
		"4       not lent                 the window does not answer  0",
		"3       orchestrator  3s   30s   ls                          0        l3",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A program that asks its terminal had the answer of the one that `lease run` prints to typed into the shell there.
func TestMute(t *testing.T) {
	for seq, kept := range map[string]bool{
		"\x1b[6n": false, "\x1b[?6n": false, "\x1b[c": false, "\x1b[>c": false, "\x1b[0c": false, "\x1b[18t": false, "\x1b[?2026$p": false,
		"\x1b[>q": false, "\x1b[>0q": false, "\x1b[?u": false, "\x1b[>1u": false, "\x1b[>4;2m": false, "\x1b[?4m": false, "\x1bZ": false, "\x1b[20h": false, "\x1b_Gi=1\x1b\\": false,
		"\x1b]11;?\a": false, "\x1b]4;1;?\x1b\\": false, "\x1b]52;c;?\a": false, "\x1bP$qm\x1b\\": false, "\x1bP+q544e\x1b\\": false,
		"\x1b[?1000h": false, "\x1b[?1002;1006h": false, "\x1b[?1004l": false, "\x1b[?1h": false,
		"\x1b[31m": true, "\x1b[m": true, "\x1b[2J": true, "\x1b[2 q": true, "\x1b[u": true, "\x1b[?25l": true, "\x1b[?1049h": true, "\x1b[4h": true,
		"\x1b]0;title\a": true, "\x1b]8;;http://x/?a\a": true, "\x1b]2;a;?b\a": true, "\x1b7": true, "\x1b=": false, "\x1b>": true, "\x1b(B": true, "\x1bPq#0\x1b\\": true,
		"\x1b[!p": true, "\x1b[1;5r": true, "\x1b[79b": true, "\x1b[Z": true, "\x1b[2I": true,
	} {
		want := "ab"
		if kept {
			want = "a" + seq + "b"
		}
		if got, rest := filtered([]byte("a"+seq+"b"), keepDrawing); string(got) != want || len(rest) > 0 {
			t.Errorf("%q: got %q and %q, want %q", seq, got, rest, want)
		}
	}
	// Terminals such as xterm take U+009B for ESC [.
	for text, want := range map[string]string{
		"a\u009b6nb\x1b]0;\u009b6n\a\u00a0ü": "a6nb\x1b]0;6n\a\u00a0ü",
		"\xc2\xc2\x9b\x9b6n \xff\xc2ü":       "\x9b6n \xffü", // without what is in the middle, the rest was one
		"\xc2\x1b[6n\x9b6n":                  "\x9b6n",
	} {
		if got, _ := filtered([]byte(text), keepDrawing); string(got) != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// A model may call a tool by any name.
func TestCallOnATerminal(t *testing.T) {
	master, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	(&answer{app: &app{stdout: io.Discard, stderr: terminal}}).show(t.Context(), &wire.AgentStreamChunk{Chunk: wire.Chunk{
		Type: wire.ChunkToolCall, Tool: "\x1b]52;c;eA==\a", Arguments: `{"command":"ls"}`,
	}})
	line := make([]byte, 200)
	n, err := master.Read(line)
	if terminal.Close(); err != nil || bytes.ContainsAny(line[:n], "\x1b\a") || !bytes.Contains(line[:n], []byte("ls")) {
		t.Errorf("got %q, %v", line[:n], err)
	}
}

// JSON may be printed on a terminal, and a model may have written what is in it.
func TestJSONControlsNoTerminal(t *testing.T) {
	var out bytes.Buffer
	a := &app{stdout: &out}
	err := errors.Join(a.printJSON(map[string]string{"a": "\u009b6n\x7f\u202eü"}), a.printReview([]byte(`{"findings":[{"message":"\u009b6n"}]}`), false, true))
	if text := out.String(); err != nil || !strings.HasPrefix(text, `{"a":"\u009b6n\u007f\u202eü"}`+"\n") || strings.Contains(text, "\u009b") {
		t.Errorf("got %q, %v", text, err)
	}
}

// An invalid schema of --output-schema is refused before a model is asked.
func TestParseSchema(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":4}`:                            `invalid value for "type"`,
		`{"properties":3}`:                      "properties: a JSON number is not allowed there",
		`{"additionalProperties":"no"}`:         "additionalProperties: a JSON string is not allowed there",
		`{"properties":{"a":{"minimum":"x"}}}`:  "properties.minimum: a JSON string is not allowed there",
		`[]`:                                    "the whole: a JSON array is not allowed there",
		`{`:                                     "unexpected end of JSON input",
		`{"items":{"pattern":"("}}`:             "error parsing regexp: missing closing )",
		`{"$ref":"#/$defs/x"}`:                  "/$defs/x",
		`{"properties":{"n":{"type":"int"}}}`:   `type: "int" is none of array, boolean, integer, `,
		`{"anyOf":[{"type":["string","nil"]}]}`: `type: "nil" is none of `,
		`{"$ref":"http://x.example/y"}`:         "cannot resolve remote schemas",
		// The check of an answer by one of these overflowed the stack, which ends the program.
		`{"$ref":"#"}`: `"#" refers to itself`,
		`{"definitions":{"b":{"anyOf":[{"type":"null"},{"$ref":"#/definitions/b"}]}}}`:                                                  `b" refers to itself`,
		`{"items":{"not":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"dependentSchemas":{"p":{"$ref":"#/$defs/a"}}}}}`: `refers to itself`,
		`{"items":{"oneOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]},"$defs":{"a":{"items":{"$ref":"#"},"const":{"$ref":"#"}}}}`:     "",
		`{"$schema":"http://json-schema.org/draft-04/schema#"}`:                                                                         "draft-04/schema#, supported versions: ",
		`{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"a":{"$ref":"#/$defs/a"},"all":{"$ref":"#"}}}}}`:                               "",
		`true`: "",
		`{"type":["string","null"],"items":true,"properties":{"type":{"enum":[1]}},"const":{"type":"x"},"x-own":{"type":7},"minLength":2.0}`: "",
	} {
		_, err := parseSchema([]byte(schema))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if (want == "") != (err == nil) || !strings.Contains(got, want) || len(got) > 200 {
			t.Errorf("%s: got %q, want %q", schema, got, want)
		}
	}
}

// A file's name in SARIF is a URI: with a space, a per cent sign or a colon in it, the log was not valid, or named another file.
func TestSARIFNamesFilesByURI(t *testing.T) {
	for file, want := range map[string]string{"a/b.go": "a/b.go", "a b.go": "a%20b.go", "50%.go": "50%25.go", "c:d.go": "./c:d.go", "e#f?.go": "e%23f%3F.go"} {
		text, err := json.Marshal(toSARIF("1", []finding{{File: file, Line: 1, Level: "note", Message: "m"}}))
		if err != nil || !strings.Contains(string(text), `"uri":"`+want+`"`) {
			t.Errorf("%s: got %s, %v; want %q", file, text, err, want)
		}
	}
}
