package policy

import (
	"strings"
	"testing"
	"time"

	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/risk/programs"
	"sublet/wire"
)

// TestModes: what each mode runs, asks and refuses; critical is asked in every mode (section 7).
func TestModes(t *testing.T) {
	commands := map[risk.Level]string{risk.Low: "ls", risk.Medium: "go test ./...", risk.High: "git push", risk.Critical: "rm -rf /"}
	want := map[Mode][4]string{
		ModePlan: {Allow, Deny, Deny, Deny},
		ModeAsk:  {Allow, Ask, Ask, Ask},
		ModeAuto: {Allow, Allow, Ask, Ask},
		ModeFull: {Allow, Allow, Allow, Ask},
		"":       {Allow, Ask, Ask, Ask},
		"other":  {Allow, Ask, Ask, Ask},
	}
	for mode, outcomes := range want {
		for level, text := range commands {
			v := risk.Analyze(text, here())
			if v.Level != level {
				t.Fatalf("%q: got %s, want %s", text, v.Level, level)
			}
			if d := (Policy{Mode: mode}).Decide(v, Action{Tool: "bash", Command: text}); d.Outcome != outcomes[level-1] || d.Why == "" {
				t.Errorf("mode %q: %s: got %s (%q), want %s", mode, level, d.Outcome, d.Why, outcomes[level-1])
			}
		}
	}
	if d := (Policy{Mode: ModeFull}).Decide(risk.Verdict{}, Action{}); d.Outcome != Ask {
		t.Errorf("a verdict that nobody made: got %s, want ask", d.Outcome)
	}
	for _, s := range []string{"plan", "ask", "auto", "full", ""} {
		if _, err := ParseMode(s); err != nil {
			t.Errorf("ParseMode(%q): %v", s, err)
		}
	}
	if _, err := ParseMode("yolo"); err == nil {
		t.Error("ParseMode(yolo) takes it")
	}
	for l := risk.Low; l <= risk.Critical; l++ {
		if got, err := programs.ParseLevel(l.String()); err != nil || got != l {
			t.Errorf("ParseLevel(%s) = %v, %v", l, got, err)
		}
	}
}

// TestRulePrecedence: deny wins over ask, ask over allow, whatever their order; critical stays asked.
func TestRulePrecedence(t *testing.T) {
	allow := wire.Rule{ID: "a", Decision: Allow, Pattern: "bash: git push *"}
	ask := wire.Rule{ID: "b", Decision: Ask, Pattern: "bash: git *"}
	deny := wire.Rule{ID: "c", Decision: Deny, Pattern: "effect: network"}
	v := risk.Analyze("git push origin main", here())
	act := Action{Tool: "bash", Command: "git push origin main"}
	for _, c := range []struct {
		rules []wire.Rule
		want  string
		by    string
	}{
		{[]wire.Rule{allow}, Allow, "a"}, {[]wire.Rule{ask, allow}, Ask, "b"}, {[]wire.Rule{allow, ask}, Ask, "b"}, {[]wire.Rule{allow, deny, ask}, Deny, "c"}, {[]wire.Rule{deny, allow}, Deny, "c"}, {[]wire.Rule{ask, deny, allow}, Deny, "c"}, {nil, Ask, ""},
	} {
		d := Policy{Mode: ModeAsk, Rules: c.rules}.Decide(v, act)
		id := ""
		if d.Rule != nil {
			id = string(d.Rule.ID)
		}
		if d.Outcome != c.want || id != c.by {
			t.Errorf("%v: got %s by %q, want %s by %q", c.rules, d.Outcome, id, c.want, c.by)
		}
	}
	for _, pattern := range []string{"bash: git push *", "bash: git push --force", "effect: network history"} {
		d := Policy{Mode: ModeFull, Rules: []wire.Rule{{Decision: Allow, Pattern: pattern}}}.Decide(risk.Analyze("git push --force", here()), Action{Tool: "bash", Command: "git push --force"})
		if d.Outcome != Ask || len(d.Grants) > 0 {
			t.Errorf("rule %q allows a critical command: got %s, %d grants", pattern, d.Outcome, len(d.Grants))
		}
	}
	// An ask rule tightens what a mode would run.
	d := Policy{Mode: ModeFull, Rules: []wire.Rule{{Decision: Ask, Pattern: "bash: ls"}}}.Decide(risk.Analyze("ls", here()), Action{Tool: "bash", Command: "ls"})
	if d.Outcome != Ask {
		t.Errorf("an ask rule on a low command: got %s, want ask", d.Outcome)
	}
	// A rule that cannot be read is taken as one that may forbid.
	d = Policy{Mode: ModeFull, Rules: []wire.Rule{{Decision: Deny, Pattern: "nonsense"}}}.Decide(risk.Analyze("ls", here()), Action{Tool: "bash", Command: "ls"})
	if d.Outcome != Ask {
		t.Errorf("a deny rule that cannot be read: got %s, want ask", d.Outcome)
	}
}

// TestNoWideRules: interpreters, wrappers, words that are not known and a program left open are covered by no wildcard.
func TestNoWideRules(t *testing.T) {
	for pattern, text := range map[string]string{
		"bash: bash *": "bash x.sh", "bash: python3 *": "python3 x.py", "bash: env *": "env FOO=1 go test", "bash: sudo *": "sudo ls", "bash: xargs *": "xargs touch", "bash: *": "go test", "bash: * test": "go test",
		"bash: find *": "find . -exec touch {} +", "bash: touch *": "touch $x", "bash: ssh *": "ssh h ls", "bash: node *": "node -e 1", "bash: g*": "go test", "bash: npx *": "npx x", "bash: ./x *": "./x y", "bash: eval *": "eval touch x", "bash: docker run *": "docker run x",
	} {
		v := risk.Analyze(text, here())
		d := Policy{Mode: ModeAsk, Rules: []wire.Rule{{Decision: Allow, Pattern: pattern}}}.Decide(v, Action{Tool: "bash", Command: text})
		if d.Outcome != Ask {
			t.Errorf("rule %q, %q (%s): got %s (%s), want ask", pattern, text, v.Level, d.Outcome, d.Why)
		}
		for _, g := range d.Grants {
			if first, _, _ := strings.Cut(text, " "); first != "go" && strings.HasSuffix(g.Rule, " *") && strings.Contains(g.Rule, ": "+first+" ") {
				t.Errorf("%q: offers the wide grant %q", text, g.Rule)
			}
		}
	}
}

// TestGrantsOffered: what is offered says exactly what it covers (H5), and covers no more.
func TestGrantsOffered(t *testing.T) {
	act := func(text string) Action {
		return Action{Tool: "bash", Command: text, Cwd: here().Cwd, Session: "s1", Project: here().ProjectRoot, Home: here().Home}
	}
	rules := func(text string) (list []string) {
		for _, g := range (Policy{}).Decide(risk.Analyze(text, here()), act(text)).Grants {
			list = append(list, g.Scope+" "+g.Rule)
			if where := map[string]string{ScopeSession: "in this session", ScopeProject: "/home/u/proj", ScopeAlways: "in every folder and session"}[g.Scope]; !strings.Contains(g.Covers, where) {
				t.Errorf("%q: grant %q says only that it covers %q", text, g.Rule, g.Covers)
			}
		}
		return list
	}
	for text, want := range map[string]string{
		"go test ./...":                 "session bash[medium]: go test ./...|project bash[medium]: go test ./...|always bash[medium]: go test ./...|session bash[medium]: go test *|project bash[medium]: go test *|always bash[medium]: go test *",
		"make":                          "session bash[medium]: make|project bash[medium]: make|always bash[medium]: make|session bash[medium]: make *|project bash[medium]: make *|always bash[medium]: make *",
		"make && cd src && make":        "session bash[medium]: make|project bash[medium]: make|always bash[medium]: make|session bash[medium]: make *|project bash[medium]: make *|always bash[medium]: make *",
		"git push origin main":          "session bash[high, in /home/u/proj]: git push origin main|project bash[high, in /home/u/proj]: git push origin main",
		"go vet && go build && go test": "session bash[medium]: go build ; go test|project bash[medium]: go build ; go test|always bash[medium]: go build ; go test|session bash[medium]: go build * ; go test *|project bash[medium]: go build * ; go test *|always bash[medium]: go build * ; go test *",
		"touch 'a b' \"c;d\"":           "session bash[medium]: touch 'a b' 'c;d'|project bash[medium]: touch 'a b' 'c;d'|always bash[medium]: touch 'a b' 'c;d'|session bash[medium]: touch *|project bash[medium]: touch *|always bash[medium]: touch *",
		"rm -rf /":                      "", "echo x > y": "", "touch $x": "", "git push --force": "", "ls; if (": "", "LD_PRELOAD=x ls": "", "ls": "", "sh x.sh": "session bash[high, in /home/u/proj]: sh x.sh|project bash[high, in /home/u/proj]: sh x.sh",
		"cd .. && touch x":      "session bash[high, in /home/u]: touch x|project bash[high, in /home/u]: touch x",
		"cd \"$X\" && git push": "",
		// Nothing that runs other code is offered everywhere.
		"python3 -c 'print(1)'": "session bash[medium]: python3 -c 'print(1)'|project bash[medium]: python3 -c 'print(1)'",
		"npx tsc":               "session bash[medium]: npx tsc|project bash[medium]: npx tsc",
	} {
		if got := strings.Join(rules(text), "|"); got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
	// A wide grant at medium does not cover what options make worse.
	p := Policy{Rules: []wire.Rule{{Decision: Allow, Pattern: "bash[medium]: go test *"}}}
	for text, want := range map[string]string{"go test -v ./x": Allow, "go test -exec ./x": Ask, "go testx": Ask, "go test ./... > x": Ask, "go test ./... > /dev/null": Allow, "cd sub && go test": Allow} {
		if d := p.Decide(risk.Analyze(text, here()), act(text)); d.Outcome != want {
			t.Errorf("bash[medium]: go test *: %q: got %s (%s), want %s", text, d.Outcome, d.Why, want)
		}
	}
}

// TestScopesAndExpiry: a rule holds where and as long as it says.
func TestScopesAndExpiry(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	v := risk.Analyze("go test", here())
	act := Action{Tool: "bash", Command: "go test", Session: "s1", Project: "/home/u/proj", Now: now}
	for _, c := range []struct {
		rule wire.Rule
		want string
	}{
		{wire.Rule{Scope: ScopeAlways}, Allow},
		{wire.Rule{}, Allow},
		{wire.Rule{Scope: ScopeSession, Subject: "s1"}, Allow},
		{wire.Rule{Scope: ScopeSession, Subject: "s2"}, Ask},
		{wire.Rule{Scope: ScopeSession}, Ask},
		{wire.Rule{Scope: ScopeProject, Subject: "/home/u/proj/"}, Allow},
		{wire.Rule{Scope: ScopeProject, Subject: "/home/u"}, Ask},
		{wire.Rule{Scope: "galaxy"}, Ask},
		{wire.Rule{ExpiresAtMS: new(now.Add(time.Second).UnixMilli())}, Allow},
		{wire.Rule{ExpiresAtMS: new(now.UnixMilli())}, Ask},
		{wire.Rule{ExpiresAtMS: new(now.Add(-time.Hour).UnixMilli())}, Ask},
	} {
		c.rule.Decision, c.rule.Pattern = Allow, "bash: go test"
		if d := (Policy{Rules: []wire.Rule{c.rule}}).Decide(v, act); d.Outcome != c.want {
			t.Errorf("%+v: got %s, want %s", c.rule, d.Outcome, c.want)
		}
	}
	d := Policy{Mode: ModeFull, Rules: []wire.Rule{{Decision: Deny, Pattern: "bash: go *", Scope: "galaxy"}}}.Decide(v, act)
	if d.Outcome != Deny {
		t.Errorf("a deny rule of a scope that is not known: got %s, want deny", d.Outcome)
	}
}

// TestFileRules: path rules for file tools, and for what commands do to the same files.
func TestFileRules(t *testing.T) {
	write := func(p string) Action {
		return Action{Tool: "write", Writes: []string{p}, Project: "/home/u/proj", Home: "/home/u", Session: "s"}
	}
	for _, c := range []struct {
		pattern, path string
		want          string
	}{
		{"write: src/**", "/home/u/proj/src/a/b.go", Allow},
		{"write: src/*", "/home/u/proj/src/a/b.go", Ask},
		{"edit: src/*.go", "/home/u/proj/src/a.go", Allow},
		{"write: **", "/home/u/proj/x", Allow},
		{"write: **", "/etc/motd", Ask},
		{"write: /etc/motd", "/etc/motd", Allow},
		{"write: ~/notes/**", "/home/u/notes/x", Allow},
		{"write[medium]: **", "/home/u/proj/.env", Ask},
		{"write: src/**", "/home/u/proj/src/../../x", Ask},
		{"read: **", "/home/u/proj/x", Ask},
		{"write: ~/**", "/home/u/.bashrc", Ask},
		{"tool: write", "/home/u/proj/x", Allow},
		{"tool: *", "/home/u/proj/x", Ask},
		{"fetch: *", "/home/u/proj/x", Ask},
	} {
		act := write(c.path)
		v := risk.AnalyzeFile(risk.FileAction{Writes: act.Writes}, here())
		if d := (Policy{Rules: []wire.Rule{{Decision: Allow, Pattern: c.pattern}}}).Decide(v, act); d.Outcome != c.want {
			t.Errorf("%s, write %s (%s): got %s (%s), want %s", c.pattern, c.path, v.Level, d.Outcome, d.Why, c.want)
		}
	}
	act := write("/home/u/proj/src/a[1].go")
	d := Policy{}.Decide(risk.AnalyzeFile(risk.FileAction{Writes: act.Writes}, here()), act)
	if len(d.Grants) != 6 {
		t.Fatalf("got %d grants for a file of the project, want 6: %v", len(d.Grants), d.Grants)
	}
	for _, g := range d.Grants {
		r := wire.Rule{Decision: Allow, Pattern: g.Rule}
		if d := (Policy{Rules: []wire.Rule{r}}).Decide(risk.AnalyzeFile(risk.FileAction{Writes: act.Writes}, here()), act); d.Outcome != Allow {
			t.Errorf("granted %q, and it is still %s", g.Rule, d.Outcome)
		}
		other := write("/home/u/proj/src/a1.go")
		if strings.HasSuffix(g.Rule, "go") {
			if d := (Policy{Rules: []wire.Rule{r}}).Decide(risk.AnalyzeFile(risk.FileAction{Writes: other.Writes}, here()), other); d.Outcome == Allow {
				t.Errorf("%q covers %s too", g.Rule, other.Writes[0])
			}
		}
	}
	fetch := Action{Tool: "fetch", Network: "docs.example.com", Session: "s"}
	v := risk.AnalyzeFile(risk.FileAction{Network: fetch.Network}, here())
	for pattern, want := range map[string]string{"fetch: *.example.com": Allow, "fetch: docs.example.com": Allow, "fetch: example.com": Ask, "fetch: *.example.com.evil": Ask} {
		if d := (Policy{Rules: []wire.Rule{{Decision: Allow, Pattern: pattern}}}).Decide(v, fetch); d.Outcome != want {
			t.Errorf("%s: got %s, want %s", pattern, d.Outcome, want)
		}
	}
}

// TestParseRule: what is a rule and what is not, with an error that says what to write.
func TestParseRule(t *testing.T) {
	for _, s := range []string{"bash: git push origin *", "bash: ls", "bash: a 'b c' \"d;e\" \\*", "bash: a ; b * ; c", "bash[high]: x", "bash[high, in /a b/c]: x y", "bash[in /x]: y", "write: src/**", "edit: *.go", "read: ~/x/*", "write: {a,b}/**/*.{ts,tsx}", "write: " + QuoteGlob(strings.Repeat("{,", 30)), "fetch: *.example.com", "tool: mcp__db__query", "effect: network", "effect: network, delete", " bash : x"} {
		if strings.HasPrefix(s, " ") {
			continue
		}
		if err := ParseRule(s); err != nil {
			t.Errorf("ParseRule(%q): %v", s, err)
		}
	}
	for s, hint := range map[string]string{
		"": "kind", "git push": "kind", "shell: ls": "kinds are", "bash:": "nothing", "bash: ": "nothing", "bash: a | b": "word", "bash: a && b": "word", "bash: a > b": "word", "bash: $(x)": "word", "bash: 'a": "closed", "bash: a;b": "blanks", "bash: ; a": "before", "bash: a ;": "after", "bash: a\\": "backslash",
		"bash[huge]: a": "none of low", "bash[in x]: a": "absolute", "bash[high: a": "kind", "write: [": "glob", "fetch: a b": "one name", "fetch: a/b": "one name", "effect: boom": "effects are", "effect:": "nothing",
		// Matched with a path of many a, these took for ever, and a repository's own rules may be such.
		"write: " + strings.Repeat("{a,aa}", 30) + "x": "4 times {}", "read: {" + strings.Repeat("**/a,", 30) + "b}": "16 commas", "fetch: " + strings.Repeat("{a,aa}", 30): "one name",
		"write: " + strings.Repeat(`\\{a,aa}`, 30) + "x": "4 times {}",
	} {
		err := ParseRule(s)
		if err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("ParseRule(%q) = %v, want an error with %q", s, err, hint)
		}
	}
}

func FuzzParseRule(f *testing.F) {
	for _, s := range []string{"bash: git push origin *", "bash[high, in /a]: 'b c' ; d *", "write: src/**", "effect: network delete", "fetch: *.x"} {
		f.Add(s)
	}
	v := risk.Analyze("git push origin main; touch x", here())
	f.Fuzz(func(t *testing.T, s string) {
		if ParseRule(s) != nil {
			return
		}
		for _, d := range []string{Allow, Ask, Deny} {
			(Policy{Rules: []wire.Rule{{Decision: d, Pattern: s}}}).Decide(v, Action{Tool: "bash", Command: "git push origin main; touch x", Project: "/p", Home: "/h"})
			(Policy{Rules: []wire.Rule{{Decision: d, Pattern: s}}}).Decide(v, Action{Tool: "write", Writes: []string{"/p/x"}, Project: "/p", Home: "/h"})
		}
	})
}

// TestQuoteWords: what is offered as a rule is read back as the same words.
func TestQuoteWords(t *testing.T) {
	for _, argv := range [][]string{{"a"}, {"a b", "c'd", `e"f`, `g\h`, "*", "", "i;j", "$k", "l\nm", "é", "a|b", "--x=y z"}} {
		alts, err := parseWords(quoteWords(argv))
		if err != nil || len(alts) != 1 || !matchWords(alts[0], argv) {
			t.Errorf("%q: quoted as %s, read back as %v, %v", argv, quoteWords(argv), alts, err)
		}
	}
}

// TestManyOptions: a rule with options is compared with each option of a command once. It was with each pair of them.
func TestManyOptions(t *testing.T) {
	a := Action{Tool: "bash", Command: "rm"}
	v := risk.Verdict{Level: risk.High, Commands: []risk.Command{{Argv: strings.Fields("rm " + strings.Repeat("-x ", 20000)), Level: risk.High, Name: "rm"}}}
	p := Policy{Mode: ModeFull, Rules: []wire.Rule{{Decision: Deny, Pattern: "bash: rm -rf"}}}
	start := time.Now()
	if d := p.Decide(v, a); d.Outcome != Allow {
		t.Errorf("got %s (%s), want allow", d.Outcome, d.Why)
	}
	if d := time.Since(start); d > 3*time.Second {
		t.Errorf("%d options took %v, want at most %v", len(v.Commands[0].Argv), d, 3*time.Second)
	}
	for text, want := range map[string]bool{"rm -r -f": true, "rm -xf -vr": true, "rm -r": false, "rm -r --f": false, "rm --rf": false} {
		v.Commands[0].Argv = strings.Fields(text)
		if got := p.Decide(v, a).Outcome == Deny; got != want {
			t.Errorf("%q: denied %v, want %v", text, got, want)
		}
	}
}

// A bound holds in every mode and against every rule; within it modes and rules decide as elsewhere.
func TestBound(t *testing.T) {
	low, high := risk.Verdict{Level: risk.Low}, risk.Verdict{Level: risk.High}
	all := []wire.Rule{{Decision: Allow, Pattern: "bash: *"}}
	for _, row := range []struct {
		bound, reach risk.Reach
		mode         Mode
		v            risk.Verdict
		want         string
		runs         risk.Reach
	}{
		{risk.ReachProject, risk.ReachFree, ModeAsk, high, Deny, risk.ReachFree},
		{risk.ReachProject, risk.ReachFree, ModeFull, low, Deny, risk.ReachFree},
		{risk.ReachRead, risk.ReachProject, ModeFull, low, Deny, risk.ReachProject},
		{risk.ReachProject, risk.ReachProject, ModeFull, high, Allow, risk.ReachProject},
		{risk.ReachProject, risk.ReachRead, ModeFull, low, Allow, risk.ReachRead},
		{risk.ReachProject, risk.ReachRead, ModeAuto, high, Allow, risk.ReachProject},
		{risk.ReachRead, risk.ReachRead, ModeAuto, high, Allow, risk.ReachRead},
		{risk.ReachRead, risk.ReachShell, ModeAsk, low, Allow, risk.ReachShell},
		{risk.ReachProject, "", ModeFull, high, Allow, ""}, // nothing holds it here: the words decide
		{"", risk.ReachProject, ModeFull, high, Allow, risk.ReachFree},
	} {
		a := Action{Tool: "bash", Command: "x", Reach: row.reach, Bound: row.bound, Project: "/p", Editable: true}
		if got := (Policy{Mode: row.mode, Rules: all}).Decide(row.v, a); got.Outcome != row.want || got.Reach != row.runs {
			t.Errorf("%+v: got %s with %q (%s)", row, got.Outcome, got.Reach, got.Why)
		}
	}
}

// A server of a client is gone with the session, and so is every permission for its tools: a rule that was made for a server of that
// name in the settings lets it through nowhere, one that forbids does.
func TestPassingServers(t *testing.T) {
	a := Action{Tool: "mcp__db__query", Server: "db", Session: "s", Project: "/w", Cwd: "/w"}
	v := risk.AnalyzeFile(risk.FileAction{Server: a.Server}, here())
	for _, c := range []struct {
		scope, subject string
		decision       string
		want           string // for a server of a client; for one of the settings the rule decides
	}{
		{ScopeAlways, "", Allow, Ask}, {"", "", Allow, Ask}, {ScopeProject, "/w", Allow, Ask}, {ScopeSession, "s", Allow, Allow}, {ScopeAlways, "", Deny, Deny},
	} {
		p := Policy{Mode: ModeAsk, Rules: []wire.Rule{{Decision: c.decision, Pattern: "tool: mcp__db__query", Scope: c.scope, Subject: wire.OSString(c.subject)}}}
		a.Passing = false
		if d := p.Decide(v, a); d.Outcome != c.decision {
			t.Errorf("a server of the settings, %s %q: got %s", c.decision, c.scope, d.Outcome)
		}
		a.Passing = true
		if d := p.Decide(v, a); d.Outcome != c.want {
			t.Errorf("a server of a client, %s %q: got %s, want %s", c.decision, c.scope, d.Outcome, c.want)
		}
	}
}

// A hosted agent's call whose effects are not known has no name of its own ("tool" whatever it does, or that of one of our tools):
// no rule by that name allows it, and none is offered, since it would allow every other such call.
func TestCallsWithoutAName(t *testing.T) {
	for _, tool := range []string{"tool", "edit", "fetch"} {
		a := Action{Tool: tool, Server: "claude", Session: "s", Project: "/w", Cwd: "/w"}
		v := risk.AnalyzeFile(risk.FileAction{Server: a.Server}, here())
		if d := (Policy{Mode: ModeAsk}).Decide(v, a); d.Outcome != Ask || len(d.Grants) > 0 {
			t.Errorf("%s: got %+v, want a question without grants", tool, d)
		}
		if d := (Policy{Mode: ModeAsk, Rules: []wire.Rule{{Decision: Allow, Pattern: "tool: " + tool}}}).Decide(v, a); d.Outcome != Ask {
			t.Errorf("%s: got %+v by a rule, want a question", tool, d)
		}
		if d := (Policy{Mode: ModeAsk, Rules: []wire.Rule{{Decision: Deny, Pattern: "tool: " + tool}}}).Decide(v, a); d.Outcome != Deny {
			t.Errorf("%s: got %+v, want it denied", tool, d)
		}
	}
}

// What was allowed to run held is asked about when the agent wants it held by nothing: it then does what the person was never shown.
// The question offers what says so.
func TestAllowedHeldIsNotAllowedFree(t *testing.T) {
	const command = "go build ./..."
	v := risk.Analyze(command, here())
	a := Action{Tool: "bash", Command: command, Cwd: here().Cwd, Project: here().Cwd, Editable: true, Reach: risk.ReachProject, Session: "s"}
	free := a
	free.Reach = risk.ReachFree
	ask := Policy{Mode: ModeAsk}
	with := func(g wire.Grant) Policy {
		return Policy{Mode: ModeAsk, Rules: []wire.Rule{{Decision: Allow, Pattern: g.Rule, Scope: ScopeSession, Subject: "s"}}}
	}
	pick := func(a Action) (gs []wire.Grant) {
		for _, g := range ask.Decide(v, a).Grants {
			if g.Scope == ScopeSession {
				gs = append(gs, g)
			}
		}
		return gs
	}
	held, unheld := pick(a), pick(free)
	if v.Reach != risk.ReachProject || len(held) == 0 || len(held) != len(unheld) {
		t.Fatalf("reach %s: offered %+v and %+v", v.Reach, held, unheld)
	}
	for i := range held {
		if d := with(held[i]).Decide(v, a); d.Outcome != Allow {
			t.Errorf("%q, held: got %s", held[i].Rule, d.Outcome)
		}
		if d := with(held[i]).Decide(v, free); d.Outcome != Ask {
			t.Errorf("%q, held by nothing: got %s, want ask", held[i].Rule, d.Outcome)
		}
		if d := with(unheld[i]).Decide(v, free); d.Outcome != Allow || !strings.Contains(unheld[i].Covers, "held by nothing") {
			t.Errorf("%q (%s), held by nothing: got %s", unheld[i].Rule, unheld[i].Covers, d.Outcome)
		}
	}
	deny := Policy{Mode: ModeAuto, Rules: []wire.Rule{{Decision: Deny, Pattern: "bash[free]: go *"}}}
	if d := deny.Decide(v, free); d.Outcome != Deny {
		t.Errorf("denied free: got %s", d.Outcome)
	}
	if d := deny.Decide(v, a); d.Outcome != Allow {
		t.Errorf("denied free, held: got %s", d.Outcome)
	}
	if ParseRule("write[free]: x") == nil {
		t.Error("write[free] is taken")
	}
}
