package connect

import "regexp"

// Check is a command of an agent that calls no model, and whose answer shows which settings the agent has taken.
type Check struct {
	Args   []string
	Traces []Trace
}

// Trace recognises one setting in such an answer, by a regular expression that must match and one that must not.
type Trace struct {
	Setting    string
	Show       bool // what matches is worth showing to the user
	Proof      bool // without it, the setting may have been taken all the same
	has, lacks string
}

// In returns the part of an answer that shows the setting, and whether it does.
func (t Trace) In(answer string) (shown string, ok bool) {
	at := regexp.MustCompile(t.has).FindStringIndex(answer)
	if at == nil || t.lacks != "" && regexp.MustCompile(t.lacks).MatchString(answer) {
		return "", false
	}
	return answer[at[0]:at[1]], true
}

// serverList is the check of the agents that list their servers, and whether each could be started, with `mcp list`.
func serverList(setting string, more ...Trace) Check {
	return Check{Args: []string{"mcp", "list"}, Traces: append([]Trace{{Setting: setting, Show: true, has: `(?m)^.*\bsublet\b.*$`}}, more...)}
}

// toolList is the check of the agents that begin their output for programs with the list of their tools. The prompt is a command of
// their own, which no model sees.
func toolList(setting, tool, prompt string, options ...string) Check {
	return Check{Args: append(options, "-p", prompt), Traces: []Trace{{Setting: setting, has: `"tools":\[`, lacks: `"` + tool + `"`}}}
}
