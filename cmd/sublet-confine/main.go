// Command sublet-confine runs a command that the kernel holds to a reach. It is started in the place of the command, as a
// foreground job of the user's shell: sublet-confine SPEC PROGRAM ARG..., where SPEC is a file that lease/confine wrote. It
// passes on the command's exit status and ends whatever the command left running. Where it cannot hold the command it runs
// nothing and exits with 126 and a line that says why. `sublet-confine --probe` prints what the kernel holds here.
package main

import (
	"fmt"
	"os"

	"sublet/lease/confine"
)

func main() {
	status, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "sublet-confine: the command was not run:", err)
		status = confine.NotHeld
	}
	os.Exit(status)
}

func run(args []string) (int, error) {
	switch {
	case len(args) == 1 && args[0] == "--probe":
		return probe()
	case len(args) == 2 && args[0] == confine.Release:
		return 0, release(args[1])
	case len(args) == 1 && args[0] == stageNone:
		return 0, nil
	case len(args) >= 2 && args[0] == stageTwo:
		return 0, prepare(args[1], args[2:])
	case len(args) >= 2 && args[0] == stageThree:
		return 0, keeper(args[1], args[2:])
	case len(args) >= 2:
		return parent(args[0], args[1:])
	}
	return 0, fmt.Errorf("usage: sublet-confine SPEC PROGRAM [ARG...], or sublet-confine --probe")
}

// stageTwo is the first argument of the process that has namespaces of its own, and makes the mounts in them; stageThree is
// what it becomes: the keeper, which starts the command.
const (
	stageTwo   = "--held"
	stageThree = "--keep"
)

// stageNone does nothing. It is the command that probe has held.
const stageNone = "--nothing"

func readSpec(path string) (confine.Spec, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return confine.Spec{}, err
	}
	return confine.Decode(text)
}
