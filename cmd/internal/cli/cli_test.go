package cli

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// The scripts in testdata run the program itself: `sublet` in them is this test's own executable.
func TestMain(m *testing.M) {
	syscall.Umask(0o022) // settings that the group may write to are refused
	testscript.Main(m, map[string]func(){
		"sublet": func() { os.Exit(Main(os.Args[1:])) },
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "scripts"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Deadline:            time.Now().Add(9 * time.Minute), // of the 10 of `make test`
		Setup: func(e *testscript.Env) error {
			// Short, since a socket's path holds 104 bytes; private, so that nobody's own daemon is met.
			root, err := os.MkdirTemp("/tmp", "sl")
			if err != nil {
				return err
			}
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("SHELL", "/bin/bash")
			e.Setenv("SUBLET_RUNTIME_DIR", filepath.Join(root, "run"))
			e.Setenv("SUBLET_STATE_DIR", filepath.Join(root, "state"))
			e.Setenv("SUBLET_CONFIG", filepath.Join(e.WorkDir, "config.toml"))
			// The race detector holds each program back for a second at its end.
			e.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
			env := e.Vars
			e.Defer(func() {
				// Whatever became of the script, no daemon stays behind.
				stop := exec.Command("sublet", "daemon", "stop", "--drain", "0s")
				stop.Env = env
				_ = stop.Run() // exit status 4: none runs
				os.RemoveAll(root)
			})
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":   exitStatus,
			"expand":   expand,
			"take":     take,
			"waitfile": waitFile,
			"operator": operator,
		},
	})
}

// exitStatus runs a program and compares its exit status: `status 3 sublet ask …`. What it printed is for stdout and
// stderr, as after exec.
func exitStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N PROGRAM ARGUMENTS…")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if exit, ok := err.(*exec.ExitError); ok {
		got = exit.ProcessState.String()
		if exit.Exited() {
			got = strconv.Itoa(exit.ExitCode())
		}
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != args[0] {
		ts.Fatalf("exit status: got %s, want %s", got, args[0])
	}
}

// expand replaces $WORK in a file of the script.
func expand(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	ts.Check(os.WriteFile(path, []byte(strings.ReplaceAll(ts.ReadFile(args[0]), "$WORK", ts.Getenv("WORK"))), 0o600))
}

// take sets a variable to what a pattern's first group matches in the last standard output: `take ID '"id":"([^"]+)"'`.
func take(ts *testscript.TestScript, _ bool, args []string) {
	found := regexp.MustCompile("(?m)" + args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if found == nil {
		ts.Fatalf("no %s on standard output", args[1])
	}
	ts.Setenv(args[0], found[1])
}

// operator sends one line, with the token, to the `serve operator` whose standard error is operator.log, and prints what
// comes back up to the request's end.
func operator(ts *testscript.TestScript, _ bool, args []string) {
	var at [][]byte
	for deadline := time.Now().Add(30 * time.Second); at == nil; time.Sleep(10 * time.Millisecond) { // another process's log has no event
		log, err := os.ReadFile(ts.MkAbs("operator.log"))
		if at = operatorAt.FindSubmatch(log); at == nil && time.Now().After(deadline) {
			ts.Fatalf("serve operator did not say where it is: %s, %v", log, err)
		}
	}
	nc, err := net.Dial("tcp", string(at[1]))
	ts.Check(err)
	defer nc.Close()
	ts.Check(nc.SetDeadline(time.Now().Add(30 * time.Second)))
	_, err = fmt.Fprintf(nc, "{\"metadata\":{\"token\":%q},%s\n", at[2], strings.TrimPrefix(args[0], "{"))
	ts.Check(err)
	for r := bufio.NewReader(nc); ; {
		line, err := r.ReadString('\n')
		ts.Check(err)
		fmt.Fprint(ts.Stdout(), line)
		if operatorEnd.MatchString(line) {
			return
		}
	}
}

var (
	operatorAt  = regexp.MustCompile(`(?s)operator on (\S+),.*token (\S+) \(also`)
	operatorEnd = regexp.MustCompile(`"type":"(?:turn-completed|session|error)"|"stopReason":"e`)
)

// waitFile waits until a file is there, which another process makes: there is no event to wait for.
func waitFile(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("waited 30 s for %s", args[0])
		}
	}
}
