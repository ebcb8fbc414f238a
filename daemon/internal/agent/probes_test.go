package agent

import (
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sublet/compaction"
	"sublet/daemon/internal/archive"
	"sublet/wire"
)

// A probe is what a user may ask after a compaction: a fact of the session, and the words they would look for it with. The parts of
// a fact, between " … ", have to stand together.
type probe struct{ kind, fact, query string }

// in reports whether one of texts has all parts of the fact. Any white space is as good as another.
func (p probe) in(texts []string) bool {
	return slices.ContainsFunc(texts, func(text string) bool {
		text = strings.Join(strings.Fields(text), " ")
		for part := range strings.SplitSeq(p.fact, " … ") {
			if !strings.Contains(text, part) {
				return false
			}
		}
		return true
	})
}

// readSession reads a recording of testdata/sessions, a session as `sublet session save` wrote it, and the probes beside it: a line
// for each, KIND | FACT | WORDS.
func readSession(t *testing.T, path string) (events []wire.EventMessage, probes []probe) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(path, err)
	}
	s, err := archive.Read(z)
	if err != nil {
		t.Fatal(path, err)
	}
	text, err := os.ReadFile(strings.TrimSuffix(path, ".gz") + ".probes")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.Split(strings.TrimSpace(line), " | ")
		if len(parts) != 3 {
			t.Fatalf("%s: %q is no probe", path, line)
		}
		probes = append(probes, probe{parts[0], parts[1], parts[2]})
	}
	return s.Events, probes
}

// ledger is what is left of the conversation beside the summaries, which a model may write badly: folded every time it fills 100,000
// tokens, and at the end.
func ledger(t *testing.T, events []wire.EventMessage) (l compaction.Ledger, tokens int) {
	t.Helper()
	items := toItems(History(events).entries)
	var part []compaction.Item
	for i, it := range items {
		if part = append(part, it); compaction.Tokens(part) > 100_000 || i == len(items)-1 {
			f, ok, err := compaction.Fold(t.Context(), part, compaction.Plan{Items: part, To: len(part)}, nil, "", 0)
			if !ok || err != nil {
				t.Fatal("nothing was folded:", err)
			}
			l = f.Ledger
			part = []compaction.Item{{Kind: compaction.Summary, Ledger: &l}}
		}
	}
	return l, compaction.Tokens(items)
}

// TestProbes prints what 20 recorded sessions leave in the ledger, and what recall finds: `make bench-compaction`.
func TestProbes(t *testing.T) {
	paths, err := filepath.Glob("testdata/sessions/*.gz")
	if err != nil || len(paths) != 20 {
		t.Fatalf("got %d recordings, %v; want 20", len(paths), err)
	}
	asked, kept, recalled := map[string]int{}, map[string]int{}, map[string]int{}
	var tokens, folded int
	for _, path := range paths {
		events, probes := readSession(t, path)
		if len(probes) != 15 {
			t.Errorf("%s: got %d probes, want 15", path, len(probes))
		}
		l, whole := ledger(t, events)
		text := l.Text()
		tokens, folded = tokens+whole, folded+compaction.EstimateTokens(text)
		for _, p := range probes {
			inLedger := p.in(strings.Split(text, "\n- "))
			found := inLedger || p.in(strings.Split(Recall(events, p.query), "── "))
			for _, kind := range []string{p.kind, "all"} {
				asked[kind]++
				if inLedger {
					kept[kind]++
				}
				if found {
					recalled[kind]++
				}
			}
			if !inLedger {
				t.Logf("%s: not in the ledger, by recall %v: %s", filepath.Base(path), found, p.fact)
			}
		}
	}
	for kind, n := range asked {
		t.Logf("%-12s %3d probes, %5.1f %% from the ledger, %5.1f %% with recall", kind, n, share(kept[kind], n), share(recalled[kind], n))
	}
	t.Logf("wanted: 95 %% from the ledger, 99 %% with recall, at 10 %% of the tokens: the ledger has %.1f %%", share(folded, tokens))
	attribute(t, "forgotten", 100-share(kept["all"], asked["all"]))
	attribute(t, "unrecalled", 100-share(recalled["all"], asked["all"]))
	attribute(t, "ledger", share(folded, tokens))
	if share(kept["all"], asked["all"]) < 95 || share(recalled["all"], asked["all"]) < 99 || share(folded, tokens) > 10 {
		t.Error("less is kept than is wanted")
	}
}

func share(n, of int) float64 { return 100 * float64(n) / float64(of) }

// attribute gives a figure of a test to `make bench`.
func attribute(t *testing.T, name string, value float64) {
	t.Attr(name, fmt.Sprintf("%.2f", value))
}

// Nearly all that is sent after the first turn, directories that change included, begins as the request before it, so that a provider has
// it in its cache. System prompt and tools, which always are the same, are not counted.
func TestRequestsBeginAsTheOneBefore(t *testing.T) {
	paths, err := filepath.Glob("testdata/sessions/*.gz")
	if err != nil {
		t.Fatal(err)
	}
	var sent, same int
	for _, path := range paths {
		events, _ := readSession(t, path)
		items := toItems(History(events).entries)
		turns, before := 0, []compaction.Item(nil)
		for i, it := range items {
			if it.Kind == compaction.Request {
				turns++
			}
			if it.Kind != compaction.Answer {
				continue
			}
			request, n := compaction.Supersede(items[:i]), 0
			for n < len(before) && reflect.DeepEqual(before[n], request[n]) {
				n++
			}
			if turns > 1 {
				sent, same = sent+compaction.Tokens(request), same+compaction.Tokens(request[:n])
			}
			before = request
		}
	}
	attribute(t, "uncached", 100-share(same, sent))
	t.Logf("of %d tokens %.2f %% begin a request as the one before", sent, share(same, sent))
	if share(same, sent) < 90 {
		t.Error("less of a request than is wanted begins as the one before")
	}
}
