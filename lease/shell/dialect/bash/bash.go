// Package bash is the dialect of bash, 4.4 and newer.
package bash

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"sublet/lease/shell/dialect"
)

//go:embed integration.bash
var integration string

// Bash implements dialect.Dialect.
type Bash struct{}

// Name returns "bash".
func (Bash) Name() string { return "bash" }

// Oldest returns 4.4, which brought PS0 and `local -`.
func (Bash) Oldest() [2]int { return [2]int{4, 4} }

// VersionArgs implements dialect.Dialect.
func (Bash) VersionArgs() []string {
	return []string{"--norc", "--noprofile", "-c", `printf %s "${BASH_VERSINFO[0]}.${BASH_VERSINFO[1]}.${BASH_VERSINFO[2]}"`}
}

// HoldKey and AcceptKey leave nothing in the line where they are unbound.
func (Bash) HoldKey() string   { return "\x1bO~" }
func (Bash) AcceptKey() string { return "\x1bO}" }

// Quote implements dialect.Dialect.
func (Bash) Quote(text string) string { return dialect.Quote(text) }

// Child implements dialect.Dialect.
func (Bash) Child(path string) []string {
	return []string{path, "--norc", "--noprofile", "-O", "expand_aliases", "-c", ". /dev/fd/3"}
}

// Start implements dialect.Dialect.
func (Bash) Start(o dialect.Start) dialect.Launch {
	startup := ""
	for _, kv := range o.Env {
		if home, ok := strings.CutPrefix(kv, "HOME="); ok && home != "" && !o.NoStartup && !o.Private {
			startup = filepath.Join(home, ".bashrc")
		}
	}
	private := ""
	if o.Private {
		private = "1"
	}
	var b strings.Builder
	for _, kv := range [][2]string{
		{"folder", o.Folder},
		{"nonce", o.Nonce},
		{"startup", startup},
		{"private", private},
		{"restore", o.Restore},
	} {
		fmt.Fprintf(&b, "__sublet_%s=%s\n", kv[0], dialect.Quote(kv[1]))
	}
	b.WriteString(integration)
	return dialect.Launch{
		Files: map[string]string{"integration.bash": b.String()},
		Args:  []string{"bash", "--rcfile", filepath.Join(o.Folder, "integration.bash"), "-i"},
		Env:   o.Env,
	}
}

// ReadState implements dialect.Dialect: see __sublet_state in integration.bash.
func (Bash) ReadState(text []byte) (st dialect.State, err error) {
	parts := strings.SplitN(string(text), "\x00", 7)
	if len(parts) != 7 {
		return st, errors.New("the shell's state is incomplete")
	}
	st.Vars, st.Local = readVariables(parts[0])
	st.Aliases = readAliases(parts[1])
	for _, option := range strings.Split(parts[2], ":") {
		if option != "" && option != "login_shell" {
			st.Options = append(st.Options, option)
		}
	}
	slices.Sort(st.Options)
	st.Hashed, st.Disabled = readHashed(parts[3], st.Vars["PATH"])
	st.Umask = strings.TrimSpace(parts[4])
	st.Functions = splitFunctions(strings.Fields(parts[5]), parts[6])
	return st, nil
}

// special are variables that bash keeps by itself, and those of the integration.
func special(name string) bool {
	switch name {
	case "-", "_", "LINENO", "PWD", "OLDPWD", "SHLVL", "COLUMNS", "LINES", "PIPESTATUS", "RANDOM", "SRANDOM", "SECONDS", "EPOCHSECONDS", "EPOCHREALTIME", "HISTCMD",
		"PPID", "UID", "EUID", "GROUPS", "DIRSTACK", "FUNCNAME", "OPTIND", "OPTERR", "OPTARG", "REPLY", "SHELLOPTS", "BASHOPTS", "BASH", "BASHPID",
		"HOSTNAME", "HOSTTYPE", "MACHTYPE", "OSTYPE", "READLINE_LINE", "READLINE_POINT", "READLINE_MARK", "READLINE_ARGUMENT", "IFS", "MAILCHECK":
		return true
	}
	return strings.HasPrefix(name, "__sublet_") || strings.HasPrefix(name, "BASH_") || strings.HasPrefix(name, "COMP_")
}

// readVariables splits what `declare -p` prints: `declare -x NAME="value"`, where the value may have lines of its own, be an
// array in parentheses, or $'…'.
func readVariables(text string) (exported, local map[string]string) {
	exported, local = make(map[string]string), make(map[string]string)
	for len(text) > 0 {
		rest, ok := strings.CutPrefix(text, "declare -")
		if !ok { // not understood: to the next line
			_, text, _ = strings.Cut(text, "\n")
			continue
		}
		flags, rest, _ := strings.Cut(rest, " ")
		end := strings.IndexAny(rest, "=\n")
		if end < 0 {
			end = len(rest)
		}
		name, head := rest[:end], len(text)-len(rest)+end
		value, set := "", false
		if head < len(text) && text[head] == '=' {
			n := 0
			value, n = dialect.ReadWord(text[head+1:])
			head += 1 + n
			set = true
		}
		statement := text[:head]
		_, text, _ = strings.Cut(text[head:], "\n")
		switch {
		case special(name):
		case set && strings.Contains(flags, "x") && !strings.ContainsAny(flags, "aAn"):
			exported[name] = value
		case name == "PROMPT_COMMAND" || name == "PS0": // the integration puts itself into them
			local[name] = strings.NewReplacer("__sublet_prompt;", "", "__sublet_prompt", "", `\\e]7701;B;\$\$;\${__sublet_nonce-}\\a`, "").Replace(statement)
		default:
			local[name] = statement
		}
	}
	return exported, local
}

// readAliases splits what `alias -p` prints: `alias name='value'`.
func readAliases(text string) map[string]string {
	aliases := make(map[string]string)
	for len(text) > 0 {
		rest, ok := strings.CutPrefix(text, "alias ")
		if !ok {
			_, text, _ = strings.Cut(text, "\n")
			continue
		}
		name, rest, ok := strings.Cut(strings.TrimPrefix(rest, "-- "), "=")
		if !ok {
			return aliases
		}
		value, n := dialect.ReadWord(rest)
		aliases[name] = value
		_, text, _ = strings.Cut(rest[n:], "\n")
	}
	return aliases
}

// readHashed reads `hash -l` and `enable -n`. Of the hash table only names count that run as another file than PATH finds.
func readHashed(text, path string) (hashed map[string]string, disabled []string) {
	hashed = make(map[string]string)
	for line := range strings.Lines(text) {
		f := strings.Fields(strings.TrimSuffix(line, "\n"))
		switch {
		case len(f) == 3 && f[0] == "enable" && f[1] == "-n":
			disabled = append(disabled, f[2])
		case strings.HasPrefix(line, "builtin hash -p ") || strings.HasPrefix(line, "hash -p "):
			word := line[strings.Index(line, "-p ")+3:]
			file, n := dialect.ReadWord(word)
			name, _ := dialect.ReadWord(strings.TrimSpace(word[n:]))
			if found(name, path) != file {
				hashed[name] = file
			}
		}
	}
	slices.Sort(disabled)
	return hashed, disabled
}

// found returns the file that PATH finds for a name.
func found(name, path string) string {
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if st, err := os.Stat(file); err == nil && !st.IsDir() && st.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}

// splitFunctions splits what `declare -f` prints, by the names in the same order: a body may hold lines that look like an
// end.
func splitFunctions(names []string, text string) map[string]string {
	functions := make(map[string]string)
	header := func(s, name string) int {
		for _, h := range []string{name + " () \n", "function " + name + " () \n"} {
			if strings.HasPrefix(s, h) {
				return 0
			}
			if i := strings.Index(s, "\n"+h); i >= 0 {
				return i + 1
			}
		}
		return -1
	}
	for i, name := range names {
		start := header(text, name)
		if start < 0 {
			continue
		}
		text = text[start:]
		end := len(text)
		for _, next := range names[i+1:] {
			if j := header(text[1:], next); j >= 0 {
				end = j + 1
				break
			}
		}
		functions[name] = strings.TrimRight(text[:end], "\n")
		text = text[end:]
	}
	return functions
}

// Restore implements dialect.Dialect.
func (Bash) Restore(before, after, now dialect.State) (text string, left []string) {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if before.Dir != after.Dir && now.Dir == after.Dir {
		say("builtin cd -- %s", dialect.Quote(before.Dir))
	}
	each := func(was, is, here map[string]string, unset func(name string), set func(name, value string)) {
		c := dialect.Compare(was, is, nil)
		for _, name := range slices.Concat(c.Added, c.Changed, c.Removed) {
			value, had := was[name]
			current, there := here[name]
			result, had2 := is[name]
			if there != had2 || current != result {
				continue // somebody changed it since
			}
			if had {
				set(name, value)
			} else {
				unset(name)
			}
		}
	}
	both := func(st dialect.State) map[string]string { // a variable is in one of the two maps
		m := maps.Clone(st.Local)
		if m == nil {
			m = make(map[string]string)
		}
		for name, value := range st.Vars {
			m[name] = "export " + name + "=" + dialect.Quote(value)
		}
		return m
	}
	readOnly := func(statement string) bool {
		flags, _, _ := strings.Cut(strings.TrimPrefix(statement, "declare -"), " ")
		return strings.HasPrefix(statement, "declare -") && strings.Contains(flags, "r")
	}
	each(both(before), both(after), both(now),
		func(name string) {
			if readOnly(after.Local[name]) {
				left = append(left, name)
				return
			}
			say("builtin unset -v %s", name)
		},
		func(name, statement string) {
			if readOnly(after.Local[name]) {
				left = append(left, name)
				return
			}
			say("builtin unset -v %s", name)
			say("%s", statement)
			if name == "PROMPT_COMMAND" || name == "PS0" {
				say("__sublet_arm") // its hooks were among them
			}
		})
	each(before.Aliases, after.Aliases, now.Aliases,
		func(name string) { say("builtin unalias -- %s", dialect.Quote(name)) },
		func(name, value string) { say("builtin alias -- %s", dialect.Quote(name+"="+value)) })
	each(before.Functions, after.Functions, now.Functions,
		func(name string) { say("builtin unset -f -- %s", dialect.Quote(name)) },
		func(_, body string) { say("%s", body) })
	each(before.Hashed, after.Hashed, now.Hashed,
		func(name string) { say("builtin hash -d -- %s", dialect.Quote(name)) },
		func(name, file string) { say("builtin hash -p %s -- %s", dialect.Quote(file), dialect.Quote(name)) })
	list := func(was, is, here []string, on, off func(name string)) {
		for _, name := range dialect.Without(is, was) {
			if slices.Contains(here, name) {
				off(name)
			}
		}
		for _, name := range dialect.Without(was, is) {
			if !slices.Contains(here, name) {
				on(name)
			}
		}
	}
	list(before.Disabled, after.Disabled, now.Disabled,
		func(name string) { say("builtin enable -n -- %s", dialect.Quote(name)) },
		func(name string) { say("builtin enable -- %s", dialect.Quote(name)) })
	list(before.Options, after.Options, now.Options,
		func(name string) { say("builtin set -o %s 2>/dev/null || builtin shopt -s %s", name, name) },
		func(name string) { say("builtin set +o %s 2>/dev/null || builtin shopt -u %s", name, name) })
	if before.Umask != after.Umask && now.Umask == after.Umask {
		say("builtin umask %s", before.Umask)
	}
	return b.String(), left
}

// Examine implements dialect.Dialect.
func (Bash) Examine(text string, known func(name string) bool) dialect.Examination {
	return dialect.ExamineWith(syntax.LangBash, text, known)
}
