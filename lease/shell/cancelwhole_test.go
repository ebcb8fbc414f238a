package shell

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Programs that take a cancel in their own way, under the names that the texts of TestCancelEndsWhole have for them.
const wholePrograms = `#!/bin/sh
case ${0##*/} in
catches) trap 'exit 0' INT ;;
exits130) trap 'exit 130' INT ;;
fails) trap 'exit 3' INT ;;
slow) trap 'sleep 0.3; exit 0' INT ;;
ignores) trap '' INT ;;
stays) trap '' INT TERM ;;
esac
echo go
while :; do sleep 0.02; done
`

// A cancelled list went on: a program that took SIGINT for an ordinary end, or had to be ended by another signal, was
// followed by the next of its text (`server; rm -rf build`). T2a.
func TestCancelEndsWhole(t *testing.T) {
	t.Parallel()
	needsTracing(t)
	bin := t.TempDir()
	for _, name := range []string{"catches", "dies", "exits130", "fails", "slow", "ignores", "stays"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(wholePrograms), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	texts := []struct{ name, text, programs string }{ // P is the program, S what must not begin; catches where programs is empty
		{"list", `P; S`, "catches exits130 fails slow ignores"},
		{"lines", "P\nS\n", ""},
		{"and or", `P && S || S`, ""},
		{"condition", `if P; then S; else S; fi`, ""},
		{"function", `f() { P; S; }; f; S`, "catches ignores"},
		{"functions", `g() { P; S; }; f() { g; S; }; f; S`, ""},
		{"loop", `while :; do P; S; done; S`, "catches ignores stays"},
		{"words", `for x in a b; do P; S; done; S`, ""},
		{"eval", `eval 'P; S'; S`, ""},
		{"group", `{ P; S; }; S`, ""},
		{"negated", `! P; S`, ""},
		{"pipeline", `P | cat; S`, "catches ignores"},
		{"end of a pipeline", `true | P; S`, ""},
		{"subshell", `(P; S); S`, "catches fails slow ignores"},
		{"subshells", `((P; S); S); S`, "catches dies"},
		{"function in a subshell", `f() { P; S; }; (f; S); S`, ""},
		{"loop in a subshell", `(while :; do P; S; done)`, "catches ignores"},
		{"pipeline in a subshell", `(P | cat; S)`, ""},
		{"loop behind a pipeline in a subshell", `(P >/dev/tty | while :; do :; done; S)`, "catches dies slow ignores"},
		{"read behind a pipeline in a subshell", `(P >/dev/tty | while read -r x; do S; done; S)`, "catches dies"},
		{"loop in subshells", `((P >/dev/tty; S) | (while :; do :; done); S)`, "catches dies"},
		{"substitution in a subshell", `(x=$(P >/dev/tty; S); S)`, "catches dies"},
		{"loop in a substitution", `x=$( (P >/dev/tty | while :; do :; done; S); S)`, "catches dies"},
		{"process substitution in a subshell", `(cat <(P; S); S)`, "catches dies"},
		{"exit trap of an inner subshell", `((trap 'echo trapped' EXIT; P; S); S)`, "catches dies"},
		{"group in a pipeline", `{ P; S; } | cat; S`, "catches slow"},
		{"groups in a pipeline", `{ P >/dev/tty; S; } | { sleep 100; S; } | cat; S`, ""},
		{"substitution", `x=$(P >/dev/tty; S); S`, "catches slow"},
		{"process substitution", `cat <(P; S); S`, "catches slow"},
		{"exit trap of a subshell", `(trap 'echo trapped' EXIT; P; S); S`, ""},
		{"errexit", `set +e -e; P; S`, ""},
		{"exit", `P; S; exit`, "catches slow ignores"},
		{"background job of a subshell", `(sleep 100.5 & until [[ $c == sleep ]]; do read -r c </proc/$!/comm; done; P; S); S`, ""}, // as a fork it would not ignore SIGINT yet
		{"trap", `trap 'echo trapped' INT; P; S`, "catches ignores"},
		{"ignored", `trap '' INT; P; S`, "catches ignores"},
		{"loop under a trap", `trap 'x=1' INT; while :; do P; S; done`, ""},
		{"function under a trap", `trap 'x=1' INT; f() { P; S; }; f; S`, ""},
		{"error trap", `set -E; trap 'S' ERR; P; S`, "ignores"}, // that of bash 5.1 runs behind a SIGINT, too
		{"debug trap", `set -T; trap 'x=1' DEBUG; P; S`, ""},
		{"timed", `time P; S`, ""},
	}
	for _, x := range texts {
		for _, program := range strings.Fields(cmp.Or(x.programs, "catches")) {
			for _, u := range []bool{false, true} {
				if u && (program != "catches" || strings.Contains(x.text, "' INT;")) {
					continue // in a person's shell a trap is theirs
				}
				name := x.name + " " + program + map[bool]string{false: "", true: " user"}[u]
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					within := map[string]time.Duration{"ignores": 3 * time.Second, "stays": 5 * time.Second}[program]
					s := start(t, func(o *Options) { o.Env = append(o.Env, "PATH="+bin+":"+os.Getenv("PATH")) })
					if x.name == "process substitution in a subshell" && atLeast(s.version, 5, 3) {
						t.Skip("there it is a background job to bash 5.3, and ignores SIGINT: it is left")
					}
					mark := filepath.Join(t.TempDir(), "second")
					text := strings.NewReplacer("P", program, "S", "touch "+mark).Replace(x.text)
					pid := s.PID()
					res, took := cancelled(t, s, Command{Text: ": 'echo go'\n" + text, User: u})
					if left := fmt.Sprint(res.Leftovers); strings.Contains(text, "100.5") && !strings.Contains(left, "sleep 100.5") {
						t.Errorf("left over: got %s, want the background job", left)
					}
					for _, p := range res.Leftovers {
						_ = syscall.Kill(p.PID, syscall.SIGKILL)
						if p.Command != "sleep 100.5" {
							t.Errorf("left over: %q", p.Command)
						}
					}
					if res.Status != "cancelled" || took > max(within, time.Second)+slack {
						t.Errorf("got %s after %v", res.Status, took)
					}
					if s.PID() != pid || res.Respawned {
						t.Errorf("the shell was replaced: %q", res.Notes)
					}
					if r := do(t, s, leased("echo whole")); string(r.Output) != "whole\n" {
						t.Errorf("then got %q", r.Output)
					}
					if _, err := os.Stat(mark); err == nil {
						t.Errorf("it went on: %q", res.Output)
					}
				})
			}
		}
	}
}

// The user's own traps are theirs behind the cancel of a command that had its own, and behind one that took them away.
func TestTrapsBehindACancel(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	do(t, s, user("trap 'echo mine' INT; trap 'echo too' URG; trap 'x=1' DEBUG"))
	const list = "trap -p INT URG DEBUG"
	want := string(do(t, s, user(list)).Output)
	for _, text := range []string{
		"trap 'x=1' INT; echo go; sleep 1000", "trap - INT URG DEBUG; echo go; sleep 1000; echo after", "f() { echo go; sleep 1000; }; f",
		"trap '' INT URG; echo go; sleep 1000",
	} {
		if res, _ := cancelled(t, s, leased(text)); res.Status != "cancelled" || res.Respawned {
			t.Errorf("%q: got %s, respawned %v", text, res.Status, res.Respawned)
		}
		if got := string(do(t, s, user(list)).Output); got != want {
			t.Errorf("behind %q: got %q, want %q", text, got, want)
		}
	}
}

// A person's own trap for SIGINT had the list of a cancelled command go on, and that they ignore it (T2a). It is theirs behind it.
func TestCancelUnderTheUsersTrap(t *testing.T) {
	t.Parallel()
	for _, trap := range []string{"'echo mine'", "''"} {
		for _, text := range []string{"echo go; sleep 1000; S", "echo go; sleep 1000 || S", "while :; do echo go; sleep 1000; S; done; S", "echo go; sleep 1000 | cat; S"} {
			t.Run(trap+" "+text, func(t *testing.T) {
				t.Parallel()
				s := start(t, nil)
				do(t, s, user("trap "+trap+" INT"))
				mark := filepath.Join(t.TempDir(), "second")
				if res, _ := cancelled(t, s, leased(strings.ReplaceAll(text, "S", "touch "+mark))); res.Status != "cancelled" || res.Respawned {
					t.Errorf("got %s, respawned %v", res.Status, res.Respawned)
				}
				if _, err := os.Stat(mark); err == nil {
					t.Error("it went on")
				}
				if got, want := string(do(t, s, user("trap -p")).Output), "trap -- "+trap+" SIGINT\n"; got != want {
					t.Errorf("then got %q, want %q", got, want)
				}
			})
		}
	}
}

// A subshell whose program dies of SIGINT is left to end of it, as bash does: its state is handed back, and the status is 130.
// Stopped too late it had taken in the program's end before, and was ended by SIGTERM.
func TestCancelOfSubshells(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for i := range 40 {
		if res, _ := cancelled(t, s, leased("set -e; echo go; sleep 1000")); exit(res) != 130 || res.Respawned || strings.Contains(string(res.Output), "Terminated") {
			t.Fatalf("%d: got exit %d: %q %q", i, exit(res), res.Output, res.Notes)
		}
	}
}

// What the EXIT trap of a subshell began was killed, for it could have been one that had lost SIGINT as a fork.
func TestCancelAwaitsExitTraps(t *testing.T) {
	t.Parallel()
	needsTracing(t)
	s := start(t, nil)
	const program = `sh -c 'trap "exit 0" INT; echo go >/dev/tty; while :; do sleep 0.02; done'; echo after >/dev/tty`
	for _, text := range []string{
		`(trap 'sleep 0.4 && echo trapped >/dev/tty' EXIT; ` + program + `)`,
		`(trap 'sleep 0.4 && echo trapped >/dev/tty' EXIT; ` + program + `) | cat`,
	} {
		res, _ := cancelled(t, s, leased(text+"; : echo go"))
		if got := string(res.Output); !strings.Contains(got, "\ntrapped") || strings.Contains(got, "\nafter") {
			t.Errorf("%q: got %q", text, got)
		}
	}
}
