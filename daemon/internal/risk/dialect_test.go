package risk

import "testing"

// A text for zsh or fish is trusted as far as that shell gives it the meaning that it has in bash; beyond that it is not
// understood, which is asked in every mode, and what is bad in it is bad all the same.
func TestDialects(t *testing.T) {
	in := func(dialect string) Context {
		c := here()
		c.Dialect = dialect
		c.Functions = map[string]string{"ls": "function ls\n  command ls $argv\nend", "deploy": "function deploy\n  rm -rf ~\nend"}
		if dialect == "zsh" {
			c.Functions = map[string]string{"deploy": "deploy () {\n\trm -rf ~\n}", "greet": "greet () {\n\techo hi\n}"}
			c.Aliases["G"] = "| rm -rf ~"
		}
		return c
	}
	unread := func(c Context, commands ...string) {
		t.Helper()
		for _, s := range commands {
			if v := Analyze(s, c); v.Level < High || !v.Unread {
				t.Errorf("%s: %q is %s, unread %v; want it not understood", c.Dialect, s, v.Level, v.Unread)
			}
		}
	}
	both := []string{"ls -la", "git status --short", "cat README.md | head -3", "grep -rn 'a b' src && echo \"found it (^_^) =x\"", "cd src; ls", "ls *.go ~/x > /dev/null 2>&1"}
	zsh, fish := in("zsh"), in("fish")
	exactly(t, Low, zsh, both...)
	exactly(t, Low, fish, both...)
	exactly(t, Critical, zsh, "rm -rf ~", "deploy", "exec deploy", "sh -c 'rm -rf /'", "ls && rm -rf /")
	exactly(t, Critical, fish, "rm -rf ~", "sh -c 'rm -rf /'", "ls; and rm -rf x; rm -rf /")
	exactly(t, Low, zsh, "for f in *.go; do head -1 $f; done", "x=$(git rev-parse HEAD) && echo ${x:-none}", "if [[ -f go.mod ]]; then cat go.mod; fi", "greet", "ll", "git show HEAD^", "git log HEAD~2")
	for _, text := range []string{"alias la='ls -a'", "cd src; export X=1; alias la='ls -a' lb=ls"} {
		if v := Analyze(text, zsh); v.Level != Medium || v.Reach != ReachShell { // it runs in the shell: in a child it would do nothing
			t.Errorf("zsh: %q is %s with reach %s, want medium with reach shell", text, v.Level, v.Reach)
		}
	}
	unread(zsh,
		"alias -s go=vim", `alias \-g x=ls`, "alias {-g,x=ls}", "alias ?g x=ls", "alias +g x=y", "alias $x", "alias x='cat =ls'",
		"ls *(e:'rm -rf x':)", "a=(ls rm); $a[2] x", "echo ${(e)x}", "cat =(ls)", "cat =ls", "ls ~proj", "f=/etc/x; cat $f:h", "cat ${f:h}",
		"echo hello &!", "> file", "ls ^src", "ls src/^x", "cat <1-5>", "echo ${~x}", "echo G", "typeset -T A a", "set -A a x", "hash ls=/tmp/x",
		"alias -g X=y", "cd a b", "() { ls }", "for x (a b) ls", "echo ${x[1]}", "echo ${(%):-%x}", "enable ls", "bind x", "noglob rm x", "repeat 3 ls", "- ls", "select x in a; do ls; done",
	)
	unread(fish,
		"set -x PATH /tmp", "echo $HOME", "ls (pwd)", "for f in *; echo $f; end", "echo 'it\\'s'", "VAR=1 ls", "echo {a,b}", "eval ls",
		"source x", "ls &", "echo \"$x\"", "cat <<E\nx\nE", "if true; ls; end", "! ls", "echo a^b", "echo %self", "ls ?", "ls **/x", "[ -f x ]", "export X=1",
		"function f; ls; end", "command ls", "ls |& cat", "{ ls; }", "(ls)", "time ls",
		"# '\necho ' #\\'' ; rm -rf ~ #'", // the quote in the comment opens no text
	)
	atLeast(t, High, fish, "deploy", "begin; ls; end", "and ls", "string replace a b", "not ls")
	unread(in("nu"), both...) // a shell that the reader does not know
	fish.Poisoned = []string{"ls"}
	exactly(t, High, fish, "ls")
}

// A text that gives an alias of the live shell another value is judged by both: the change holds only from the next line on, and not
// outside a subshell or a branch.
func TestAliasGivenAgain(t *testing.T) {
	c := here()
	c.Aliases = map[string]string{"wipe": "rm -rf ~"}
	exactly(t, Critical, c, "wipe", "alias wipe=true; wipe", "alias wipe='wipe -v'; wipe", "(alias wipe=true); wipe", "if x; then alias wipe=true; fi; wipe",
		"alias wipe=true\nwipe")
	c.Aliases["top"] = "x=/"
	exactly(t, Critical, c, "top; rm -rf $x")
	c.Aliases["rm"] = "trash"
	exactly(t, Critical, c, "unalias rm\nrm -rf ~")
}

// No text is less of a risk because it is for another shell.
func TestDialectsLowerNothing(t *testing.T) {
	for _, r := range commandTable(t) {
		bash := Analyze(r.command, here()).Level
		for _, dialect := range []string{"zsh", "fish", "nu"} {
			c := here()
			c.Dialect = dialect
			if v := Analyze(r.command, c); v.Level < bash {
				t.Errorf("%s: %q: got %s in %s, %s in bash", r.place, r.command, v.Level, dialect, bash)
			}
		}
	}
}
