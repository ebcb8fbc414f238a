package confine

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Program is the name of the launcher. It stands beside the executable that uses it.
const Program = "sublet-confine"

// NotHeld is the launcher's exit status where it could not hold the command, which then did not run.
const NotHeld = 126

// Release is the first argument by which the launcher removes what a killed one left in the project of a Spec, whose file is the second.
const Release = "--release"

// Find returns the path of the launcher, or an error that says what to do.
func Find() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(exe); err == nil {
		exe = real
	}
	path := filepath.Join(filepath.Dir(exe), Program)
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() || st.Mode()&0o111 == 0 {
		return "", &MissingError{Path: path}
	}
	return path, nil
}

// A MissingError reports that the launcher is not where it belongs.
type MissingError struct{ Path string }

func (e *MissingError) Error() string { return "there is no program " + e.Path }
func (e *MissingError) Hint() string {
	return "build it beside sublet with `make build` or `make install`"
}

// Support is what is held here.
type Support struct {
	Reaches []string // Read, Project, or none
	How     string   // the mechanisms, in a few words: "namespaces, Landlock 7, seccomp"
	Missing string   // why nothing is held, and how to get it; "" = both reaches are
}

// Holds reports whether a reach is held.
func (s Support) Holds(reach string) bool {
	for _, r := range s.Reaches {
		if r == reach {
			return true
		}
	}
	return false
}

// Probe finds out what is held here, by having the launcher at path hold a command. It takes some 10 ms.
func Probe(path string) Support {
	out, err := exec.Command(path, "--probe").Output()
	text := strings.TrimSpace(string(out))
	if err != nil {
		why := err.Error()
		if ee, ok := errors.AsType[*exec.ExitError](err); ok && len(ee.Stderr) > 0 {
			why = strings.TrimSpace(string(ee.Stderr))
		}
		return Support{Missing: why}
	}
	return Support{Reaches: []string{Read, Project}, How: text}
}
