package offline

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sublet/daemon/internal/provider"
)

// Whatever is said and whatever the tools answer: there is an answer or a call, calls are JSON objects with ids that are
// theirs alone, nothing panics, and it ends.
func TestAlwaysAnswers(t *testing.T) {
	var prompts []string
	for line := range strings.Lines(phrasings) {
		if said, _, ok := strings.Cut(line, " =>"); ok {
			prompts = append(prompts, said)
		}
	}
	outputs := []string{
		"", "[no output]", "[exit code 1]", "x\n[exit code 128]", "a|b|c|d\n", "## main...origin/main [ahead 1]\n M a.txt\n?? b\nUU c", "total 4\n-rw-r--r-- 1 u g 12 Nov 20 13:31 a.txt",
		"drwxr-xr-x 2 u g 4096 Nov 20 13:31 d", "     1\tone\n     2\ttwo\n[lines 1-2 of 9, 50 bytes; more follows: read on with offset 3]", "no match in /x", "a.go:1:x", "1234 sleep 5\n1235 sleep 6", "go.mod\nMakefile",
		"LISTEN 0 4096 127.0.0.1:8080 0.0.0.0:* users:((\"x\",pid=77,fd=3))", "/usr/bin/git\n/usr/bin/go", "2026-11-20 13:45 UTC", "Mem: 1 2 3 4 5 6 7", "\x00\xff\x1b[31m", "|||", "17", "diff --git a/x b/x\n+++ b/x\n@@ -1 +1 @@\n+<<<<<<< x", "builtin", "file",
		`no shell to borrow; set "private": true to run it in a shell of your own instead`, "Denied: denied by the user. It did not run. Do not try the same in another way; go on.", "stopped: the turn was cancelled", "half\n[ended: it ran longer than 2m0s]",
	}
	m := Open(provider.Config{})
	rapid.Check(t, func(t *rapid.T) {
		prompt := rapid.SampledFrom(prompts).Draw(t, "prompt")
		if rapid.Bool().Draw(t, "chain") {
			prompt += " then " + rapid.SampledFrom(prompts).Draw(t, "second")
		}
		if rapid.IntRange(0, 4).Draw(t, "noise") == 0 {
			prompt += rapid.String().Draw(t, "tail")
		}
		req := provider.Request{Messages: []provider.Message{{Role: provider.User, Parts: []provider.Part{{Text: prompt}}}}}
		for _, name := range []string{"bash", "read", "write", "edit", "grep", "glob", "task"} {
			req.Tools = append(req.Tools, provider.ToolSpec{Name: name})
		}
		if rapid.Bool().Draw(t, "seen") {
			n := rapid.IntRange(0, 255).Draw(t, "exit")
			req.Facts.RecentCommands = []provider.RecentCommand{{Command: "x", ExitCode: &n, OutputTail: rapid.SampledFrom(outputs).Draw(t, "tail of output")}}
		}
		ids := map[string]bool{}
		for range 28 {
			said := ""
			resp, err := m.Stream(t.Context(), req, func(d provider.Delta) {
				if d.Type == provider.DeltaText {
					said += d.Text
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			next := provider.Message{Role: provider.User}
			text := ""
			for _, p := range resp.Message.Parts {
				text += p.Text
				if p.ToolCall == nil {
					continue
				}
				var object map[string]any
				if err := json.Unmarshal(p.ToolCall.Arguments, &object); err != nil || object == nil || ids[p.ToolCall.ID] {
					t.Fatalf("call %+v: %v", p.ToolCall, err)
				}
				ids[p.ToolCall.ID] = true
				next.Parts = append(next.Parts, provider.Part{ToolResult: &provider.ToolResult{
					CallID: p.ToolCall.ID, Content: rapid.SampledFrom(outputs).Draw(t, "output"), IsError: rapid.IntRange(0, 3).Draw(t, "failed") == 0,
				}})
			}
			if said != text {
				t.Fatalf("streamed %q, want %q", said, text)
			}
			if len(next.Parts) == 0 {
				if strings.TrimSpace(text) == "" || resp.StopReason != provider.EndTurn {
					t.Fatalf("%q: empty answer, %s", prompt, resp.StopReason)
				}
				return
			}
			req.Messages = append(req.Messages, resp.Message, next)
		}
		t.Fatalf("%q: no end", prompt)
	})
}
