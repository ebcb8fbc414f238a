// Package project finds the root of a project and the commands by which it is built and tested. It only reads files, and
// runs nothing of the project.
package project

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"sublet/lease/confine"
)

// Root returns the nearest folder at or above dir that contains .git, else dir; "" for a relative path.
func Root(dir string) string {
	if !filepath.IsAbs(dir) {
		return ""
	}
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if IsRepository(at) {
			return at
		}
		if at == filepath.Dir(at) {
			return dir
		}
	}
}

// IsRepository reports whether dir has a file or folder .git. What only keeps that name while a confined command runs is none.
func IsRepository(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, ".git"))
	return err == nil && !confine.IsPlaceholder(info)
}

const (
	maxFile  = 256 << 10 // bytes that are read of a file
	maxNames = 12        // targets, scripts or recipes that are listed of one file
)

// manifest is a kind of file that defines how a project is built.
type manifest struct {
	name     string
	commands func(dir string, text []byte) string
}

func always(commands string) func(string, []byte) string {
	return func(string, []byte) string { return commands }
}

var manifests = []manifest{
	{"Makefile", func(_ string, text []byte) string { return names("make", targets(), text) }},
	{"justfile", func(_ string, text []byte) string { return names("just", recipes(), text) }},
	{"package.json", packageScripts},
	{"go.mod", always("go build ./..., go vet ./..., go test ./...")},
	{"Cargo.toml", always("cargo build, cargo clippy, cargo test")},
	{"pyproject.toml", pythonCommands},
}

// Commands returns a line for each manifest in root, such as "Makefile: make build, make test". Names in it consist of
// letters, digits and _ . : - only.
func Commands(root string) []string {
	var lines []string
	for _, m := range manifests {
		text, err := readStart(filepath.Join(root, m.name))
		if err != nil {
			continue // it does not exist, or is not a regular file
		}
		if commands := m.commands(root, text); commands != "" {
			lines = append(lines, m.name+": "+commands)
		}
	}
	return lines
}

var (
	targets = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^([A-Za-z][\w-]{0,39})\s*:(?:[^=:]|$)`) })
	recipes = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^@?([A-Za-z][\w-]{0,39})(?: [^:\n]*)?:(?:[^=]|$)`)
	})
	script = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][\w.:-]{0,39}$`) })
)

// names returns the first groups of all matches of find in text, as arguments of program.
func names(program string, find *regexp.Regexp, text []byte) string {
	var found []string
	for _, m := range find.FindAllSubmatch(text, -1) {
		if name := string(m[1]); !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return join(program, found)
}

func join(program string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	list := program + " " + strings.Join(names[:min(len(names), maxNames)], ", ")
	if more := len(names) - maxNames; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}

// packageScripts returns the scripts of a package.json, run by the package manager whose lock file is in dir.
func packageScripts(dir string, text []byte) string {
	var p struct {
		Scripts map[string]json.RawMessage `json:"scripts"`
	}
	if json.Unmarshal(text, &p) != nil {
		return ""
	}
	manager := "npm"
	for _, m := range [][2]string{{"pnpm-lock.yaml", "pnpm"}, {"yarn.lock", "yarn"}, {"bun.lock", "bun"}} {
		if _, err := os.Lstat(filepath.Join(dir, m[0])); err == nil {
			manager = m[1]
		}
	}
	var found []string
	for name := range p.Scripts {
		if script().MatchString(name) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return join(manager+" run", found)
}

// pythonCommands returns the tools that have a section in a pyproject.toml.
func pythonCommands(_ string, text []byte) string {
	var found []string
	for _, tool := range []string{"pytest", "ruff", "mypy", "tox", "nox"} {
		if bytes.Contains(text, []byte("[tool."+tool)) {
			found = append(found, tool)
		}
	}
	return strings.Join(found, ", ")
}

// readStart reads at most maxFile bytes of a regular file.
func readStart(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}
