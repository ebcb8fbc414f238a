package shell

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sublet/lease/shell/dialect"
	"sublet/lease/shell/dialect/bash"
	"sublet/lease/shell/dialect/fish"
	"sublet/lease/shell/dialect/zsh"
)

// dialects are the shells that can be lent; the first is used if the user's is not among them.
var dialects = []*dialect.Dialect{bash.Dialect, zsh.Dialect, fish.Dialect}

// A NoShellError reports that no shell that can be lent was found. Needs is what was looked for, as "bash 4.4", and Old is one that
// is too old, with its version.
type NoShellError struct{ Needs, Old string }

func (e *NoShellError) Error() string {
	return e.Needs + " or newer is needed, found " + cmp.Or(e.Old, "none on PATH")
}

// Hint returns a line about how to install one.
func (e *NoShellError) Hint() string {
	return "install bash with your package manager (apt install bash, brew install bash)"
}

// Find returns the shell to lend, with its version as "5.2.15": $SHELL of env, or else the first bash on PATH, in /bin or in
// /usr/bin, that is new enough. It runs each candidate once, for at most 5 s. The error is a *NoShellError.
func Find(env []string) (path string, d *dialect.Dialect, version string, err error) {
	missing := &NoShellError{Needs: needs(dialects[0])}
	candidates := []string{dialect.Getenv(env, "SHELL")}
	for _, dir := range filepath.SplitList(dialect.Getenv(env, "PATH")) {
		candidates = append(candidates, filepath.Join(dir, dialects[0].Name))
	}
	candidates = append(candidates, "/bin/"+dialects[0].Name, "/usr/bin/"+dialects[0].Name)
	seen := make(map[string]bool)
	for _, c := range candidates {
		if seen[c] || !filepath.IsAbs(c) { // a relative one would depend on the working directory
			continue
		}
		seen[c] = true
		d, version, err := Identify(c)
		if err == nil {
			return c, d, version, nil
		}
		if old, ok := errors.AsType[*NoShellError](err); ok && missing.Old == "" {
			missing = old
		}
	}
	return "", nil, "", missing
}

func needs(d *dialect.Dialect) string {
	return fmt.Sprintf("%s %d.%d", d.Name, d.Oldest[0], d.Oldest[1])
}

// Lendable reports whether shells of this name can be lent, as "zsh".
func Lendable(name string) bool {
	return slices.ContainsFunc(dialects, func(d *dialect.Dialect) bool { return d.Name == name })
}

// Identify returns which shell the program at path is, by the name of its file, and the version that it prints. The error is a
// *NoShellError if it is too old.
func Identify(path string) (*dialect.Dialect, string, error) {
	for _, d := range dialects {
		if filepath.Base(path) != d.Name {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, path, d.VersionArgs...)
		cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
		out, err := cmd.Output()
		if err != nil {
			return nil, "", fmt.Errorf("ask %s for its version: %w", path, err)
		}
		version := string(bytes.TrimSpace(out))
		if !atLeast(version, d.Oldest) {
			return nil, "", &NoShellError{Needs: needs(d), Old: path + " " + version}
		}
		return d, version, nil
	}
	return nil, "", fmt.Errorf("%s is not a shell that sublet can lend", path)
}

func atLeast(version string, want [2]int) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err1 := strconv.Atoi(major)
	b, err2 := strconv.Atoi(strings.TrimRight(minor, "abcdefghijklmnopqrstuvwxyz-"))
	return err1 == nil && err2 == nil && (a > want[0] || a == want[0] && b >= want[1])
}
