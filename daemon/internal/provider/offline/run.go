package offline

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const noTools = "I found nothing here to do that with. I look for go.mod, Cargo.toml, package.json, pyproject.toml or other Python files, a Makefile, CMakeLists.txt, pom.xml, " +
	"Gradle, mix.exs, a Gemfile or a .NET project; here and at the top of the repository."

// tested answers how a test run went: the numbers that it printed, and what failed.
func tested(j *job) string {
	if len(j.results) == 0 {
		return noTools
	}
	r := j.last()
	sum, failed := testCounts(r.text)
	command := code(r.command)
	switch {
	case r.stopped == "timeout":
		return trouble(r)
	case r.ok() && sum != "":
		return "**The tests pass**: " + sum + ", by " + command + "."
	case r.ok():
		return "**The tests pass**: " + command + " ended with exit code 0.\n\n" + block("", r.text, 8, false)
	case r.exit == 5 && strings.Contains(r.text, "no tests ran"): // pytest's exit code
		return "There are no tests: " + command + " found none."
	case strings.Contains(r.text, "No module named pytest"):
		return "pytest is not installed for this Python, so no test was run. `python3 -m pip install pytest` installs it."
	case missing(r):
		return "The project has no tests that " + command + " knows of, so none was run.\n\n" + block("", r.text, 6, false)
	}
	s := "**The tests fail**"
	if sum != "" {
		s += ": " + sum
	}
	s += fmt.Sprintf(" (%s, exit code %d).", command, r.exit)
	if len(failed) > 0 {
		s += "\n"
	}
	for _, f := range failed[:min(len(failed), 15)] {
		s += "\n- " + code(f)
	}
	return s + "\n\n" + block("", failureText(r.text), 30, true)
}

func missing(r result) bool {
	return strings.Contains(r.text, "Missing script") || strings.Contains(r.text, "No rule to make target") || strings.Contains(r.text, "no test specified")
}

// sums are what test programs print last; the groups are put together to the sum, and names finds what failed.
var sums = []struct{ sum, names func() *regexp.Regexp }{
	{rx(`test result: \w+\. (\d+ passed); (\d+ failed)`), rx(`(?m)^test (\S+) \.\.\. FAILED`)},                                                               // cargo
	{rx(`(?m)^=*\s*((?:\d+ (?:failed|passed|skipped|errors?|xfailed|xpassed|warnings?|deselected)(?:, )?)+) in [\d.]+s`), rx(`(?m)^(?:FAILED|ERROR) (\S+)`)}, // pytest
	{rx(`(?m)^\s*Tests:\s+(.*\d+ total)`), rx(`(?m)^\s*(?:●|✕|✖) (.+)$`)},                                                                                    // jest
	{rx(`(?m)^\s*(\d+ passing)(?:.*\n\s*(\d+ failing))?`), rx(`(?m)^\s*\d+\) (.+)$`)},                                                                        // mocha
	{rx(`(?m)^(?:#|ℹ) (pass \d+)\n(?:#|ℹ) (fail \d+)`), rx(`(?m)^\s*(?:✖|not ok \d+ -) (.+)$`)},                                                              // node
}

// testCounts reads the sums that test programs print, and the names of what failed.
func testCounts(text string) (sum string, failed []string) {
	names := func(pattern func() *regexp.Regexp) {
		for _, m := range pattern().FindAllStringSubmatch(text, -1) {
			if name := strings.TrimSpace(m[1]); !slices.Contains(failed, name) {
				failed = append(failed, name)
			}
		}
	}
	for _, s := range sums {
		if all := s.sum().FindAllStringSubmatch(text, -1); all != nil {
			names(s.names)
			return strings.TrimRight(strings.Join(all[len(all)-1][1:], ", "), ", "), failed
		}
	}
	good, bad := len(goOK().FindAllString(text, -1)), len(goFailed().FindAllString(text, -1))
	if good+bad == 0 {
		return "", nil
	}
	if names(goTest); len(failed) == 0 {
		names(goFailed)
	}
	if bad == 0 {
		return count(good, "package") + " ok", nil
	}
	return strconv.Itoa(bad) + " of " + count(good+bad, "package") + " failed", failed
}

var (
	goOK         = rx(`(?m)^ok\s+\S+`)
	goFailed     = rx(`(?m)^FAIL\s+(\S+)`)
	goTest       = rx(`(?m)^\s*--- FAIL: (\S+)`)
	failureStart = rx(`(?m)^\s*--- FAIL|^FAIL|^failures:|^=+ (?:FAILURES|ERRORS) =+|^\s*●|^not ok|^\S+\.\w+:\d+:|^error`)
	place        = rx(`^\s*(?:(?:-->|error:?|vet:)\s*)?(?:\./)?[\w./-]+\.\w+[:(]\d+`)
)

// failureText returns the output from the first failure on.
func failureText(text string) string {
	if at := failureStart().FindStringIndex(text); at != nil {
		return text[at[0]:]
	}
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

// built answers how a build, a check or a run of the project went: of a failure, the lines with file and place first.
func built(j *job) string {
	if len(j.results) == 0 {
		return noTools
	}
	r := j.last()
	if r.ok() {
		s := "Done: " + code(r.command) + " ended with exit code 0."
		if strings.TrimSpace(r.text) != "" {
			s += "\n\n" + block("", r.text, 12, false)
		}
		return s
	}
	if missing(r) {
		return "The project has no such command of its own.\n\n" + block("", r.text, 6, false)
	}
	var places []string
	for _, l := range r.lines() {
		if place().MatchString(l) {
			places = append(places, l)
		}
	}
	if len(places) == 0 || r.stopped != "" {
		return trouble(r)
	}
	return fmt.Sprintf("%s failed with exit code %d; what it complains of first:\n\n", code(r.command), r.exit) + block("", strings.Join(places, "\n"), 15, true)
}

// reports are what came back from other agents. Headings become bold: a report is a part of the answer.
func reports(j *job) string {
	r := j.last()
	text := strings.TrimSpace(heading().ReplaceAllString(r.text, "**$1**"))
	switch {
	case text == "":
		return "No report came back."
	case r.isError:
		return "The work failed:\n\n" + text
	}
	return "What came back:\n\n" + text
}

var heading = rx(`(?m)^#+ (.+)$`)
