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
	"where": func(j *job) (any, bool) {
		return " You are in " + code(j.facts.Cwd) + ".", j.facts.Cwd != ""
	},
	"asked":   func(j *job) (any, bool) { return j.args["text"], true },
	"message": commitMessage,
	"head": func(j *job) (any, bool) { // where something was changed that git knows
		_, changes := parseStatus(j.last().text)
		return "HEAD", slices.ContainsFunc(changes, func(c change) bool { return c.letters != "??" })
	},
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
	"found": func(j *job) (any, bool) { // the text to replace, if the file has it
		lines, more := numbered(j.last().text)
		return j.args["old"], more || strings.Contains(strings.Join(lines, "\n"), j.args["old"])
	},
	"spelled": func(j *job) (any, bool) { return spelled(j.facts.Cwd, j.args["file"]), true },
	"readme": func(j *job) (any, bool) {
		name := spelled(j.facts.Cwd, "readme")
		return name, name != "readme"
	},
	"pattern": func(j *job) (any, bool) { return regexp.QuoteMeta(strings.TrimSuffix(j.args["text"], "()")), true },
	"anycase": func(j *job) (any, bool) { return j.args["text"] == strings.ToLower(j.args["text"]), true },
	"glob":    func(j *job) (any, bool) { return namePattern(j.args["file"]), true },
	"sources": func(j *job) (any, bool) { return sourceNames(j), true },
	"tasks":   tasks,
	"test":    func(j *job) (any, bool) { return tool(j, 0) },
	"build":   func(j *job) (any, bool) { return tool(j, 1) },
	"lint":    func(j *job) (any, bool) { return tool(j, 2) },
	"format":  func(j *job) (any, bool) { return tool(j, 3) },
	"start":   func(j *job) (any, bool) { return tool(j, 4) },
	"deps":    func(j *job) (any, bool) { return tool(j, 5) },
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

// commitMessage returns the user's, or one about what changed: "Update a.go and b.go", "Add x.md, update y.md", "Change 7 files in wire".
func commitMessage(j *job) (any, bool) {
	_, changes := parseStatus(j.last().text)
	if len(changes) == 0 || slices.ContainsFunc(changes, change.conflict) {
		return nil, false
	}
	if text := j.args["text"]; text != "" {
		return quote(text), true
	}
	by := map[string][]string{}
	var dirs []string
	for _, c := range changes {
		verb := map[string]string{"new": "Add", "added": "Add", "deleted": "Remove", "renamed": "Rename"}[c.kind()]
		if verb == "" {
			verb = "Update"
		}
		name := c.name
		if _, to, ok := strings.Cut(name, " -> "); ok {
			name = to
		}
		name = strings.TrimRight(strings.Trim(name, `"`), "/")
		by[verb] = append(by[verb], path.Base(name))
		dirs = append(dirs, path.Dir(name))
	}
	if len(dirs) > 4 {
		m := fmt.Sprintf("Change %d files", len(dirs))
		if len(slices.Compact(slices.Sorted(slices.Values(dirs)))) == 1 && dirs[0] != "." {
			m += " in " + dirs[0]
		}
		return quote(m), true
	}
	var parts []string
	for _, verb := range []string{"Add", "Update", "Remove", "Rename"} {
		if names := by[verb]; len(names) > 0 {
			if len(parts) > 0 {
				verb = strings.ToLower(verb)
			}
			parts = append(parts, verb+" "+join(names, len(names)))
		}
	}
	return quote(strings.Join(parts, ", ")), true
}

// removal is the command that deletes what ls has shown, if that is one file or folder whose loss somebody can mean.
func removal(j *job) (any, bool) {
	list, name := parseLs(j.last().text), strings.TrimRight(j.args["file"], "/")
	switch {
	case len(list) != 1, slices.Contains([]string{"", ".", "..", "~", "*", "all", "everything", "it", "this", "that", "them"}, path.Clean(name)):
		return nil, false
	case list[0].dir():
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

// languages are the names of files by the words that people use for them; "code" is all that are programs.
var languages = map[string]string{
	"go": "*.go", "golang": "*.go", "python": "*.py", "javascript": "*.js *.jsx *.mjs *.cjs", "js": "*.js *.jsx *.mjs", "typescript": "*.ts *.tsx", "rust": "*.rs",
	"c": "*.c *.h", "c++": "*.cpp *.cc *.hpp *.h", "java": "*.java", "kotlin": "*.kt", "ruby": "*.rb", "php": "*.php", "shell": "*.sh *.bash", "bash": "*.sh *.bash",
	"markdown": "*.md", "html": "*.html", "css": "*.css", "json": "*.json", "yaml": "*.yaml *.yml", "toml": "*.toml", "text": "*.txt", "log": "*.log", "test": "*_test.* test_* *.test.*",
	"code": "*.bash *.c *.cc *.cpp *.cs *.go *.h *.hpp *.java *.js *.jsx *.kt *.mjs *.php *.py *.rb *.rs *.sh *.swift *.ts *.tsx",
}

// sourceNames returns find's expression for the files of a language; without one, of all languages.
func sourceNames(j *job) string {
	names, ok := languages[strings.ToLower(j.args["lang"])]
	if !ok {
		if j.args["file"] != "" {
			return "" // that file, or all in that folder, of whatever kind
		}
		names = languages["code"]
	}
	return `\( -name '` + strings.ReplaceAll(names, " ", "' -o -name '") + `' \)`
}

// namePattern is a glob for the name somebody asks for: as it is where it is a pattern or has an ending, by language, else
// as a part.
func namePattern(name string) string {
	if names, ok := languages[strings.ToLower(name)]; ok {
		first, _, _ := strings.Cut(names, " ")
		return first
	}
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
