package offline

import (
	"strings"
)

// delegateIntents hand work to other agents through the task tool.
var delegateIntents = []intent{
	{
		name:    "delegate",
		example: "have an engineer run the tests and a reviewer review my changes",
		patterns: []string{
			`^(?:have|let|get|ask|tell|use|start|send|make)(?: (?:an?|the|one))? (?P<role>engineer|reviewer)(?: agent)?(?: to)? (?P<rest>.+)$`, `^(?:delegate|hand(?: off| over)?)(?: to)?(?: (?:an?|the))? (?P<role>engineer|reviewer)(?: agent)?:? (?:to )?(?P<rest>.+)$`,
			`^(?:delegate|hand off|hand over|outsource) (?P<rest>.+?) to (?:an?|the) (?P<role>engineer|reviewer)$`, `^(?P<role>engineer|reviewer)[:,] (?P<rest>.+)$`, `^in parallel:? (?P<rest>.+)$`,
		},
		plan: steps(func(j *job) *call {
			var tasks []map[string]string
			for _, t := range assignments(j) {
				tasks = append(tasks, map[string]string{"role": t.role, "title": cut(t.prompt, 40), "prompt": t.prompt})
			}
			return &call{tool: "task", args: map[string]any{"tasks": tasks}}
		}),
		answer: func(j *job) string {
			r := j.last()
			if strings.TrimSpace(r.text) == "" {
				return "No report came back."
			}
			if r.isError {
				return "The work failed:\n\n" + demote(r.text)
			}
			n := len(assignments(j))
			if n == 1 {
				return "The report that came back:\n\n" + demote(r.text)
			}
			return "The reports that came back:\n\n" + demote(r.text)
		},
		no: "nobody was asked",
	},
}

type assignment struct{ role, prompt string }

var nextRole = rx(`(?i),? and (?:have |let |get |ask |tell )?(?:an?|the|another) (engineer|reviewer)(?: agent)?(?: to)? `)

// assignments are the parts of "an engineer X and a reviewer Y".
func assignments(j *job) (list []assignment) {
	role := strings.ToLower(j.args["role"])
	if role == "" {
		role = "engineer"
	}
	rest := j.args["rest"]
	for {
		m := nextRole.FindStringSubmatchIndex(rest)
		if m == nil {
			return append(list, assignment{role, strings.TrimSpace(rest)})
		}
		list = append(list, assignment{role, strings.TrimSpace(rest[:m[0]])})
		role, rest = strings.ToLower(rest[m[2]:m[3]]), rest[m[1]:]
	}
}

// demote leaves reports as they are but for headings, which become bold: they are parts of one answer.
func demote(s string) string {
	var b strings.Builder
	fenced := false
	for line := range strings.Lines(s) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if t := strings.TrimLeft(line, "#"); t != line && strings.HasPrefix(t, " ") && !fenced {
			line = "**" + strings.TrimSpace(t) + "**\n"
		}
		b.WriteString(line)
	}
	return strings.TrimSpace(b.String())
}
