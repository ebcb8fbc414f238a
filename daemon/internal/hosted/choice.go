package hosted

import (
	"context"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"sublet/wire/visible"
)

const (
	maxOffers = 500 // models, and modes, that are kept of one agent
	maxID     = 100 // bytes of a model's or a mode's id, where it is text for people
)

// selector is the models or the modes that a session can use, by their ids, and the one that it uses.
type selector struct {
	Option  sdk.SessionConfigId `json:"option"`  // the option that sets it; "" = a request of its own does
	Current string              `json:"current"` // "" = the agent offers none, or it is not known
	Offers  []string            `json:"offers"`
}

// What is chosen, also as text for people.
const (
	aModel = "model"
	aMode  = "mode"
)

// selector returns the models (aModel) or the modes (aMode). The host's mu is held.
func (s *session) selector(what string) *selector {
	if what == aModel {
		return &s.model
	}
	return &s.mode
}

// configure takes models and modes from a session's options, in place of the older fields Models and Modes. The host's mu is held.
func (s *session) configure(options []sdk.SessionConfigOption) {
	for _, o := range options {
		c := o.Select
		if c == nil || c.Category == nil {
			continue
		}
		to := selector{Option: c.Id, Current: string(c.CurrentValue)}
		if list := c.Options.Ungrouped; list != nil {
			to.add(*list)
		}
		if groups := c.Options.Grouped; groups != nil {
			for _, g := range *groups {
				to.add(g.Options)
			}
		}
		switch *c.Category {
		case sdk.SessionConfigOptionCategoryMode:
			s.mode = to
		case sdk.SessionConfigOptionCategoryModel:
			s.model = to
		}
	}
}

func (s *selector) add(options []sdk.SessionConfigSelectOption) {
	for _, o := range options[:min(len(options), maxOffers-len(s.Offers))] {
		s.Offers = append(s.Offers, string(o.Value))
	}
}

// choose switches the session to the model or the mode of that id. The error for one that is not offered lists those that are.
func (h *host) choose(ctx context.Context, what, id string) (err error) {
	h.mu.Lock()
	session, s := h.session.id, *h.session.selector(what)
	h.mu.Unlock()
	var options []sdk.SessionConfigOption
	switch {
	case len(s.Offers) == 0:
		return &FaultError{h.key.agent, "it offers no " + what + " to choose", "set it in the agent's own settings, or in its `command` in those of sublet"}
	case !slices.Contains(s.Offers, id):
		return &FaultError{h.key.agent, "it has no " + what + " " + visible.Exact(shown(id, maxID)), "it has " + strings.Join(s.names(), ", ")}
	case id == s.Current:
		return nil
	case s.Option != "":
		var r sdk.SetSessionConfigOptionResponse
		r, err = h.conn.SetSessionConfigOption(ctx, sdk.SetSessionConfigOptionRequest{ValueId: &sdk.SetSessionConfigOptionValueId{
			SessionId: session, ConfigId: s.Option, Value: sdk.SessionConfigValueId(id),
		}})
		options = r.ConfigOptions
	case what == aModel:
		_, err = h.conn.UnstableSetSessionModel(ctx, sdk.UnstableSetSessionModelRequest{SessionId: session, ModelId: sdk.UnstableModelId(id)})
	default:
		_, err = h.conn.SetSessionMode(ctx, sdk.SetSessionModeRequest{SessionId: session, ModeId: sdk.SessionModeId(id)})
	}
	if err != nil {
		return fmt.Errorf("cannot switch it to its %s %s: %w", what, id, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.session.selector(what).Current = id
	h.session.configure(options)
	return nil
}

// names returns the ids on offer as text for people.
func (s *selector) names() []string {
	list := []string{}
	for _, id := range s.Offers {
		list = append(list, visible.Exact(shown(id, maxID)))
	}
	return list
}

// useModel switches the session to the model of the turn's request or, without one, to the model that it began with. Only the turn that
// has the host calls it.
func (h *host) useModel(r *run) error {
	want := r.t.Of.Options.Model
	if want == h.requestedModel {
		return nil
	}
	id := want
	if id == "" {
		id = h.session.firstModel
	}
	if err := h.within(r.ctx, h.agents.o.Start, func(ctx context.Context) error { return h.choose(ctx, aModel, id) }); err != nil {
		return err
	}
	h.requestedModel = want
	return nil
}

// askingModes are the ids by which known agents call a mode in which they ask before they change anything, the preferred one first.
var askingModes = []string{"default", "ask", "manual", "read-only"}

// setMode puts the session into a mode of the agent. A mode of sublet (ask, auto, full or plan) becomes one of the agent's: plan becomes
// its plan mode, if it has one; the others become a mode in which it asks, so that the policy decides. Without such a mode nothing changes.
func (h *host) setMode(ctx context.Context, mode string) error {
	h.mu.Lock()
	s := h.session.mode
	h.mu.Unlock()
	offered := func(id string) bool { return slices.Contains(s.Offers, id) }
	if slices.Contains([]string{"ask", "auto", "full"}, mode) || mode == "plan" && !offered(mode) {
		i := slices.IndexFunc(askingModes, offered)
		if i < 0 {
			return nil
		}
		mode = askingModes[i]
	}
	return h.choose(ctx, aMode, mode)
}

// Offer is what an agent lets the user choose from in its session, by ids.
type Offer struct {
	Model  string   `json:"model"` // in use; "" = it offers none, or that is not known
	Mode   string   `json:"mode"`  // the same
	Models []string `json:"models"`
	Modes  []string `json:"modes"`
}

// Runs reports whether a process of that agent runs for a session and has begun it.
func (a *Agents) Runs(session, agent string) bool {
	h := a.find(session, agent)
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.run != nil || h.idle != nil
}

func (a *Agents) find(session, agent string) *host {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.hosts[key{session, agent}]
}

// Begin starts the turn's agent and its session, as Run does before the prompt, which is not sent.
func (a *Agents) Begin(ctx context.Context, t Turn) error {
	t.Ask = nil // the user is not asked to sign in: the error explains how
	r := newRun(ctx, t)
	r.over = true // refuses what the agent asks for
	defer r.close()
	h, err := a.host(r)
	if err != nil {
		return err
	}
	defer a.trim()
	h.giveBack()
	return nil
}

// Offer returns what the agent that runs for a session offers. Unless mode is "", it first puts the
// session into that mode, as setMode does; the end of ctx does not stop that, since within would end an agent that may be in a turn.
func (a *Agents) Offer(ctx context.Context, session, agent, mode string) (o Offer, err error) {
	h := a.find(session, agent)
	if h == nil {
		return o, &FaultError{agent, "it has ended meanwhile", "try it again"}
	}
	if mode != "" {
		err := h.within(context.WithoutCancel(ctx), a.o.Start, func(ctx context.Context) error { return h.setMode(ctx, mode) })
		if err != nil {
			return o, err
		}
		h.mu.Lock()
		h.chosen = h.session.mode.Current
		h.mu.Unlock()
		a.remember(h)
	}
	return h.offer(), nil
}

func (h *host) offer() Offer {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &h.session
	return Offer{shown(s.model.Current, maxID), shown(s.mode.Current, maxID), s.model.names(), s.mode.names()}
}
