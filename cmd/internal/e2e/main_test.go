// Package e2e drives the real program as its user does: the binary on a real PTY, real daemons, real bash, kill -9
// included. Only the model is a script.
package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"sublet/lease/confine/confinetest"
)

// binary is the program under test, built once, with the race detector when the tests have it.
var binary string

func TestMain(m *testing.M) {
	if os.Getenv(hostedMode) != "" {
		playPuppet()
		return
	}
	flag.Parse()
	// A test mostly waits for other processes, so more of them fit beside each other than there are processors.
	isSet := false
	flag.Visit(func(f *flag.Flag) { isSet = isSet || f.Name == "test.parallel" })
	if !isSet {
		if err := flag.Set("test.parallel", "4"); err != nil {
			panic(err)
		}
	}
	dir, err := os.MkdirTemp("", "sublet-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "sublet")
	args := []string{"build", "-o", binary}
	if raceEnabled {
		args = append(args, "-race")
	}
	build := exec.Command("go", append(args, "sublet/cmd/sublet")...)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build the program under test:", err)
		os.Exit(1)
	}
	if _, err := confinetest.Build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
