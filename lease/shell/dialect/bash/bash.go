// Package bash is the dialect of bash, 4.4 and newer.
package bash

import (
	_ "embed"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"sublet/lease/shell/dialect"
)

//go:embed integration.bash
var integration string

// Dialect is that of bash. Version 4.4 brought PS0 and `local -`. The keys leave nothing in the line where they are unbound.
// AcceptKey is needed because a readline command that is bound with -x cannot run the line that it sets.
var Dialect = &dialect.Dialect{
	Name: "bash", Oldest: [2]int{4, 4}, HoldKey: "\x1bO~", AcceptKey: "\x1bO}",
	VersionArgs: []string{"--norc", "--noprofile", "-c", `printf %s "${BASH_VERSINFO[0]}.${BASH_VERSINFO[1]}.${BASH_VERSINFO[2]}"`},
	ChildArgs:   []string{"--norc", "--noprofile", "-O", "expand_aliases", "-c", ". /dev/fd/3"},
	Background:  dialect.Background,
	Stopped:     stopped,
	Quote:       dialect.Quote, Start: launch, ReadState: readState, Restore: restore, Examine: examine,
}

// launch implements dialect.Dialect.Start.
func launch(o dialect.Start) dialect.Launch {
	env, startup := o.Env, dialect.Getenv(o.Env, "HOME")+"/.bashrc"
	if o.Private {
		env, startup = append(env, "HISTFILE="), ""
	}
	return dialect.Launch{
		File: "integration.bash",
		Text: o.Script(integration, "%s=%s", dialect.Quote, "startup", startup),
		Args: []string{"bash", "--rcfile", filepath.Join(o.Folder, "integration.bash"), "-i"},
		Env:  env,
	}
}

// readState implements dialect.Dialect.ReadState: see __sublet_state in integration.bash.
func readState(text []byte) (st dialect.State, err error) {
	f, hashed := dialect.NewFields(text), make(map[string]string)
	st.Vars, st.Local = make(map[string]string), make(map[string]string)
	st.Aliases, st.Functions = make(map[string]string), make(map[string]string)
	st.Umask = strings.TrimSpace(f.Next())
	for _, option := range strings.Split(f.Next(), ":") {
		if option != "" && option != "login_shell" { // that one is read-only
			st.Options = append(st.Options, option)
		}
	}
	slices.Sort(st.Options)
	f.Map(st.Aliases, "")
	f.Map(hashed, "")
	st.Disabled = f.Sorted()
	f.Map(st.Functions, "")
	delete(st.Functions, dialect.JobFunction)
	f.Map(st.Vars, "")
	st.Hashed = dialect.Hashed(hashed, st.Vars["PATH"])
	var painted string // PS1 before the prompt's hooks ran
	for _, statement := range statementsOf(f.Next()) {
		flags, rest, _ := strings.Cut(strings.TrimPrefix(statement, "declare -"), " ")
		name, value, set := strings.Cut(rest, "=")
		switch {
		case name == "__sublet_ps1":
			painted = value
		case special(name):
			delete(st.Vars, name)
		case set && strings.Contains(flags, "x") && !strings.ContainsAny(flags, "aAn"): // it is in Vars
		case name == "PROMPT_COMMAND" || name == "PS0": // without what __sublet_arm in integration.bash adds to them
			st.Local[name] = strings.NewReplacer("__sublet_prompt;", "", "__sublet_prompt", "", `\\e]7701;B;\$\$;\${__sublet_nonce-}\\a`, "").Replace(statement)
		default:
			st.Local[name] = statement
			delete(st.Vars, name)
		}
	}
	_, ps1, set := strings.Cut(st.Local["PS1"], "=")
	st.Painted = set && ps1 != painted
	return st, f.Err
}

// statementsOf returns the statements that `declare -p` prints, of which each ends with a line feed; a value in quotes may contain
// more of them. Anything that is not such a statement is dropped.
func statementsOf(text string) (list []string) {
	for len(text) > 0 {
		end := strings.IndexAny(text, "=\n")
		if end >= 0 && text[end] == '=' {
			end += wordEnd(text[end:])
		}
		if end < 0 || end >= len(text) {
			end = len(text) - 1
		}
		if strings.HasPrefix(text, "declare -") {
			list = append(list, text[:end])
		}
		text = text[end+1:]
	}
	return list
}

// wordEnd returns the index of the first line feed of text outside quotes; it is len(text) or more if there is none.
func wordEnd(text string) (i int) {
	quote, escapes := byte(0), true // the quote that is open, and whether a backslash escapes the next character: not in '…'
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && escapes:
			i++
		case c == quote:
			quote, escapes = 0, true
		case quote == 0 && (c == '"' || c == '\''):
			quote, escapes = c, c == '"' || i > 0 && text[i-1] == '$'
		case quote == 0 && c == '\n':
			return i
		}
	}
	return i
}

// special reports whether a variable is not part of the state: bash keeps it by itself, or it is the integration's.
func special(name string) bool {
	switch name {
	case "-", "LINENO", "PIPESTATUS", "RANDOM", "SRANDOM", "SECONDS", "EPOCHSECONDS", "EPOCHREALTIME", "HISTCMD",
		"PPID", "UID", "EUID", "GROUPS", "DIRSTACK", "FUNCNAME", "OPTIND", "OPTERR", "OPTARG", "REPLY", "SHELLOPTS", "BASHOPTS", "BASH", "BASHPID",
		"HOSTNAME", "HOSTTYPE", "MACHTYPE", "OSTYPE", "READLINE_LINE", "READLINE_POINT", "READLINE_MARK", "READLINE_ARGUMENT", "MAILCHECK":
		return true
	}
	return dialect.Volatile(name) || strings.HasPrefix(name, "BASH_") && name != "BASH_ENV" || strings.HasPrefix(name, "COMP_")
}

// stopped is Dialect.Stopped: any word for the state, since it is translated.
var stopped = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)\n?^\[\d+\][ +-]  \S+  `) })

// statements are bash's.
var statements = sync.OnceValue(func() dialect.Statements {
	return dialect.Statements{
		Quote:     dialect.Quote,
		Directory: "builtin cd -- {value}",
		Umask:     "builtin umask {text}",
		Export:    "export {bare}={value}",
		Unset:     "builtin unset -v {bare}",
		Alias:     map[string][2]string{"": {"builtin alias -- {name}={value}", "builtin unalias -- {name}"}},
		Function:  [2]string{"{text}", "builtin unset -f -- {name}"},
		Hashed:    [2]string{"builtin hash -p {value} -- {name}", "builtin hash -d -- {name} 2>/dev/null"},
		Builtin:   [2]string{"builtin enable -- {name}", "builtin enable -n -- {name}"},
		Option: [2]string{
			"builtin set -o {bare} 2>/dev/null || builtin shopt -s {bare}", "builtin set +o {bare} 2>/dev/null || builtin shopt -u {bare}",
		},
		Fixed: regexp.MustCompile(`^declare -\w*r`),
	}
})

// restore implements dialect.Dialect.Restore.
func restore(before, after, now dialect.State) (text string, left []string) {
	text, left = statements().Restore(before, after, now)
	if strings.Contains(text, "PROMPT_COMMAND") || strings.Contains(text, "PS0") { // ReadState took the hooks out of them
		text += "__sublet_arm\n"
	}
	return text, left
}

// examine implements dialect.Dialect.Examine.
func examine(text string, known func(name string) bool) dialect.Examination {
	return dialect.Examine(syntax.LangBash, false, text, known)
}
