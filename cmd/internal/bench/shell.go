package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sublet/lease/shell"
)

// shellRows compare a leased command with what every other agent does, a bash for each command.
func shellRows(s *site) (rows []row) {
	for _, path := range installedShells() {
		name := filepath.Base(path)
		writeStartFiles(s.dir, name)
		sh := must(shell.Start(shell.Options{Path: path, Dir: s.dir, Env: s.env, Folder: s.dir}))
		s.cleanup(sh.Close)
		leased := func() float64 { return runLeased(sh, "true") }
		letter := name[:1]
		rows = append(
			rows,
			row{"C1" + letter, "leased `true`, exit code and cwd known, " + name, "us", 0.4, 7, median(100, leased), "bash -c true", runs(100, nil, "bash", "-c", "true")},
			row{"C5" + letter, "cancel of `sleep 100`, end proved, " + name, "us", 1000, 7, median(15, func() float64 { return cancelSleep(sh) }), "", nil},
			row{"D1" + letter, "what a command changed is known, " + name, "us", 1000, 7, median(40, func() float64 { return changeKnown(sh) }), "", nil},
		)
	}
	return rows
}

// installedShells returns the paths of those that can be measured, and prints which cannot.
func installedShells() (list []string) {
	for _, name := range []string{"bash", "zsh", "fish"} {
		if path, err := exec.LookPath(name); err != nil {
			fmt.Printf("without rows of %s: it is not installed (`make shells`)\n", name)
		} else {
			list = append(list, path)
		}
	}
	return list
}

// runLeased takes the shell, runs a command and gives the shell back. It returns how long it took until exit code and
// directory were known.
func runLeased(sh *shell.Shell, command string) float64 {
	ctx := context.Background()
	var res shell.Result
	var err error
	took := timed(func() {
		if err = sh.Hold(ctx); err == nil {
			res, err = sh.Run(ctx, shell.Command{Text: command})
		}
	})
	if err == nil && (res.ExitCode == nil || *res.ExitCode != 0) {
		err = fmt.Errorf("%s: got %+v, want exit code 0", command, res)
	}
	check(errors.Join(err, sh.Release()))
	return took
}

// changeKnown returns how long after a command's end it is known what the command changed.
func changeKnown(sh *shell.Shell) float64 {
	before := must(sh.State(context.Background()))
	runLeased(sh, fmt.Sprintf("export CHANGED=%d", time.Now().UnixNano()))
	var difference string
	took := timed(func() { difference = shell.Difference(before, must(sh.State(context.Background()))) })
	if !strings.Contains(difference, "CHANGED") {
		check(fmt.Errorf("export: the difference is %q", difference))
	}
	return took
}

// cancelSleep returns how long a cancel takes.
func cancelSleep(sh *shell.Shell) float64 {
	check(sh.Hold(context.Background()))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var at time.Time
	asleep := sync.OnceFunc(func() {
		time.AfterFunc(5*time.Millisecond, func() { // the sleep itself runs by then, not only what begins it
			at = time.Now()
			cancel()
		})
	})
	res, err := sh.Run(ctx, shell.Command{Text: "sh -c 'echo asleep; exec sleep 100'", Output: func([]byte) { asleep() }})
	took := since(at)
	if err == nil && res.Status != "cancelled" {
		err = fmt.Errorf("cancel: got %+v", res)
	}
	check(errors.Join(err, sh.Release()))
	return took
}
