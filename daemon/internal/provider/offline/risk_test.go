package offline

import (
	"encoding/json"
	"strings"
	"testing"

	"sublet/daemon/internal/risk"
)

// Who only looks must not ask: the first command of an intent that changes nothing is low, wherever one stands. It
// would be asked about in mode ask otherwise, and refused in mode plan.
func TestLookingIsLow(t *testing.T) {
	for line := range strings.Lines(phrasings) {
		said, name, ok := strings.Cut(strings.TrimRight(line, "\n"), " => ")
		list := match(&job{said: said})
		if !ok || len(list) != 1 || !strings.HasPrefix(list[0].intent.no, "I did not") {
			continue
		}
		if c := list[0].intent.next(&job{said: list[0].said, args: list[0].args}); c != nil && c.tool == "bash" {
			command := commandOf(t, *c)
			v := risk.Analyze(command, risk.Context{Cwd: "/home/u/p", Home: "/home/u", ProjectRoot: "/home/u/p"})
			outside := strings.HasPrefix(list[0].args["file"], "/")
			if v.Level != risk.Low && !outside {
				t.Errorf("%s: %s: got %s, want low: %+v", name, command, v.Level, v.Reasons)
			}
		}
	}
}

// What destroys or leaves the machine is asked about.
func TestChangingIsNotLow(t *testing.T) {
	for said, at := range map[string]risk.Level{
		"push": risk.High, "run `rm -rf ~`": risk.Critical, "create a branch x": risk.Medium,
	} {
		list := match(&job{said: said})
		if len(list) != 1 {
			t.Fatalf("%q: got %d intents", said, len(list))
		}
		j := &job{said: said, args: list[0].args}
		highest := risk.Low
		if c := list[0].intent.next(j); c != nil {
			highest = risk.Analyze(commandOf(t, *c), risk.Context{Cwd: "/home/u/p", Home: "/home/u", ProjectRoot: "/home/u/p"}).Level
		}
		if highest < at {
			t.Errorf("%q: got %s, want %s or more", said, highest, at)
		}
	}
}

func commandOf(t *testing.T, c call) string {
	t.Helper()
	var args struct{ Command string }
	if err := json.Unmarshal(c.args, &args); err != nil {
		t.Fatal(err)
	}
	return args.Command
}
