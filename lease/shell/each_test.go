package shell

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sublet/lease/procstat"
	"sublet/wire/citest"
)

// language is what the tests must know of a shell.
type language struct {
	file    string // the start-up file, below the home directory
	startup string // what it holds in each test: a prompt that ends with "# ", a history file
	history string // that file
	define  string // exports COLOUR=blue green, makes an alias or abbreviation "hello" of "echo hallo" and a function "greet" that prints "greetings"
	status  string // what expands to the last status
	recent  string // a command that lists the history
	rows    string // sets a prompt of the rows "top" and "0# ", and one on the right where the shell has that
}

var languages = map[string]language{
	"bash": {
		file: ".bashrc", startup: "PS1='$?# '\nHISTFILE=~/history\n", history: "history", status: "$?", recent: "fc -l 1",
		define: "export COLOUR='blue green'; alias hello='echo hallo'; greet() { echo greetings; }",
		rows:   "PS1='top\\n$?# '",
	},
	"zsh": {
		file: ".zshrc", startup: "PS1='%?# '\nHISTFILE=~/history SAVEHIST=100\n", history: "history", status: "$?", recent: "fc -l 1",
		define: "export COLOUR='blue green'; alias hello='echo hallo'; function greet { echo greetings; }",
		rows:   "PS1=$'top\\n%?# '\nRPS1=right",
	},
	"fish": {
		file: ".config/fish/config.fish", startup: "function fish_prompt; echo -n \"$status# \"; end\nset fish_greeting\n",
		history: ".local/share/fish/fish_history", status: "$status", recent: "history",
		define: "set -gx COLOUR 'blue green'; abbr -a hello echo hallo; function greet; echo greetings; end",
		rows:   "function fish_prompt; set -l found $status; echo top; echo -n \"$found# \"; end\nfunction fish_right_prompt; echo right; end",
	},
}

// setups are what people have in their start-up files: nothing of it changes what a borrower and the user can do.
var setups = []struct {
	shell, name, startup string
	needs                []string // files
}{
	{shell: "bash"},
	{shell: "bash", name: "history", startup: "HISTCONTROL=ignoreboth:erasedups HISTTIMEFORMAT='%F ' HISTIGNORE='ls*'; shopt -s histappend"},
	{shell: "bash", name: "nounset", startup: "set -u; shopt -s extglob globstar nullglob"},
	{shell: "bash", name: "hooks", startup: "PROMPT_COMMAND='true one; false'; PS0='[begins]'; trap 'last=$BASH_COMMAND' DEBUG; PS0="},
	{shell: "bash", name: "vi", startup: "set -o vi; bind 'set keyseq-timeout 50'"},
	{shell: "zsh"},
	{
		shell: "zsh", name: "options",
		startup: "setopt nounset ksharrays shwordsplit noclobber correctall globsubst rcexpandparam ignorebraces ignoreclosebraces " +
			"histignorespace extendedhistory autopushd warncreateglobal",
	},
	{shell: "zsh", name: "sh", startup: "emulate sh"},
	{shell: "zsh", name: "ksh", startup: "emulate ksh"},
	{shell: "zsh", name: "shared history", startup: "setopt sharehistory histignorealldups incappendhistory histnostore"},
	{
		shell: "zsh", name: "names of builtins",
		startup: "IFS=xyz; TMOUT=600; function read print local typeset zle bindkey trap emulate source { true }\nalias read=no print=no",
	},
	{shell: "zsh", name: "vi", startup: "bindkey -v"},
	{
		shell: "zsh", name: "plug-ins", startup: "autoload -Uz compinit; compinit -u; . " + suggestions + "; . " + highlighting,
		needs: []string{suggestions, highlighting},
	},
	{shell: "fish"},
	{shell: "fish", name: "history", startup: "set -g fish_history mine"},
	{shell: "fish", name: "vi", startup: "fish_vi_key_bindings"},
}

const (
	suggestions  = "/usr/share/zsh-autosuggestions/zsh-autosuggestions.zsh"
	highlighting = "/usr/share/zsh-syntax-highlighting/zsh-syntax-highlighting.zsh"
)

// home makes the Shell of these options one with a home directory of its own, in which the start-up file ends with startup.
func home(t *testing.T, o *Options, shell, startup string) (dir string) {
	t.Helper()
	dir, o.Path = t.TempDir(), citest.Program(t, shell)
	l := languages[shell]
	writeFiles(t, dir, startupFiles)
	writeFiles(t, dir, map[string]string{l.file: l.startup + startup + "\n"})
	o.Dir, o.Patience = dir, 5*time.Millisecond
	o.Env = environment(dir)
	return dir
}

// startupFiles are in each home directory: otherwise zsh asks a new user questions, and fish makes completions of all manual pages, in
// the background.
var startupFiles = map[string]string{".zshrc": "", ".local/share/fish/generated_completions/none.fish": ""}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// environment is that of a shell whose user has this home directory.
func environment(home string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TERM=xterm-256color", "LANG=C.UTF-8", "USER=tester"}
}

// session is a user's shell, and what a borrower does in it.
type session struct {
	*Shell
	t    *testing.T
	scr  *screen
	home string
	language
}

func newSession(t *testing.T, shell, startup string) *session {
	t.Helper()
	u := &session{t: t, language: languages[shell]}
	u.Shell, u.scr = start2(t, func(o *Options) { u.home = home(t, o, shell, startup) })
	u.scr.prompts(t, 1)
	u.ended(0)
	return u
}

// enter types a line of the user's, and returns how it ended.
func (u *session) enter(line string) UserEnded {
	u.t.Helper()
	n := len(events[UserEnded](u.scr))
	keys(u.t, u.Shell, line+"\r")
	return u.ended(n + 1)
}

// ended waits until so many lines of the user's have ended and the line editor has the terminal, and returns the last. Before that the
// terminal would take keys for itself.
func (u *session) ended(n int) UserEnded {
	u.t.Helper()
	u.scr.until(u.t, "the end of a line", func() bool { return len(events[UserEnded](u.scr)) == n && u.Busy() == "" && !u.proc.term.Echoes() })
	return last[UserEnded](u.scr)
}

// do runs a borrowed command, which must print no less and no more.
func (u *session) do(text, output string, status int) {
	u.t.Helper()
	if r := do(u.t, u.Shell, text); r.ExitCode == nil || *r.ExitCode != status || string(r.Output) != output {
		u.t.Errorf("%q: got %+v, output %q; want %d, %q", text, r, r.Output, status, output)
	}
}

// run runs a borrowed command, of which options set more than the text.
func (u *session) run(ctx context.Context, c Command) Result {
	u.t.Helper()
	r, err := u.Run(ctx, c)
	if err != nil {
		u.t.Fatalf("%q: %v", c.Text, err)
	}
	return r
}

// look reads the state, also where nothing is known to have changed it.
func (u *session) look() State {
	u.t.Helper()
	u.mu.Lock()
	u.stale = true
	u.mu.Unlock()
	st, err := u.State(u.t.Context())
	if err != nil {
		u.t.Fatal(err)
	}
	return st
}

// TestEachShell has a user and a borrower share a shell, in each that can be lent and under what people have in their start-up files.
func TestEachShell(t *testing.T) {
	for _, d := range dialects {
		if languages[d.Name].file == "" {
			t.Errorf("languages has no row for %s", d.Name)
		}
	}
	for _, row := range setups {
		t.Run(strings.TrimSpace(row.shell+" "+row.name), func(t *testing.T) {
			t.Parallel()
			for _, file := range row.needs {
				if _, err := os.Stat(file); err != nil {
					citest.Skip(t, "`make shells` installs it: ", err)
				}
			}
			u := newSession(t, row.shell, row.startup)
			u.sharesState()
			u.typesMeanwhile()
			u.usesTheTerminal()
			u.recalls(row.shell == "fish" && row.name == "history")
		})
	}
}

// sharesState tests that what a borrowed command changes stays, and nothing else: not the user's last status.
func (u *session) sharesState() {
	u.do("echo one; echo two >&2; sh -c 'exit 3'", "one\ntwo\n", 3)
	u.do(u.define, "", 0)
	dir := filepath.Join(u.t.TempDir(), "it's a long name")
	if err := os.Mkdir(dir, 0o700); err != nil {
		u.t.Fatal(err)
	}
	if r := u.run(u.t.Context(), Command{Text: "pwd", Dir: dir}); string(r.Output) != dir+"\n" || r.Dir != dir {
		u.t.Errorf("in another folder: %q, then in %s", r.Output, r.Dir)
	}
	u.do("cd / && sh -c 'echo $COLOUR' && greet && pwd", "blue green\ngreetings\n/\n", 0)
	u.enter("sh -c 'exit 7'")
	u.do("true", "", 0)
	u.do("sh -c 'exit 4'", "", 4)
	if e := u.enter("echo was " + u.status + "; sh -c 'echo $COLOUR'; greet; hello you"); string(e.Output) != "was 7\nblue green\ngreetings\nhallo you\n" || e.Dir != "/" {
		u.t.Errorf("the user's line printed %q in %s", e.Output, e.Dir)
	}
	u.do("cd "+u.d.Quote(u.home), "", 0)
}

// typesMeanwhile tests that a half-typed line and its cursor come back, whatever happens while it is set aside.
func (u *session) typesMeanwhile() {
	nothing := func() {}
	for _, line := range []string{
		"echo a half; echo line", "echo 日本 éè x ünd", "\x1b[200~echo " + strings.Repeat("long ", 100) + "end\x1b[201~",
		"\x1b[200~echo 'a\nb\n\nc' \n\x1b[201~",
	} {
		keys(u.t, u.Shell, line)
		line = strings.NewReplacer("\x1b[200~", "", "\x1b[201~", "").Replace(line)
		if end := u.holds(line, nothing); end != len([]rune(line)) {
			u.t.Errorf("%q: the cursor is at %d", line, end)
		}
		keys(u.t, u.Shell, "\x1b[D\x1b[D\x1bb") // the last leaves the insert mode of vi
		at := u.holds(line, func() {
			u.do("echo borrowed", "borrowed\n", 0)
			u.look()
		})
		if after := u.holds(line, nothing); after != at || at == len([]rune(line)) {
			u.t.Errorf("%q: the cursor was at %d and is at %d", line, at, after)
		}
		u.enter("")
	}
	u.enter("sh -c 'echo $$ >pid; exec sleep 0.1' &")
	keys(u.t, u.Shell, "echo half")
	u.holds("echo half", func() {
		u.scr.until(u.t, "the end of the job", func() bool {
			pid, err := strconv.Atoi(strings.Join(read(u.t, filepath.Join(u.home, "pid")), ""))
			if err != nil {
				return false
			}
			st, err := procstat.Read(pid)
			return err != nil || st.State == 'Z'
		})
		for _, signal := range []syscall.Signal{syscall.SIGCHLD, syscall.SIGWINCH, syscall.SIGINT} {
			if signal == syscall.SIGINT && u.Name() == "bash" {
				continue // ends the widget: TestInterruptedHold
			}
			if err := syscall.Kill(u.PID(), signal); err != nil {
				u.t.Fatal(err)
			}
		}
		if st := u.look(); st.Vars["HOME"] != u.home {
			u.t.Errorf("HOME is %q", st.Vars["HOME"])
		}
		keys(u.t, u.Shell, " typed")
	})
	if e := u.enter(" line"); !strings.HasSuffix(string(e.Output), "half typed line\n") { // the shell may first report a job that has ended
		u.t.Errorf("the line printed %q", e.Output)
	}
	if strings.Contains(u.scr.String(), "__sublet") {
		u.t.Errorf("screen %q", u.scr.String())
	}
}

// holds has a borrower hold the editor, in which this line must be, while does runs. It returns where the cursor was.
func (u *session) holds(line string, does func()) (cursor int) {
	u.t.Helper()
	if err := u.Hold(u.t.Context()); err != nil {
		u.t.Fatal(err)
	}
	u.mu.Lock()
	e := u.editor
	u.mu.Unlock()
	cursor, err := strconv.Atoi(e.cursor)
	if e.line != line || err != nil {
		u.t.Errorf("the line is %q with the cursor at %q, want %q", e.line, e.cursor, line)
	}
	does()
	if err := u.Release(); err != nil {
		u.t.Fatal(err)
	}
	return cursor
}

// usesTheTerminal tests borrowed commands that read the terminal, are interrupted and are stopped.
func (u *session) usesTheTerminal() {
	answer := func(keys string) { _ = u.Answer([]byte(keys)) } // an error: the command has no answer
	r := u.run(u.t.Context(), Command{Text: "cat; echo end", Started: func() { answer("typed\r\x04") }})
	if string(r.Output) != "typed\ntyped\nend\n" {
		u.t.Errorf("it read %q", r.Output)
	}
	u.enter("sh -c 'exit 7'")
	ctx, cancel := context.WithCancel(u.t.Context())
	r = u.run(ctx, Command{Text: "sh -c 'echo begun; exec sleep 1000'; echo behind", Output: func([]byte) { cancel() }})
	if r.Status != "cancelled" || strings.TrimSpace(string(r.Output)) != "begun" {
		u.t.Errorf("cancelled: %+v, output %q", r, r.Output)
	}
	u.do("", "", 0) // where the interrupted line could not put the status back
	if e := u.enter("echo was " + u.status); string(e.Output) != "was 7\n" {
		u.t.Errorf("behind the cancel: %q", e.Output)
	}
	stop := sync.OnceFunc(func() { answer("\x1a") })
	u.run(u.t.Context(), Command{Text: "sh -c 'echo begun; exec sleep 1000'", Output: func([]byte) { stop() }})
	if r := do(u.t, u.Shell, "jobs"); !strings.Contains(string(r.Output), "sleep") {
		u.t.Errorf("jobs: %q", r.Output)
	}
	n := len(events[UserEnded](u.scr))
	keys(u.t, u.Shell, "fg\r")
	u.scr.until(u.t, "the job in the foreground", func() bool { return u.Foreground() != u.PID() })
	keys(u.t, u.Shell, "\x03")
	u.ended(n + 1)
}

// recalls tests that the history has what the user typed, and nothing of a borrower's; other is set for one of another name.
func (u *session) recalls(other bool) {
	u.enter("echo first")
	u.enter("echo second")
	u.do("echo borrowed", "borrowed\n", 0)
	u.do("true", "", 0)
	if e := u.enter("\x1b[A\x1b[A"); string(e.Output) != "first\n" {
		u.t.Errorf("Up twice ran %q, which printed %q", e.Text, e.Output)
	}
	u.enter(u.recent + " >list")
	keys(u.t, u.Shell, "exit\r")
	select {
	case <-u.Exited():
	case <-time.After(patience):
		u.t.Fatal("the shell does not end")
	}
	file := u.history
	if other {
		file = strings.Replace(file, "fish_history", "mine_history", 1)
	}
	for _, file := range []string{"list", file} {
		text, err := os.ReadFile(filepath.Join(u.home, file))
		if err != nil {
			u.t.Fatal(err)
		}
		for word, want := range map[string]bool{"sublet": false, "borrowed": false, "echo first": true, "echo second": true} {
			if strings.Contains(string(text), word) != want {
				u.t.Errorf("%s: %q is there: %v; it is\n%s", file, word, !want, text)
			}
		}
	}
}
