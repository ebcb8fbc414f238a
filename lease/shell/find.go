package shell

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The oldest bash that has all the mechanism needs: PS0, ${PS1@P} and `local -` came with 4.4.
const minMajor, minMinor = 4, 4

// A NoBashError reports that no bash of at least 4.4 was found. Shell is $SHELL, Old the newest bash that was too old.
type NoBashError struct{ Shell, Old string }

func (e *NoBashError) Error() string {
	if e.Old != "" {
		return fmt.Sprintf("bash %d.%d or newer is needed, found only %s", minMajor, minMinor, e.Old)
	}
	return fmt.Sprintf("bash %d.%d or newer is needed, found none on PATH", minMajor, minMinor)
}

// Hint says in one line how to get one; users of another shell are told so plainly.
func (e *NoBashError) Hint() string {
	hint := "install bash with your package manager (apt install bash, brew install bash)"
	if base := filepath.Base(e.Shell); base != "bash" && base != "." && base != "" {
		hint += "; sublet lends bash, not " + base + ": your " + base + " settings are not read"
	}
	return hint
}

// Find returns the bash to lend: $SHELL of env if that is a bash of at least 4.4, else the first such one on PATH, with
// its version as "5.2.15". It runs each candidate once, for at most 5 s in which the machine does not stand still. The error is
// a *[NoBashError].
func Find(env []string) (path, version string, err error) {
	var login, search string
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "SHELL="); ok {
			login = v
		} else if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = v
		}
	}
	missing := &NoBashError{Shell: login}
	var candidates []string
	if filepath.Base(login) == "bash" && filepath.IsAbs(login) {
		candidates = append(candidates, login)
	}
	for _, dir := range filepath.SplitList(search) {
		if filepath.IsAbs(dir) { // never a bash that lies in the working directory
			candidates = append(candidates, filepath.Join(dir, "bash"))
		}
	}
	candidates = append(candidates, "/bin/bash", "/usr/bin/bash")
	seen := make(map[string]bool)
	for _, c := range candidates {
		if seen[c] {
			continue
		}
		seen[c] = true
		if st, err := os.Stat(c); err != nil || st.IsDir() || st.Mode()&0o111 == 0 {
			continue
		}
		v, err := bashVersion(c)
		if err != nil {
			continue
		}
		if newEnough(v) {
			return c, v, nil
		}
		if missing.Old == "" {
			missing.Old = c + " " + v
		}
	}
	return "", "", missing
}

// bashVersion asks the program itself, without any start-up file.
func bashVersion(path string) (string, error) {
	ctx, stop := Patiently(context.Background(), 5*time.Second)
	defer stop()
	cmd := exec.CommandContext(ctx, path, "--norc", "--noprofile", "-c",
		`printf %s "${BASH_VERSINFO[0]}.${BASH_VERSINFO[1]}.${BASH_VERSINFO[2]}"`)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", path, err)
	}
	return string(bytes.TrimSpace(out)), nil
}

func newEnough(version string) bool { return atLeast(version, minMajor, minMinor) }

func atLeast(version string, wantMajor, wantMinor int) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err1 := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	return err1 == nil && err2 == nil && (a > wantMajor || a == wantMajor && b >= wantMinor)
}
