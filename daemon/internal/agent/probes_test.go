package agent

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sublet/compaction"
	"sublet/wire"
)

// A probe is what a user may ask after a compaction: a fact of the session, and the words they would look for it with.
type probe struct{ kind, fact, query string }

// recording makes the events of a session as a day's work has them, and the facts in it by kind.
type recording struct {
	*rand.Rand
	events []wire.EventMessage
	facts  map[string][]probe
	turn   int
	calls  int
}

func (r *recording) add(m wire.EventMessage) {
	*m.Meta() = wire.Event{TurnID: wire.TurnID(fmt.Sprint("t", r.turn)), Seq: int64(len(r.events) + 1)}
	r.events = append(r.events, m)
}

func (r *recording) fact(kind, fact, query string) {
	r.facts[kind] = append(r.facts[kind], probe{kind, fact, query})
}

func (r *recording) one(list ...string) string { return list[r.IntN(len(list))] }

func (r *recording) name() string {
	return r.one("session", "invoice", "parser", "cache", "router", "ledger", "upload", "scheduler", "token", "mailer") + "_" +
		r.one("store", "test", "index", "worker", "client", "retry", "format", "limits") + fmt.Sprint(r.IntN(90)+10)
}

func (r *recording) file() string {
	return r.one("internal", "pkg", "cmd", "server", "web") + "/" + r.one("billing", "auth", "search", "jobs", "report") + "/" + r.name() + r.one(".go", ".py", ".ts")
}

// call records a call and its result.
func (r *recording) call(name string, args any, m *wire.CommandResult) {
	r.calls++
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	id := wire.ExecutionID(fmt.Sprint("c", r.calls))
	r.add(&wire.AgentStreamChunk{Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkToolCall, ExecutionID: id, Tool: name, Arguments: string(raw)}})
	m.Agent, m.ExecutionID, m.Tool = "orchestrator", id, name
	m.Status = wire.StatusSuccess
	if m.ExitCode != nil && *m.ExitCode != 0 {
		m.Status = wire.StatusError
	}
	r.add(m)
}

func (r *recording) bash(command string, exit int, output string) {
	r.call("bash", map[string]any{"command": command}, &wire.CommandResult{Command: wire.OSString(command), ExitCode: &exit, Output: []byte(output)})
}

// lines are the lines of a file or a log without facts that a probe asks for.
func (r *recording) lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d\tfunc (%c *%s) %s(ctx context.Context, id int) error { return nil }\n", i+1, 'a'+rune(r.IntN(26)), r.name(), r.name())
	}
	return b.String()
}

func (r *recording) work() {
	switch file := r.file(); r.IntN(9) {
	case 0, 1:
		r.call("read", map[string]any{"path": file}, &wire.CommandResult{Output: []byte(r.lines(60 + r.IntN(150)))})
		r.fact("file read", file, "read "+file[strings.LastIndex(file, "/")+1:])
	case 2:
		name := r.name()
		r.call("grep", map[string]any{"pattern": name}, &wire.CommandResult{Output: []byte(r.lines(20 + r.IntN(60)))})
	case 3:
		r.call("edit", map[string]any{"path": file, "old": r.lines(3), "new": r.lines(4)}, &wire.CommandResult{
			Output: []byte("edited " + file + "\n" + r.lines(6)), FilesModified: []wire.OSString{wire.OSString("/home/ann/shop/" + file)},
		})
		r.fact("file changed", file, "edited "+file[strings.LastIndex(file, "/")+1:])
	case 4:
		test, got := "Test"+strings.ToUpper(r.name()[:1])+r.name(), fmt.Sprintf("got %d rows, want %d", r.IntN(9000), r.IntN(9000))
		command := "go test ./" + file[:strings.LastIndex(file, "/")]
		r.bash(command, 1, r.lines(10)+"--- FAIL: "+test+"\n    "+got+"\nFAIL\n[exit code 1]")
		r.fact("failing test", got, test+" FAIL")
		r.fact("exit status", command+" (exit code 1)", command+" FAIL")
	case 5:
		port := 1024 + r.IntN(60000)
		program := r.name()
		r.bash("./bin/"+program+" serve &", 0, fmt.Sprintf("loading settings\nlistening on http://127.0.0.1:%d\n", port))
		r.fact("port", fmt.Sprint(":", port), program+" serve listening")
	case 6:
		branch := r.one("fix/", "feature/", "spike/") + strings.ReplaceAll(r.name(), "_", "-")
		r.bash("git switch -c "+branch, 0, "Switched to a new branch '"+branch+"'\n")
		r.fact("branch", branch, "git switch branch "+branch[strings.Index(branch, "/")+1:])
	case 7:
		r.bash("go build ./... && ls -l bin", 0, r.lines(15))
	case 8:
		var items []map[string]string
		open := "migrate " + r.file()
		items = append(items, map[string]string{"content": "look at " + r.name(), "status": "completed"}, map[string]string{"content": open, "status": "pending"})
		r.call("todo", map[string]any{"items": items}, &wire.CommandResult{Output: []byte("[x] look at it\n[ ] " + open + "\n")})
		r.facts["todo"] = []probe{{"todo", open, open}} // only the newest list is open
	}
}

func record(seed uint64, size int) *recording {
	r := &recording{Rand: rand.New(rand.NewPCG(seed, 9)), facts: map[string][]probe{}}
	for len(r.events) < size {
		r.turn++
		about, value := r.name(), fmt.Sprintf("%d seconds", r.IntN(5000)+20)
		prompt := r.one("the customers report that ", "please look into why ", "today I want that ") + about + r.one(" loses rows", " is slow", " refuses large files") + " after " + value + "."
		r.fact("prompt", about+prompt[strings.Index(prompt, about)+len(about):], about+" after "+value)
		if r.IntN(6) == 0 {
			limit := "Never touch " + r.file() + "."
			prompt += " " + limit
			r.fact("limit", limit, limit)
		}
		r.add(&wire.TurnStarted{Agent: "orchestrator", Model: "m", Prompt: prompt})
		for range 2 + r.IntN(8) {
			r.work()
		}
		if r.IntN(5) == 0 {
			comment := "use " + r.name() + " instead"
			r.calls++
			id := wire.ExecutionID(fmt.Sprint("c", r.calls))
			ask := wire.ConfirmationID(fmt.Sprint("q", r.calls))
			r.add(&wire.AgentStreamChunk{Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkToolCall, ExecutionID: id, Tool: "bash", Arguments: `{"command":"rm -rf build"}`}})
			r.add(&wire.ConfirmationRequest{ConfirmationID: ask, ExecutionID: id})
			r.add(&wire.ConfirmationResolved{ConfirmationID: ask, Comment: comment})
			r.add(&wire.CommandResult{Agent: "orchestrator", ExecutionID: id, Tool: "bash", Command: "rm -rf build", Status: wire.StatusError, Output: []byte("refused: " + comment)})
			r.fact("answer", comment, "refused rm -rf build "+comment)
		}
		answer := "I looked at " + about + " and changed what was wrong.\n"
		if r.IntN(3) == 0 {
			decision := "keep " + r.name() + " in " + r.file()
			answer += "Decision: " + decision + "\n"
			r.fact("decision", decision, "Decision: "+decision)
		}
		r.add(&wire.AgentStreamChunk{Agent: "orchestrator", Chunk: wire.Chunk{Type: wire.ChunkText, Text: answer}})
		r.add(&wire.AgentComplete{Agent: "orchestrator", Status: wire.StatusSuccess})
	}
	return r
}

// probes picks facts of each kind from anywhere in the session.
func (r *recording) probes() (list []probe) {
	for i := 0; len(list) < 15 && i < 1000; i++ {
		kinds := []string{"prompt", "decision", "file changed", "port", "exit status", "branch", "answer", "todo", "failing test", "file read", "limit"}
		if all := r.facts[kinds[i%len(kinds)]]; len(all) > 0 {
			if p := all[r.IntN(len(all))]; !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	}
	return list
}

// ledger is what is left of the conversation beside the summaries, which a model may write badly: folded every time it fills 100,000
// tokens, and at the end.
func ledger(events []wire.EventMessage) (l compaction.Ledger, tokens int) {
	items := toItems(History(events).entries)
	var part []compaction.Item
	for i, it := range items {
		if part = append(part, it); compaction.Tokens(part) > 100_000 || i == len(items)-1 {
			l = compaction.Build(items[0].Text, part)
			part = []compaction.Item{{Kind: compaction.Summary, Ledger: &l}}
		}
	}
	return l, compaction.Tokens(items)
}

// TestProbes prints what 20 sessions leave in the ledger, and what recall finds: `make bench-compaction`.
func TestProbes(t *testing.T) {
	asked, kept, recalled := map[string]int{}, map[string]int{}, map[string]int{}
	var all, left, found, tokens, folded int
	for i := range 20 {
		r := record(uint64(i), 200+i*1800/19)
		l, whole := ledger(r.events)
		text := l.Text()
		tokens, folded = tokens+whole, folded+compaction.EstimateTokens(text)
		for _, p := range r.probes() {
			asked[p.kind]++
			all++
			inLedger := strings.Contains(text, p.fact)
			if inLedger {
				kept[p.kind]++
				left++
			}
			if inLedger || strings.Contains(Recall(r.events, p.query), strings.TrimSuffix(p.fact, " (exit code 1)")) {
				recalled[p.kind]++
				found++
			}
		}
	}
	for kind, n := range asked {
		t.Logf("%-13s %3d probes, %5.1f %% from the ledger, %5.1f %% with recall", kind, n, 100*float64(kept[kind])/float64(n), 100*float64(recalled[kind])/float64(n))
	}
	if 100*left < 95*all || 100*found < 99*all || 10*folded > tokens {
		t.Error("less is kept than was")
	}
	t.Logf("all: %d probes, %.1f %% from the ledger (wanted 95), %.1f %% with recall (wanted 99), at %.1f %% of the tokens (wanted 10)",
		all, 100*float64(left)/float64(all), 100*float64(found)/float64(all), 100*float64(folded)/float64(tokens))
}
