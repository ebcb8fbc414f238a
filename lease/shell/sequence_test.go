package shell

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A step of a sequence: a command, and who gives it to the lent shell. The same is typed into bash alone.
type step struct {
	text   string
	leased bool
	stop   bool // it is interrupted once it has printed go
}

// probe writes down what a shell is like; $probed names the file. It is typed behind each step.
const probe = `probe() {
	{
		builtin printf 'status %s [%s]\n' "$?" "${PIPESTATUS[*]}"
		builtin printf '%s\n' "$PWD" "$-" "$SHELLOPTS" "$BASHOPTS" "$# $*"
		builtin umask; builtin alias -p; builtin trap -p; builtin jobs -r; builtin jobs -s; builtin dirs -p; builtin enable -n
		builtin printf 'FUNCTIONS\n'; builtin declare -f
		builtin printf 'HISTORY\n'; HISTTIMEFORMAT= builtin history
		builtin printf 'VARIABLES\n'; builtin declare -p
	} >|"$probed" 2>&1
}
`

// ownNames are variables of ours, of the test's and those that count or tell the time.
var ownNames = regexp.MustCompile(`^declare -[-a-zA-Z]+ (__sublet_\w*|probed|BASH(|PID|_ARGC|_ARGV|_ARGV0|_COMMAND|_CMDS|_LINENO|_SOURCE|_SUBSHELL|OPTS|_REMATCH|_TRAPSIG)|COLUMNS|LINES|` +
	`EPOCH\w+|FUNCNAME|HISTCMD|LINENO|RANDOM|SRANDOM|SECONDS|PPID|PS0|PS1|PS2|PROMPT_COMMAND|PIPESTATUS|SHELLOPTS|SHLVL|SUBLET_INSIDE|_|st|HISTFILE|HOME|OLDPWD|HISTTIMEFORMAT|!|COPROC_PID|TMPDIR)(=|\s)`)

// exported are those of them that an `export` lists: the baseline has its prompt from the environment.
var exported = regexp.MustCompile(`(?m)^declare -x (PS[12]|SUBLET_INSIDE)=.*\n?`)

var probeFile = regexp.MustCompile(`(DIR|[-/\w]*/(?:Test|Fuzz)[^ \n]*)/probe\d`)

// tooEarly is told now and then where a job is killed that has only begun.
var tooEarly = regexp.MustCompile(`(?m)^bash: kill: \(\d+\) - No such process\n?`)

// depth is what set -x shows: a line that is sourced stands one deeper.
var depth = regexp.MustCompile(`(?m)^\++ `)

var jobNotice = regexp.MustCompile(`(?m)^\(wd now: .*\)\n?|^\[\d+\][-+ ] +(Done|Running|Stopped|Terminated|Killed|Exit|Interrupt|Hangup).*\n?`)

// ofLast finds the last status in what probe wrote, and in what set -x shows of that.
var ofLast = regexp.MustCompile(`(?m)^(status )\d+|^(\+ builtin printf 'status .*' )\d+`)

// seen reads what probe wrote. What differs by its nature is taken out, and of borrowers' steps what docs/shell.md says.
func seen(t *testing.T, path string, steps []step) (state string, history []string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := testDirs.ReplaceAllString(string(raw), "DIR")
	head, text, _ := strings.Cut(text, "FUNCTIONS\n")
	functions, text, _ := strings.Cut(text, "HISTORY\n")
	listed, variables, _ := strings.Cut(text, "VARIABLES\n")
	if last := steps[len(steps)-1]; last.leased || last.stop { // of a pipeline only its status is left, or who was struck is chance
		head = regexp.MustCompile(`(?m)^(.*status \d+) .*$`).ReplaceAllString(head, "$1")
	}
	var names strings.Builder
	for line := range strings.Lines(functions) {
		if name, ok := strings.CutSuffix(line, " () \n"); ok {
			fmt.Fprintln(&names, name)
		}
	}
	bodies := splitFunctions(names.String(), functions)
	var b strings.Builder
	b.WriteString(shellPID.ReplaceAllString(depth.ReplaceAllString(head, "+ "), "PID"))
	for _, name := range slices.Sorted(maps.Keys(bodies)) {
		b.WriteString(bodies[name] + "\n")
	}
	skip := false
	for line := range strings.Lines(variables) {
		if strings.HasPrefix(line, "declare -") {
			skip = ownNames.MatchString(line)
		}
		if !skip {
			b.WriteString(shellPID.ReplaceAllString(line, "PID"))
		}
	}
	for line := range strings.Lines(listed) {
		history = append(history, strings.TrimLeft(line, " 0123456789*"))
	}
	return b.String(), history
}

// TestSequences are sequences that once left a lent shell otherwise than bash alone.
func TestSequences(t *testing.T) {
	t.Parallel()
	for i, steps := range [][]step{
		{{"x=1; (exit 3)", true, false}, {"cd nosuch", true, false}, {"set -u", false, false}, {"map[z]=$a", true, false}},
		{{"unset HISTCMD", false, false}, {"dirs", true, false}, {"true", true, false}, {"echo a", false, false}},
		{{"readonly e=1 f=2 i=3 n=4 s=5 t=6", false, false}, {"cd /", true, false}, {"cd /usr", false, false}},
		{{"trap 'echo U' USR1; kill -USR1 $$", false, false}, {"a=1; false", true, false}, {"kill -USR1 $$", false, false}},
		{{"IFS=:", false, false}, {"shopt -s nullglob lastpipe", false, false}, {"p=a:b; echo $p", true, false}, {"echo *nosuch", false, false}, {"unset IFS", false, false}, {"p=4; echo $p", true, false}},
		{{"alias hi='echo aliased'", true, false}, {"hi there", false, false}, {"f() { return 3; }", true, false}, {"f", false, false}, {"unalias hi; unset -f f", true, false}, {"hi", false, false}},
		{{"HISTCONTROL=ignoreboth", false, false}, {"echo a", false, false}, {"echo a", false, false}, {" echo b", false, false}, {"!!", false, false}, {"history -d 1", false, false}, {"HISTSIZE=5", false, false}, {"echo c", false, false}, {"echo d", false, false}},
		{{"set -k", false, false}, {"set -e", false, false}, {"IFS=:", false, false}, {"set -h", false, false}},
		{{"set -u", false, false}, {"set -k", false, false}, {"echo a", false, false}},
		{{"set -k", false, false}, {"export E=1", false, false}},
		{{"sleep 1000 & true", true, false}, {"pushd /usr", true, false}, {"umask 077", true, false}, {"popd", false, false}},
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) { // the folder has its name, and is typed
			t.Parallel()
			checkSequence(t, steps)
		})
	}
}

// FuzzSequences looks for more of them. `make fuzz` does SEQUENCES of them, some three a second.
func FuzzSequences(f *testing.F) {
	if flag.Lookup("test.fuzz").Value.String() != "" { // what is interrupted depends on the moment: not for each run of the tests
		for fd := 3; fd < 6; fd++ { // the engine's pipes: it would wait for what outlives a shell
			syscall.CloseOnExec(fd)
		}
		random := rand.New(rand.NewPCG(1, 2))
		for range 100 {
			data := make([]byte, 24)
			for i := range data {
				data[i] = byte(random.Uint32())
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if steps := sequence(data); len(steps) > 0 {
			checkSequence(t, steps)
		}
	})
}

// checkSequence does the same in a lent shell, partly as a borrower, and in bash alone, and compares after each step.
func checkSequence(t *testing.T, steps []step) {
	dir := t.TempDir()
	rc := filepath.Join(dir, "rc")
	write(t, rc, probe+"PS1='"+baselinePrompt+"' PS2=; stop() { echo go; sleep 1000; }\n")
	// With any prompt hook bash lives on where it would end at a ^C under set -e. An `export` that listed the prompt would end there.
	write(t, rc+"0", probe+"declare +x PS1 PS2; PS1='"+baselinePrompt+"' PS2= PROMPT_COMMAND=:; stop() { echo go; sleep 1000; }\n")
	bare := startBash(t, t.TempDir(), "--rcfile", rc+"0")
	lent := start(t, func(o *Options) { o.RC = rc })
	borrowed := false
	for i, c := range steps {
		fail := func(format string, args ...any) {
			t.Helper()
			var b strings.Builder
			for _, s := range steps[:i+1] {
				fmt.Fprintf(&b, "\t{%q, %v, %v},\n", s.text, s.leased, s.stop)
			}
			t.Fatalf("%s\nafter\n%s", fmt.Sprintf(format, args...), &b)
		}
		borrowed = borrowed || c.leased
		want, ended := bare.typeLine(t, c)
		var res Result
		if c.stop {
			res = interruptedRun(t, lent, Command{Text: c.text, User: !c.leased})
		} else {
			res = do(t, lent, Command{Text: c.text, User: !c.leased})
		}
		if ended {
			if res.Status != "shell_exited" || res.Respawned {
				fail("bash alone ended, the lent shell did not: %+v", res)
			}
			return
		}
		if res.Status == "shell_exited" || res.Respawned {
			fail("the lent shell ended, bash alone did not: %+v", res)
		}
		tidy := func(s string) string {
			s = strings.ReplaceAll(s, "^C", "")
			s = jobNotice.ReplaceAllString(s, "")
			s = tooEarly.ReplaceAllString(s, "")
			s = jobLine.ReplaceAllString(s, "")
			s = depth.ReplaceAllString(s, "+ ")
			s = probeFile.ReplaceAllString(s, "FILE")
			s = exported.ReplaceAllString(s, "")
			return strings.ReplaceAll(strings.Trim(plain(s), "\n"), "\n\n", "\n")
		}
		if got, want := tidy(string(res.Output)), tidy(want); got != want {
			fail("output is %q, of bash alone %q", got, want)
		}
		var states, histories [2]string
		for way := range states {
			file := filepath.Join(dir, fmt.Sprint("probe", way))
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if way == 0 {
				if _, ended := bare.typeLine(t, step{text: "probed=" + file + " probe"}); ended {
					if r := do(t, lent, user("probed="+file+" probe")); r.Status != "shell_exited" {
						fail("bash alone ended behind it, the lent shell did not: %+v", r)
					}
					return
				}
			} else if r := do(t, lent, user("probed="+file+" probe")); r.Status != "ok" {
				fail("the lent shell ended behind it, bash alone did not: %+v", r)
			}
			state, history := seen(t, file, steps[:i+1])
			if c.leased { // the user's, or where the line was thrown away (a ^C, set -u) what it was thrown away of
				state = ofLast.ReplaceAllString(state, "${1}${2}N")
			}
			states[way] = strings.ReplaceAll(state, file, "FILE")
			if !borrowed {
				histories[way] = probeFile.ReplaceAllString(testDirs.ReplaceAllString(strings.Join(history, ""), "DIR"), "FILE")
			} else if way == 1 && slices.ContainsFunc(history, func(l string) bool { return strings.Contains(l, "__sublet") }) {
				fail("ours is in the history: %q", history)
			}
		}
		if states[0] == "" {
			fail("nothing was seen")
		}
		if states[0] != states[1] {
			fail("the shell differs (- bash alone, + lent):\n%s", differing(states[0], states[1]))
		}
		if histories[0] != histories[1] {
			fail("the history differs (- bash alone, + lent):\n%s", differing(histories[0], histories[1]))
		}
	}
}

func differing(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	var out strings.Builder
	for _, l := range without(as, bs) {
		out.WriteString("- " + l + "\n")
	}
	for _, l := range without(bs, as) {
		out.WriteString("+ " + l + "\n")
	}
	if out.Len() == 0 {
		fmt.Fprintf(&out, "in order: %q\n%q", a, b)
	}
	return out.String()
}
