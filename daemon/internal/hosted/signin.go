package hosted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"sublet/daemon/internal/mask"
	"sublet/wire"
	"sublet/wire/secretname"
)

// terminalAuth is the extension for a sign-in in a terminal of agents that do not use the protocol's own kind for it. Some offer it only to
// a client that announces it.
const terminalAuth = "terminal-auth"

func needsSignIn(err error) bool {
	refused, ok := errors.AsType[*sdk.RequestError](err)
	return ok && refused.Code == authRequired
}

// signInWay is one way to sign in: by a request to the agent, or by a command in the user's shell.
type signInWay struct {
	name    string
	method  string // for the request
	command string // "" = the request
}

// inTerminal returns the command of a way to sign in that needs a terminal, with its variables; no words for another way.
func (h *host) inTerminal(m sdk.AuthMethod) (name string, words []string, env map[string]any) {
	if t := m.Terminal; t != nil {
		return t.Name, slices.Concat([]string{h.path}, h.conf.Command[1:], t.Args), t.Env
	}
	if m.Agent == nil {
		return "", nil, nil
	}
	var t struct {
		Command string
		Args    []string
		Env     map[string]any
	}
	text, _ := json.Marshal(m.Agent.Meta[terminalAuth]) // it was decoded from JSON
	if err := json.Unmarshal(text, &t); err != nil || t.Command == "" {
		return "", nil, nil
	}
	if t.Command == filepath.Base(h.path) { // it need not be on the PATH of the user's shell
		t.Command = h.path
	}
	return m.Agent.Name, append([]string{t.Command}, t.Args...), t.Env
}

// signInEnv returns the variables for a sign-in in a terminal: its own, and those of the agent's settings that are no secrets, such as the
// folder of its account.
func (h *host) signInEnv(own map[string]any) map[string]any {
	env := map[string]any{}
	settings, _ := mask.Expand(h.conf.Env, true) // cannot fail: launch has expanded it
	for name, value := range settings {
		if !secretname.IsSecret(name) && mask.String(value) == value {
			env[name] = value
		}
	}
	maps.Copy(env, own)
	return env
}

var address = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`https://[[:graph:]]+`) })

// signIn asks the user which of the agent's ways to sign in to take, and takes it. The ways that cannot be taken here are described
// in the question, or in the hint of the error.
func (h *host) signIn(ctx context.Context, r *run) error {
	var ways []signInWay
	var lines []string
	attended := r.t.Ask != nil
	for _, m := range h.about.AuthMethods {
		name, words, env := h.inTerminal(m)
		switch {
		case words != nil && attended && !r.t.Of.Role.Private && r.t.Shell != nil:
			ways = append(ways, signInWay{name: shown(name, 60), command: line(words, h.signInEnv(env))})
		case words != nil:
			lines = append(lines, fmt.Sprintf("%s: run `%s` in a terminal", shown(name, 60), shown(strings.Join(words, " "), 200)))
		case m.Agent != nil && attended:
			ways = append(ways, signInWay{name: shown(m.Agent.Name, 60), method: m.Agent.Id})
		case m.Agent != nil:
			lines = append(lines, shown(m.Agent.Name, 60))
		case m.EnvVar != nil:
			for _, v := range m.EnvVar.Vars {
				lines = append(lines, fmt.Sprintf("%s: env = { %s = \"${%s}\" } below [agents.%s]", shown(m.EnvVar.Name, 60), shown(v.Name, 60), shown(v.Name, 60), r.name))
			}
		}
	}
	refused := &FaultError{r.name, "you are not signed in there", strings.Join(lines, "; ")}
	if len(ways) == 0 {
		return refused
	}
	chosen, err := r.chooseSignIn(ctx, strings.Join(append([]string{"You are not signed in to " + r.name + ". How do you sign in?"}, lines...), "\n"), ways)
	if err != nil {
		return refused
	}
	if chosen.command == "" {
		r.notice(r.name + " signs you in; some open a page in your browser for that")
		defer h.proc.EachErrorLine(func(line string) { // where no browser opens, agents write the page's address there
			if page := address().FindString(line); page != "" {
				r.notice("the page: " + page)
			}
		})()
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

// line returns a command line for a shell. A variable whose value is not a string, or whose name a shell does not accept, is left out.
func line(words []string, env map[string]any) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if text, ok := env[name].(string); ok && variable().MatchString(name) {
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
	res, err := r.runTool(ctx, "bash", args, r.t.Shell("", nil), 0, nil)
	if err == nil && (res.Status != wire.StatusSuccess || res.ExitCode == nil || *res.ExitCode != 0) {
		err = errors.New("its command has the status " + res.Status)
	}
	return err
}

// chooseSignIn asks the user for one of several ways to sign in.
func (r *run) chooseSignIn(ctx context.Context, question string, ways []signInWay) (chosen signInWay, err error) {
	q := wire.UserQuestion{Question: question}
	for _, w := range ways[:min(len(ways), 9)] { // a wire.UserQuestion may have 9 choices
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
