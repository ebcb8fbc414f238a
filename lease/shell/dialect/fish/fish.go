// Package fish is the dialect of fish, 3.4 and newer.
package fish

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"sublet/lease/shell/dialect"
)

//go:embed integration.fish
var integration string

// Fish implements dialect.Dialect.
type Fish struct{}

// Name returns "fish".
func (Fish) Name() string { return "fish" }

// Oldest returns 3.4.
func (Fish) Oldest() [2]int { return [2]int{3, 4} }

// VersionArgs implements dialect.Dialect.
func (Fish) VersionArgs() []string {
	return []string{"--no-config", "-c", `string match -r '^[0-9.]+' -- $version`}
}

// HoldKey leaves nothing in the line where it is unbound.
func (Fish) HoldKey() string { return "\x1e\x1d" }

// AcceptKey returns "": the widget runs the line by itself.
func (Fish) AcceptKey() string { return "" }

// Child implements dialect.Dialect.
func (Fish) Child(path string) []string {
	return []string{path, "--no-config", "-c", "source /dev/fd/3"}
}

// Quote implements dialect.Dialect.
func (Fish) Quote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

// Start implements dialect.Dialect.
func (f Fish) Start(o dialect.Start) dialect.Launch {
	var b strings.Builder
	for _, kv := range [][2]string{
		{"folder", o.Folder},
		{"nonce", o.Nonce},
		{"restore", o.Restore},
	} {
		fmt.Fprintf(&b, "set -g __sublet_%s %s\n", kv[0], f.Quote(kv[1]))
	}
	b.WriteString(integration)
	args := []string{"fish"}
	if o.NoStartup || o.Private {
		args = append(args, "--no-config")
	}
	return dialect.Launch{
		Files: map[string]string{"integration.fish": b.String()},
		Args:  append(args, "-C", "source "+f.Quote(filepath.Join(o.Folder, "integration.fish"))),
		Env:   o.Env,
	}
}

// ReadState implements dialect.Dialect: see __sublet_state in integration.fish.
func (f Fish) ReadState(text []byte) (st dialect.State, err error) {
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
			statement := "set --" + kind + " --unexport -- " + name
			for _, value := range values {
				statement += " " + f.Quote(value)
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

// abbreviated returns the name that a statement of `abbr --show` is about: it stands behind "--".
func abbreviated(statement string) string {
	_, name, _ := strings.Cut(statement, " -- ")
	name, _, _ = strings.Cut(name, " ")
	return name
}

// volatile reports whether fish changes a variable by itself.
func volatile(name string) bool {
	switch name {
	case "_", "PWD", "OLDPWD", "SHLVL", "COLUMNS", "LINES", "CMD_DURATION", "argv", "dirprev", "dirnext", "fish_bind_mode", "fish_history",
		"fish_killring", "fish_pid", "hostname", "umask", "version", "FISH_VERSION", "EUID":
		return true
	}
	return strings.HasPrefix(name, "__sublet_") || strings.HasPrefix(name, "__fish_")
}

// Restore implements dialect.Dialect.
func (f Fish) Restore(before, after, now dialect.State) (text string, left []string) {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, "builtin "+format+"\n", args...) }
	if before.Dir != after.Dir && now.Dir == after.Dir {
		say("cd -- %s", f.Quote(before.Dir))
	}
	variables := func(st dialect.State) map[string]string { // a variable is in one of the two maps
		m := maps.Clone(st.Local)
		if m == nil {
			m = make(map[string]string)
		}
		for name, value := range st.Vars {
			m[name] = "set --export -- " + name + " " + f.Quote(value)
		}
		return m
	}
	dialect.Reverse(variables(before), variables(after), variables(now),
		func(name string) { say("set --erase -- %s", name) },
		func(_, statement string) { say("%s", statement) })
	dialect.Reverse(before.Functions, after.Functions, now.Functions,
		func(name string) { say("functions --erase -- %s", f.Quote(name)) },
		func(_, definition string) { b.WriteString(definition + "\n") })
	dialect.Reverse(before.Aliases, after.Aliases, now.Aliases,
		func(name string) { b.WriteString("abbr --erase -- " + name + "\n") },
		func(_, statement string) { b.WriteString(statement + "\n") })
	if before.Umask != after.Umask && now.Umask == after.Umask {
		say("set umask %s", before.Umask)
	}
	return b.String(), nil
}

// Examine implements dialect.Dialect. There is no parser for fish here: a text is understood only where it is one command of a
// program that is known, and what may end the shell is found by its words. Fish has no subshell to run that in.
func (Fish) Examine(text string, known func(name string) bool) dialect.Examination {
	e := dialect.Examination{Changes: true, Text: text}
	bare := quoted().ReplaceAllStringFunc(text, func(s string) string {
		if s[0] == '"' && strings.Contains(s, "$(") {
			return s[1 : len(s)-1]
		}
		return "_"
	})
	switch {
	case strings.ContainsRune(text, 0):
		e.Refused = "the command holds a NUL byte"
	case ending().MatchString(bare), evaluating().MatchString(bare) && endingWord().MatchString(text):
		e.Refused = "exit, exec and logout would end the user's shell, and fish has no subshell for them: use `fish -c`"
	default:
		word := command().FindStringSubmatch(bare)
		e.Changes = word == nil || !programs[word[1]] || known != nil && known(word[1])
		if m := lasting().FindStringSubmatch(bare); m != nil {
			e.Lasts = m[1]
		}
	}
	return e
}

// Compiled on first use: a program that lends no fish does not pay for them.
var (
	quoted     = lazy(`'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\\.|(?m:(?:^|\s)#.*$)`)
	ending     = lazy(`(?:^|[;&|(\n]|\b(?:and|or|not|if|while|begin|else|time|command|builtin)\s|!)\s*(?:exit|exec|logout)\b`)
	evaluating = lazy(`\b(?:eval|source)\b`)
	endingWord = lazy(`\b(?:exit|exec|logout)\b`)
	lasting    = lazy(`(?:^|[;&|(\n]|\b(?:and|or|not|if|begin|else)\s)\s*(cd|pushd|popd|set|export|alias|abbr|source|umask|function|bind)\b`)
	command    = lazy(`^\s*([\w.-]+)(?:\s[^;&|()<>\n]*)?$`)
)

func lazy(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
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
