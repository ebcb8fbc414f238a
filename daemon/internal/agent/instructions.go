package agent

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sublet/daemon/config"
	"sublet/daemon/internal/mask"
)

const maxInstructions = 48 << 10 // bytes of one instruction file

// instructionFiles are read from the project's root down to the working directory: in each folder the first that exists of
// the first list, and .sublet.md.
var instructionFiles = [][]string{{"AGENTS.md", "CLAUDE.md"}, {".sublet.md"}}

type instructionFile struct{ path, text string }

// instructions reads the project's instruction files, of each at most maxInstructions bytes. It leaves out links that lead out
// of the project, and files that are not regular.
func instructions(root, cwd string) []instructionFile {
	if root == "" {
		return nil
	}
	realRoot, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil
	}
	dirs := []string{realRoot}
	if realCwd, err := filepath.EvalSymlinks(cwd); err == nil {
		if rel, err := filepath.Rel(realRoot, realCwd); err == nil && filepath.IsLocal(rel) && rel != "." {
			at := realRoot
			for _, part := range strings.Split(rel, string(filepath.Separator)) {
				at = filepath.Join(at, part)
				dirs = append(dirs, at)
			}
		}
	}
	var out []instructionFile
	for _, dir := range dirs {
		for _, names := range instructionFiles {
			i := slices.IndexFunc(names, func(name string) bool {
				_, err := os.Lstat(filepath.Join(dir, name))
				return err == nil
			})
			if i < 0 {
				continue
			}
			path, err := filepath.EvalSymlinks(filepath.Join(dir, names[i]))
			if err != nil {
				continue
			}
			if rel, err := filepath.Rel(realRoot, path); err != nil || !filepath.IsLocal(rel) {
				continue
			}
			if text := readInstructions(path); text != "" {
				out = append(out, instructionFile{path: filepath.Join(dir, names[i]), text: text})
			}
		}
	}
	return out
}

// readInstructions returns at most maxInstructions bytes of an instruction file, secrets masked; "" if it cannot be read.
func readInstructions(path string) string {
	text, longer, err := readRegular(path, maxInstructions)
	if err != nil {
		return ""
	}
	if longer {
		text += "\n[the rest is left out]"
	}
	return mask.String(strings.TrimSpace(clean(text)))
}

// Instructions returns what would instruct agents in cwd if its project with this root were trusted: the names of the
// instruction files and of the project's own roles, and in words what they would do.
func Instructions(cfg config.Config, root, cwd string) (names []string, would string) {
	var effects []string
	for _, f := range instructions(root, cwd) {
		if name, err := filepath.Rel(root, f.path); err == nil {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		effects = append(effects, strings.Join(names, ", ")+" would instruct agents here")
	}
	own, _ := projectRoles(&cfg, filepath.Join(root, ".sublet", "agents")) // a file that is not a role instructs nobody
	if roles := slices.Sorted(maps.Keys(own)); len(roles) > 0 {
		names = append(names, roles...)
		effects = append(effects, ".sublet/agents would add "+strings.Join(roles, ", "))
	}
	return names, strings.Join(effects, "; ")
}
