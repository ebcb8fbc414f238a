package confine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Program is the file name of the launcher, which is in the folder of the executable that uses it.
const Program = "sublet-confine"

// NotConfined is the launcher's exit status if it could not confine the command, which then did not run.
const NotConfined = 126

// Shown is the variable of the launcher's environment that holds the beginning of the command's text, for a shell's list of jobs shows
// the line that starts the launcher. The command does not get it.
const Shown = "SUBLET"

// Find returns the path of the launcher, or a MissingError.
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

// A MissingError reports that there is no launcher beside the executable.
type MissingError struct{ Path string }

func (e *MissingError) Error() string { return "there is no program " + e.Path }
func (e *MissingError) Hint() string {
	return "build it beside sublet with `make build` or `make install`"
}

// Support describes what this machine can enforce.
type Support struct {
	How     string // the mechanisms, in a few words: "namespaces, Landlock 7, seccomp"; "" = nothing can be enforced
	Missing string // why nothing can be enforced, and how to change that
}

// Holds reports whether both reaches can be enforced; else none can.
func (s Support) Holds() bool { return s.How != "" }

// probeTimeout bounds Probe.
const probeTimeout = 10 * time.Second

// Probe returns what this machine can enforce. It has the launcher at path confine an empty command, which takes about 10 ms.
func Probe(path string) Support {
	ctx, cancel := context.WithTimeoutCause(context.Background(), probeTimeout, fmt.Errorf("%s did not end within %v", path, probeTimeout))
	defer cancel()
	return probe(ctx, path)
}

func probe(ctx context.Context, path string) Support {
	cmd := exec.CommandContext(ctx, path, "--probe")
	cmd.WaitDelay = time.Second // for a child that keeps the output open
	out, err := cmd.Output()
	text := strings.TrimSpace(string(out))
	if err != nil {
		why := cmp.Or(context.Cause(ctx), err).Error()
		if ee, ok := errors.AsType[*exec.ExitError](err); ok && len(ee.Stderr) > 0 {
			why = strings.TrimSpace(string(ee.Stderr))
			why = strings.TrimPrefix(why[strings.LastIndex(why, "\n")+1:], Program+": the command was not run: ") // others may precede the reason
		}
		return Support{Missing: why}
	}
	return Support{How: text}
}
