package judge

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sublet/daemon/internal/reach"
)

// shadow returns a function that looks a program's name up in path, as the shell does. It returns the file that the name would run if that
// lies in a folder where agents write without a question, of the project or of temporary files: an agent that puts a file named ls there
// decides what ls does. For a relative folder, which may be any, it returns ./name, and for other folders "". shadow returns nil for a
// path without such folders, as most are.
func shadow(path, project, home, temp string) func(name string) string {
	return shadowIn(path, project, home, []string{"/tmp", "/var/tmp", temp})
}

// shadowIn is shadow with a list of the folders of temporary files.
func shadowIn(path, project, home string, temps []string) func(name string) string {
	roots := temps
	if !within(project, home) { // a shell that stands at home, or above it, is in no project: ~/bin is not written to unasked
		roots = append(slices.Clip(roots), project)
	}
	for _, root := range roots {
		roots = append(roots, reach.Real(root))
	}
	open := func(dir string) bool {
		return slices.ContainsFunc(roots, func(root string) bool { return within(root, dir) })
	}
	dirs := strings.Split(path, ":")
	some := false
	for i, dir := range dirs {
		if !filepath.IsAbs(dir) {
			dirs[i], some = "", path != ""
			continue
		}
		if dirs[i] = filepath.Clean(dir); !open(dirs[i]) {
			dirs[i] = reach.Real(dirs[i])
		}
		some = some || open(dirs[i])
	}
	if !some {
		return nil
	}
	return func(name string) string {
		for _, dir := range dirs {
			if dir == "" {
				return "./" + name
			}
			file := filepath.Join(dir, name)
			if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
				continue
			}
			if open(dir) {
				return file
			}
			return ""
		}
		return ""
	}
}

// within reports whether path is dir or lies below it; "" holds nothing.
func within(dir, path string) bool {
	return dir != "" && (path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/"))
}
