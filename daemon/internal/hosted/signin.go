package hosted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"sublet/wire"
)

func needsSignIn(err error) bool {
	refused, ok := errors.AsType[*sdk.RequestError](err)
	return ok && refused.Code == authRequired
}

// way is one to sign in: by a request to the agent, or by a command in the user's shell.
type way struct {
	name    string
	method  string // for the request
	command string // "" = the request
}

// signIn asks the user which of the agent's ways to sign in to take, and takes it. A way that cannot be taken here is described.
func (h *host) signIn(ctx context.Context, r *run) error {
	var ways []way
	var lines []string
	attended := r.t.Ask != nil
	for _, m := range h.about.AuthMethods {
		switch {
		case m.Agent != nil && attended:
			ways = append(ways, way{name: shown(m.Agent.Name, 60), method: m.Agent.Id})
		case m.Agent != nil:
			lines = append(lines, shown(m.Agent.Name, 60))
		case m.EnvVar != nil:
			for _, v := range m.EnvVar.Vars {
				lines = append(lines, fmt.Sprintf("%s: env = { %s = \"${%s}\" } below [agents.%s]", shown(m.EnvVar.Name, 60), shown(v.Name, 60), shown(v.Name, 60), r.name))
			}
		case m.Terminal != nil:
			words := append(append([]string{h.path}, h.conf.Command[1:]...), m.Terminal.Args...)
			if attended && !r.t.Of.Role.Private && r.t.Shell != nil {
				ways = append(ways, way{name: shown(m.Terminal.Name, 60), command: line(words, m.Terminal.Env)})
				continue
			}
			lines = append(lines, fmt.Sprintf("%s: run `%s` in a terminal", shown(m.Terminal.Name, 60), shown(strings.Join(words, " "), 200)))
		}
	}
	refused := &FaultError{r.name, "you are not signed in there", strings.Join(lines, "; ")}
	if len(ways) == 0 {
		return refused
	}
	chosen, err := r.choose(ctx, strings.Join(append([]string{"You are not signed in to " + r.name + ". How do you sign in?"}, lines...), "\n"), ways)
	if err != nil {
		return refused
	}
	if chosen.command == "" {
		_, err = h.conn.Authenticate(ctx, sdk.AuthenticateRequest{MethodId: chosen.method})
	} else {
		err = r.signInBy(ctx, chosen.command)
	}
	if err != nil {
		refused.Why = "the sign-in failed: " + shown(message(err), 300)
		return refused
	}
	return nil
}

// line returns a command line for a shell. A variable that is no string, or whose name cannot be one, is left out.
func line(words []string, env map[string]any) string {
	var parts []string
	for name, value := range env {
		if text, ok := value.(string); ok && variable().MatchString(name) {
			parts = append(parts, name+"="+quote(text))
		}
	}
	for _, w := range words {
		parts = append(parts, quote(w))
	}
	return strings.Join(parts, " ")
}

// signInBy runs the command of a sign-in in the user's shell, with their keyboard. The user sees it first: nothing confines it.
func (r *run) signInBy(ctx context.Context, command string) error {
	args, err := json.Marshal(map[string]any{
		"command": command, "timeout_ms": signInBound.Milliseconds(), "reach": "free", "why": "you chose it to sign in", "description": "sign in to " + r.name,
	})
	if err != nil {
		return err
	}
	res, err := r.own(ctx, "bash", args, r.t.Shell("", nil), nil)
	if err == nil && (res.Status != wire.StatusSuccess || res.ExitCode == nil || *res.ExitCode != 0) {
		err = errors.New("its command has the status " + res.Status)
	}
	return err
}

// choose asks the user for one of several ways to sign in.
func (r *run) choose(ctx context.Context, question string, ways []way) (chosen way, err error) {
	q := wire.UserQuestion{Question: question}
	for _, w := range ways[:min(len(ways), 9)] {
		q.Choices = append(q.Choices, w.name)
	}
	text, err := json.Marshal(q)
	if err != nil {
		return chosen, err
	}
	res, err := r.t.Ask(ctx, string(text))
	if err != nil {
		return chosen, err
	}
	if i := slices.Index(q.Choices, string(res.Output)); i >= 0 && res.Status == wire.StatusSuccess {
		return ways[i], nil
	}
	return chosen, errors.New("no way to sign in was chosen")
}
