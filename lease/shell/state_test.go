package shell

import (
	"slices"
	"strings"
	"testing"
)

// undone undoes what differs between two states, and all of it must be undone but for the variables in left.
func (u *session) undone(before, after State, left ...string) {
	u.t.Helper()
	got, err := u.Undo(u.t.Context(), before, after)
	if err != nil || !slices.Equal(got, left) {
		u.t.Errorf("left %q, %v, want %q", got, err, left)
	}
	now := u.look()
	for _, name := range left {
		delete(now.Local, name)
	}
	if d := Difference(before, now); d != "" || before.Sum() != now.Sum() {
		u.t.Errorf("not undone: %s", d)
	}
}

// The state has what a command can change, and all that can be set again is undone.
func TestState(t *testing.T) {
	for name, row := range map[string]struct {
		user, borrowed string
		has            func(st State) bool // before
		had            func(st State) bool // after
		left           []string
		show, shown    string
	}{
		"bash": {
			user: "declare -A map=([a b]='c' [d]=$'e\\nf'); declare -i n=3; declare -r fixed=1; list=(x 'y z' ''); declare -l lower=ABC; " +
				"export VALUE=$'a\\nb\\ndeclare -x FORGED=\"1\"' OTHER=1; alias ll='ls -l' q=\"it's\"; greet() { echo \"it's\"; }; brace() { echo '\n}'; }",
			borrowed: "map[new]=1; unset n; n=text; list=(); fresh=$'1\\n\"2'; declare -ar wall=(1)\n" +
				"unset OTHER; export VALUE=2 NEW=3 BASH_ENV=/nowhere; export n=exported; lower=X\n" +
				"unalias q; alias ll=x other=y; greet() { :; }; other() { :; }; unset -f brace; cd /; umask 077; shopt -s autocd; set -o noclobber\n" +
				"PATH=/tmp:$PATH; hash -p /nowhere/ls ls; enable -n kill",
			has: func(st State) bool {
				return st.Vars["VALUE"] == "a\nb\ndeclare -x FORGED=\"1\"" && st.Vars["FORGED"] == "" && st.Aliases["ll"] == "ls -l" &&
					st.Aliases["q"] == "it's" && strings.Contains(st.Functions["greet"], "it's") && st.Umask == "0022" && len(st.Hashed) == 0
			},
			had: func(st State) bool {
				return st.Hashed["ls"] == "/nowhere/ls" && len(st.Hashed) == 1 && slices.Equal(st.Disabled, []string{"kill"}) && st.Vars["BASH_ENV"] == "/nowhere"
			},
			left: []string{"wall"},
			show: `echo "${map[d]}" "${list[1]}" "${#list[@]}" "$lower"; brace`, shown: "e\nf y z 3 abc\n\n}\n",
		},
		"zsh": {
			user: "typeset -A map=('a b' c d 'e\nf'); integer n=3; typeset -r fixed=1; typeset -T FOO foo; foo=(a b); list=(x 'y z' ''); " +
				"export VALUE=$'a\\nb' OTHER=1; alias -g G='| grep'; alias -s txt=cat; alias ll='ls -l'; greet() { echo \"it's\"; }",
			borrowed: "map[new]=1; unset n; n=text; foo+=c; list=(); IFS=:; fresh=1; typeset -ar wall=(1)\n" +
				"unset OTHER; export VALUE=2 NEW=3; export n=exported\n" +
				"unalias 'G'; alias -g 'G'=new; unalias -s txt; alias -s c=cc ll=x; greet() { :; }; other() { :; }; cd /; umask 077\n" +
				"setopt autocd nobeep extendedglob; PATH=/tmp:$PATH; hash ls=/nowhere/ls; disable echo; unset FOO",
			has: func(st State) bool {
				return st.Vars["VALUE"] == "a\nb" && st.Aliases["-g G"] == "| grep" && st.Aliases["-s txt"] == "cat" && st.Aliases["ll"] == "ls -l" &&
					strings.Contains(st.Functions["greet"], "it's") && st.Umask == "022" && len(st.Hashed) == 0
			},
			had: func(st State) bool {
				return st.Hashed["ls"] == "/nowhere/ls" && len(st.Hashed) == 1 && slices.Equal(st.Disabled, []string{"echo"})
			},
			left: []string{"wall"},
			show: "print -r -- $map[d] $foo[2] $#list", shown: "e\nf b 3\n",
		},
		"fish": {
			user: "set -g list x 'y z' ''; set -g none; set -U everywhere 1; set -gx VALUE 'a  b' c; set -gx OTHER 1; set -gx SOMEPATH a b; " +
				"abbr -a gs git status; function greet; echo \"it's\"; end",
			borrowed: "set -a list new; set -e none; set -U everywhere 2; set -g fresh 1; set -gx VALUE 2; set -e OTHER; set -gx NEW 3; set -gx SOMEPATH c; set -x list\n" +
				"abbr -e gs; abbr -a other ls; function greet; end; function second; end; cd /; umask 077",
			has: func(st State) bool {
				return st.Vars["VALUE"] == "a  b c" && st.Vars["SOMEPATH"] == "a:b" && st.Local["list"] == `builtin set --global --unexport -- list 'x' 'y z' ''` &&
					st.Local["everywhere"] == `builtin set --universal --unexport -- everywhere '1'` && st.Local["none"] != "" &&
					strings.Contains(st.Aliases["gs"], "git status") && strings.Contains(st.Functions["greet"], "it's") && st.Umask == "0022"
			},
			had:  func(st State) bool { return st.Umask == "0077" },
			show: "count $list; greet", shown: "3\nit's\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newSession(t, name, "")
			keys(t, u.Shell, "\x1b[200~"+row.user+"\x1b[201~\r")
			u.ended(1)
			before := u.look()
			if !row.has(before) {
				t.Errorf("got %+v", before)
			}
			if d := Difference(before, u.look()); d != "" {
				t.Errorf("it differs by itself: %s", d)
			}
			u.do(row.borrowed, "", 0)
			after := u.look()
			if !row.had(after) {
				t.Errorf("after the command: hashed %q, disabled %q", after.Hashed, after.Disabled)
			}
			u.undone(before, after, row.left...)
			u.do(row.show, row.shown, 0)
		})
	}
}

// The widget of bash has an IFS of its own, and the user's was not seen behind it, nor whether it is exported.
func TestStateHasIFS(t *testing.T) {
	for want, was := range map[string]string{`declare -- IFS=$' \t\n'`: "", `declare -x IFS=","`: "export IFS=,"} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			u := newSession(t, "bash", was)
			before := u.look()
			u.do("IFS=$':\\n'", "", 0)
			after := u.look()
			if d := Difference(before, after); !strings.HasPrefix(d, "changed IFS, look at IFS") {
				t.Errorf("got %q", d)
			}
			u.undone(before, after)
			u.do("declare -p IFS", want+"\n", 0)
		})
	}
}

// A prompt that the user's hooks write is not a change by the command after which they did, but one by the command is.
func TestPaintedPrompt(t *testing.T) {
	for last, want := range map[string]string{"paint": "", "true": "changed PS1, look at PS1: it decides what later commands run"} {
		t.Run(last, func(t *testing.T) {
			t.Parallel()
			u := newSession(t, "bash", "paint() { PS1=$PWD'> '; }\nPROMPT_COMMAND=paint")
			before := u.look()
			u.do("PROMPT_COMMAND=${PROMPT_COMMAND/paint/"+last+"}", "", 0)
			u.do("cd /; PS1=x", "", 0)
			after := u.look()
			after.Local["PROMPT_COMMAND"], after.Dir = before.Local["PROMPT_COMMAND"], before.Dir
			if d := Difference(before, after); d != want {
				t.Errorf("got %q, want %q", d, want)
			}
		})
	}
}

// What hooks and plug-ins of zsh keep for themselves is not a change by a command.
func TestStateOfPlugins(t *testing.T) {
	t.Parallel()
	u := newSession(t, "zsh", "autoload -Uz is-at-least vcs_info; _cache=(a b); _gone=1; precmd() { vcs_info }")
	u.do("git init -q repo", "", 0)
	before := u.look()
	u.do("is-at-least 5; _cache+=c; typeset -g _new=1; unset _gone; cd repo", "", 0)
	loaded := u.look()
	if r := do(t, u.Shell, "print $vcs_info_msg_0_"); !strings.Contains(string(r.Output), "git") {
		t.Errorf("vcs_info: got %q", r.Output)
	}
	if d := Difference(before, loaded); !strings.HasPrefix(d, "moved to ") || strings.Contains(d, ",") {
		t.Errorf("got %q", d)
	}
	if text, _ := u.d.Restore(before, loaded, loaded); strings.Contains(text, "is-at-least") {
		t.Errorf("a function that was loaded is put back:\n%s", text)
	}
	u.do("is-at-least() { :; }; export _new", "", 0)
	if d := Difference(loaded, u.look()); d != "changed _new, defined function is-at-least" {
		t.Errorf("got %q", d)
	}
}

// Each job that a command started in fish was shown as a change of last_pid.
func TestLastPIDOfFish(t *testing.T) {
	t.Parallel()
	u := newSession(t, "fish", "")
	before := u.look()
	u.do("sh -c : &", "", 0)
	if d := Difference(before, u.look()); d != "" {
		t.Errorf("a job changed %q", d)
	}
}
