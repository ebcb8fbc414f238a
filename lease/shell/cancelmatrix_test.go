package shell

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Everything that can run ends when it is cancelled, a borrower's command and a person's, within the bound of the signal it
// needs (INT at once, TERM after 2 s, KILL after 2 s more); what is left is listed; and the shell is the same, answers, and
// knows what changed. T2a, T6d.
func TestCancelMatrix(t *testing.T) {
	t.Parallel()
	const soon, term, kill = time.Second, 3 * time.Second, 5 * time.Second
	cases := []struct {
		name, text string
		within     time.Duration
		left       string // in the command line of what is left over
		root       bool   // needs another user
	}{
		{"program", "sh -c 'echo go; exec sleep 1000'", soon, "", false},
		{"read", "echo go; read -r x", soon, "", false},
		{"loop of the shell", "echo go; while :; do :; done", soon, "", false},
		{"function", "f() { while :; do :; done; }; echo go; f", soon, "", false},
		{"deaf to INT", "trap '' INT; echo go; while :; do sleep 0.01; done", soon, "", false},
		{"deaf loop", "trap '' INT URG; echo go; for ((i = 0; ; i++)); do sleep 0.01; done", kill, "", false},
		{"child ignores INT", `sh -c 'trap "" INT; echo go; while :; do sleep 0.1; done'`, term, "", false},
		{"child ignores INT and TERM", `sh -c 'trap "" INT TERM; echo go; while :; do sleep 0.1; done'`, kill, "", false},
		{"child in its own session", "setsid -w sh -c 'echo go; exec sleep 1000.5'", soon, "sleep 1000.5", false},
		{"server in its own session", `sh -c 'setsid sh -c "echo go; exec sleep 1000.5" & sleep 1000'`, soon, "sleep 1000.5", false},
		{"child left in the background", "sleep 1000.25 & echo go; sleep 1000", soon, "sleep 1000.25", false},
		{"stopped child", "sh -c 'kill -STOP $$'; echo go; sleep 1000", soon, "kill -STOP", false},
		{"pipeline", "{ echo go; sleep 1000; } | cat | cat", soon, "", false},
		{"subshell", "(echo go; sleep 1000; echo no)", soon, "", false},
		{"loop in a subshell", "(echo go; while :; do :; done)", soon, "", false},
		{"coprocess", "coproc sleep 1000.75; echo go; wait", soon, "sleep 1000.75", false},
		{"wait", "sleep 1000.125 & echo go; wait", soon, "sleep 1000.125", false},
		{"here-document", "echo go; cat <<X; sleep 1000\n$(sleep 1000)\nX", soon, "", false},
		{"substitution", "echo go; x=$(sleep 1000)", soon, "", false},
		{"substitution in a loop", "echo go; while :; do x=$(sleep 0.01); done", soon, "", false},
		{"full screen", `printf '\e[?1049h'; stty raw -echo; sh -c 'echo go; exec sleep 1000'`, soon, "", false},
		{"other user", "setpriv --reuid=65534 --clear-groups sh -c 'echo go; exec sleep 1000'", soon, "", true},
		{"eval", `eval 'echo go; while :; do sleep 1; done'`, soon, "", false},
		{"select", `echo go; select x in a b; do :; done`, soon, "", false},
	}
	for _, c := range cases {
		for _, u := range []bool{false, true} {
			name := map[bool]string{false: "leased ", true: "user "}[u] + c.name
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if c.root && os.Getuid() != 0 {
					t.Skip("only root can become another user")
				}
				deaf := c.name == "deaf loop"
				if u && strings.HasPrefix(c.name, "deaf") {
					t.Skip("a person's own shell is only ever interrupted: TestDeafShellOfAPerson")
				}
				s := start(t, nil)
				do(t, s, user("cd /usr; export KEPT=1"))
				before := stateOf(t, s)
				pid := s.PID()
				res, took := cancelled(t, s, Command{Text: c.text, User: u})
				t.Cleanup(func() {
					for _, p := range res.Leftovers {
						_ = syscall.Kill(p.PID, syscall.SIGKILL)
					}
				})
				if res.Status != "cancelled" || took > c.within+slack {
					t.Errorf("got %s after %v, want cancelled within %v", res.Status, took, c.within)
				}
				if (s.PID() != pid) != deaf || res.Respawned != deaf {
					t.Errorf("got pid %d, was %d, respawned %v: %q", s.PID(), pid, res.Respawned, res.Notes)
				}
				var left []string
				for _, p := range res.Leftovers {
					left = append(left, p.Command)
				}
				if got := strings.Join(left, "\n"); !strings.Contains(got, c.left) || c.left == "" && got != "" {
					t.Errorf("left over: got %q, want %q", got, c.left)
				}
				if c.left == "" && !deaf {
					gone(t, pid)
				}
				if deaf {
					return
				}
				do(t, s, leased("export AFTER=1"))
				if told := Difference(before, stateOf(t, s)); !strings.Contains(told, "AFTER") || strings.Contains(told, "left you") {
					t.Errorf("then a change is told as %q", told)
				}
				if r := do(t, s, user(`echo "$KEPT $AFTER $PWD"`)); string(r.Output) != "1 1 /usr\n" {
					t.Errorf("then got %q", r.Output)
				}
			})
		}
	}
}

// slack is what a busy machine may take beyond the time of a signal.
const slack = 10 * time.Second

// gone checks that the shell is alone in its session.
func gone(t *testing.T, shell int) {
	t.Helper()
	var rest []string
	for end := time.Now().Add(slack); ; time.Sleep(5 * time.Millisecond) { // reaping is the system's
		rest = nil
		eachProcess(inSession(shell), func(st procStat) {
			if st.PID != shell {
				rest = append(rest, strconv.Itoa(st.PID)+" "+st.Name)
			}
		})
		if len(rest) == 0 || time.Now().After(end) {
			break
		}
	}
	if len(rest) > 0 {
		t.Errorf("still there: %q", rest)
	}
}

// A person's shell that is deaf to INT is never killed unasked: it goes on until its command ends.
func TestDeafShellOfAPerson(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	pid := s.PID()
	res, took := cancelled(t, s, user("trap '' INT; echo go; read -rt 6 x; trap - INT"))
	if res.Status != "cancelled" || res.Respawned || s.PID() != pid || took < replaceAfter {
		t.Errorf("got %s after %v, respawned %v: %q", res.Status, took, res.Respawned, res.Notes)
	}
	if r := do(t, s, user("echo whole")); string(r.Output) != "whole\n" {
		t.Errorf("then got %q", r.Output)
	}
}
