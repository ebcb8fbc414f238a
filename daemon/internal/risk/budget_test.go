package risk

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"sublet/daemon/internal/risk/bashread"
)

// checkWork judges a text and fails where that took more than the budget of a text of its length, or where work was done
// that was not counted as steps: memory or time that the steps do not account for.
func checkWork(t fataler, text string, c Context) (Verdict, int) {
	return checkSteps(t, text, c, bashread.FreeSteps)
}

// checkSteps is checkWork with other than the usual steps that every text has.
func checkSteps(t fataler, text string, c Context, free int) (Verdict, int) {
	a := newAnalysis(c, len(text))
	a.Limit += free - bashread.FreeSteps
	limit := a.Limit
	if linear := free + bashread.StepsPerByte*len(text); limit != linear {
		t.Fatalf("%.200q (%d bytes): may take %d steps, want %d", text, len(text), limit, linear)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := cpuTime(t)
	a.text(text)
	steps := min(a.Steps, limit)
	v := a.finish(text)
	took := cpuTime(t) - start
	runtime.ReadMemStats(&after)
	if took > bound/2 {
		t.Fatalf("%.200q (%d bytes): took %v for %d steps, want at most %v", text, len(text), took, steps, bound/2)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > slack*(uint64(steps)*2<<10+8<<20) {
		t.Fatalf("%.200q (%d bytes): %d steps allocated %d bytes: some of the work is not counted", text, len(text), steps, used)
	}
	if a.Limit == math.MaxInt && a.Steps <= limit {
		t.Fatalf("%.200q (%d bytes): a panic ended it after %d of %d steps", text, len(text), a.Steps, limit)
	}
	if a.Steps > limit && (!v.Unread || v.Level < High) {
		t.Fatalf("%.200q (%d bytes): is %s (unread %v) although it was not judged to its end", text, len(text), v.Level, v.Unread)
	}
	return v, steps
}

// cpuTime returns the processor time that the process has used, which other work on the machine does not change.
func cpuTime(t fataler) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatalf("getrusage: %v", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// around puts n of pre before and n of post behind a text.
func around(pre, text, post string, n int) string {
	return strings.Repeat(pre, n) + text + strings.Repeat(post, n)
}

// fill repeats a part to the longest text that is read.
func fill(head, part, tail string) string {
	return head + strings.Repeat(part, (bashread.MaxText-len(head)-len(tail))/len(part)) + tail
}

// TestNestingIsLinear nests a command in each construct that holds others. Command substitutions doubled the time with
// each level, since what they print was found by expanding their words once more: 24 levels took 20 seconds.
func TestNestingIsLinear(t *testing.T) {
	aliased := here()
	aliased.Aliases = map[string]string{"q": "echo", "w": "echo -n "}
	aliased.Hashed = map[string]string{"echo": "/tmp/echo"}
	for pre, post := range map[string]string{
		"echo $(": ")", `echo "$(`: `)"`, "echo a$(echo ": ")", "echo $(ls; ": ")", "x=$(": ")", "x=$(echo ": ") ls", "export x=$(echo ": ")", "$(echo ": ")", "echo $(printf %s $(": "))",
		"cat <(": ")", "cat < <(": ")", "echo <(echo $(": "))", "ls > >(": ")", "echo $(ls | cat | ": ")", "ls $(ls ": " | head)", "rm $(find ": ")", "rm $(git ls-files $(": ") | grep a)", "echo $(base64 -d <<< $(": "))",
		"echo a > $(echo ": ")", "cat <<< $(": ")", `echo "$(cat <<< "$(`: `)")"`, "cat <<< $(cat < $(": "))",
		"echo ${x:-$(": ")}", `echo "${x:=$(echo `: `)}"`, "echo ${x/a/$(echo ": ")}", "echo ${a[$(": ")]}", "a=(1 2); echo ${a[$(": ")]}", "echo $((1+$(": ")))", "echo $((a[$(echo ": ")]))", "[[ a[$(": ")] -eq 1 ]]", "a=($(": "))", "test $(": ") -eq 1",
		"echo {a,b}$(": ")", "echo {1..9}<(": ")", "cp {a,b}${x:-$(": ")} d",
		"( ls; ": ")", "{ ": "; }", "if ": "; then ls; fi", "if ls; then ": "; else ls; fi", "while ": "; do ls; done", "for i in *; do ": "; done", "for i in $(": "); do ls; done", "for ((;;)); do ": "; done", "case x in x) ": ";; esac", "case $(": ") in x) ls;; esac",
		"ls | { ": "; } | ls", "ls && ( cd a && ": " ) || ls", "time ": "", "coproc ": "", "select i in a; do ": "; done", "ls <<< a | ( ": " )",
		"q $(": ")", "q $(w ": ")", "w $(": ")", "env A=$(": ") ls", "sudo echo $(": ")", "xargs ls $(": ")", "find . -name $(": ") -exec ls {} +", "bash -c ls $(": ")", "eval : $(": ")", "timeout $(": ") ls", "cd $(": ")",
	} {
		steps := map[int]int{}
		for _, n := range []int{10, 20, 40, 200} {
			text := around(pre, "$(rm -rf /)", post, n)
			v, took := checkWork(t, text, aliased)
			if v.Level != Critical || v.Unread {
				t.Errorf("%d levels of %s…%s: got %s (unread %v), want critical and read%s", n, pre, post, v.Level, v.Unread, reasonsText(v))
			}
			steps[n] = took
		}
		if steps[20] > 3*steps[10] || steps[200] > 40*steps[10] {
			t.Errorf("%s…%s: 10, 20, 40 and 200 levels took %d, %d, %d and %d steps, want twice as many for twice the levels", pre, post, steps[10], steps[20], steps[40], steps[200])
		}
	}
}

// TestTooComplicated: what means more commands than can be judged, or more text than can be kept, is High at least and
// asked in every mode, and what was found before that still counts.
func TestTooComplicated(t *testing.T) {
	chain := func(n int, format string, end string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i+1, i)
		}
		return b.String() + end
	}
	long := "x=" + strings.Repeat("a", 15000) + "; "
	for name, text := range map[string]string{
		"loops": around("for i in {1..16}; do ", "ls", "; done", 8), "functions": chain(30, "f%d() { f%[2]d; f%[2]d; f%[2]d; f%[2]d; }; ", "f9"),
		"evals": chain(30, "x%d='eval \"$x%[2]d\"; eval \"$x%[2]d\"; eval \"$x%[2]d\"; eval \"$x%[2]d\"'; ", "eval \"$x9\""), "long word": fill(long, "$x", ""),
		"replaced": long + "echo ${x//a/$x}", "arguments": fill("set -- "+strings.Repeat("a ", 9000), "; ls $@", ""), "variables": chain(3000, "v%d=1 || v%[2]d=2; ", ""), "split": fill("x='"+strings.Repeat("a ", 7000)+"'; ls ", "$x ", ""),
		"code":   fill("x='"+strings.Repeat("print(1);", 1500)+"'; ", `python3 -c "$x";`, ""),
		"holes":  "find " + strings.Repeat("a", 30000) + " -exec echo " + strings.Repeat("{}", 2000) + " \\;",
		"copies": long + strings.Repeat("a=({1..100}$(echo $x)); ", 800), "slices": "set -- " + strings.Repeat("a ", 15000) + strings.Repeat("; a=${@:1}", 2400), "variables apart": chain(2400, "v%d%d=1; :& :& :& ", ""),
		"commands": fill("", "ls;", ""), "options": fill("go ", "-tags x ", ""), "poison": chain(2500, "GIT_A%d%d=1; ", strings.Repeat("git log;", 1000)),
	} {
		for _, before := range []string{"", "rm -rf /; "} {
			if before != "" && len(text) > 1000 {
				continue // one long text is as good as another, and they take long with the race detector on
			}
			v, _ := checkWork(t, before+text, here())
			found := false
			for _, r := range v.Reasons {
				found = found || r.Text == "it is too complicated to judge" && r.Level == High
			}
			if want := High + Level(min(len(before), 1)); !found || !v.Unread || v.Level < want {
				t.Errorf("%s behind %q: got %s (unread %v), want at least %s and too complicated%s", name, before, v.Level, v.Unread, want, reasonsText(v))
			}
		}
	}
}

// TestKeptWords: what is kept of a node is what it was expanded to last.
func TestKeptWords(t *testing.T) {
	for _, printed := range []string{"$(echo $z)", "$(echo $z | cat)", "$(cat <<< $z)", "$(echo $z | cat | cat)"} {
		loop := "z=/tmp/a; for i in 1 2; do rm \"" + printed + "\"; z=%; done"
		exactly(t, Medium, here(), strings.ReplaceAll(loop, "%", "/tmp/b"))
		exactly(t, High, here(), strings.ReplaceAll(loop, "%", "$y"), strings.ReplaceAll(loop, "%", "~/x"))
		exactly(t, Critical, here(), strings.ReplaceAll(loop, "%", "~/.bashrc"))
	}
}

// TestCallsOfOneFunction: a function of the live shell is parsed once, however often it is called.
func TestCallsOfOneFunction(t *testing.T) {
	c := here()
	c.Functions = map[string]string{"f": "f () { ls; }; # " + strings.Repeat("x", 60000)}
	if v, steps := checkWork(t, strings.Repeat("f a; ", 100), c); v.Level != Low || steps > 300*100 {
		t.Errorf("got %s after %d steps, want low after few%s", v.Level, steps, reasonsText(v))
	}
}

// TestBudgetEnds: the budget ends what runs when it is spent, and a panic of the parser ends only the walk.
func TestBudgetEnds(t *testing.T) {
	b := bashread.Budget{Limit: 10}
	past := false
	done := b.Bounded(func() {
		b.Spend(10)
		past = true
		b.Spend(1)
		t.Error("the budget was spent, and work went on")
	})
	if !past || done || b.Limit != math.MaxInt {
		t.Errorf("got past %v, done %v", past, done)
	}
	if b.Bounded(func() { panic("other") }) || !b.Bounded(func() {}) {
		t.Error("a panic counts as the end of the walk, or the end as a panic")
	}
}

// FuzzSteps nests and repeats what is around a text and holds its judgement to a budget that is linear in its length, with
// all work counted in it. The budget is a tenth of the real one, so that a run takes milliseconds.
func FuzzSteps(f *testing.F) {
	f.Add("", "echo $(", "ls", ")", uint16(200))
	f.Add("x="+strings.Repeat("a", 9000)+"; ", "ls ${x//a/$x} ", "", "", uint16(4000))
	f.Add("x='"+strings.Repeat("a ", 5000)+"'; ", "$x", "ls", "", uint16(20000))
	f.Add("f() { f2 $@; }; f2() { f; f $1; }; ", "f \"$(f ", "a", ")\"", uint16(600))
	f.Add("", "find . -exec env -i sudo bwrap ", "ls", " \\;", uint16(1500))
	f.Add("alias q='ls '\n", "q {a,b}<(q ", "rm -rf /", ")|sh", uint16(1200))
	f.Add("", "{", "", "", uint16(2500))
	f.Add("declare -i x='y+z' y='a[$(ls)]'; ", "((x=", "1", "))", uint16(1200))
	f.Add("cat ", "<<A$(", "\nA\n", "", uint16(500))
	f.Add("rsync ", "--remove-source-files a ", "", "", uint16(2500))
	f.Fuzz(func(t *testing.T, head, pre, mid, post string, n uint16) {
		text := head + around(pre, mid, post, min(int(n), 8<<10/max(1, len(pre)+len(post))))
		if len(text) <= bashread.MaxText {
			checkSteps(t, text, here(), bashread.FreeSteps/10)
		}
	})
}
