package hub

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/tool"
	"sublet/wire"
)

// A call that another program makes is asked about as one that cannot be changed; a changed command is refused, and so recorded.
func TestFixedQuestion(t *testing.T) {
	h := newHub(t)
	w := &window{t: t}
	c := &Client{hub: h, peer: w, confirm: true, cwd: "/"}
	s := watched(t, h, c)
	u := &turn{hub: h, s: s, origin: c, id: "t1", confirm: true, asked: asked{mode: "ask"}}
	done := make(chan agent.Decision, 1)
	go func() {
		d, err := (&approver{u}).Approve(t.Context(), agent.Question{
			Agent: "claude", Tool: "bash", ExecutionID: "x", Fixed: true, Action: tool.Action{Command: "rm -rf build", Cwd: "/"},
		})
		if err != nil {
			t.Error(err)
		}
		done <- d
	}()
	q := awaitSent[*wire.ConfirmationRequest](w)
	if !q.Fixed {
		t.Errorf("asked %+v", q)
	}
	edited := "rm -rf build/tmp"
	if err := s.questions.Answer(q.ConfirmationID, func(*wire.ConfirmationRequest) (string, agent.Decision, error) {
		return wire.DecisionAllow, agent.Decision{Allowed: true, EditedCommand: &edited, By: "client test 1"}, nil
	}); err != nil {
		t.Error(err)
	}
	if d := <-done; d.Allowed || d.EditedCommand != nil || !strings.Contains(d.Reason, edited) {
		t.Errorf("got %+v", d)
	}
	audit, err := os.ReadFile(filepath.Join(h.opts.Runtime, "audit"))
	for _, want := range []string{`"command":"rm -rf build"`, `"decision":"deny"`, `"by":"client test 1"`, "the user wants instead: " + edited} {
		if !strings.Contains(string(audit), want) {
			t.Errorf("%v, recorded %s, want %s in it", err, audit, want)
		}
	}
}
