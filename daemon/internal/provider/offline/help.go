package offline

import (
	"slices"
	"strings"

	"sublet/daemon/internal/project"
	"sublet/wire/visible"
)

// advice returns connect, once in a conversation: after that, "".
func advice(j *job) string {
	if j.advised {
		return ""
	}
	return connect
}

// connect is how a real model is connected. Names of keys are those of daemon/config.
const connect = "To connect a real model: `export ANTHROPIC_API_KEY=…` (or `OPENAI_API_KEY`, `GEMINI_API_KEY`) and put one line into the file that " +
	"`sublet config path` names, such as `model = \"anthropic/claude-sonnet-4-5\"`, or `model = \"ollama/NAME\"` for a model of your own machine."

// answers are the functions that intents.txt names with @.
var answers = map[string]func(j *job) string{
	"help": help, "unknown": unknown, "why": why, "history": history, "delegate": reports, "review": review, "project": about,
}

// help lists the examples of the table by their group.
func help(j *job) string {
	var b strings.Builder
	b.WriteString("I am the built-in offline model. I know these by rule; each runs through your shell, and what could change something is asked first:\n")
	group := ""
	for _, in := range table() {
		switch {
		case in.hidden:
			continue
		case in.group == group:
			b.WriteString(", ")
		default:
			group = in.group
			b.WriteString("\n- **" + group + "**: ")
		}
		b.WriteString("“" + in.name + "”")
	}
	return strings.TrimSpace(b.String() + "\n\nJoin jobs with “then”: “run the tests then commit this”.\n\n" + advice(j))
}

// unknown is the answer of last resort: what it is, what comes nearest, how to get more.
func unknown(j *job) string {
	s := "I am the built-in offline model, a table of everyday jobs, and that is not one of them."
	if near := nearest(j.said); len(near) > 0 {
		s += " The nearest I can do:\n\n- “" + strings.Join(near, "”\n- “") + "”\n\n“help” lists the rest. "
	} else {
		s += " “help” lists what I can do. "
	}
	return strings.TrimSpace(s + "\n\n" + advice(j))
}

// nearest are the examples that share the most telling words with s, at most three.
func nearest(s string) (list []string) {
	said := keywords(s)
	scores := map[string]int{}
	for _, in := range table() {
		for _, w := range keywords(in.name) {
			if slices.Contains(said, w) && !in.hidden {
				scores[in.name]++
			}
		}
		if scores[in.name] > 0 {
			list = append(list, in.name)
		}
	}
	slices.SortStableFunc(list, func(a, b string) int { return scores[b] - scores[a] })
	return list[:min(len(list), 3)]
}

// keywords returns the first four letters of each word of s that may be about its subject.
func keywords(s string) []string {
	words := longWord().FindAllString(strings.ToLower(s), -1)
	return slices.DeleteFunc(words, func(w string) bool {
		return strings.Contains("what this that with from have make does which show your", w)
	})
}

var longWord = rx(`\b[a-z]{4}`)

// reports are what came back from other agents. Headings become bold: a report is a part of the answer.
func reports(j *job) string {
	r := j.last()
	text := strings.TrimSpace(heading().ReplaceAllString(r.text, "**$1**"))
	if r.isError {
		return "The work failed:\n\n" + text
	}
	return "What came back:\n\n" + text
}

var heading = rx(`(?m)^#+ (.+)$`)

// about answers what a project does: the beginning of its README, if it has one, and what it is built with.
func about(j *job) string {
	var parts []string
	if r := j.last(); r.text != "" && r.ok() {
		text := strings.TrimSpace(lineNumber().ReplaceAllString(r.text, ""))
		if paragraphs := strings.SplitN(text, "\n\n", 3); !strings.Contains(paragraphs[0], "```") { // else a block of code would stay open
			parts = append(parts, "Its README begins:\n\n> "+strings.ReplaceAll(visible.Text(strings.Join(paragraphs[:min(len(paragraphs), 2)], "\n\n")), "\n", "\n> "))
		}
	}
	if commands := project.Commands(project.Root(j.facts.Cwd)); len(commands) > 0 {
		parts = append(parts, "It is built and tested with:\n\n- "+visible.Text(strings.Join(commands, "\n- ")))
	}
	if parts == nil {
		return "It has no README and no file that says how it is built. “what is in here” lists what there is."
	}
	return strings.Join(parts, "\n\n")
}

// lineNumber matches what the read tool adds to a text: a number before each line, and the last line, about the file.
var lineNumber = rx(`(?m)^ *\d+\t|^\[.*\]\z`)
