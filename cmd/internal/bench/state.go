package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sublet/lease/shell"
)

// stateRows time how long after a leased command's result it is known what the command changed in the shell, and told in
// one line, against the millisecond it may take.
func stateRows(string) (rows []row, stop func(), err error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, nil, err
	}
	stop = func() { _ = os.RemoveAll(dir) } // measured already
	for _, r := range []struct {
		id, name  string
		functions int
		rc, text  string
	}{
		{"D1", "what a command changed, in an ordinary shell", 3, "", export},
		{"D2", "with 100 functions more, as bash-completion has", 103, "", export},
		{"D3", "with a prompt hook of the user", 3, "PROMPT_COMMAND='n=$((n+1))'\n", export},
		{"D4", "by a text that may do anything", 3, "", opaque},
		{"D5", "the same, with a prompt hook", 3, "PROMPT_COMMAND='n=$((n+1))'\n", opaque},
		{"D6", "D4 with 100 functions more", 103, "", opaque},
	} {
		sh, err := ordinaryShell(filepath.Join(dir, r.id), r.functions, r.rc)
		if err != nil {
			stop()
			return nil, nil, err
		}
		rest := stop
		stop = func() { _ = sh.Close(); rest() } // measured already
		rows = append(rows, row{
			id: r.id, name: r.name, unit: "us", baseline: "the millisecond it may take", goal: 1, rounds: 7,
			ours: func() (float64, error) { return changeKnown(sh, r.text) },
			base: func() (float64, error) { return 1000, nil },
		})
	}
	return rows, stop, nil
}

// export changes a variable; it takes a number.
const export = "export ORDINARY_1=%d"

// opaque does so in a way that no look at the text can tell from any other.
const opaque = "v='" + export + "'; eval \"$v\"; unset v"

// ordinaryShell has sixty variables, Debian's aliases, functions of twenty lines, and what begin has in its start-up file.
func ordinaryShell(home string, functions int, begin string) (*shell.Shell, error) {
	var rc strings.Builder
	rc.WriteString(begin)
	for _, alias := range []string{"ls=ls --color=auto", "grep=grep --color=auto", "ll=ls -alF", "la=ls -A", "l=ls -CF"} {
		fmt.Fprintf(&rc, "alias %s='%s'\n", strings.SplitN(alias, "=", 2)[0], strings.SplitN(alias, "=", 2)[1])
	}
	for n := range functions {
		fmt.Fprintf(&rc, "_function_%d() {\n%s}\n", n, strings.Repeat("    local cur prev; [[ $cur == -* ]] && return 0\n", 20))
	}
	file := filepath.Join(home, ".bashrc")
	if err := errors.Join(os.MkdirAll(home, 0o700), os.WriteFile(file, []byte(rc.String()), 0o600)); err != nil {
		return nil, err
	}
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8"}
	for n := range 56 {
		env = append(env, fmt.Sprintf("ORDINARY_%d=/usr/share/something/or/other", n))
	}
	return shell.Start(context.Background(), shell.Options{Folder: home, RC: file, Env: env})
}

// changeKnown is the median of forty such times after a command that text makes, in microseconds.
func changeKnown(sh *shell.Shell, text string) (float64, error) {
	ctx := context.Background()
	before, err := sh.State(ctx)
	if err != nil {
		return 0, err
	}
	list := make([]float64, 40)
	for i := range list {
		if _, err := sh.Run(ctx, shell.Command{Text: fmt.Sprintf(text, time.Now().UnixNano())}); err != nil {
			return 0, err
		}
		begun := time.Now()
		after, err := sh.Left(ctx)
		if err != nil {
			return 0, err
		}
		told := shell.Difference(before, after)
		list[i] = float64(time.Since(begun).Nanoseconds()) / 1e3
		if told != "changed ORDINARY_1" {
			return 0, fmt.Errorf("export: got %q, want changed ORDINARY_1", told)
		}
		before = after
	}
	return median(list), nil
}
