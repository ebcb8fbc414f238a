package connect

import "regexp"

// Check is a command of an agent that calls no model, and whose answer shows which settings the agent has taken.
type Check struct {
	Args  []string
	Signs []Sign
}

// Sign is how such an answer shows one setting: regular expressions that match, and that do not match.
type Sign struct {
	Setting    string
	Show       bool // what matches is worth showing to the user
	Proof      bool // without it, the setting may have been taken all the same
	has, lacks string
}

// In returns the part of an answer that shows the setting, and whether it does.
func (s Sign) In(answer string) (shown string, ok bool) {
	at := regexp.MustCompile(s.has).FindStringIndex(answer)
	if at == nil || s.lacks != "" && regexp.MustCompile(s.lacks).MatchString(answer) {
		return "", false
	}
	return answer[at[0]:at[1]], true
}

// serverList is the check of the agents that list their servers, and whether each could be started, with `mcp list`.
func serverList(setting string, more ...Sign) Check {
	return Check{Args: []string{"mcp", "list"}, Signs: append([]Sign{{Setting: setting, Show: true, has: `(?m)^.*\bsublet\b.*$`}}, more...)}
}

// toolList is the check of the agents that begin their output for programs with the list of their tools. The prompt is a command of
// their own, which no model sees.
func toolList(setting, tool, prompt string, options ...string) Check {
	return Check{Args: append(options, "-p", prompt), Signs: []Sign{{Setting: setting, has: `"tools":\[`, lacks: `"` + tool + `"`}}}
}
