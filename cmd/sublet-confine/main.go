// Command sublet-confine runs a command that the kernel confines to a reach. It is started instead of the command, as a
// foreground job of the user's shell: sublet-confine SPEC PROGRAM ARG..., where SPEC is a file in the encoding of
// lease/confine. It exits with the command's status. On Linux it ends processes that the command left running. If it cannot
// confine the command, it runs nothing, prints why and exits with 126. `sublet-confine --probe` prints what the kernel can
// enforce.
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
		status = confine.NotConfined
	}
	os.Exit(status)
}

// run runs the program with args, its arguments without its name, and returns its exit status. The first argument selects what it does:
// probe, act as a child of itself (childModes, argNothing), or else confine a command.
func run(args []string) (int, error) {
	switch {
	case len(args) == 1 && args[0] == "--probe":
		return probe()
	case len(args) == 1 && args[0] == argNothing:
		return 0, nil
	case len(args) >= 2 && childModes[args[0]] != nil:
		return 0, childModes[args[0]](args[1], args[2:])
	case len(args) >= 2:
		_ = os.Unsetenv(confine.Shown) // it has no other error than an invalid name
		return parent(args[0], args[1:])
	}
	return 0, fmt.Errorf("usage: sublet-confine SPEC PROGRAM [ARG...], or sublet-confine --probe")
}

// argNothing is the first argument that makes this program exit at once: the command that probe confines.
const argNothing = "--nothing"

func readSpec(path string) (confine.Spec, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return confine.Spec{}, err
	}
	return confine.Decode(text)
}
