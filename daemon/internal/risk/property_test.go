package risk

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"sublet/daemon/internal/risk/programs"
	"sublet/wire/visible"

	"pgregory.net/rapid"
)

// TestAddingNeverLowers: more text after a command, or around it, leaves it as bad as it was.
func TestAddingNeverLowers(t *testing.T) {
	rows := commandTable(t)
	frames := []string{"%s\n%s", "ls\n%[1]s", "{ %[1]s\n}", "( %[1]s\n)", "if true; then %[1]s\nfi", "%[1]s\nls | head", "while ls; do %[1]s\ndone", "f() { %[1]s\n}; f", "echo \"$(%[1]s\n)\"", "cat <(%[1]s\n)", "%[1]s &\nls", "true && {\n%[1]s\n}", "for i in 1 2; do %[1]s\ndone", "time {\n%[1]s\n}"}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.SampledFrom(rows).Draw(t, "a"), rapid.SampledFrom(rows).Draw(t, "b")
		frame := rapid.SampledFrom(frames).Draw(t, "frame")
		text := fmt.Sprintf(frame, a.command, b.command)
		if i := strings.Index(text, "%!(EXTRA"); i >= 0 {
			text = text[:i]
		}
		alone, more := Analyze(a.command, here()), Analyze(text, here())
		if alone.Unread {
			return // a syntax error inside brackets is one of the whole, and then nothing runs
		}
		if strings.Contains(frame, "f()") && strings.Contains(a.command, "$@") || strings.Contains(frame, "f()") && strings.Contains(a.command, "$1") {
			return // its arguments are known in a function
		}
		if more.Level < alone.Level && !more.Unread { // what could not be read is asked in every mode
			t.Fatalf("%q alone is %s, %q is %s%s", a.command, alone.Level, text, more.Level, reasonsText(more))
		}
	})
}

// TestWrappingNeverLowers: handing a command to a shell or wrapper leaves it as bad as it was. Each wrapper gets a third of the table,
// which has hundreds of commands: all of them with each took two minutes.
func TestWrappingNeverLowers(t *testing.T) {
	var rows []tableRow
	for _, r := range commandTable(t) {
		if !strings.Contains(r.command, "$@") && !strings.Contains(r.command, "$1") && !strings.Contains(r.command, "\x00") {
			rows = append(rows, r)
		}
	}
	wraps := []string{"sh -c %s", "bash -xc %s", "eval %s", "env A=1 sh -c %s", "sudo sh -c %s", "nohup bash -c %s &", "timeout 5 sh -c %s", "trap %s EXIT", "xargs sh -c %s", "find . -exec sh -c %s \\;", "flock f -c %s", "watch %s", "script -c %s f", "sh <<< %s", "nice -n 3 setsid sh -c %s", "su -c %s", "busybox sh -c %s", "tmux send-keys %s Enter", "bash -c 'eval \"$0\"' %s", "command eval %s", "wrapped=%s; eval \"$wrapped\"", "env -S %s"}
	for i, r := range rows {
		alone := Analyze(r.command, here())
		for j := i % 3; j < len(wraps); j += 3 {
			wrap := wraps[j]
			switch {
			case strings.HasPrefix(wrap, "tmux") && (strings.Contains(r.command, "rm") || strings.Contains(r.command, "-delete")):
				continue // runs in a folder that is not known: deleting is High there, and may be Critical here
			case strings.HasPrefix(wrap, "find") && strings.Contains(r.command, "{}"):
				continue // the outer find puts its own file there
			case strings.HasPrefix(wrap, "flock") && r.command == "PROMPT_COMMAND=x":
				continue // sets it in a child, by a program that is not known
			}
			text := fmt.Sprintf(wrap, shellQuote(r.command))
			wrapped := Analyze(text, here())
			if wrapped.Level < alone.Level {
				t.Errorf("%q alone is %s, %q is %s%s", r.command, alone.Level, text, wrapped.Level, reasonsText(wrapped))
			}
		}
	}
}

// TestWrappersKeep: the words of a command behind a wrapper mean what they mean alone, whatever options stand between. Each wrapper
// gets a third of the table.
func TestWrappersKeep(t *testing.T) {
	wrappers := []string{"env", "env -i A=b", "nohup", "nice", "nice -n 3", "nice -5", "timeout 5", "timeout -s INT -k 3 5", "setsid", "setsid -w", "stdbuf -oL", "stdbuf -o L -e 0", "/usr/bin/time -v", "/usr/bin/time -f x", "sudo", "sudo -n", "sudo -E -u bob", "doas -u bob", "xargs", "xargs -r", "xargs -0 -n1", "xargs -P 4 -L 1", "command", "command -p", "unbuffer -p", "cross-env A=1", "strace -f", "strace -f -e trace=x -o y", "watch", "watch -d -n 2", "exec", "exec -a x", "find . -exec", "find . -name x -execdir", "systemd-run --user -p A=b", "sudo -- env -u X nice", "time", "time -p", "bundle exec", "poetry run", "uv run", "mise exec --", "sublet lease run --", "ionice -c 3", "flock -w 3 -x f", "firejail --net=none", "direnv exec ."}
	skip := programs.Words("time cd pushd popd exit export unset set alias history jobs read wait shopt ulimit kill exec coproc printenv env source . trap type hash enable [ test command builtin dirs eval crontab ll type readonly let umask cp mv tar curl wget sudo cat wc ls find git docker")
	var rows []tableRow
	for _, r := range commandTable(t) {
		first, _, _ := strings.Cut(r.command, " ")
		if plainWords.MatchString(r.command) && !skip[first] && !programs.Builtin(first) {
			rows = append(rows, r)
		}
	}
	for i, r := range rows {
		alone := Analyze(r.command, here())
		for j := i % 3; j < len(wrappers); j += 3 {
			w := wrappers[j]
			text := w + " " + r.command
			if strings.Contains(w, "-exec") {
				text += " \\;"
			}
			wrapped := Analyze(text, here())
			if wrapped.Level < alone.Level {
				t.Errorf("%q alone is %s, %q is %s%s", r.command, alone.Level, text, wrapped.Level, reasonsText(wrapped))
			}
			if first, _, _ := strings.Cut(w, " "); !strings.Contains(first, "/") && !programs.Known(first) {
				continue // not known to be one, but what it would run counts
			}
			last := strings.Fields(r.command)[0]
			last = last[strings.LastIndexByte(last, '/')+1:]
			found := false
			for _, c := range wrapped.Commands {
				found = found || c.Name == last
			}
			if !found {
				t.Errorf("%q: %s is not among its commands, so that no rule can see it", text, last)
			}
		}
	}
}

var plainWords = regexp.MustCompile(`^[A-Za-z0-9_./:@,+-]+( [A-Za-z0-9_./:@,+-]+)*$`)

// TestQuotingKeeps: quotes and backslashes around plain words change nothing.
func TestQuotingKeeps(t *testing.T) {
	var rows []tableRow
	for _, r := range commandTable(t) {
		if plainWords.MatchString(r.command) && r.command != "ll" && !strings.HasPrefix(r.command, "time ") && !strings.HasPrefix(r.command, "coproc") && !strings.HasPrefix(r.command, "export") && !strings.HasPrefix(r.command, "declare") {
			rows = append(rows, r)
		}
	}
	quote := map[string]func(string) string{
		"plain": func(s string) string { return s }, "single": shellQuote, "double": func(s string) string { return `"` + s + `"` }, "ansi": func(s string) string { return "$'" + s + "'" },
		"first":  func(s string) string { return `\` + s },
		"middle": func(s string) string { return s[:len(s)/2] + `""` + s[len(s)/2:] },
		"hex": func(s string) string {
			var b strings.Builder
			for i := range len(s) {
				fmt.Fprintf(&b, `\x%02x`, s[i])
			}
			return "$'" + b.String() + "'"
		},
	}
	names := []string{"plain", "single", "double", "ansi", "first", "middle", "hex"}
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.SampledFrom(rows).Draw(t, "command")
		var words []string
		for w := range strings.FieldsSeq(r.command) {
			words = append(words, quote[rapid.SampledFrom(names).Draw(t, "quoting")](w))
		}
		text := strings.Join(words, " ")
		if got, want := Analyze(text, here()), Analyze(r.command, here()); got.Level != want.Level {
			t.Fatalf("%q is %s, %q is %s%s", r.command, want.Level, text, got.Level, reasonsText(got))
		}
	})
}

var reserved = programs.Words("if then else elif fi for while until do done case esac select function time coproc in export declare local readonly typeset let")

// TestUnknownIsNeverLow: a program, builtin or file that is not in the table is never low, whatever its words.
func TestUnknownIsNeverLow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z_][a-z0-9_.-]{0,12}`).Draw(t, "name")
		if programs.Known(name) || reserved[name] || strings.HasPrefix(name, "-") || name == "ll" {
			return
		}
		args := rapid.SliceOfN(rapid.StringMatching(`[a-z0-9=./-]{1,8}`), 0, 3).Draw(t, "args")
		text := strings.Join(append([]string{name}, args...), " ")
		if v := Analyze(text, here()); v.Level < Medium {
			t.Fatalf("%q: got %s, want at least medium", text, v.Level)
		}
		if v := Analyze("./"+text, here()); v.Level < Medium {
			t.Fatalf("%q: got %s, want at least medium", "./"+text, v.Level)
		}
	})
}

// tokens make texts that are nearly shell.
var tokens = []string{"ls", "rm", "-rf", "/", "cat", "echo", "git", "push", "--force", "x", "$x", "${x", "}", "${x:-", "$(", ")", "`", "(", "{", "; ", "| ", "&& ", "|| ", "& ", "\n", " ", "'", "\"", "\\", "<<E", "<<<", "<(", ">", ">>", "2>&1", "<", "if ", "then ", "fi", "for i in ", "do ", "done", "while ", "case ", "esac", "in ", "function ", "f()", "[[ ", " ]]", "[ ", "((", "))", "$((", "~", "*", "?", "[a-z]", "{a,b}", "{1..3}", "=", "x=", "+=", "!", "#", "\\\n", "\r", "\x00", "\xff", "é", "\u202e", "@(", "a[", "]", "sh -c ", "eval ", "sudo ", "env ", "xargs ", "find . -exec ", "\\;", "-delete", "awk '", "sed 's/", "python3 -c '", "export ", "PATH", "cd ", "build", "--", "-", ":", "coproc ", "time ", "select ", "declare -n ", "trap ", "local ", "let ", "E\n", "EOF"}

// TestSameTextSameVerdict: no panic, always an answer, and the same one every time.
func TestSameTextSameVerdict(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(tokens), 0, 40).Draw(t, "tokens"), "")
		checkVerdict(t, text)
	})
}

type fataler interface {
	Fatalf(format string, args ...any)
}

// checkVerdict holds for every text.
func checkVerdict(t fataler, text string) {
	a := newAnalysis(here(), len(text))
	a.text(text) // not through Analyze, which would catch a panic
	v := a.finish(text)
	if again := Analyze(text, here()); !reflect.DeepEqual(v, again) {
		t.Fatalf("%q: two verdicts:\n%+v\n%+v", text, v, again)
	}
	if v.Level < Low || v.Level > Critical {
		t.Fatalf("%q: got level %d", text, v.Level)
	}
	top := Low
	for _, r := range v.Reasons {
		top = max(top, r.Level)
		if r.Span != nil && (r.Span.Start < 0 || r.Span.End < r.Span.Start || r.Span.End > len(text)) {
			t.Fatalf("%q: span %+v of %q is outside the text", text, *r.Span, r.Text)
		}
		if !utf8.ValidString(r.Text) || r.Text != visible.Exact(r.Text) {
			t.Fatalf("%q: reason %q is not fit to be shown", text, r.Text)
		}
	}
	if top != v.Level {
		t.Fatalf("%q: level %s, but the highest reason is %s%s", text, v.Level, top, reasonsText(v))
	}
	if v.Level > Low && len(v.Commands) == 0 && v.Rest < v.Level {
		t.Fatalf("%q: level %s belongs to nothing", text, v.Level)
	}
	for _, c := range v.Commands {
		if c.Verb > len(c.Argv) {
			t.Fatalf("%q: %d leading words of %q", text, c.Verb, c.Argv)
		}
	}
}

// TestGrantsCover tries every command of the table.
func TestGrantsCover(t *testing.T) {
	for _, r := range commandTable(t) {
		checkVerdict(t, r.command)
	}
}

func FuzzAnalyze(f *testing.F) {
	for i, r := range commandTable(f) {
		if i%7 == 0 {
			f.Add(r.command)
		}
	}
	f.Add("<<E; \n") // the parser panicked when its iterator was left early
	f.Add("x[${ ;}]=$((`${x@P}`)) <(<<E) >&$x {a..z}{1..9}\nE")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 8<<10 {
			return
		}
		checkVerdict(t, text)
	})
}
