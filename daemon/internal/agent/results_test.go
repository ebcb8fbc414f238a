package agent

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/tool"
	"sublet/wire"
)

// sentResults are the tool results of a request, in their order.
func sentResults(req provider.Request) (list []string) {
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			if p.ToolResult != nil {
				list = append(list, p.ToolResult.Content)
			}
		}
	}
	return list
}

// The model gets 24 KiB of a long result, the event no more, and the whole is in a file, without secrets.
func TestLongResultsAreCutForTheModel(t *testing.T) {
	long := strings.Repeat("line\n", 20_000) + "token=ghp_0123456789abcdefghijklmnopqrstuvwxyz error\n" + strings.Repeat("line\n", 20_000)
	sh := &stubTool{name: "sh", run: func(_ context.Context, _ tool.Action, _ func([]byte)) (tool.Result, error) {
		return tool.Result{Content: long}, nil
	}}
	dir := filepath.Join(t.TempDir(), "spool")
	model, rec := newModel(call1("sh", `{}`), step{text: "done"}), &recorder{}
	rec.play(t.Context(), Turn{Model: model, Prompt: "go", Tools: []tool.Tool{sh}, Env: tool.Env{Cwd: "/w", Spool: dir}})
	got := sentResults(model.requests()[1])[0]
	if len(got) > tool.MaxResult || !strings.Contains(got, "the whole is in "+dir) || !strings.Contains(got, " 20001\ttoken=") || strings.Contains(got, "ghp_0123") {
		t.Errorf("got %d bytes with %.200q", len(got), got[11_000:])
	}
	for _, ev := range rec.events {
		if r, ok := ev.(*wire.CommandResult); ok {
			whole, err := os.ReadFile(string(r.Truncated.SpoolPath))
			if err != nil || len(whole) < 200_000 || strings.Contains(string(whole), "ghp_0123") || string(r.Output) != got || r.Truncated.Bytes < 170_000 {
				t.Errorf("got %d bytes in the file, %v, %d in the event, %+v", len(whole), err, len(r.Output), r.Truncated)
			}
		}
	}
}

// What is sent again with each request says once what a file holds.
func TestSupersededResultsAreSentOnce(t *testing.T) {
	page := strings.Repeat("0123456789\n", 2000)
	read := &stubTool{name: "read", readOnly: true, run: func(_ context.Context, _ tool.Action, _ func([]byte)) (tool.Result, error) {
		return tool.Result{Content: page}, nil
	}}
	model, rec := newModel(call1("read", `{"path":"a"}`), call1("read", `{"path":"a"}`), step{text: "done"}, step{text: "again"}), &recorder{}
	rec.play(t.Context(), Turn{Model: model, Prompt: "go", Tools: []tool.Tool{read}, Env: tool.Env{Cwd: "/w"}})
	got := sentResults(model.requests()[2])
	if len(got) != 2 || !strings.HasPrefix(got[0], "[superseded: ") || got[1] != page {
		t.Errorf("got %.80q", got)
	}
	// The next turn begins with the same bytes, though its history is made of events that hold it all.
	rec.play(t.Context(), Turn{Model: model, Prompt: "more", History: History(rec.events), Tools: []tool.Tool{read}, Env: tool.Env{Cwd: "/w"}})
	if next := sentResults(model.requests()[3]); len(next) != 2 || next[0] != got[0] || next[1] != page {
		t.Errorf("the next turn: got %.80q", next)
	}
}

// The time of a call is what it took, without that in which the user thought about it.
func TestDurationIsWithoutTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		write := &stubTool{name: "write", run: func(context.Context, tool.Action, func([]byte)) (tool.Result, error) {
			time.Sleep(time.Second)
			return tool.Result{Content: "written"}, nil
		}}
		rec := &recorder{}
		rec.play(t.Context(), Turn{
			Model: newModel(call1("write", `{}`), step{text: "done"}), Prompt: "go", Tools: []tool.Tool{write},
			Approver: approverFunc(func(context.Context, Question) (Decision, error) {
				time.Sleep(time.Minute)
				return Decision{Allowed: true}, nil
			}),
		})
		if r := rec.results()[0]; r.DurationMS != 1000 || r.StartedAtMS != time.Now().Add(-time.Second).UnixMilli() {
			t.Errorf("got %d ms from %d on, want the second that it ran", r.DurationMS, r.StartedAtMS)
		}
	})
}
