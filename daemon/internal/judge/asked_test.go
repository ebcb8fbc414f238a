package judge

import (
	"strings"
	"testing"

	"sublet/daemon/internal/risk"
)

// What is asked about must not be lost among what is harmless: `ls && cat x && go test` is asked about because of go test.
func TestAskedNamesOnlyWhatIsNotHarmless(t *testing.T) {
	for command, want := range map[string]string{
		"ls -la && cat go.mod && go test ./... | tail": "go test ./...",
		"cat a; rm -r build; git status":               "rm -r build|build",
		"ls && cat go.mod":                             "ls|cat go.mod|go.mod", // a rule may ask about what is harmless
	} {
		v := risk.Analyze(command, risk.Context{Cwd: "/w/p", ProjectRoot: "/w/p", Home: "/h"})
		all := len(v.Reasons)
		var parts []string
		for _, r := range Asked(v).Reasons {
			if s := r.Span; s != nil {
				parts = append(parts, command[s.Start:s.End])
			}
		}
		if got := strings.Join(parts, "|"); got != want {
			t.Errorf("%s: asked about %s, want %s", command, got, want)
		}
		if len(v.Reasons) != all {
			t.Errorf("%s: the verdict itself lost reasons", command)
		}
	}
}
