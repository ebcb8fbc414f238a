package compaction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"sublet/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func exit(n int) *int { return &n }

// exchange is a call and its result.
func exchange(id, command, output string, code int) []Item {
	return []Item{
		{Kind: Answer, Text: "running " + id, Calls: []Call{{ID: id, Tool: "bash", Arguments: `{"command":"` + command + `"}`}}},
		{Kind: Results, Results: []Result{{CallID: id, Content: output, IsError: code != 0, Tool: "bash", Command: command, ExitCode: exit(code)}}},
	}
}

func conversation(exchanges, outputBytes int) []Item {
	items := []Item{{Kind: Request, Text: "Make the tests pass."}}
	for i := range exchanges {
		items = append(items, exchange(fmt.Sprintf("c%d", i), fmt.Sprintf("go test ./p%d", i), strings.Repeat("output ", outputBytes/7), i%2)...)
		if i%4 == 3 {
			items = append(items, Item{Kind: Answer, Text: "Step done."}, Item{Kind: Request, Text: fmt.Sprintf("Now part %d. Never touch main.go.", i)})
		}
	}
	return append(items, Item{Kind: Answer, Text: "All done."})
}

func TestOldOutputIsCutBeforeAnythingIsFolded(t *testing.T) {
	items := conversation(20, 4000)
	before := Tokens(items)
	p := Make(items, Options{Target: before * 7 / 10, Tail: before / 10})
	if p.From != p.To || p.Shortened == 0 {
		t.Errorf("got fold %d-%d and %d shortened, want cut output only", p.From, p.To, p.Shortened)
	}
	if p.After > before*7/10 {
		t.Errorf("got %d tokens, want at most %d", p.After, before*7/10)
	}
	if Tokens(items) != before {
		t.Error("got the input changed")
	}
	p = Make(items, Options{Target: before / 20, Tail: before / 50})
	if p.From != 1 || p.To <= p.From {
		t.Errorf("got fold %d-%d, want the middle from 1 on", p.From, p.To)
	}
}

func TestAConversationThatFitsIsLeftAlone(t *testing.T) {
	items := conversation(3, 100)
	p := Make(items, Options{Target: 1 << 20, Tail: 100})
	if p.From != p.To || p.Shortened != 0 || p.After != p.Before {
		t.Errorf("got %+v, want nothing to do", p)
	}
}

// the request being worked on stays word for word, also when its turn is folded in the middle.
func TestTheCurrentRequestIsQuoted(t *testing.T) {
	items := []Item{{Kind: Request, Text: "first"}, {Kind: Answer, Text: "ok"}, {Kind: Request, Text: "second: rename foo\nbut keep bar"}}
	for i := range 12 {
		items = append(items, exchange(fmt.Sprintf("c%d", i), "make", strings.Repeat("x ", 2000), 0)...)
	}
	p := Make(items, Options{Target: 600, Tail: 300})
	if p.To <= 3 {
		t.Fatalf("got fold %d-%d, want it to reach into the second turn", p.From, p.To)
	}
	if p.Quote != items[2].Text {
		t.Errorf("got quote %q, want %q", p.Quote, items[2].Text)
	}
	f, ok, err := Fold(t.Context(), items, p, nil, "", 1000)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	// Folded a second time, the quote is handed on.
	again := slices.Concat(p.Items[:p.From], []Item{{Kind: Summary, Text: f.Text(), Ledger: &f.Ledger}}, p.Items[p.To:])
	for i := range 12 {
		again = append(again, exchange(fmt.Sprintf("d%d", i), "make", strings.Repeat("x ", 2000), 0)...)
	}
	if p := Make(again, Options{Target: 600, Tail: 300}); p.Quote != items[2].Text {
		t.Errorf("got quote %q the second time", p.Quote)
	}
}

func TestLimitsWordForWord(t *testing.T) {
	prompt := "Fix the parser. Never push to main! Use Go 1.26; don't add dependencies.\nAlways run `make lint` in ./cmd/x.y first\nThe file is main.go and v1.2 is out. Only touch daemon/. Thanks"
	want := []string{
		"Never push to main!", "don't add dependencies.", "Always run `make lint` in ./cmd/x.y first", "Only touch daemon/.",
	}
	if got := Limits(prompt); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Limits(strings.Repeat("never ", 1000)); len(got) != 0 {
		t.Errorf("got %d limits, want pasted text left out", len(got))
	}
}

func TestLedgerKeepsWhatWasDone(t *testing.T) {
	old := Ledger{Ledger: wire.Ledger{Goal: "ship it", Limits: []string{"Never push."}, Files: []wire.OSString{"/a"}, Commands: []wire.LedgerCommand{{Command: "make", ExitCode: exit(0)}}, OpenTasks: []string{"write docs"}}}
	items := []Item{
		{Kind: Summary, Text: "s", Ledger: &old},
		{Kind: Request, Text: "Do not use sudo. Go on."},
		{Kind: Answer, Text: "I looked.\n**Decision:** keep the old name\nNo decision here: none.", Calls: []Call{
			{ID: "1", Tool: "edit"},
			{ID: "2", Tool: "bash"},
			{ID: "3", Tool: "read", Arguments: `{"path":"main.go","offset":10,"limit":20}`},
			{ID: "4", Tool: "read", Arguments: `{"path":"x.go","ranges":[{"limit":5},{"offset":90}]}`},
			{ID: "5", Tool: "read", Arguments: `{"path":"gone"}`},
			{ID: "6", Tool: "todo", Arguments: `{"todos":[{"text":"write docs","status":"done"},{"text":"run it","status":"in_progress"}]}`},
		}},
		{Kind: Results, Text: "Faster.\n", Results: []Result{
			{CallID: "1", Tool: "edit", Files: []wire.OSString{"/w/b", "/a"}},
			{CallID: "2", Tool: "bash", Command: "go  test\n./...", ExitCode: exit(1), Cwd: "/w", Decision: "use -short", Content: "--- FAIL: TestX\nwant 1"},
			{CallID: "3", Tool: "read", Content: "10\tx"},
			{CallID: "4", Tool: "read", Content: "1\tx"},
			{CallID: "5", Tool: "read", Content: "no such file", IsError: true},
			{CallID: "6", Tool: "todo", Content: "[x] write docs\n[>] run it"},
		}},
		{Kind: Answer, Text: "All is\ndone.\nDecision: keep the old name"},
	}
	got := Build("the goal", items).Text()
	want := "Goal: ship it\nLimits the user set, in their words; they still hold:\n- Never push.\n" +
		"The user's words; limits in them still hold:\n- Do not use sudo. Go on.\n- Faster.\nYour answers:\n- All is done.\nDecisions:\n- use -short\n- keep the old name\n" +
		"Shell: working directory /w\nFiles changed:\n- b\n- /a\nOther files read:\n- main.go:10-29\n- x.go:1-5,90-\n" +
		"Commands (exit code 0 unless another is given):\n- make\n- go test ./... (exit code 1)\nNewest errors:\n- `go test ./...`: --- FAIL: TestX want 1\n- read: no such file\n" +
		"Open tasks:\n- run it"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A file that was read has one entry with its lines, at the place of the newest read, and none if it was changed, too. A command has
// one entry with all its outcomes, without what cuts its output.
func TestLedgerHasEachThingOnce(t *testing.T) {
	var l Ledger
	for _, args := range []string{
		`{"path":"a","limit":9}`, `{"path":"b","offset":3}`, `{"path":"a","offset":7,"limit":3}`, `{"path":"a","limit":9}`, `{"path":"b"}`,
		`{"path":"b","limit":1}`, `{"path":"c"}`, `{"path":"/w/d"}`, `{"path":"f","limit":2}`, `{"path":"e"}`, `{"path":"f","limit":1}`,
	} {
		l.result(Result{}, Call{Tool: "read", Arguments: args})
	}
	l.result(Result{Files: []wire.OSString{"/w/c", "/w/d"}, Cwd: "/w"}, Call{})
	for i, printed := range []string{"1 of 9", "1 of 9", "ok", "", "3 of 9"} {
		l.result(Result{Command: "make 2>&1 | tail -" + fmt.Sprint(i), Content: printed, ExitCode: exit(len(printed) / 6)}, Call{})
	}
	for _, printed := range []string{"not ok", "ok"} {
		l.result(Result{Command: "check", Content: printed, ExitCode: exit(0)}, Call{})
	}
	for range 2 {
		l.result(Result{Command: "test -f x", Content: "[no output]", ExitCode: exit(1)}, Call{})
	}
	l.Errors = nil
	want := "Shell: working directory /w\nFiles changed:\n- c\n- d\nOther files read:\n- a:1-9,7-9\n- b\n- e\n- f:1-2,1-1\n" +
		"Commands (exit code 0 unless another is given):\n- make # 1 of 9 (exit code 1) → ok → 3 of 9 (exit code 1)\n- check # not ok → ok\n- test -f x (exit code 1)"
	if got := l.Text(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	l.ShellState = ""
	if got := l.Text(); !strings.HasPrefix(got, "Files changed:\n- /w/c\n") {
		t.Errorf("without a directory: got\n%s", got)
	}
}

// What a command printed stands beside it: whole if it is short, else what failed, where a server listens, or the last line.
func TestOutcome(t *testing.T) {
	noise := strings.Repeat("some output of the build\n", 20)
	for content, want := range map[string]string{
		"[no output]":                                            "",
		"3101144 totals: use Decimal\n":                          "3101144 totals: use Decimal",
		"bash: x: not found\n[exit code 127]":                    "bash: x: not found",
		noise + "listening on http://[::1]:80\n" + noise:         "http://[::1]:80",
		noise + "12 files\n":                                     "… 12 files",
		"..\n" + strings.Repeat("-", 70) + "\nRan 2 tests\n":     ".. Ran 2 tests",
		noise + "    raise ValueError(\"no\")\nValueError: no\n": "ValueError: no",
		noise + "FAIL: test_net (t.T.test_net)\n" + noise + "AssertionError: 3.3 != 3\nRan 3 tests\n": "FAIL: test_net (t.T.test_net); AssertionError: 3.3 != 3",
		noise + "--- FAIL: TestX (0.00s)\n    x_test.go:9: got 1, want 2\nFAIL\n":                     "--- FAIL: TestX (0.00s); x_test.go:9: got 1, want 2; FAIL",
	} {
		if got := outcome(content); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Of the user's words the newest stay whole, older ones by their beginnings, and a fold into little room drops them last.
func TestLedgerKeepsTheUsersWords(t *testing.T) {
	long := strings.Repeat("word ", 2000)
	var items []Item
	for i := range 6 {
		items = append(items, Item{Kind: Request, Text: fmt.Sprintf("prompt %d %s", i, long)}, Item{Kind: Answer, Text: "ok"})
	}
	l := Build("", items)
	if len(l.Prompts) != 6 || l.Prompts[5] != strings.TrimSpace(items[10].Text) || l.Prompts[4] != strings.TrimSpace(items[8].Text) {
		t.Fatalf("the newest are not whole: %d prompts, the last of %d bytes", len(l.Prompts), len(l.Prompts[5]))
	}
	if p := l.Prompts[0]; !strings.HasPrefix(p, "prompt 0 word") || len(p) > maxOldPrompt+10 {
		t.Errorf("the oldest has %d bytes: %.50q", len(p), p)
	}
	f, ok := fit(Folded{Summary: "short", Ledger: l}, 300)
	if !ok || len(f.Ledger.Prompts) == 0 || !strings.HasPrefix(f.Ledger.Prompts[len(f.Ledger.Prompts)-1], "prompt 5") {
		t.Errorf("in little room: %v, %.300q", ok, f.Text())
	}
}

func TestFoldTakesTheModelsLists(t *testing.T) {
	items := conversation(12, 2000)
	p := Make(items, Options{Target: 500, Tail: 200, Fold: true})
	asked := ""
	f, ok, err := Fold(t.Context(), items, p, func(_ context.Context, _, prompt string) (string, error) {
		asked = prompt
		return "It went well in main.go, not in made_up.go:417.\n\n## Decisions\n- use table tests\n* keep the API\n## Open tasks:\n1. part 3\n", nil
	}, "mention the API", 4000)
	if err != nil || !ok || f.Err != nil {
		t.Fatal(f, ok, err)
	}
	if f.Summary != "It went well in main.go, not in […]:[…]." || !slices.Equal(f.Ledger.Decisions, []string{"use table tests", "keep the API"}) || !slices.Equal(f.Ledger.OpenTasks, []string{"1. part 3"}) {
		t.Errorf("got %+v", f)
	}
	if !strings.Contains(asked, "mention the API") || !strings.Contains(asked, "go test ./p0") || EstimateTokens(asked) > 4000 {
		t.Errorf("got a prompt of %d tokens: %.300s", EstimateTokens(asked), asked)
	}
	if !slices.Contains(f.Ledger.Limits, "Never touch main.go.") {
		t.Errorf("got limits %q", f.Ledger.Limits)
	}
}

// a compaction has an outcome also without a working model.
func TestFoldWithoutAModel(t *testing.T) {
	items := conversation(12, 2000)
	p := Make(items, Options{Target: 500, Tail: 200, Fold: true})
	broken := errors.New("broken")
	for name, s := range map[string]Summarize{
		"none":   nil,
		"broken": func(context.Context, string, string) (string, error) { return "half", broken },
		"mute":   func(context.Context, string, string) (string, error) { return " \n", nil },
	} {
		f, ok, err := Fold(t.Context(), items, p, s, "", 4000)
		if err != nil || !ok || f.Summary != onlyLists || !strings.Contains(f.Text(), "Your answers:\n- Step done.") || !strings.Contains(f.Text(), "go test ./p1 # … output") || !strings.Contains(f.Text(), "Now part 3") {
			t.Errorf("%s: got %+v, %v, %v", name, f, ok, err)
		}
		if name == "broken" && !errors.Is(f.Err, broken) {
			t.Errorf("got %v, want the model's error told", f.Err)
		}
	}
	cancelled := errors.New("cancelled by user")
	ctx, cancel := context.WithCancelCause(t.Context())
	_, _, err := Fold(ctx, items, p, func(context.Context, string, string) (string, error) {
		cancel(cancelled)
		return "", ctx.Err()
	}, "", 4000)
	if !errors.Is(err, cancelled) {
		t.Errorf("got %v, want the cause", err)
	}
}

func TestAVerboseModelDoesNotMakeItLonger(t *testing.T) {
	items := conversation(6, 300)
	p := Make(items, Options{Target: 300, Tail: 100, Fold: true})
	f, ok, err := Fold(t.Context(), items, p, func(context.Context, string, string) (string, error) {
		return strings.Repeat("very long summary ", 5000), nil
	}, "", 4000)
	if err != nil {
		t.Fatal(err)
	}
	if got, limit := EstimateTokens(f.Text()), Tokens(items[p.From:p.To]); !ok || got >= limit {
		t.Errorf("got %d tokens (%v), want fewer than the %d folded", got, ok, limit)
	}
}

// genConversation draws any conversation a session can hold.
func genConversation(t *rapid.T) ([]Item, []string) {
	text := rapid.StringN(0, 300, -1)
	var limits []string
	request := func() Item {
		s := text.Draw(t, "prompt")
		if rapid.Bool().Draw(t, "limited") {
			l := fmt.Sprintf("Never touch file%d.go.", len(limits))
			limits = append(limits, l)
			s += "\n" + l
		}
		return Item{Kind: Request, Text: s}
	}
	items := []Item{request()}
	id := 0
	for range rapid.IntRange(0, 25).Draw(t, "rounds") {
		switch rapid.IntRange(0, 3).Draw(t, "what") {
		case 0:
			items = append(items, Item{Kind: Answer, Text: text.Draw(t, "answer")}, request())
		default:
			a, r := Item{Kind: Answer, Text: text.Draw(t, "saying")}, Item{Kind: Results}
			for range rapid.IntRange(1, 3).Draw(t, "calls") {
				id++
				name := fmt.Sprint("c", id)
				a.Calls = append(a.Calls, Call{ID: name, Tool: "bash", Arguments: `{}`})
				out := strings.Repeat(rapid.SampledFrom([]string{"x", "é", "漢", "🙂 ", "line\n"}).Draw(t, "unit"), rapid.IntRange(0, 3000).Draw(t, "times"))
				r.Results = append(r.Results, Result{CallID: name, Content: out, Command: "cmd " + name, ExitCode: exit(0)})
			}
			items = append(items, a, r)
		}
	}
	return items, limits
}

// Whatever the conversation and the sizes: pairs stay, the first request and the tail stay, nothing grows, the user's
// limits survive, and no character is cut. Twice, because a compaction meets the last one's summary.
func TestPlansKeepWhatMustBeKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items, limits := genConversation(t)
		first := items[0]
		for round := range 2 {
			before := Tokens(items)
			o := Options{
				Target: rapid.IntRange(50, max(before, 51)).Draw(t, "target"), Tail: rapid.IntRange(10, max(before, 11)).Draw(t, "tail"),
				Fold: rapid.Bool().Draw(t, "fold"),
			}
			p := Make(items, o)
			if len(p.Items) != len(items) || p.From < 0 || p.To > len(items) || p.From > p.To || p.From == 0 && p.To > 0 {
				t.Fatalf("round %d: got plan %d-%d of %d", round, p.From, p.To, len(items))
			}
			after := p.Items
			if p.From < p.To {
				f, ok, err := Fold(context.Background(), items, p, nil, "", 2000)
				if err != nil {
					t.Fatal(err)
				}
				if ok {
					s := Item{Kind: Summary, Text: f.Text(), Ledger: &f.Ledger, Extra: EstimateTokens(p.Quote)}
					after = slices.Concat(p.Items[:p.From], []Item{s}, p.Items[p.To:])
				}
			}
			if !paired(after) {
				t.Fatalf("round %d: calls and results are apart", round)
			}
			if got := Tokens(after); got > before {
				t.Fatalf("round %d: got %d tokens from %d", round, got, before)
			}
			if after[0].Text != first.Text {
				t.Fatalf("round %d: the first request changed", round)
			}
			if last := after[len(after)-1]; last.Kind == Request && last.Text != items[len(items)-1].Text {
				t.Fatalf("round %d: the newest request changed", round)
			}
			for i := 1; i <= len(items)-p.To && p.From < p.To; i++ {
				if items[len(items)-i].Text != p.Items[len(items)-i].Text {
					t.Fatalf("round %d: what was said in the tail changed", round)
				}
			}
			for _, l := range limits {
				if !slices.ContainsFunc(after, func(it Item) bool { return strings.Contains(it.Text, l) }) {
					t.Fatalf("round %d: %q is lost", round, l)
				}
			}
			for _, it := range after {
				if utf8.ValidString(it.Text) {
					for _, r := range it.Results {
						if !utf8.ValidString(r.Content) {
							t.Fatal("a character was cut")
						}
					}
				} else {
					t.Fatal("a character was cut")
				}
			}
			items = after
		}
	})
}

func TestSummaryIsChecked(t *testing.T) {
	const source = "USER: mend src/parse.go, see https://example.com/a/b\nCALL bash {\"command\":\"go test ./src\"}\nRESULT FAIL parse_test.go:128 in ParseHeader, 1200 ms, v1.26.8, GITHUB_TOKEN\n"
	for summary, want := range map[string]string{
		"ParseHeader of src/parse.go failed at parse_test.go:128.":                "ParseHeader of src/parse.go failed at parse_test.go:128.",
		"It took 1,200 ms with 1.26.8, and/or 3 tries.":                           "It took 1,200 ms with 1.26.8, and/or 3 tries.",
		"In /src/parse.go, ./src/parse.go and src/lex.go, lines 120 to 128.":      "In /src/parse.go, ./src/parse.go and […], lines […] to 128.",
		"parseBody and read_all, of lexer.go, were renamed (`/etc/hosts`).":       "[…] and […], of […], were renamed (`[…]`).",
		"DATABASE_URL and --dry-run of HTTPServer, as for GITHUB_TOKEN: two PRs.": "[…] and […] of […], as for GITHUB_TOKEN: two PRs.",
		"github_token is set. See https://example.com/a/b, e.g. today.":           "github_token is set. See https://example.com/a/b, e.g. today.",
	} {
		if got := checked(summary, source); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The ledger has at most a tenth of a conversation that is folded. Folded again, it keeps what it has.
func TestLedgerInProportion(t *testing.T) {
	for output, want := range map[int]int{1: 30, 3000: 200} {
		items := []Item{{Kind: Request, Text: "begin"}}
		for i := range 200 {
			id := fmt.Sprint(i)
			items = append(items, Item{Kind: Answer, Calls: []Call{{ID: id, Tool: "bash", Arguments: "{}"}}},
				Item{Kind: Results, Results: []Result{{CallID: id, Tool: "bash", Command: "make part" + id, Content: "serving on http://localhost:80" + id + "\n" + strings.Repeat("x", output)}}})
		}
		f, ok, err := Fold(t.Context(), items, Plan{Items: items, From: 1, To: len(items)}, nil, "", 0)
		if err != nil || !ok || len(f.Ledger.Commands) != want || !strings.HasPrefix(string(f.Ledger.Commands[want-1].Command), "make part199 # ") || !strings.Contains(string(f.Ledger.Commands[want-1].Command), "http://localhost:80199") {
			t.Errorf("%d bytes of output each: got %d commands, %v, %v, want %d", output, len(f.Ledger.Commands), ok, err, want)
		}
		again := []Item{
			items[0],
			{Kind: Summary, Text: f.Text(), Ledger: &f.Ledger},
			{Kind: Answer, Calls: []Call{{ID: "g", Tool: "grep"}}},
			{Kind: Results, Results: []Result{{CallID: "g", Tool: "grep", Content: strings.Repeat("x.go:1: x\n", 20)}}},
		}
		f, ok, err = Fold(t.Context(), again, Plan{Items: again, From: 1, To: len(again)}, nil, "", 0)
		if err != nil || !ok || len(f.Ledger.Commands) != want {
			t.Errorf("folded again: got %d commands, %v, %v, want %d", len(f.Ledger.Commands), ok, err, want)
		}
	}
}

// paired reports whether every call of items has exactly one result, in the Results item right after its Answer, and every
// result has a call.
func paired(items []Item) bool {
	for i, it := range items {
		switch it.Kind {
		case Answer:
			if len(it.Calls) == 0 {
				continue
			}
			if i+1 >= len(items) || items[i+1].Kind != Results {
				return false
			}
			var want, got []string
			for _, c := range it.Calls {
				want = append(want, c.ID)
			}
			for _, r := range items[i+1].Results {
				got = append(got, r.CallID)
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(want, got) {
				return false
			}
		case Results:
			if i == 0 || items[i-1].Kind != Answer || len(items[i-1].Calls) == 0 {
				return false
			}
		}
	}
	return true
}
