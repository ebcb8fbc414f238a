// Package zsh is the dialect of zsh, 5.8 and newer.
package zsh

import (
	_ "embed"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"sublet/lease/shell/dialect"
)

//go:embed integration.zsh
var integration string

// Dialect is that of zsh; the integration is not tested with versions before 5.8. HoldKey leaves nothing in the line where it is
// unbound.
var Dialect = &dialect.Dialect{
	Name: "zsh", Oldest: [2]int{5, 8}, HoldKey: "\x1bO~",
	VersionArgs: []string{"-fc", "print -rn -- ${ZSH_VERSION%%-*}"},
	ChildArgs:   []string{"-f", "-c", ". /dev/fd/3"},
	Background:  dialect.Background,
	Stopped:     stopped,
	Quote:       dialect.Quote, Start: launch, ReadState: readState, Restore: restore, Examine: examine,
}

// launch implements dialect.Dialect.Start. Zsh reads $ZDOTDIR/.zshenv first of a user's files and reads ZDOTDIR again for the next;
// so only that variable is ours, and only until the integration has begun.
func launch(o dialect.Start) dialect.Launch {
	return dialect.Launch{
		File: "zdot/.zshenv",
		Text: o.Script(integration, "%s=%s", dialect.Quote, "zdotdir", dialect.Getenv(o.Env, "ZDOTDIR")),
		Args: []string{"zsh", "-i"}, // -i changes nothing, but distinguishes this shell from one that replaces it (exec zsh)
		Env:  append(o.Env, "ZDOTDIR="+filepath.Join(o.Folder, "zdot")),
	}
}

// readState implements dialect.Dialect.ReadState: see __sublet_state in integration.zsh.
func readState(text []byte) (st dialect.State, err error) {
	f := dialect.NewFields(text)
	options, commands := make(map[string]string), make(map[string]string)
	st.Aliases, st.Functions = make(map[string]string), make(map[string]string)
	st.Vars, st.Local = make(map[string]string), make(map[string]string)
	st.Umask = strings.TrimSpace(f.Next())
	f.Map(options, "")
	f.Map(st.Aliases, "")
	f.Map(st.Aliases, "-g ")
	f.Map(st.Aliases, "-s ")
	f.Map(st.Functions, "")
	f.Map(commands, "")
	st.Disabled = f.Sorted()
	for f.More() {
		kind, name, value := f.Next(), f.Next(), f.Next()
		switch {
		case dialect.Volatile(name), strings.HasPrefix(name, "vcs_info_msg_"):
		case kind == "x":
			st.Vars[name] = value
		default:
			st.Local[name] = value
		}
	}
	for name, value := range options {
		if value == "on" && !fixed[name] {
			st.Options = append(st.Options, name)
		}
	}
	slices.Sort(st.Options)
	// The functions and variables of vcs_info change by themselves, too: prompts use it.
	maps.DeleteFunc(st.Functions, func(name, _ string) bool {
		return strings.HasPrefix(name, "__sublet_") || strings.HasPrefix(name, "VCS_INFO_") || name == dialect.JobFunction
	})
	st.Hashed = dialect.Hashed(commands, st.Vars["PATH"])
	return st, f.Err
}

// fixed are options that zsh sets by itself or that cannot be changed.
var fixed = map[string]bool{
	"interactive": true, "login": true, "monitor": true, "privileged": true, "restricted": true, "shinstdin": true, "singlecommand": true, "zle": true,
}

// stopped is Dialect.Stopped: a line for each program of a pipeline.
var stopped = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)(?:\n?^-?zsh: suspended.*)+`) })

// statements are those that run at the top level as well as in a function.
var statements = sync.OnceValue(func() dialect.Statements {
	return dialect.Statements{
		Quote:     dialect.Quote,
		Directory: "builtin cd -q -- {value}",
		Umask:     "builtin umask {text}",
		Export:    "builtin export {bare}={value}",
		Unset:     "builtin unset {bare}",
		Alias: map[string][2]string{ // see ReadState
			"":    {"builtin alias -- {name}={value}", "builtin unalias -- {name}"},
			"-g ": {"builtin alias -g {name}={value}", "builtin unalias -- {name}"},
			"-s ": {"builtin alias -s {name}={value}", "builtin unalias -s -- {name}"},
		},
		Function: [2]string{
			"() { builtin emulate -L zsh; builtin setopt no_aliases; functions[$1]=$2 } {name} {value}", "builtin unfunction -- {name}",
		},
		Hashed:  [2]string{"builtin hash -- {name}={value}", "builtin unhash -- {name} 2>/dev/null"},
		Builtin: [2]string{"builtin enable -- {name}", "builtin disable -- {name}"},
		Option:  [2]string{"builtin setopt {bare}", "builtin unsetopt {bare}"},
		Fixed:   regexp.MustCompile(`^typeset (-\w+ )*-\w*r`),
		// Those of zsh's own that __sublet_state lists.
		Special: map[string]bool{"IFS": true, "FPATH": true, "CDPATH": true, "WORDCHARS": true, "KEYTIMEOUT": true, "TMOUT": true},
	}
})

// restore implements dialect.Dialect.Restore.
func restore(before, after, now dialect.State) (text string, left []string) {
	return statements().Restore(before, after, now)
}

// examine implements dialect.Dialect.Examine.
func examine(text string, known func(name string) bool) dialect.Examination {
	return dialect.Examine(syntax.LangZsh, false, text, func(name string) bool {
		return name == "foreach" || name == "end" || known != nil && known(name) // which the parser takes for programs
	})
}
