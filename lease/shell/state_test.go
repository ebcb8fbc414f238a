package shell

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func stateOf(t *testing.T, s *Shell) State {
	t.Helper()
	st, err := s.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// What a line becomes is not always what it says: history and braces make other commands of it.
func TestStateOfWhatALineBecomes(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for _, c := range []struct {
		text string
		user bool
		want string
	}{
		{"export V=${V}x", true, "x"},
		{"!!", true, "xx"},
		{"!export", true, "xxx"},
		{"^}x^}y^", true, "xxxy"},
		{"{export,V=brace}", true, "brace"},
		{"{export,V=leased}", false, "leased"},
	} {
		do(t, s, Command{Text: c.text, User: c.user})
		if st := stateOf(t, s); st.Vars["V"] != c.want {
			t.Errorf("%s (user %v): V is %q, want %q", c.text, c.user, st.Vars["V"], c.want)
		}
	}
}

// What is expanded may change the shell as a command does.
func TestStateOfWhatIsExpanded(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	do(t, s, user(`set -o posix; a=(x y) r='a[V=7]' i=V=8; export V=0`))
	for _, c := range []struct{ text, want string }{
		{`: "${a[V=1]}"`, "1"},
		{`: "${#a[V=2]}"`, "2"},
		{`: "${PATH:V=3:1}"`, "3"},
		{`: "${PATH:0:V=4}"`, "4"},
		{`test -v 'a[V=5]'`, "5"},
		{`[ -v 'a[V=6]' ]`, "6"},
		{`: "${!r}"`, "7"},
		{`: "${a[i]}"`, "8"},
		{`V=11 :`, "11"},
		{`: <<<"${a[V=12]}"`, "12"},
		{`echo >"/dev/null${a[V=13]:0:0}"`, "13"},
		{`: ${ V=14; }`, "14"}, // from here on by bash 5.3
		{`: "${|V=15; }"`, "15"},
		{`: ${ export V=16; }`, "16"},
		{`: ${ f() { :; }; V=17; }`, "17"},
	} {
		if strings.Contains(c.text, "; }") && !atLeast(s.Version(), 5, 3) {
			break
		}
		do(t, s, leased(c.text))
		if st := stateOf(t, s); st.Vars["V"] != c.want {
			t.Errorf("%s: V is %q, want %q", c.text, st.Vars["V"], c.want)
		}
	}
	pid := s.PID()
	do(t, s, leased(": ${ exit 3; }"))
	if s.PID() != pid {
		t.Error("an exit in a substitution ended the shell")
	}
	do(t, s, leased("echo {V}>/dev/null"))
	if st := stateOf(t, s); st.Vars["V"] != string(do(t, s, user(`printf %s "$V"`)).Output) {
		t.Errorf("V is %q where {V}> assigned", st.Vars["V"])
	}
}

// What a text makes run without naming it changes the shell, too: functions are told, and a borrower's traps are taken back.
func TestStateOfWhatIsRunUnnamed(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"alias run='trap : USR1; made() { :; }'\nrun",
		"BASH_ALIASES[run]='trap : USR1; made() { :; }'\nrun",
		"printf -v 'BASH_ALIASES[run]' %s 'trap : USR1; made() { :; }'\nrun",
		"printf -v BASH_AL'IASES[run]' %s 'trap : USR1; made() { :; }'\nrun",
		"read -r BASH_AL'IASES[run]' <<<'trap : USR1; made() { :; }'\nrun",
		"declare BASH_AL'IASES[run]=trap : USR1; made() { :; }'\nrun",
		"declare -n other=BASH_AL'IASES'; other[run]='trap : USR1; made() { :; }'\nrun",
		"mapfile -C 'trap : USR1; made() { :; }; :' -c 1 a <<<x",
		"history -s 'trap : USR1; made() { :; }'; fc -s",
		"jobs -x eval 'trap : USR1; made() { :; }'",
		"compgen -F makes",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			s := start(t, func(o *Options) { o.RC = rcFile(t, "makes() { eval 'trap : USR1; made() { :; }'; }") })
			do(t, s, leased(text))
			if st := stateOf(t, s); st.Functions["made"] == "" {
				t.Error("the function is not told")
			}
			if r := do(t, s, user("trap -p USR1; declare -F made")); string(r.Output) != "made\n" {
				t.Errorf("got %q, want the function and no trap", r.Output)
			}
		})
	}
}

// State is what commands leave behind, whoever ran them; its digest tells that something changed, and only then.
func TestState(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *Options) { o.RC = rcFile(t, "alias rc_alias='ls -l'; rc_fn() { echo rc; }; export RCVAR=1") })
	first := stateOf(t, s)
	if first.Vars["RCVAR"] != "1" || first.Aliases["rc_alias"] != "ls -l" || !strings.Contains(first.Functions["rc_fn"], "echo rc") || len(first.Digest) != 64 {
		t.Errorf("got %+v", first)
	}
	for _, u := range []bool{true, false} {
		for _, text := range []string{"true", "ls >/dev/null", "echo x | cat", "false", "notexported=1"} {
			do(t, s, Command{Text: text, User: u})
			if st := stateOf(t, s); st.Digest != first.Digest || s.Digest() != first.Digest {
				t.Errorf("%q changed the digest: %v", text, differs(first, st))
			}
		}
	}
	cases := []struct {
		text  string
		check func(State) bool
	}{
		{"cd /usr", func(st State) bool { return st.Dir == "/usr" }},
		{"export NEW='a \"b\" $c `d` \\e'", func(st State) bool { return st.Vars["NEW"] == "a \"b\" $c `d` \\e" }},
		{"export ML=$'one\\ntwo\\n'", func(st State) bool { return st.Vars["ML"] == "one\ntwo\n" }},
		{"export CTRL=$'\\e[31m\\001\\177'", func(st State) bool { return st.Vars["CTRL"] == "\x1b[31m\x01\x7f" }},
		{"export UNI='ü 漢 🙂'", func(st State) bool { return st.Vars["UNI"] == "ü 漢 🙂" }},
		{"export BIN=$'\\xff\\xfe'", func(st State) bool { return st.Vars["BIN"] == "\xff\xfe" }},
		{"export EMPTY=", func(st State) bool { v, ok := st.Vars["EMPTY"]; return ok && v == "" }},
		{"export UNSET_ONE", func(st State) bool { _, ok := st.Vars["UNSET_ONE"]; return !ok }},
		{"unset RCVAR", func(st State) bool { _, ok := st.Vars["RCVAR"]; return !ok }},
		{"declare -xr RDONLY=x", func(st State) bool { return st.Vars["RDONLY"] == "x" }},
		{"alias q=\"echo it's\"", func(st State) bool { return st.Aliases["q"] == "echo it's" }},
		{"alias ml=$'echo a\\necho b'", func(st State) bool { return st.Aliases["ml"] == "echo a\necho b" }},
		{"unalias rc_alias", func(st State) bool { _, ok := st.Aliases["rc_alias"]; return !ok }},
		{"f1() { echo '}'; cat <<E\n}\nf2 () \n{ \nE\n}", func(st State) bool { return strings.Contains(st.Functions["f1"], "f2 ()") }},
		{"f2() { :; }", func(st State) bool { return strings.HasPrefix(st.Functions["f2"], "f2 ()") && st.Functions["f1"] != "" }},
		{"function a-b { :; }", func(st State) bool { return st.Functions["a-b"] != "" }},
		{"export -f f2", func(st State) bool { return st.Functions["f2"] != "" }},
		{"unset -f rc_fn", func(st State) bool { _, ok := st.Functions["rc_fn"]; return !ok }},
		{"eval 'export EV=1; ef() { :; }'", func(st State) bool { return st.Vars["EV"] == "1" && st.Functions["ef"] != "" }},
		{"export PATH=$PATH:/x", func(st State) bool { return strings.HasSuffix(st.Vars["PATH"], ":/x") }},
	}
	last := stateOf(t, s).Digest
	for i, c := range cases {
		do(t, s, Command{Text: c.text, User: i%2 == 0})
		st := stateOf(t, s)
		if !c.check(st) {
			t.Errorf("%q: got %s %v %v %v", c.text, st.Dir, st.Vars, st.Aliases, slices.Sorted(maps.Keys(st.Functions)))
		}
		if st.Digest == last && c.text != "export UNSET_ONE" && c.text != "export -f f2" {
			t.Errorf("%q: the digest stayed", c.text)
		}
		last = st.Digest
	}
	do(t, s, user("shopt -s nullglob; set -o noclobber"))
	if st := stateOf(t, s); !slices.Contains(st.Options, "nullglob") || !slices.Contains(st.Options, "noclobber") || !slices.IsSorted(st.Options) {
		t.Errorf("options: got %v", st.Options)
	}
	for name := range stateOf(t, s).Vars {
		if strings.HasPrefix(name, "__sublet") || name == EnvInside {
			t.Errorf("ours shows: %s", name)
		}
	}
}

func differs(a, b State) (out []string) {
	if a.Dir != b.Dir {
		out = append(out, "dir")
	}
	for k, v := range b.Vars {
		if a.Vars[k] != v {
			out = append(out, k+"="+v)
		}
	}
	for k := range a.Vars {
		if _, ok := b.Vars[k]; !ok {
			out = append(out, "-"+k)
		}
	}
	if !maps.Equal(a.Aliases, b.Aliases) {
		out = append(out, "aliases")
	}
	if !maps.Equal(a.Functions, b.Functions) {
		out = append(out, "functions")
	}
	if !slices.Equal(a.Options, b.Options) {
		out = append(out, strings.Join(a.Options, " ")+" / "+strings.Join(b.Options, " "))
	}
	return out
}

// A name that runs another file than PATH finds, or a builtin no more, is part of the state (T3h): `hash -p`, `enable -n`
// and `enable -f` decide what a later `ls` is. What PATH finds and bash only remembers is not.
func TestStateOfCommandNames(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	file := filepath.Join(t.TempDir(), "it's \"odd\"")
	if err := os.WriteFile(file, []byte("#!/bin/sh\necho other\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	do(t, s, user("ls / >/dev/null; cat /dev/null; sort </dev/null; :; x=1"))
	before := stateOf(t, s)
	if len(before.Hashed)+len(before.Disabled)+len(before.Loaded) > 0 {
		t.Errorf("before: got %v %v %v, want none", before.Hashed, before.Disabled, before.Loaded)
	}
	for _, c := range []struct {
		text  string
		check func(State) bool
	}{
		{"hash -p " + quote(file) + " ls", func(st State) bool { return st.Hashed["ls"] == file && len(st.Hashed) == 1 }},
		{"set +h; x=2", func(st State) bool { return st.Hashed["ls"] == file }}, // bash goes by it all the same
		{"set -h; hash -p rel/x cat", func(st State) bool { return st.Hashed["cat"] == "rel/x" && len(st.Hashed) == 2 }},
		{"enable -n test '['", func(st State) bool { return slices.Equal(st.Disabled, []string{"[", "test"}) }},
		{"export zz_x=1", func(st State) bool { return slices.Equal(st.Disabled, []string{"[", "test"}) }}, // not listed again
		{"eval 'enable -n kill'", func(st State) bool { return len(st.Disabled) == 3 }},
		{"enable -n enable; x=3", func(st State) bool { return slices.Contains(st.Disabled, "enable") }},
	} {
		last := stateOf(t, s).Digest
		do(t, s, user(c.text))
		st := stateOf(t, s)
		if !c.check(st) {
			t.Errorf("%q: got %v %v %v", c.text, st.Hashed, st.Disabled, st.Loaded)
		}
		if st.Digest == last {
			t.Errorf("%q: the digest stayed", c.text)
		}
	}
	if r := do(t, s, user("ls")); string(r.Output) != "other\n" {
		t.Errorf("ls: got %q", r.Output)
	}
}

// Both are put back with the rest of the state.
func TestRestoreCommandNames(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	do(t, s, user("enable -n times; hash -p /bin/true keep; hash -p /bin/true change"))
	before := stateOf(t, s)
	do(t, s, leased("enable -n test; enable times; hash -p /bin/echo ls; hash -p /bin/echo change; hash -d keep"))
	changed := stateOf(t, s)
	if want := "made another file run as ls, change, put back what runs as keep, switched off builtin test, " +
		"switched on builtin times, look at ls, change, test: it decides what later commands run"; Difference(before, changed) != want {
		t.Errorf("got %q, want %q", Difference(before, changed), want)
	}
	if err := s.Undo(t.Context(), before, changed); err != nil {
		t.Fatal(err)
	}
	if after := stateOf(t, s); after.Digest != before.Digest {
		t.Errorf("not restored: %v %v, want %v %v", after.Hashed, after.Disabled, before.Hashed, before.Disabled)
	}
}

// What a borrower changed can be put back, to the digest.
func TestRestore(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	do(t, s, user("export KEEP=1 CHANGE=old GONE=x; alias keep=ls change='ls -l' gone=ls; keep_fn() { echo k; }; change_fn() { echo old; }; gone_fn() { :; }; shopt -s nullglob; cd /usr"))
	before := stateOf(t, s)
	do(t, s, leased("export CHANGE=$'new\\nline' ADDED=y; unset GONE; alias change=cat added=x; unalias gone; change_fn() { echo new; }; added_fn() { :; }; unset -f gone_fn; cd /etc; PATH=/evil:$PATH"))
	do(t, s, user("shopt -u nullglob; set -f"))
	changed := stateOf(t, s)
	if changed.Digest == before.Digest || changed.Dir != "/etc" {
		t.Fatalf("got %+v", changed)
	}
	do(t, s, user("(exit 5)"))
	if err := s.Undo(t.Context(), before, changed); err != nil {
		t.Fatal(err)
	}
	after := stateOf(t, s)
	delete(after.Vars, "OLDPWD")
	delete(before.Vars, "OLDPWD")
	if d := differs(before, after); len(d) > 0 {
		t.Errorf("not restored: %v", d)
	}
	r := do(t, s, user(`echo $? "$KEEP $CHANGE $GONE $ADDED $PWD"; change_fn; keep_fn; type added_fn 2>&1 | tail -1; shopt -q nullglob && echo glob`))
	if want := "5 1 old x  /usr\nold\nk\nbash: type: added_fn: not found\nglob\n"; string(r.Output) != want {
		t.Errorf("got %q, want %q", r.Output, want)
	}
}

// A subshell hands back what it may (set -e, exit): variables of every kind, functions, aliases, the directory.
func TestHandBack(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	do(t, s, user("export WAS=1; declare -A M=([a]=1); arr=(1 2 3); old_fn() { :; }; alias old=ls"))
	r := do(t, s, leased("set -e\ncd /usr\nexport NEWX='a b'\nplain=$'x\\ny'\narr[1]=two\nM[b]='c d'\ndeclare -i num=7\nnew_fn() { echo new; }\nalias new='echo aliased'\nunset WAS\nunset -f old_fn\nunalias old\nexit 4"))
	if exit(r) != 4 || r.Dir != "/usr" || s.Dir() != "/usr" {
		t.Errorf("got exit %d in %s: %q %v", exit(r), r.Dir, r.Output, r.Notes)
	}
	r = do(t, s, user(`echo "$PWD|$(printenv NEWX)|$plain|${arr[*]}|${M[b]}|${WAS-unset}|$(new_fn)|$-"; declare -p num; new; type old_fn old >/dev/null 2>&1 || echo gone`))
	want := "/usr|a b|x\ny|1 two 3|c d|unset|new|himBHs\ndeclare -i num=\"7\"\naliased\ngone\n"
	if string(r.Output) != want {
		t.Errorf("got %q, want %q", r.Output, want)
	}
	// A cancelled one hands back what it had done by then, and its own EXIT trap is run.
	res, _ := cancelled(t, s, leased("set -e; cd /etc; echo go; sleep 100"))
	if res.Dir != "/etc" {
		t.Errorf("after a cancel: got %s, %v", res.Dir, res.Notes)
	}
	r = do(t, s, leased("trap 'echo cleaned' EXIT; cd /var; exit 2"))
	if string(r.Output) != "cleaned\n" || exit(r) != 2 {
		t.Errorf("own trap: got %q, exit %d", r.Output, exit(r))
	}
}

// Completion is bash's own, in that shell (checklist: programmable completion, commands, files, variables).
func TestComplete(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *Options) {
		o.RC = rcFile(t, `
alias zz_alias=ls
zz_function() { :; }
export ZZ_VAR=1
_zz() { COMPREPLY=($(compgen -W "start stop status" -- "$2")); touch ran; zz_leak=1; }
complete -F _zz zz_tool
complete -W "alpha beta 'ga mma'" zz_words
complete -o filenames -F _zz_files zz_files
_zz_files() { local w=${2#[\"\']}; mapfile -t COMPREPLY < <(compgen -f -- "$w"); }
_zz_slow() { sleep 30; }
complete -F _zz_slow zz_slow
_zz_loader() { eval "_zz_$1() { COMPREPLY=(loaded-\$1); }; complete -F _zz_$1 $1"; return 124; }
complete -D -F _zz_loader
_zz_opts() { COMPREPLY=($(compgen -W "--all --any=" -- "$2")); }
complete -o nospace -F _zz_opts zz_opts
_zz_args() { COMPREPLY=("$COMP_CWORD:${COMP_WORDS[*]}:$COMP_LINE:$COMP_POINT:$1:$2:$3"); }
complete -F _zz_args zz_args
`)
	})
	dir := s.Dir()
	for _, name := range []string{"plain.txt", "with space.txt", "sub/inner", "q'uote"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cases := []struct {
		line string
		from int
		want []string // "text kind"; nil = none
	}{
		{"zz_al", 0, []string{"zz_alias alias"}},
		{"zz_fu", 0, []string{"zz_function function"}},
		{"echo hi | zz_fu", 10, []string{"zz_function function"}},
		{"FOO=1 zz_fu", 6, []string{"zz_function function"}},
		{"echo $ZZ_", 5, []string{"$ZZ_VAR variable"}},
		{"zz_tool sta", 8, []string{"start ", "status "}},
		{"zz_tool ", 8, []string{"start ", "status ", "stop "}},
		{"true; zz_tool sto", 14, []string{"stop "}},
		{"zz_words al", 9, []string{"alpha "}},
		{"cat pl", 4, []string{"loaded-cat "}}, // by the default spec
		{"zz_files with", 9, []string{"with\\ space.txt file"}},
		{"zz_files 'with", 9, []string{"'with space.txt' file"}},
		{`zz_files "with`, 9, []string{`"with space.txt" file`}},
		{"zz_files q", 9, []string{`q\'uote file`}},
		{`zz_files "su`, 9, []string{`"sub/ directory`}},
		{`zz_tool "sto`, 8, []string{`"stop" `}},
		{"zz_files su", 9, []string{"sub/ directory"}},
		{"zz_files sub/", 9, []string{"sub/inner file"}},
		{"zz_opts --a", 8, []string{"--all option", "--any= option"}},
		{"zz_args a --x=y b", 16, []string{"5:zz_args a --x = y b:zz_args a --x=y b:17:zz_args:b:y "}},
		{"zz_nothing_at_all", 0, nil},
	}
	for _, c := range cases {
		from, cs, err := s.Complete(t.Context(), c.line, len(c.line))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, x := range cs {
			got = append(got, x.Text+" "+x.Description)
		}
		if from != c.from || !slices.Equal(got, c.want) {
			t.Errorf("%q: got %d %q, want %d %q", c.line, from, got, c.from, c.want)
		}
	}
	// In the middle of a line.
	if from, cs, err := s.Complete(t.Context(), "zz_tool sto --more", 11); err != nil || from != 8 || len(cs) != 1 || cs[0].Text != "stop" {
		t.Errorf("in the middle: got %d %v %v", from, cs, err)
	}
	// A slow one is given up, and the shell is free.
	if _, cs, err := s.Complete(t.Context(), "zz_slow x", 9); err != nil || len(cs) != 0 {
		t.Errorf("slow: got %v, %v", cs, err)
	}
	if r := do(t, s, user(`echo "free $? [$zz_leak]"`)); string(r.Output) != "free 0 []\n" {
		t.Errorf("afterwards: got %q", r.Output)
	}
	// What a loader loaded is in the shell itself now.
	if r := do(t, s, user("complete -p cat")); !strings.Contains(string(r.Output), "_zz_cat") {
		t.Errorf("loader: got %q", r.Output)
	}
	for _, odd := range []string{"", " ", "'", "\"", "\\", "$(", "a\x00b", "((((", "echo 'x", "\xff", strings.Repeat("x ", 2000), "$'", "{a,", "> ", "a=", "~"} {
		if _, _, err := s.Complete(t.Context(), odd, len(odd)); err != nil {
			t.Errorf("%q: %v", odd, err)
		}
	}
	if r := do(t, s, user("echo whole")); string(r.Output) != "whole\n" {
		t.Errorf("got %q", r.Output)
	}
}

// A prompt is bash's own: escapes expanded, in the shell, with the last status.
func TestPrompt(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *Options) {
		o.RC = rcFile(t, `PS1='\[\e[1m\]\W $? \j\$\[\e[0m\] $(echo sub) '; git_prompt() { echo "(main)"; }`)
	})
	do(t, s, user("cd /usr; (exit 3)"))
	p, err := s.Prompt(t.Context())
	sign := "$"
	if os.Geteuid() == 0 {
		sign = "#"
	}
	if want := "\x1b[1musr 3 0" + sign + "\x1b[0m sub "; err != nil || p.Text != want {
		t.Errorf("got %q, %v, want %q", p, err, want)
	}
	do(t, s, leased("PS1='new> '"))
	if p, _ := s.Prompt(t.Context()); p.Text != "new> " {
		t.Errorf("got %q", p)
	}
	do(t, s, user("PS1="))
	if p, _ := s.Prompt(t.Context()); p.Text != "" {
		t.Errorf("got %q", p)
	}
	for _, mode := range []string{"vi", "emacs"} {
		do(t, s, user("set -o "+mode))
		if p, err := s.Prompt(t.Context()); err != nil || p.Editing != mode {
			t.Errorf("got %q, %v, want %s", p, err, mode)
		}
	}
	if r := do(t, s, user(`PS1='x> '; echo "[$PS1]"`)); string(r.Output) != "[x> ]\n" {
		t.Errorf("got %q", r.Output)
	}
	if r := do(t, s, user(`echo "[$PS1]"`)); string(r.Output) != "[x> ]\n" {
		t.Errorf("the user's PS1 is not theirs: %q", r.Output)
	}
}
