package programs

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestTableReads reads every line of the tables, and keeps their size.
func TestTableReads(t *testing.T) {
	programs := map[string]*Spec{}
	for _, name := range []string{"files", "text", "git", "dev", "packages", "containers", "cloud", "network", "system", "wrappers", "shell"} {
		for _, line := range lines(file(name)) {
			read(t, programs, line)
		}
	}
	if len(programs) < 300 {
		t.Errorf("got %d programs, want at least 300", len(programs))
	}
	checkProse(t, programs)
}

func read(t *testing.T, programs map[string]*Spec, line string) {
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%.120s: %v", line, p)
		}
	}()
	readLine(programs, line)
}

var joinedWords = regexp.MustCompile(`[,;:][^\s\d]`)

// checkProse looks at what users read of programs. A line of the table that went on with another after a comma lost the
// blank between them: "publishes,or changes what was published".
func checkProse(t *testing.T, programs map[string]*Spec) {
	for name, s := range programs {
		texts := []string{s.Says}
		for _, o := range s.Opts {
			texts = append(texts, o.Says)
		}
		for _, m := range s.Match {
			texts = append(texts, m.Says)
		}
		for _, text := range texts {
			if joinedWords.MatchString(text) || strings.Contains(text, "  ") {
				t.Errorf("%s: %q lacks a blank, or has one too many", name, text)
			}
		}
		checkProse(t, s.Subs)
	}
}

// TestNames reads the tables of variables, places and expressions.
func TestNames(t *testing.T) {
	for line := range strings.Lines(file("variables")) {
		if f := strings.Split(line, "\t"); line != "\n" && line[0] != '#' && (len(f) < 4 || len(f) > 5 || f[3] == "\n") {
			t.Errorf("%q has not a name, a level, programs and what it does", line)
		}
	}
	variables() // panics where an expression is none
	for _, section := range []string{"bin", "build", "build-ends", "startup", "startup-dirs", "system", "system-keys", "guarded", "no-devices", "connections", "devices", "beyond", "fetch npm", "registry npm", "yours", "changers", "lookers", "neutral"} {
		if len(Places(section)) == 0 {
			t.Errorf("there is no section %s", section)
		}
	}
	for name := range code() {
		Rules(name) // panics where an expression is none
	}
	for _, language := range []string{"code", "loss", "awk", "sed", "sql", "tasks"} {
		if len(Rules(language)) == 0 {
			t.Errorf("there are no rules for %s", language)
		}
	}
}

// TestProgramsPage keeps docs/programs.md to what the table takes: its lines parse, and every role and effect is named.
func TestProgramsPage(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/programs.md")
	if err != nil {
		t.Fatal(err)
	}
	programs := map[string]*Spec{"npm": {}}
	lines := 0
	for line := range strings.Lines(string(text)) {
		line, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "    ")
		if !ok {
			continue
		}
		lines++
		read(t, programs, line)
	}
	if lines < 5 {
		t.Errorf("got %d example lines, want at least 5", lines)
	}
	for role := range roles {
		if !strings.Contains(string(text), "`"+role+"`") {
			t.Errorf("the page does not name the role %s", role)
		}
	}
	for _, e := range Effects() {
		if e != Unknown && !strings.Contains(string(text), "`"+string(e)+"`") {
			t.Errorf("the page does not name the effect %s", e)
		}
	}
}
