package offline

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// review gives what git itself complains of in the changes.
func review(j *job) string {
	var parts [3]result // what the commands of the row brought: stat, check, unknown files
	copy(parts[:], j.results)
	stat, check, others := parts[0], parts[1], parts[2].lines()
	if strings.Contains(stat.text, "ambiguous argument 'HEAD'") {
		return "There is no commit yet to compare with. `sublet review` looks at the files that were added with `git add`."
	}
	if !stat.ok() {
		return trouble(stat)
	}
	findings := []finding{}
	for _, l := range check.lines() {
		if m := checkLine().FindStringSubmatch(l); m != nil {
			line, _ := strconv.Atoi(m[2]) // digits by the pattern
			findings = append(findings, finding{m[1], line, "warning", strings.TrimSuffix(m[3], ".")})
		}
	}
	if j.schema {
		list, _ := json.Marshal(map[string][]finding{"findings": findings}) // strings and numbers always marshal
		return string(list)
	}
	if strings.TrimSpace(stat.text) == "" && len(others) == 0 {
		return "There is nothing to review: no change since the last commit."
	}
	sums := stat.lines()
	s := "Looked at **no changed file**"
	if len(sums) > 0 {
		s = "Looked at **" + strings.TrimSpace(sums[len(sums)-1]) + "**"
	}
	if len(others) > 0 {
		s += "; " + count(len(others), "file") + " that git does not know yet"
	}
	s += ".\n"
	for _, f := range findings[:min(len(findings), 25)] {
		s += fmt.Sprintf("\n- %s:%d: %s", code(f.File), f.Line, f.Message)
	}
	if len(findings) == 0 {
		s += "\nNothing stands out by rule: no conflict marks, no blanks at line ends."
	}
	if !strings.Contains(stat.text, "test") && !slices.ContainsFunc(others, func(s string) bool { return strings.Contains(s, "test") }) {
		s += "\n\nNo test was changed along with it."
	}
	return s + "\n\nThese are mechanical checks; whether the change is right takes a person or a real model."
}

// finding is what a review found, with the fields that `sublet review` asks for.
type finding struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Level   string `json:"level"`
	Message string `json:"message"`
}

var checkLine = rx(`^(.+?):(\d+): (.+)$`)
