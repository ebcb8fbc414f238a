package agent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"sublet/daemon/internal/tool"
)

// An agent that makes the same call with the same result five times in a row, or goes through the same calls three times, is
// ended where nobody lets it go on: it made a hundred paid requests. A result that changes is no circle.
func TestCircles(t *testing.T) {
	a, b, c := call1("sh", `{"command":"a"}`), call1("sh", `{"command":"b"}`), call1("sh", `{"command":"c"}`)
	for _, tt := range []struct {
		name  string
		steps []step
		want  int // calls that run before the question, 0: it is never asked
	}{
		{"one call", slices.Repeat([]step{a}, 9), 5},
		{"one call, with another in between", []step{a, a, a, a, b, a, a, a, a, c, {text: "ok"}}, 0},
		{"two calls", slices.Repeat([]step{a, b}, 9), 8},
		{"three calls, after others", append([]step{b, b}, slices.Repeat([]step{a, b, c}, 9)...), 11},
		{"three calls, twice", append(slices.Repeat([]step{a, b, c}, 2), step{text: "ok"}), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sh := &stubTool{name: "sh"}
			var asked []string
			approve := func(_ context.Context, q Question) (Decision, error) {
				if q.Continue != "" {
					asked = append(asked, q.Tool+": "+q.Continue)
				}
				return Decision{Allowed: q.Continue == ""}, nil
			}
			rec := &recorder{}
			o := rec.play(t.Context(), Turn{Model: newModel(tt.steps...), Prompt: "go", Tools: []tool.Tool{sh}, Approver: approverFunc(approve)})
			if tt.want == 0 {
				if len(asked) > 0 || o.Err != nil {
					t.Errorf("asked %q, then %v", asked, o.Err)
				}
				return
			}
			if _, ok := errors.AsType[*workError](o.Err); !ok || len(asked) != 1 || len(sh.ran()) != tt.want || o.Failure().Hint == "" {
				t.Errorf("asked %q after %d calls, then %v; want %d", asked, len(sh.ran()), o.Err, tt.want)
			}
		})
	}
}

// A result that is too long names the file with the whole of it, another one each time, and so did not count as the same.
func TestCircleOfLongResults(t *testing.T) {
	long := strings.Repeat("a line of text\n", tool.MaxResult/10)
	sh := &stubTool{name: "sh", run: func(context.Context, tool.Action, func([]byte)) (tool.Result, error) {
		return tool.Result{Content: long}, nil
	}}
	approve := func(_ context.Context, q Question) (Decision, error) { return Decision{Allowed: q.Continue == ""}, nil }
	steps := append(slices.Repeat([]step{call1("sh", `{"command":"a"}`)}, 9), step{text: "ok"})
	o := (&recorder{}).play(t.Context(), Turn{
		Model: newModel(steps...), Prompt: "go", Tools: []tool.Tool{sh}, Env: tool.Env{Spool: t.TempDir()}, Approver: approverFunc(approve),
	})
	if n := len(sh.ran()); o.Err == nil || n != 5 {
		t.Errorf("got %d calls, then %v", n, o.Err)
	}
}

// The third equal call's result has a line for the model, which is not stored. After more of them the user is asked: an answer to go
// on reaches the model with the user's words, and the next question comes only after as many calls again.
func TestCircleGoesOn(t *testing.T) {
	a := call1("sh", `{"command":"a"}`)
	model := newModel(append(slices.Repeat([]step{a}, 9), step{text: "ok"})...)
	asked := 0
	rec := &recorder{}
	o := rec.play(t.Context(), Turn{Model: model, Prompt: "go", Tools: []tool.Tool{&stubTool{name: "sh"}}, Approver: approverFunc(func(_ context.Context, q Question) (Decision, error) {
		if q.Continue != "" {
			asked++
			return Decision{Comment: "look elsewhere"}, nil
		}
		return Decision{Allowed: true}, nil
	})})
	if o.Err != nil || asked != 1 {
		t.Errorf("asked %d times, then %v", asked, o.Err)
	}
	for i, want := range []string{1: "ran a", 2: "ran a", 3: "3 times now", 5: "[the user says: look elsewhere]"} {
		if got := sentResults(model.requests()[i]); want != "" && !strings.HasSuffix(strings.TrimSuffix(got[i-1], "; try something else, or say what is in the way]"), want) {
			t.Errorf("request %d: got %q, want %q at its end", i, got[i-1], want)
		}
	}
	if got := string(rec.results()[2].Output); got != "ran a" {
		t.Errorf("got %q stored", got)
	}
}
