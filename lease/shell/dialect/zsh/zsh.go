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

// Zsh implements dialect.Dialect.
type Zsh struct{}

// Name returns "zsh".
func (Zsh) Name() string { return "zsh" }

// Oldest returns 5.8; the integration is not tested with older ones.
func (Zsh) Oldest() [2]int { return [2]int{5, 8} }

// VersionArgs implements dialect.Dialect.
func (Zsh) VersionArgs() []string { return []string{"-fc", "print -rn -- ${ZSH_VERSION%%-*}"} }

// HoldKey leaves nothing in the line where it is unbound.
func (Zsh) HoldKey() string { return "\x1bO~" }

// AcceptKey returns "": the widget runs the line by itself.
func (Zsh) AcceptKey() string { return "" }

// Quote implements dialect.Dialect.
func (Zsh) Quote(text string) string { return dialect.Quote(text) }

// Background implements dialect.Dialect: see sublet_job in integration.zsh.
func (Zsh) Background(j dialect.Job) (text, refused string) { return dialect.Background(j), "" }

// Child implements dialect.Dialect: the launcher opens the command's text as descriptor 3.
func (Zsh) Child(path string) []string { return []string{path, "-f", "-c", ". /dev/fd/3"} }

// Start implements dialect.Dialect. Zsh reads $ZDOTDIR/.zshenv first of a user's files and looks at ZDOTDIR anew for the next;
// so only that variable is ours, and only until the integration has begun.
func (Zsh) Start(o dialect.Start) dialect.Launch {
	zdotdir, startup := "", "1"
	var env []string
	for _, kv := range o.Env {
		if dir, ok := strings.CutPrefix(kv, "ZDOTDIR="); ok {
			zdotdir = dir
		} else {
			env = append(env, kv)
		}
	}
	if o.NoStartup {
		startup = ""
	}
	return dialect.Launch{
		File: "zdot/.zshenv",
		Text: o.Script(integration, "%s=%s", dialect.Quote, "zdotdir", zdotdir, "startup", startup),
		Args: []string{"zsh"},
		Env:  append(env, "ZDOTDIR="+filepath.Join(o.Folder, "zdot")),
	}
}

// ReadState implements dialect.Dialect: see __sublet_state in integration.zsh.
func (Zsh) ReadState(text []byte) (st dialect.State, err error) {
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

// Restore implements dialect.Dialect.
func (Zsh) Restore(before, after, now dialect.State) (text string, left []string) {
	return statements().Restore(before, after, now)
}

// Examine implements dialect.Dialect.
func (Zsh) Examine(text string, known func(name string) bool) dialect.Examination {
	return dialect.Examine(syntax.LangZsh, false, text, func(name string) bool {
		return name == "foreach" || name == "end" || known != nil && known(name) // which the parser takes for programs
	})
}
