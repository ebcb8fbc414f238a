package judge

import (
	"strings"
	"testing"

	"sublet/daemon/internal/policy"
	"sublet/daemon/internal/risk"
	"sublet/wire"
)

// What is asked about must not be lost among what is harmless: `ls && cat x && go test` is asked about because of go test.
func TestAskedNamesOnlyWhatIsNotHarmless(t *testing.T) {
	for command, want := range map[string]string{
		"ls -la && cat go.mod && go test ./... | tail": "go test ./...",
		"cat a; rm -r build; git status":               "rm -r build|build",
		"docker ps && go test ./...":                   "docker ps|go test ./...", // docker ps is why nothing can hold it
		"ls && cat go.mod":                             "ls|cat go.mod|go.mod",    // a rule may ask about what is harmless
	} {
		v := risk.Analyze(command, risk.Context{Cwd: "/w/p", ProjectRoot: "/w/p", Home: "/h"})
		all := len(v.Reasons)
		if got := parts(command, Asked(v, policy.Decision{})); got != want {
			t.Errorf("%s: asked about %s, want %s", command, got, want)
		}
		if len(v.Reasons) != all {
			t.Errorf("%s: the verdict itself lost reasons", command)
		}
	}
}

// Mode auto would run go test: it is asked about because of ls, which a rule names.
func TestAskedNamesWhatARuleNames(t *testing.T) {
	const command = "ls && go test"
	v := risk.Analyze(command, risk.Context{Cwd: "/w/p", ProjectRoot: "/w/p", Home: "/h"})
	if got := parts(command, Asked(v, policy.Decision{Rule: &wire.Rule{}})); got != "ls|go test" {
		t.Errorf("asked about %s, want ls|go test", got)
	}
}

// parts returns the parts of command that the reasons of v are about.
func parts(command string, v risk.Verdict) string {
	var parts []string
	for _, r := range v.Reasons {
		if s := r.Span; s != nil {
			parts = append(parts, command[s.Start:s.End])
		}
	}
	return strings.Join(parts, "|")
}
