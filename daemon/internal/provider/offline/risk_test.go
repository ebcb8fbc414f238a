package offline

import (
	"strings"
	"testing"

	"sublet/daemon/internal/risk"
)

// Who only looks must not ask: the first command of an intent that changes nothing is low, wherever one stands. It
// would be asked about in mode ask otherwise, and refused in mode plan.
func TestLookingIsLow(t *testing.T) {
	asked := map[string]bool{"ping": true, "delegate": true} // the network; other agents
	for line := range strings.Lines(phrasings) {
		said, name, ok := strings.Cut(strings.TrimRight(line, "\n"), " => ")
		list := match(&job{said: said})
		if !ok || len(list) != 1 || !strings.HasPrefix(list[0].intent.no, "I did not") || asked[name] {
			continue
		}
		for _, c := range list[0].intent.next(&job{said: list[0].said, args: list[0].args}) {
			command, _ := c.args["command"].(string)
			if command == "" {
				continue // a file tool
			}
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
		"push": risk.High, "run `rm -rf ~`": risk.Critical, "kill process 4321": risk.Medium, "install the dependencies": risk.Medium,
	} {
		list := match(&job{said: said})
		if len(list) != 1 {
			t.Fatalf("%q: got %d intents", said, len(list))
		}
		j := &job{said: said, args: list[0].args}
		highest := risk.Low
		for _, r := range []result{{}, {tool: "bash", command: "command ls -a", text: "go.mod"}, {tool: "bash", command: "ps", text: "  4321 u 01:00 sleep 5"}} {
			if r.tool != "" && strings.HasPrefix(said, "kill") == (r.command == "ps") {
				j.results = []result{r}
			}
			for _, c := range list[0].intent.next(j) {
				command, _ := c.args["command"].(string)
				highest = max(highest, risk.Analyze(command, risk.Context{Cwd: "/home/u/p", Home: "/home/u", ProjectRoot: "/home/u/p"}).Level)
			}
		}
		if highest < at {
			t.Errorf("%q: got %s, want %s or more", said, highest, at)
		}
	}
}
