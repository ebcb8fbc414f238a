package tui

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"sublet/client/internal/tui/style"
	"sublet/wire"
	"sublet/wire/visible"
)

// maxModelLines bounds the list of /model: one provider alone may have hundreds.
const maxModelLines = 30

// slashModel lists the models of all providers, or those with a word in their names, or has the one of that name answer the
// questions that follow in this window.
func (m *model) slashModel(args string) {
	if args == "default" {
		m.chosenModel, m.answered = "", ""
		m.note("the model of the settings answers from now on")
		return
	}
	if m.chosenAgent != "" {
		m.note("asking " + visible.Line(m.chosenAgent) + "…")
	}
	m.askProgram("/model", "", func(of *wire.ModelsReply) {
		if of == nil {
			m.providersModel(args)
			return
		}
		m.programsModel(of, args)
	})
}

// askProgram asks the chosen agent, if it is another program, for its models and modes, and calls f with the reply. It sets the agent's mode
// first unless mode is "". For one of sublet's own agents it calls f with nil at once.
func (m *model) askProgram(command, mode string, f func(of *wire.ModelsReply)) {
	if m.chosenAgent == "" {
		f(nil)
		return
	}
	request(m, command, &wire.ModelsRequest{Agent: m.chosenAgent, Mode: mode}, func(reply *wire.ModelsReply) {
		if reply.Agent == "" {
			reply = nil
		}
		f(reply)
	})
}

// programsModel lists the models of a program, or has it answer with one.
func (m *model) programsModel(of *wire.ModelsReply, id string) {
	var ids []string
	for _, w := range of.Models {
		ids = append(ids, w.Name)
	}
	switch {
	case len(ids) == 0:
		m.note(visible.Line(of.Agent) + " offers no model to choose: it has its own settings")
	case id == "":
		var lines []string
		for _, id := range ids {
			lines = append(lines, m.choice(id, id == cmp.Or(m.chosenModel, of.Model)))
		}
		m.list(append(lines, m.th.Dim.Render("/model NAME for this window")))
	case !slices.Contains(ids, id):
		m.fail("/model: "+visible.Line(of.Agent+" has no model "+id), "it has "+visible.Line(strings.Join(ids, ", ")))
	default:
		m.chosenModel, m.answered = id, ""
		m.note(visible.Line(of.Agent+" answers with "+id) + " from now on in this window; /model default takes it back")
	}
}

// choice is a line of a list, in which the one in use is marked.
func (m *model) choice(name string, used bool) string {
	if used {
		return m.th.Accent.Render("▸ ") + visible.Line(name)
	}
	return "  " + visible.Line(name)
}

// providersModel is /model for agents of sublet's own.
func (m *model) providersModel(args string) {
	r := &wire.ModelsRequest{}
	if strings.Contains(args, "/") || args == "offline" {
		r.Name = args
	}
	if r.Name == "" {
		m.note("asking the providers…")
	}
	request(m, "/model", r, func(reply *wire.ModelsReply) {
		if r.Name == "" {
			m.listModels(reply, args)
			return
		}
		if len(reply.Models) == 0 {
			m.fail("/model: the daemon knows no "+visible.Line(r.Name), "")
			return
		}
		m.chosenModel, m.answered = reply.Models[0].Name, ""
		m.note(visible.Line(m.chosenModel) + " answers from now on in this window; /model default takes it back")
	})
}

func (m *model) listModels(reply *wire.ModelsReply, word string) {
	found := slices.DeleteFunc(reply.Models, func(w wire.Model) bool { return !strings.Contains(w.Name, word) })
	var lines []string
	for _, w := range found[:min(len(found), maxModelLines)] {
		about := ""
		if w.ContextWindow > 0 {
			about = " · " + style.Count(int64(w.ContextWindow)) + " tokens"
		}
		lines = append(lines, m.choice(w.Name, w.Name == m.answering())+m.th.Dim.Render(about))
	}
	if more := len(found) - maxModelLines; more > 0 {
		lines = append(lines, m.th.Dim.Render("  … and "+strconv.Itoa(more)+" more: /model WORD lists those with it, `sublet models` all"))
	}
	if len(found) == 0 && word != "" {
		lines = append(lines, m.th.Warn.Render("no model has "+visible.Line(word)+" in its name"))
	}
	for _, f := range reply.Faults {
		lines = append(lines, m.th.Dim.Render("  "+visible.Line(f.Provider+": "+f.Message)))
	}
	m.list(append(lines, m.th.Dim.Render("/model NAME for this window; `model = \"NAME\"` for good: sublet config edit")))
}

// thinkMore handles ^T: it sets the next higher level of thinking, after high the settings' own, and then off.
func (m *model) thinkMore() {
	levels := []string{"off", "low", "medium", "high", "default"}
	m.slashThinking(levels[(slices.Index(levels, m.thinking)+1)%len(levels)])
}

// toBackground has the command that an agent runs go on as a background job.
func (m *model) toBackground() {
	request(m, "ctrl+b", &wire.JobRequest{Op: "background"}, func(reply *wire.JobReply) {
		for _, j := range reply.Jobs {
			m.note("it goes on as the job " + visible.Line(j.JobID) + ": sublet job attach " + visible.Line(j.JobID))
		}
	})
}

// slashAgent has another agent answer the questions that follow in this window. The daemon knows whether there is one.
func (m *model) slashAgent(args string) {
	switch args {
	case "":
		m.note("the agent is " + visible.Line(cmp.Or(m.chosenAgent, "orchestrator")))
	case "default", "orchestrator":
		m.chosenAgent, m.chosenModel, m.answered = "", "", "" // a model is one of its agent
		m.note("the orchestrator answers from now on")
	default:
		m.chosenAgent, m.chosenModel, m.answered = args, "", ""
		m.note(visible.Line(args) + " answers from now on in this window; /agent default takes it back")
	}
}

// slashThinking sets how much the model thinks before it answers the questions that follow in this window.
func (m *model) slashThinking(args string) {
	if args != "" {
		m.thinking = strings.TrimPrefix(args, "default")
	}
	switch args {
	case "", "default":
		m.note("thinking: " + cmp.Or(m.thinking, "as in the settings"))
	default:
		m.note("thinking: " + args + ", in this window; where the model can")
	}
}
