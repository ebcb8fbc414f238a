package hosted

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"sublet/daemon/internal/agent"
	"sublet/wire"
)

// The user chooses the agent's model by each request and its mode for the conversation, whichever way the agent offers them. What it
// does not have is refused with what it has, and the agent goes on.
func TestModelsAndModes(t *testing.T) {
	for _, mode := range []string{"lists", "options"} {
		t.Run(mode, func(t *testing.T) {
			st := openStore(t)
			w := newWorld(t, Options{Store: st})
			says := func(model, prompt, want string) {
				t.Helper()
				turn := turnOf(mode, prompt, w.dir, w.emit)
				turn.Of.Options.Model = model
				if o := w.Run(t.Context(), turn); o.Err != nil || o.Summary != want || o.Model != "acp/"+mode+"/"+strings.Fields(want)[0] {
					t.Errorf("got %q of %s, %v, want %q", o.Summary, o.Model, o.Err, want)
				}
			}
			set := func(to, want string) {
				t.Helper()
				o, err := w.Offer(t.Context(), "s", mode, to)
				if err != nil || o.Mode != want || strings.Join(o.Modes, " ") != "auto default plan" || strings.Join(o.Models, " ") != "big small" {
					t.Errorf("%s: got %+v, %v, want %s", to, o, err, want)
				}
			}
			if err := w.Begin(t.Context(), turnOf(mode, "", w.dir, w.emit)); err != nil || !w.Runs("s", mode) || w.text() != "" {
				t.Fatalf("%v, %s", err, w.text())
			}
			says("", "x", "big in default")
			w.wants(mode+" begins a new session", "notice player 1.2, mode default")
			says("small", "x", "small in default")
			turn := turnOf(mode, "x", w.dir, w.emit)
			turn.Of.Options.Model = "huge"
			o := w.Run(t.Context(), turn)
			if f, ok := o.Err.(*FaultError); !ok || f.Error()+"; "+f.Hint() != mode+": it has no model huge; it has big, small" {
				t.Errorf("got %v", o.Err)
			}
			says("", "x", "big in default")
			set("plan", "plan")
			says("", "x", "big in plan")
			if _, err := w.Offer(t.Context(), "s", mode, "yolo"); err == nil || err.Error() != mode+": it has no mode yolo" {
				t.Errorf("got %v", err)
			}
			w.Close()
			w = newWorld(t, Options{Store: st}) // another daemon
			says("small", "x", "small in plan")
			says("small", "leave your mode", "small in plan")
			w.wants(mode + " is in its mode auto now")
			set("full", "default") // the policy decides
			says("", "x", "big in default")
		})
	}
	w := newWorld(t, Options{})
	turn := turnOf("forgets", "x", w.dir, w.emit)
	turn.Of.Options.Model = "big"
	if o := w.Run(t.Context(), turn); o.Err == nil || o.Err.Error() != "forgets: it offers no model to choose" {
		t.Errorf("without models: %v", o.Err)
	}
	turn.Of.Options.Model, turn.Of.History = "", agent.Conversation{}
	if o := w.Run(t.Context(), turn); o.Err != nil {
		t.Error(o.Err)
	}
}

// Whoever leaves while an agent sets its mode does not end the agent, which may be in a turn.
func TestModeThatNobodyWaitsFor(t *testing.T) {
	w := newWorld(t, Options{})
	turn := turnOf("lists", "", w.dir, w.emit)
	turn.Of.Role.Hosted.Env["HOSTED_TEST_SLOW"] = "yes"
	if err := w.Begin(t.Context(), turn); err != nil {
		t.Fatal(err)
	}
	h := w.find("s", "lists")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	set := make(chan error)
	go func() {
		_, err := w.Offer(ctx, "s", "lists", "plan")
		set <- err
	}()
	h.agents.work.Go(func() { _ = h.conn.Cancel(h.agents.ctx, sdk.CancelNotification{SessionId: "s"}) }) // the player then goes on
	if err := <-set; err != nil || h.offer().Mode != "plan" {
		t.Errorf("%v, in %s", err, h.offer().Mode)
	}
	if o := w.Run(t.Context(), turn); o.Err != nil || o.Summary != "big in plan" || w.find("s", "lists") != h {
		t.Errorf("got %q, %v", o.Summary, o.Err)
	}
}

// An agent that says nothing of models and modes when it takes up its session has those that it had.
func TestModelsOfAResumedSession(t *testing.T) {
	st := openStore(t)
	w := newWorld(t, Options{Store: st})
	w.play(t.Context(), "resumes", "x")
	w.Close()
	for range 2 {
		w = newWorld(t, Options{Store: st}) // another daemon
		for _, model := range []string{"small", ""} {
			turn := turnOf("resumes", "x", w.dir, w.emit)
			turn.Of.Options.Model = model
			if o := w.Run(t.Context(), turn); o.Err != nil || o.Summary != "resumes s" {
				t.Errorf("%s: got %q, %v", model, o.Summary, o.Err)
			}
		}
		o, err := w.Offer(t.Context(), "s", "resumes", "plan")
		if err != nil || o.Model != "big" || o.Mode != "plan" || strings.Join(o.Models, " ") != "big small" || strings.Join(o.Modes, " ") != "auto default plan" {
			t.Errorf("got %+v, %v", o, err)
		}
		w.Close()
	}
}

// An agent whose session has not begun offers nothing yet.
func TestNotBegun(t *testing.T) {
	w := newWorld(t, Options{Store: openStore(t)})
	turn := turnOf("unsigned", "x", w.dir, w.emit)
	turn.Of.Role.Hosted.Env["HOSTED_TEST_SIGNED"] = filepath.Join(w.dir, "signed")
	turn.Ask = func(context.Context, string) (*wire.CommandResult, error) {
		if w.find("s", "unsigned") == nil || w.Runs("s", "unsigned") {
			t.Error("it has begun before the sign-in")
		}
		return &wire.CommandResult{Status: wire.StatusSuccess, Output: []byte("Sign in on the web")}, nil
	}
	if o := w.Run(t.Context(), turn); o.Err != nil || !w.Runs("s", "unsigned") {
		t.Errorf("got %v", o.Err)
	}
}
