// Package fish is the dialect of fish, 3.4 and newer.
package fish

import (
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"sublet/lease/shell/dialect"
)

//go:embed integration.fish
var integration string

// Dialect is that of fish. Version 3.4 brought $(…), and runs substitutions in its own process group, as procs.BegunSince expects.
// HoldKey leaves nothing in the line where it is unbound.
var Dialect = &dialect.Dialect{
	Name: "fish", Oldest: [2]int{3, 4}, HoldKey: "\x1e\x1d",
	VersionArgs: []string{"--no-config", "-c", `string match -r '^[0-9.]+' -- $version`},
	ChildArgs:   []string{"--no-config", "-c", "source /dev/fd/3"},
	Background:  background, JobInChild: true,
	Quote: quote, Start: launch, ReadState: readState, Restore: restore, Examine: examine,
}

func quote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

// background implements dialect.Dialect.Background. Fish runs only programs in the background, no functions or blocks, so the program is
// sh, which ignores a hang-up, runs another fish and writes its status. The text passes through the file "text".
func background(j dialect.Job) string {
	file := quote(j.Folder + "/text")
	return "builtin printf %s " + quote(j.Text) + " >" + file + "\n" +
		"builtin set -l __sublet_words " + quote(j.Folder) + " " + quote(j.Shell) + " --no-config " + file + "\n" +
		"command sh -c $__sublet_job " + quote(j.Label) + " $__sublet_words &\n" +
		"builtin printf %s $last_pid >" + quote(j.Folder+"/pid") + "\n"
}

// launch implements dialect.Dialect.Start.
func launch(o dialect.Start) dialect.Launch {
	return dialect.Launch{
		File: "integration.fish",
		Text: o.Script(integration, "set -g %s %s", quote),
		Args: []string{"fish", "-C", "source " + quote(filepath.Join(o.Folder, "integration.fish"))},
		Env:  o.Env,
	}
}

// readState implements dialect.Dialect.ReadState: see __sublet_state in integration.fish.
func readState(text []byte) (st dialect.State, err error) {
	st.Vars, st.Local = make(map[string]string), make(map[string]string)
	st.Aliases, st.Functions = make(map[string]string), make(map[string]string)
	fields, ok := strings.CutSuffix(string(text), "\x00")
	if !ok {
		return st, errors.New("the shell's state is incomplete")
	}
	list := strings.Split(fields, "\x00")
	for len(list) > 0 {
		kind, name, _ := strings.Cut(list[0], " ")
		var values []string
		for list = list[1:]; len(list) > 0 && strings.HasPrefix(list[0], "="); list = list[1:] {
			values = append(values, list[0][1:])
		}
		switch {
		case kind == "abbreviations":
			for _, statement := range values {
				st.Aliases[abbreviated(statement)] = statement
			}
			return st, nil // it is the last
		case volatile(name):
		case kind == "global" || kind == "universal":
			statement := "builtin set --" + kind + " --unexport -- " + name
			for _, value := range values {
				statement += " " + quote(value)
			}
			st.Local[name] = statement
		case len(values) != 1:
			return st, fmt.Errorf("the shell's state: %s has %d values", kind, len(values))
		case kind == "umask":
			st.Umask = values[0]
		case kind == "export":
			st.Vars[name] = values[0]
		case kind == "function":
			st.Functions[name] = values[0]
		}
	}
	return st, errors.New("the shell's state has no end")
}

// abbreviated returns the name of the abbreviation in a statement of `abbr --show`, where it follows "--".
func abbreviated(statement string) string {
	_, name, _ := strings.Cut(statement, " -- ")
	name, _, _ = strings.Cut(name, " ")
	return name
}

// volatile reports whether fish, or its prompt at the first folder of a kind, changes a variable by itself.
func volatile(name string) bool {
	switch name {
	case "CMD_DURATION", "argv", "dirprev", "dirnext", "fish_bind_mode", "fish_history",
		"fish_killring", "fish_pid", "hostname", "umask", "version", "FISH_VERSION", "EUID":
		return true
	}
	own := []string{"__fish_", "___fish_", "fish_color_hg_", "fish_prompt_hg_"}
	return dialect.Volatile(name) || slices.ContainsFunc(own, func(begin string) bool { return strings.HasPrefix(name, begin) })
}

// restore implements dialect.Dialect.Restore.
func restore(before, after, now dialect.State) (text string, left []string) {
	return dialect.Statements{
		Quote:     quote,
		Directory: "builtin cd -- {value}",
		Umask:     "builtin set umask {text}",
		Export:    "builtin set --export -- {bare} {value}",
		Unset:     "builtin set --erase -- {bare}",
		Alias:     map[string][2]string{"": {"{text}", "abbr --erase -- {bare}"}},
		Function:  [2]string{"{text}", "builtin functions --erase -- {name}"},
	}.Restore(before, after, now)
}

// examine implements dialect.Dialect.Examine. A text is read as bash: if bash can parse it, it means the same in fish. A command that is
// not in programs may be a function that fish has not read yet.
func examine(text string, known func(name string) bool) dialect.Examination {
	e := dialect.Examine(syntax.LangBash, true, text, func(name string) bool { return !programs[name] || known != nil && known(name) })
	if e.Ends {
		e = dialect.Examination{Lasts: e.Lasts, Refused: "exit, exec and logout would end the user's shell, and fish has no subshell for them: use `fish -c`"}
	}
	e.Text = text
	return e
}

// programs change nothing of the shell: they are external, or builtins that only print.
var programs = map[string]bool{
	"[": true, "awk": true, "cargo": true, "cat": true, "cp": true, "curl": true, "cut": true, "date": true, "df": true, "diff": true, "du": true,
	"echo": true, "env": true, "false": true, "file": true, "find": true, "gcc": true, "gh": true, "git": true, "go": true, "grep": true, "head": true,
	"id": true, "jq": true, "less": true, "ln": true, "ls": true, "make": true, "mkdir": true, "mv": true, "node": true, "npm": true, "npx": true,
	"ps": true, "pwd": true, "pytest": true, "python": true, "python3": true, "rg": true, "rm": true, "sed": true, "sh": true, "sleep": true,
	"sort": true, "stat": true, "tail": true, "tar": true, "test": true, "touch": true, "tr": true, "tree": true, "true": true, "uname": true,
	"uniq": true, "wc": true, "which": true, "whoami": true, "yarn": true,
}
