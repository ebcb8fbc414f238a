package lend

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/daemon/internal/job"
)

// Nobody can type in a private shell: a command that waits for keys there was run until its time was over.
func TestKeysThatNobodyTypes(t *testing.T) {
	const rest = ", and nobody can type in a private shell: give it the input another way, or have the user run it"
	p, draft := privateShell(t)
	for text, want := range map[string]string{
		"read -sp pass: x; echo got $x": "bash asked for a password",
		"read -p name: x; echo got $x":  "it waited for keys",
		"cat":                           "it waited for keys",
		"cat </dev/null; sleep 1":       "",
	} {
		for _, become := range []func() (*job.Draft, error){nil, draft} {
			r, err := p.try(t.Context(), text, time.Hour, become)
			if want == "" && (err != nil || r.Status != "ok" || len(r.Notes) > 0) ||
				want != "" && (err != nil || r.Status != "cancelled" || !slices.Contains(r.Notes, want+rest) || strings.Contains(string(r.Output), "got")) {
				t.Errorf("%s: got %s, %q, %q, %v, want %q", text, r.Status, r.Output, r.Notes, err, want)
			}
		}
	}
}
