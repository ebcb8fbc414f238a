package offline

import (
	_ "embed"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"sublet/daemon/internal/project"
	"sublet/wire/visible"
)

// values are the placeholders of intents.txt that take more than an argument of the prompt. false means that there is none
// now, which ends the series of calls. Text goes into commands as it is, and into arguments of tools as JSON.
var values = map[string]func(j *job) (any, bool){
	"connect": func(*job) (any, bool) { return connect, true },
	"advice":  func(j *job) (any, bool) { return advice(j), true },
	"where": func(j *job) (any, bool) {
		return " You are in " + code(j.facts.Cwd) + ".", j.facts.Cwd != ""
	},
	"asked":   func(j *job) (any, bool) { return j.args["text"], true },
	"message": commitMessage,
	"range": func(j *job) (any, bool) {
		if r, ok := strings.CutPrefix(strings.Trim(j.args["text"], "`"), "git diff "); ok {
			return quote(r), true
		}
		return "HEAD", true
	},
	"remove": removal,
	"content": func(j *job) (any, bool) {
		text := j.args["text"] + j.args["old"]
		if text != "" {
			text = strings.ReplaceAll(text, `\n`, "\n") + "\n"
		}
		return text, !strings.HasPrefix(j.args["file"], "~")
	},
	"spelled": func(j *job) (any, bool) { return spelled(j.facts.Cwd, j.args["file"]), true },
	"readme": func(j *job) (any, bool) {
		name := spelled(j.facts.Cwd, "readme")
		return name, name != "readme"
	},
	"pattern": func(j *job) (any, bool) { return regexp.QuoteMeta(strings.TrimSuffix(j.args["text"], "()")), true },
	"anycase": func(j *job) (any, bool) { return j.args["text"] == strings.ToLower(j.args["text"]), true },
	"glob":    func(j *job) (any, bool) { return namePattern(j.args["file"]), true },
	"sources": func(j *job) (any, bool) { // find's expression; none for a file or folder that was named
		if j.args["file"] != "" {
			return "", true
		}
		return `\( -name '` + strings.ReplaceAll(sources, " ", "' -o -name '") + `' \)`, true
	},
	"tasks":  tasks,
	"test":   func(j *job) (any, bool) { return tool(j, 0) },
	"build":  func(j *job) (any, bool) { return tool(j, 1) },
	"lint":   func(j *job) (any, bool) { return tool(j, 2) },
	"format": func(j *job) (any, bool) { return tool(j, 3) },
	"start":  func(j *job) (any, bool) { return tool(j, 4) },
	"deps":   func(j *job) (any, bool) { return tool(j, 5) },
}

//go:embed tools.txt
var toolsText string

// A toolchain is a line of tools.txt.
type toolchain struct {
	marker   string // a file's name; "*.py" matches by its end
	commands []string
}

var toolchains = sync.OnceValue(func() (list []toolchain) {
	for line := range strings.Lines(toolsText) {
		if f := strings.Split(strings.TrimSpace(line), "|"); line[0] != '#' {
			for i := range f {
				f[i] = strings.TrimSpace(f[i])
			}
			list = append(list, toolchain{f[0], f[1:]})
		}
	}
	return list
})

// tool returns the command in a column of tools.txt for the folder of the shell or, if nothing there fits, for the top of
// its repository.
func tool(j *job, column int) (string, bool) {
	cwd := j.facts.Cwd
	for _, dir := range []string{cwd, project.Root(cwd)} {
		files, err := os.ReadDir(dir)
		if err != nil {
			continue // there is none, or it is not to be read: nothing is known of it
		}
		for _, t := range toolchains() {
			fits := func(f os.DirEntry) bool {
				ok, err := filepath.Match(t.marker, f.Name())
				return ok && err == nil
			}
			switch command := t.commands[column]; {
			case command == "-" || !slices.ContainsFunc(files, fits):
			case dir != cwd:
				return "(cd -- " + quote(dir) + " && " + command + ")", true
			default:
				return command, true
			}
		}
	}
	return "", false
}

// sources are the names of files that are programs.
const sources = "*.bash *.c *.cc *.cpp *.cs *.go *.h *.hpp *.java *.js *.jsx *.kt *.mjs *.php *.py *.rb *.rs *.sh *.swift *.ts *.tsx"

// commitMessage returns the user's, or one about what changed, by git status --short: "Update a.go and b.go", "Change 7 files".
func commitMessage(j *job) (any, bool) {
	var names []string
	for _, line := range j.last().lines() {
		switch {
		case inConflict().MatchString(line):
			return nil, false
		case len(line) > 3 && line[:2] != "##":
			names = append(names, path.Base(strings.Trim(line[3:], `"/`)))
		}
	}
	switch text := j.args["text"]; {
	case len(names) == 0:
		return nil, false
	case text != "":
		return quote(text), true
	case len(names) > 4:
		return quote(fmt.Sprintf("Change %d files", len(names))), true
	}
	return quote("Update " + join(names, 4)), true
}

var inConflict = rx(`^(?:U.|.U|AA|DD) `)

// removal is the command that deletes what ls -ld has shown, if its name is one that somebody can mean.
func removal(j *job) (any, bool) {
	name := strings.TrimRight(j.args["file"], "/")
	switch {
	case slices.Contains([]string{"", ".", "..", "~", "*", "all", "everything", "it", "this", "that", "them"}, path.Clean(name)):
		return nil, false
	case strings.HasPrefix(j.last().text, "d"):
		return "rm -r -- " + fileWord(name), true
	}
	return "rm -- " + fileWord(name), true
}

// spelled is a file as it is called in dir: people say readme for README.md.
func spelled(dir, name string) string {
	if !slices.Contains([]string{"readme", "license", "changelog", "makefile", "dockerfile"}, strings.ToLower(name)) {
		return name
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return name
	}
	for _, f := range files {
		if base, _, _ := strings.Cut(f.Name(), "."); strings.EqualFold(base, name) {
			return f.Name()
		}
	}
	return name
}

// namePattern is a glob for the name somebody asks for: as it is where it is a pattern or has an ending, else as a part.
func namePattern(name string) string {
	if strings.ContainsAny(name, "*?[{") || strings.Contains(path.Base(name), ".") {
		return strings.TrimPrefix(name, "./")
	}
	return "**/*" + name + "*"
}

var nextRole = rx(`(?i),? and (?:have |let |get |ask |tell )?(?:an?|the|another) (engineer|reviewer|explorer)(?: agent)?(?: to)? `)

// tasks are the parts of "an engineer X and a reviewer Y", for the task tool.
func tasks(j *job) (any, bool) {
	var list []map[string]string
	role, rest := strings.ToLower(j.args["role"]), j.args["text"]
	if role == "" {
		role = "engineer"
	}
	for rest != "" {
		part, next, after := rest, role, ""
		if m := nextRole().FindStringSubmatchIndex(rest); m != nil {
			part, next, after = rest[:m[0]], strings.ToLower(rest[m[2]:m[3]]), rest[m[1]:]
		}
		part = strings.TrimSpace(strings.TrimPrefix(part, "to "))
		list = append(list, map[string]string{"role": role, "title": visible.Clip(part, 40), "prompt": part})
		role, rest = next, after
	}
	return list, true
}
