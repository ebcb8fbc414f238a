package offline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// suspicious are things in added lines that a reviewer stops at.
var suspicious = []struct {
	re   *pattern
	says string
}{
	{rx(`\b(?:TODO|FIXME|XXX|HACK)\b`), "a note of unfinished work"},
	{rx(`^(?:<{7}|={7}|>{7})(?: |$)`), "a conflict mark"},
	{rx(`(?i)(?:console\.log|fmt\.Println\("(?:debug|here)|print\(['"](?:debug|here)|debugger;|pdb\.set_trace|binding\.pry|dbg!\()`), "a debugging aid"},
	{rx(`(?i)(?:password|passwd|secret|api[_-]?key|token)\s*[:=]+\s*["'][^"']{6,}["']`), "what may be a secret"},
	{rx(`-----BEGIN [A-Z ]*PRIVATE KEY-----`), "a private key"},
	{rx(`(?:t\.Skip\(|\.only\(|@pytest\.mark\.skip|#\[ignore\]|xit\(|fdescribe\()`), "a test that is skipped or singled out"},
	{rx(`(?i)chmod 777|verify\s*=\s*False|InsecureSkipVerify:\s*true|curl [^|]*\| *(?:sudo )?(?:ba)?sh`), "something unsafe"},
}

func review(j *job) string {
	if !j.results[0].ok() {
		return gitTrouble(j.results[0])
	}
	get := func(i int) result {
		if i < len(j.results) {
			return j.results[i]
		}
		return result{}
	}
	stat, check, diff, others := get(0), get(1), get(2), get(3)
	unknown := others.lines()
	if strings.TrimSpace(stat.text) == "" && len(unknown) == 0 {
		return "There is nothing to review: no change since the last commit."
	}
	files, added, removed := diffCounts(diff.text)
	var findings []string
	fileName, line := "", 0
	for l := range strings.Lines(diff.text) {
		l = strings.TrimRight(l, "\r\n")
		switch {
		case strings.HasPrefix(l, "+++ "):
			fileName = strings.TrimPrefix(strings.TrimPrefix(l, "+++ "), "b/")
		case strings.HasPrefix(l, "@@"):
			if m := hunk.FindStringSubmatch(l); m != nil {
				line, _ = strconv.Atoi(m[1])
			}
		case strings.HasPrefix(l, "+"):
			for _, s := range suspicious {
				if s.re.MatchString(l[1:]) {
					findings = append(findings, fmt.Sprintf("%s:%d: %s", code(fileName), line, s.says))
				}
			}
			if len(l) > 400 {
				findings = append(findings, fmt.Sprintf("%s:%d: a line of %d characters", code(fileName), line, len(l)))
			}
			line++
		}
	}
	for _, l := range check.lines() {
		if m := checkLine.FindStringSubmatch(l); m != nil {
			findings = append(findings, fmt.Sprintf("%s:%s: %s", code(m[1]), m[2], strings.TrimSuffix(m[3], ".")))
		}
	}
	tests := strings.Contains(stat.text, "test") || slices.ContainsFunc(unknown, func(s string) bool { return strings.Contains(s, "test") })
	s := fmt.Sprintf("Looked at **%s**: %s added, %s removed", count(files, "changed file"), count(added, "line"), number(int64(removed)))
	if len(unknown) > 0 {
		s += fmt.Sprintf("; %s that git does not know yet", count(len(unknown), "file"))
	}
	s += ".\n"
	for _, f := range findings[:min(len(findings), 25)] {
		s += "\n- " + f
	}
	if n := len(findings) - 25; n > 0 {
		s += fmt.Sprintf("\n- and %d more", n)
	}
	if len(findings) == 0 {
		s += "\nNothing stands out by rule: no conflict marks, no blanks at line ends, no debugging aids, no skipped tests, nothing like a secret."
	}
	if !tests && files > 0 {
		s += "\n\nNo test was changed along with it."
	}
	return s + "\n\nThese are mechanical checks; whether the change is right takes a person or a real model."
}

var (
	hunk      = rx(`^@@ -\S+ \+(\d+)`)
	checkLine = rx(`^(.+?):(\d+): (.+)$`)
)
