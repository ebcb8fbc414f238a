package offline

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// change is a line of git status --short.
type change struct {
	letters string // staged and not
	name    string
}

func parseStatus(text string) (branch string, list []change) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if b, ok := strings.CutPrefix(line, "## "); ok {
			branch = b
		} else if len(line) > 3 && line[2] == ' ' {
			list = append(list, change{line[:2], line[3:]})
		}
	}
	return branch, list
}

func (c change) conflict() bool {
	return strings.Contains(c.letters, "U") || c.letters == "AA" || c.letters == "DD"
}

// kind returns what happened to the file, in a word for people.
func (c change) kind() string {
	switch {
	case c.letters == "??":
		return "new"
	case c.conflict():
		return "in conflict"
	case c.letters[0] == 'A':
		return "added"
	case c.letters[0] == 'R':
		return "renamed"
	case strings.Contains(c.letters, "D"):
		return "deleted"
	}
	return "modified"
}

// status answers what changed since the last commit.
func status(j *job) string {
	branch, changes := parseStatus(j.results[0].text)
	name, track, _ := strings.Cut(strings.TrimPrefix(branch, "No commits yet on "), "...")
	s := "On branch " + code(name)
	if _, ahead, ok := strings.Cut(track, " ["); ok {
		s += " (" + strings.TrimSuffix(ahead, "]") + ")"
	}
	if len(changes) == 0 {
		return s + ": nothing changed since the last commit."
	}
	kinds := map[string]int{}
	var rows [][]string
	for _, c := range changes {
		kinds[c.kind()]++
		note := ""
		if c.letters[0] != ' ' && c.letters[0] != '?' {
			note = "staged"
		}
		rows = append(rows, []string{c.kind(), code(c.name), note})
	}
	var parts []string
	for _, k := range []string{"in conflict", "modified", "added", "deleted", "renamed", "new"} {
		if n := kinds[k]; n > 0 {
			parts = append(parts, strconv.Itoa(n)+" "+k)
		}
	}
	s += fmt.Sprintf(": **%s** (%s)", count(len(changes), "changed file"), strings.Join(parts, ", "))
	if _, sums, ok := strings.Cut(j.last().text, " changed, "); ok && len(j.results) > 1 {
		s += ", " + strings.TrimSpace(sums)
	}
	s += ".\n\n" + markdownTable([]string{"what", "file", ""}, rows[:min(len(rows), 30)])
	if n := len(rows) - 30; n > 0 {
		s += fmt.Sprintf("\n\nand %d more.", n)
	}
	return s
}

// suspicious are things in added lines that a reviewer stops at.
var suspicious = []struct {
	pattern func() *regexp.Regexp
	says    string
}{
	{rx(`\b(?:TODO|FIXME|XXX|HACK)\b`), "a note of unfinished work"},
	{rx(`^(?:<{7}|={7}|>{7})(?: |$)`), "a conflict mark"},
	{rx(`(?i)(?:console\.log|fmt\.Println\("(?:debug|here)|print\(['"](?:debug|here)|debugger;|pdb\.set_trace|binding\.pry|dbg!\()`), "a debugging aid"},
	{rx(`(?i)(?:password|passwd|secret|api[_-]?key|token)\s*[:=]+\s*["'][^"']{6,}["']|-----BEGIN [A-Z ]*PRIVATE KEY-----`), "what may be a secret"},
	{rx(`(?:t\.Skip\(|\.only\(|@pytest\.mark\.skip|#\[ignore\]|xit\(|fdescribe\()`), "a test that is skipped or singled out"},
	{rx(`(?i)chmod 777|verify\s*=\s*False|InsecureSkipVerify:\s*true|curl [^|]*\| *(?:sudo )?(?:ba)?sh`), "something unsafe"},
}

// review looks through the added lines for what a rule can find.
func review(j *job) string {
	var parts [4]result // what the commands of the row brought: stat, check, diff, unknown files
	copy(parts[:], j.results)
	stat, check, diff, others := parts[0], parts[1], parts[2], parts[3].lines()
	if !stat.ok() {
		return trouble(stat)
	}
	findings := added(diff.text)
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
		s += "\nNothing stands out by rule: no conflict marks, no blanks at line ends, no debugging aids, no skipped tests, nothing like a secret."
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

// added lists what is suspicious in the added lines of a diff without context. It is never nil.
func added(diff string) []finding {
	findings := []finding{}
	name, line := "", 0
	for l := range strings.Lines(diff) {
		l = strings.TrimRight(l, "\r\n")
		switch {
		case strings.HasPrefix(l, "+++ "):
			name = strings.TrimPrefix(strings.TrimPrefix(l, "+++ "), "b/")
		case strings.HasPrefix(l, "@@"):
			if m := hunk().FindStringSubmatch(l); m != nil {
				line, _ = strconv.Atoi(m[1]) // digits by the pattern
			}
		case strings.HasPrefix(l, "+"):
			for _, s := range suspicious {
				if s.pattern().MatchString(l[1:]) {
					findings = append(findings, finding{name, line, "warning", s.says})
				}
			}
			line++
		}
	}
	return findings
}

var (
	hunk      = rx(`^@@ -\S+ \+(\d+)`)
	checkLine = rx(`^(.+?):(\d+): (.+)$`)
)
