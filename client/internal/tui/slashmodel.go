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

// slashModel lists the models of the chosen agent's program or else of all providers, those with a word in their names, or has the
// one of that name answer the questions that follow in this window.
func (m *model) slashModel(args string) {
	if args == "default" {
		m.chosenModel, m.answered = "", ""
		m.note("the model of the settings answers from now on")
		return
	}
	m.models(m.chosenAgent, args)
}

// models is /model for the program of an agent; with agent "" for the providers.
func (m *model) models(agent, word string) {
	r := &wire.ModelsRequest{Agent: agent}
	if agent == "" && (strings.Contains(word, "/") || word == "offline") {
		r.Name = word // it is looked up, and no provider is asked
	} else {
		m.note("asking " + cmp.Or(visible.Line(agent), "the providers") + "…")
	}
	request(m, "/model", r, func(reply *wire.ModelsReply) {
		if agent != "" && reply.Agent == "" { // an agent of sublet's own
			m.models("", word)
			return
		}
		i := slices.IndexFunc(reply.Models, func(w wire.Model) bool { return w.Name == word || r.Name != "" })
		if i < 0 {
			m.listModels(reply, word)
			return
		}
		m.chosenModel, m.answered = reply.Models[i].Name, ""
		m.note(visible.Line(m.chosenModel) + " answers from now on in this window; /model default takes it back")
	})
}

// listModels prints the models of a reply whose name contains word, and marks the one that answers.
func (m *model) listModels(reply *wire.ModelsReply, word string) {
	used, hint := m.answering(), "/model NAME for this window; `model = \"NAME\"` for good: sublet config edit"
	if reply.Agent != "" {
		used, hint = cmp.Or(m.chosenModel, reply.Model), "/model NAME for this window"
		if len(reply.Models) == 0 {
			m.note(visible.Line(reply.Agent) + " offers no model to choose: it has its own settings")
			return
		}
	}
	found := slices.DeleteFunc(reply.Models, func(w wire.Model) bool { return !strings.Contains(w.Name, word) })
	var lines []string
	for _, w := range found[:min(len(found), maxModelLines)] {
		mark, about := "  ", ""
		if w.Name == used {
			mark = m.th.Accent.Render("▸ ")
		}
		if w.ContextWindow > 0 {
			about = " · " + style.Count(int64(w.ContextWindow)) + " tokens"
		}
		lines = append(lines, mark+visible.Line(w.Name)+m.th.Dim.Render(about))
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
	m.list(append(lines, m.th.Dim.Render(hint)))
}

// thinkMore handles ^T: it sets the next higher level of thinking, after high the settings' own, and then off.
func (m *model) thinkMore() {
	levels := []string{"off", "low", "medium", "high", "default"}
	m.slashThinking(levels[(slices.Index(levels, m.thinking)+1)%len(levels)])
}

// toBackground asks the daemon to let the command that an agent is running continue as a background job.
func (m *model) toBackground() {
	request(m, "ctrl+b", &wire.JobRequest{Op: "background"}, func(reply *wire.JobReply) {
		for _, j := range reply.Jobs {
			see := "sublet job attach " + visible.Line(j.JobID)
			if j.Terminal {
				see = "a job of your shell, to which it prints"
			}
			m.note("it goes on as the job " + visible.Line(j.JobID) + ": " + see)
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
	switch args {
	case "":
	case "default":
		m.thinking = ""
	default:
		m.thinking = args
		m.note("thinking: " + args + ", in this window; where the model can")
		return
	}
	m.note("thinking: " + cmp.Or(m.thinking, "as in the settings"))
}
