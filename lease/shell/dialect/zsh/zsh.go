// Package zsh is the dialect of zsh, 5.8 and newer.
package zsh

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"sublet/lease/shell/dialect"
)

//go:embed integration.zsh
var integration string

// Zsh implements dialect.Dialect.
type Zsh struct{}

// Name returns "zsh".
func (Zsh) Name() string { return "zsh" }

// Oldest returns 5.8.
func (Zsh) Oldest() [2]int { return [2]int{5, 8} }

// VersionArgs implements dialect.Dialect.
func (Zsh) VersionArgs() []string { return []string{"-fc", "print -rn -- ${ZSH_VERSION%%-*}"} }

// HoldKey leaves nothing in the line where it is unbound.
func (Zsh) HoldKey() string { return "\x1bO~" }

// AcceptKey returns "": the widget runs the line by itself.
func (Zsh) AcceptKey() string { return "" }

// Quote implements dialect.Dialect.
func (Zsh) Quote(text string) string { return dialect.Quote(text) }

// Child implements dialect.Dialect.
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
	if o.NoStartup || o.Private {
		startup = ""
	}
	var b strings.Builder
	for _, kv := range [][2]string{
		{"folder", o.Folder},
		{"nonce", o.Nonce},
		{"zdotdir", zdotdir},
		{"startup", startup},
		{"restore", o.Restore},
	} {
		fmt.Fprintf(&b, "__sublet_%s=%s\n", kv[0], dialect.Quote(kv[1]))
	}
	b.WriteString(integration)
	return dialect.Launch{
		Files: map[string]string{"zdot/.zshenv": b.String()},
		Args:  []string{"zsh"},
		Env:   append(env, "ZDOTDIR="+filepath.Join(o.Folder, "zdot")),
	}
}

// ReadState implements dialect.Dialect: see __sublet_state in integration.zsh.
func (Zsh) ReadState(text []byte) (st dialect.State, err error) {
	fields := strings.Split(string(text), "\x00")
	next := func() (field string) {
		if len(fields) == 0 {
			err = errors.New("the shell's state is incomplete")
			return ""
		}
		field, fields = fields[0], fields[1:]
		return field
	}
	list := func(size int) []string { // a count, and so many fields of that size
		n, convErr := strconv.Atoi(next())
		if n *= size; convErr != nil || n < 0 || n > len(fields) {
			n, fields = 0, nil
		}
		out := fields[:n:n]
		fields = fields[n:]
		return out
	}
	pairs := func(prefix string, into map[string]string) {
		for kv := range slices.Chunk(list(2), 2) {
			into[prefix+kv[0]] = kv[1]
		}
	}
	st.Umask = strings.TrimSpace(next())
	for kv := range slices.Chunk(list(2), 2) {
		if kv[1] == "on" && !fixed[kv[0]] {
			st.Options = append(st.Options, kv[0])
		}
	}
	slices.Sort(st.Options)
	commands := make(map[string]string)
	st.Aliases, st.Functions = make(map[string]string), make(map[string]string)
	pairs("", st.Aliases)
	pairs("-g ", st.Aliases)
	pairs("-s ", st.Aliases)
	pairs("", st.Functions)
	pairs("", commands)
	st.Disabled = slices.Sorted(slices.Values(list(1)))
	st.Vars, st.Local = make(map[string]string), make(map[string]string)
	for len(fields) > 1 {
		kind, name, value := next(), next(), next()
		switch {
		case volatile(name):
		case kind == "x":
			st.Vars[name] = value
		default:
			st.Local[name] = value
		}
	}
	maps.DeleteFunc(st.Functions, func(name, _ string) bool { return strings.HasPrefix(name, "__sublet_") })
	path := filepath.SplitList(st.Vars["PATH"])
	maps.DeleteFunc(commands, func(name, file string) bool { // what stands where PATH has it
		return slices.Contains(path, filepath.Dir(file)) && filepath.Base(file) == name
	})
	st.Hashed = commands
	return st, err
}

// fixed are options that zsh sets by itself or that cannot be changed.
var fixed = map[string]bool{
	"interactive": true, "login": true, "monitor": true, "privileged": true, "restricted": true, "shinstdin": true, "singlecommand": true, "zle": true,
}

// volatile reports whether zsh changes a variable by itself.
func volatile(name string) bool {
	switch name {
	case "_", "PWD", "OLDPWD", "SHLVL", "COLUMNS", "LINES":
		return true
	}
	return strings.HasPrefix(name, "__sublet_")
}

// Restore implements dialect.Dialect. The text may run at the top level as well as in a function.
func (Zsh) Restore(before, after, now dialect.State) (text string, left []string) {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	quote := dialect.Quote
	if before.Dir != after.Dir && now.Dir == after.Dir {
		say("builtin cd -q -- %s", quote(before.Dir))
	}
	// A variable is in one of the two maps. Only a statement has attributes, and a read-only variable stays as it is.
	variables := func(st dialect.State) map[string]string {
		m := maps.Clone(st.Local)
		if m == nil {
			m = make(map[string]string)
		}
		for name, value := range st.Vars {
			m[name] = "builtin export " + name + "=" + quote(value)
		}
		return m
	}
	variable := func(name, statement string) {
		if attributes, ok := strings.CutPrefix(after.Local[name], "typeset "); ok && readOnly.MatchString(attributes) {
			left = append(left, name)
			return
		}
		if statement == "" || !special[name] && (before.Local[name] != "" || after.Local[name] != "") {
			say("builtin unset %s", name)
		}
		if statement != "" {
			say("%s", statement)
		}
	}
	dialect.Reverse(variables(before), variables(after), variables(now), func(name string) { variable(name, "") }, variable)
	alias := func(name string) (kind, word string) { // see ReadState
		if kind, word, ok := strings.Cut(name, " "); ok {
			return kind, quote(word)
		}
		return "--", quote(name)
	}
	dialect.Reverse(before.Aliases, after.Aliases, now.Aliases,
		func(name string) {
			kind, word := alias(name)
			say("builtin unalias %s %s", strings.NewReplacer("-g", "--", "-s", "-s --").Replace(kind), word)
		},
		func(name, value string) {
			kind, word := alias(name)
			say("builtin alias %s %s=%s", kind, word, quote(value))
		})
	dialect.Reverse(before.Functions, after.Functions, now.Functions,
		func(name string) { say("builtin unfunction -- %s", quote(name)) },
		func(name, body string) {
			say("() { builtin emulate -L zsh; builtin setopt no_aliases; functions[$1]=$2 } %s %s", quote(name), quote(body))
		})
	dialect.Reverse(before.Hashed, after.Hashed, now.Hashed,
		func(name string) { say("builtin unhash -- %s 2>/dev/null", quote(name)) },
		func(name, file string) { say("builtin hash -- %s=%s", quote(name), quote(file)) })
	dialect.ReverseList(before.Disabled, after.Disabled, now.Disabled,
		func(name string) { say("builtin disable -- %s", quote(name)) },
		func(name string) { say("builtin enable -- %s", quote(name)) })
	if before.Umask != after.Umask && now.Umask == after.Umask {
		say("builtin umask %s", before.Umask)
	}
	dialect.ReverseList(before.Options, after.Options, now.Options,
		func(name string) { say("builtin setopt %s", name) },
		func(name string) { say("builtin unsetopt %s", name) })
	return b.String(), left
}

// special are variables of zsh's own that __sublet_state lists. Once unset they would be variables as any other.
var special = map[string]bool{"IFS": true, "FPATH": true, "CDPATH": true, "WORDCHARS": true, "KEYTIMEOUT": true, "TMOUT": true}

// readOnly finds the attribute in what `typeset -p` prints behind its own name.
var readOnly = regexp.MustCompile(`^(-\w+ )*-\w*r`)

// Examine implements dialect.Dialect.
func (Zsh) Examine(text string, known func(name string) bool) dialect.Examination {
	return dialect.ExamineWith(syntax.LangZsh, text, func(name string) bool {
		return name == "foreach" || name == "end" || known != nil && known(name) // which the parser takes for programs
	})
}
