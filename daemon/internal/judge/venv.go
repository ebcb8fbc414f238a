package judge

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"sublet/daemon/internal/reach"
)

// venvPath matches the path of a folder that needs no quotes in any shell.
var venvPath = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9@%+=:,./_-]+$`) })

// venvProgram matches what Python puts into bin of a virtual environment.
var venvProgram = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^((python|pip)[0-9.]*t?|[aA]ctivate(\.[a-z0-9]+)?)$`)
})

// maxVenvFile bounds the files of a virtual environment that are read, in bytes.
const maxVenvFile = 64 << 10

// standardVenv reports whether file is the activate script of a virtual environment in project, byte for byte as the Python
// outside of the project that made it writes it, and hides no program of path. It is for bash and zsh: what fish sources is not read.
func standardVenv(file, project, path string) bool {
	bin := filepath.Dir(file)
	dir := filepath.Dir(bin)
	real, err := filepath.EvalSymlinks(file)
	if err != nil || real != file || !strings.HasSuffix(file, "/bin/activate") || !within(project, dir) || dir == project || !venvPath().MatchString(dir) {
		return false
	}
	python, version := venvOrigin(readSmall(filepath.Join(dir, "pyvenv.cfg")))
	if python, err = filepath.EvalSymlinks(python); err != nil || within(project, python) || !slices.ContainsFunc(pythons(reach.Home()), func(dir string) bool { return within(dir, python) }) {
		return false
	}
	template := readSmall(filepath.Join(filepath.Dir(python), "lib", "python"+version, "venv", "scripts", "common", "activate"))
	return template != "" && madeFrom(readSmall(file), template, dir) && !hides(bin, path)
}

// venvState returns what decides what an activate script does: its text, and the programs that it puts before others.
func venvState(file string) string {
	state := readSmall(file)
	list, err := os.ReadDir(filepath.Dir(file))
	for _, e := range list {
		state += "\x00" + e.Name()
	}
	return fmt.Sprint(state, "\x00", err)
}

// pythons returns the folders below which Pythons are installed that no confined command can have changed.
func pythons(home string) []string {
	list := []string{"/usr", "/opt", "/nix/store", "/home/linuxbrew", "/Library/Frameworks"}
	for _, name := range []string{".pyenv/versions", ".local/share/uv/python", ".local/share/mise/installs", ".asdf/installs"} {
		list = append(list, filepath.Join(home, name))
	}
	return list
}

// madeFrom reports whether a script is a template, filled in for a virtual environment in dir. Some versions of Python quote
// the prompt, and some put it into brackets.
func madeFrom(script, template, dir string) bool {
	name := filepath.Base(dir)
	for _, prompt := range []string{"(" + name + ") ", "'(" + name + ") '", name} {
		filled := strings.NewReplacer("__VENV_DIR__", dir, "__VENV_NAME__", name, "__VENV_PROMPT__", prompt, "__VENV_BIN_NAME__", "bin", "__VENV_PYTHON__", filepath.Join(dir, "bin", "python")).Replace(template)
		if script == filled {
			return true
		}
	}
	return false
}

// venvOrigin returns from the text of a pyvenv.cfg the folder of the Python that made it, and that Python's version, such as
// "3.12".
func venvOrigin(cfg string) (bin, version string) {
	for line := range strings.Lines(cfg) {
		key, value, _ := strings.Cut(line, "=")
		switch value = strings.TrimSpace(value); strings.TrimSpace(key) {
		case "home":
			bin = value
		case "version":
			if parts := strings.Split(value, "."); len(parts) > 1 {
				version = parts[0] + "." + parts[1]
			}
		}
	}
	return bin, version
}

// hides reports whether bin has a program that another folder of path also has, apart from those that Python puts into every
// virtual environment.
func hides(bin, path string) bool {
	list, err := os.ReadDir(bin)
	if err != nil {
		return true
	}
	for _, e := range list {
		if venvProgram().MatchString(e.Name()) {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			if _, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && dir != bin {
				return true
			}
		}
	}
	return false
}

// readSmall returns the content of a regular file, "" where it cannot be read or is too long.
func readSmall(path string) string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxVenvFile {
		return ""
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(data)
}
