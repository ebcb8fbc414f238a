package hosted

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sublet/daemon/config"
	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/child"
	"sublet/daemon/internal/tool"
	"sublet/wire"
)

// About describes one agent.
type About struct {
	Name       string   `json:"name"`
	Command    []string `json:"command"`
	Configured bool     `json:"configured"` // false: it was found on PATH
	Version    string   `json:"version"`    // with its title; "" = it was not started
	Protocol   int      `json:"protocol"`   // 0 = it was not started
	Resumes    bool     `json:"resumes"`
	Images     bool     `json:"images"`
	Offer
	ShellOff bool   `json:"shell_off"` // whether it is known how its own shell is switched off
	Tried    string `json:"tried"`     // the version that was tried; "" = none
	Answer   string `json:"-"`         // to the prompt of Check
	Err      error  `json:"-"`
}

// Check starts an agent as a turn would, opens a session in dir, and ends it. Unless prompt is empty, it has the agent answer that
// within Options.Start, and refuses all that the agent asks for meanwhile.
func Check(ctx context.Context, o Options, name string, conf config.Agent, env []string, home, dir, prompt string) About {
	k := knownOf(conf.Command)
	about := About{Name: name, Command: conf.Command, Configured: true, ShellOff: k.name != "", Tried: k.tried}
	a := New(o)
	defer a.Close()
	r := newRun(ctx, Turn{
		Of: agent.Turn{
			Role: agent.Role{Name: name, Hosted: &conf}, Prompt: prompt, Env: tool.Env{Cwd: dir, Files: &tool.FileLog{}}, Log: a.log, Emit: func(wire.EventMessage) {}, Approver: refuseAll{},
		},
		Env: env, Home: home,
	})
	defer r.close()
	h, err := a.start(r, key{agent: name}) // without a turn every request of the agent is refused
	if err != nil {
		about.Err = err
		return about
	}
	if i := h.about.AgentInfo; i != nil {
		about.Version = shown(cmp.Or(deref(i.Title), i.Name)+" "+i.Version, 100)
	}
	about.Protocol, about.Offer = int(h.about.ProtocolVersion), h.offer()
	can := h.about.AgentCapabilities
	about.Resumes, about.Images = can.LoadSession || can.SessionCapabilities.Resume != nil, can.PromptCapabilities.Image
	if prompt != "" {
		about.Answer, about.Err = h.tryPrompt(r)
	}
	return about
}

// tryPrompt has a new agent answer the turn's prompt, within Options.Start.
func (h *host) tryPrompt(r *run) (answer string, err error) {
	if err := h.take(r); err != nil {
		return "", err
	}
	bound := h.agents.o.Start
	late := time.AfterFunc(bound, func() {
		r.cancel(&FaultError{r.name, fmt.Sprintf("it did not answer within %v", bound), "does it reach its model? Ask it something by itself"})
	})
	defer late.Stop()
	o := h.prompt(r)
	if needsSignIn(o.Err) {
		return "", h.signIn(r.ctx, r) // nobody can be asked here, so this says how
	}
	return shown(o.Summary, 200), o.Err
}

// refuseAll allows nothing.
type refuseAll struct{}

// Approve implements agent.Approver.
func (refuseAll) Approve(context.Context, agent.Question) (agent.Decision, error) {
	return agent.Decision{Reason: "nothing is allowed in a check"}, nil
}

// Found returns the known agents whose programs are on the PATH of env and that no agent of the settings starts.
func Found(agents map[string]config.Agent, env []string, home string) (list []About) {
	for _, k := range table {
		configured := false
		for _, a := range agents {
			configured = configured || knownOf(a.Command).name == k.name
		}
		command := append([]string{k.program}, k.start...)
		if _, err := child.Find(k.program, env, "/", home); err == nil && !configured {
			list = append(list, About{Name: k.name, Command: command, ShellOff: true, Tried: k.tried})
		}
	}
	return list
}

// Setting returns the lines of the settings that host the agent.
func (a About) Setting() string {
	var words []string
	for _, word := range a.Command {
		words = append(words, strconv.Quote(word))
	}
	return "    [agents." + a.Name + "]\n    command = [" + strings.Join(words, ", ") + "]"
}
