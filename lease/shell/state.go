package shell

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// snapshot is a State with what is needed to put it back: the shell's own texts.
type snapshot struct {
	State  State
	number int               // how often the shell had written it down
	vars   map[string]string // every variable: name to its declare statement
	order  []string          // names, as listed
	alias  map[string]string // name to its alias statement
	hash   map[string]string // the hash table: name to file
	path   string            // PATH, exported or not
	jobs   []string          // their processes

	trapped  bool            // SIGINT has a trap
	builtins bool            // all builtins are listed, not only those switched off
	guarded  bool            // it is that behind a borrower's text, which found the jobs in the file j
	seen     map[string]bool // what was open there; nil where that cannot be told

	functions struct { // as the shell printed them, to know them again; State.Functions is nil where they were not asked for
		names, text string
		sum         [sha256.Size]byte // sumOf(State.Functions)
	}
}

func (s *Shell) setDirLocked(dir string) {
	if s.snap.State.Dir != dir {
		s.snap.State.Dir = dir
		s.snap.State.Digest = s.snap.digest()
	}
}

func (s *Shell) takeSnapshotLocked(next snapshot) {
	s.missed = s.missed && next.State.Functions == nil
	if next.State.Functions == nil { // only asked for where they may have changed
		next.State.Functions, next.functions = s.snap.State.Functions, s.snap.functions
		next.State.Disabled, next.State.Loaded = s.snap.State.Disabled, s.snap.State.Loaded
		next.State.more = s.snap.State.more.carried()
	} else if !next.builtins {
		next.State.Loaded = s.snap.State.Loaded
	}
	if s.opened != nil && next.seen != nil {
		s.opened.seen = next.seen
	}
	next.State.Hashed = s.usual.strange(next.hash, next.path)
	next.State.files = s.snap.State.files
	next.State.Digest = next.digest()
	s.snap = next
}

// known tells whether a name is an alias or a function of the shell, as far as was seen.
func (s *Shell) known(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.snap.State.Functions[name]; ok {
		return true
	}
	_, ok := s.snap.State.Aliases[name]
	return ok
}

// State is what commands have left behind, as of the end of the last command; it waits until the shell has written that
// down. ErrBusy while a command runs. The maps belong to the shell: do not change them.
func (s *Shell) State(ctx context.Context) (State, error) {
	if err := s.lockTurn(ctx, false); err != nil {
		return State{}, err
	}
	defer func() { <-s.turn }()
	if err := s.awaitIdle(ctx); err != nil {
		return State{}, err
	}
	if err := s.tidy(ctx, false); err != nil {
		return State{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snap.State, nil
}

// Left is what the last command left behind. It is State, but behind a borrower's command it does not wait for prompt hooks
// of the user, nor hold what they change: State has that.
func (s *Shell) Left(ctx context.Context) (State, error) {
	if err := s.lockTurn(ctx, false); err != nil {
		return State{}, err
	}
	defer func() { <-s.turn }()
	s.mu.Lock()
	left := s.left
	s.mu.Unlock()
	if err := s.awaitIdleOr(ctx, left); err != nil {
		return State{}, err
	}
	if !closed(left) { // it is idle
		if err := s.tidy(ctx, false); err != nil {
			return State{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snap.State, nil
}

// restoreScript leads from one state to another.
func restoreScript(now, want State) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(now.kept)) {
		if want.kept != nil && want.kept[name] != now.kept[name] && isReference(now.kept[name]) {
			fmt.Fprintf(&b, "\\builtin unset -n %s 2>/dev/null\n", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now.Vars)) {
		if _, ok := want.Vars[name]; !ok && !special(name) {
			fmt.Fprintf(&b, "\\builtin unset -v %s 2>/dev/null\n", name)
		}
	}
	writeMarks(&b, now, want, "+") // an integer or upper-case one would make another value of it
	for _, name := range slices.Sorted(maps.Keys(want.Vars)) {
		if v, ok := now.Vars[name]; (!ok || v != want.Vars[name]) && !special(name) {
			fmt.Fprintf(&b, "\\builtin export %s=%s 2>/dev/null\n", name, quote(want.Vars[name]))
		}
	}
	writeMarks(&b, want, now, "-")
	writeKept(&b, now, want)
	for _, name := range slices.Sorted(maps.Keys(now.Aliases)) {
		if _, ok := want.Aliases[name]; !ok {
			fmt.Fprintf(&b, "\\builtin unalias -- %s\n", quote(name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want.Aliases)) {
		if v, ok := now.Aliases[name]; !ok || v != want.Aliases[name] {
			fmt.Fprintf(&b, "\\builtin alias -- %s\n", quote(name+"="+want.Aliases[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now.Functions)) {
		if _, ok := want.Functions[name]; !ok {
			fmt.Fprintf(&b, "\\builtin unset -f -- %s\n", quote(name))
		}
	}
	writeFunctions(&b, now.Functions, want.Functions, now.Options)
	writeCommands(&b, now, want)
	writeOptions(&b, now.Options, want.Options)
	if want.Dir != "" && want.Dir != now.Dir {
		fmt.Fprintf(&b, "\\builtin cd -- %s >/dev/null 2>&1\n", quote(want.Dir))
	}
	writeMore(&b, now.more, want.more)
	return b.String()
}

// writeKept puts back variables that are not exported, of every kind, and the umask. Read-only ones stay: bash knows no way
// back.
func writeKept(b *strings.Builder, now, want State) {
	for _, name := range slices.Sorted(maps.Keys(now.kept)) {
		_, exported := want.Vars[name]
		if want.kept != nil && want.kept[name] != now.kept[name] && !exported && !isReference(now.kept[name]) {
			fmt.Fprintf(b, "\\builtin unset -v %s 2>/dev/null\n", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want.kept)) {
		if now.kept[name] != want.kept[name] {
			b.WriteString(want.kept[name] + " 2>/dev/null\n")
		}
	}
	if want.umask != "" && want.umask != now.umask {
		fmt.Fprintf(b, "\\builtin umask %s\n", want.umask)
	}
}

// writeCommands puts back what names mean beside aliases and functions.
func writeCommands(b *strings.Builder, now, want State) {
	each := func(line string, from, in []string) {
		for _, name := range from {
			if !slices.Contains(in, name) {
				fmt.Fprintf(b, "\\builtin %s %s\n", line, quote(name))
			}
		}
	}
	each("enable -d --", now.Loaded, want.Loaded)
	each("enable --", now.Disabled, want.Disabled)
	each("enable -n --", want.Disabled, now.Disabled)
	each("hash -d --", slices.Sorted(maps.Keys(now.Hashed)), slices.Sorted(maps.Keys(want.Hashed)))
	for _, name := range slices.Sorted(maps.Keys(want.Hashed)) {
		if now.Hashed[name] != want.Hashed[name] {
			fmt.Fprintf(b, "\\builtin hash -p %s -- %s\n", quote(want.Hashed[name]), quote(name))
		}
	}
}

// writeOptions switches options; names of set -o stand as they are, those of shopt too: the two lists share none.
func writeOptions(b *strings.Builder, now, want []string) {
	set := func(name string, on bool) {
		if fixedOption[name] {
			return
		}
		if setOption[name] {
			fmt.Fprintf(b, "\\builtin set %so %s\n", map[bool]string{true: "-", false: "+"}[on], name)
		} else {
			fmt.Fprintf(b, "\\builtin shopt -%s %s\n", map[bool]string{true: "s", false: "u"}[on], name)
		}
	}
	for _, o := range now {
		if !slices.Contains(want, o) {
			set(o, false)
		}
	}
	for _, o := range want {
		if !slices.Contains(now, o) {
			set(o, true)
		}
	}
}

var setOption = map[string]bool{
	"allexport": true, "braceexpand": true, "emacs": true, "errexit": true, "errtrace": true, "functrace": true,
	"hashall": true, "histexpand": true, "history": true, "ignoreeof": true, "interactive-comments": true,
	"keyword": true, "monitor": true, "noclobber": true, "noexec": true, "noglob": true, "nolog": true, "notify": true,
	"nounset": true, "onecmd": true, "physical": true, "pipefail": true, "posix": true, "privileged": true,
	"verbose": true, "vi": true, "xtrace": true,
}

// fixedOption cannot or must not be switched.
var fixedOption = map[string]bool{
	"emacs": true, "vi": true, "login_shell": true, "restricted_shell": true, "history": true, "privileged": true,
}

// special names are the shell's own: they change by themselves, or are ours.
func special(name string) bool {
	if strings.HasPrefix(name, "__sublet_") || strings.HasPrefix(name, "BASH") && name != "BASH_ENV" || strings.HasPrefix(name, "EPOCH") ||
		strings.HasPrefix(name, "COMP_") {
		return true
	}
	switch name {
	case "_", "PWD", "OLDPWD", "SHLVL", "PPID", "UID", "EUID", "LINENO", "RANDOM", "SRANDOM", "SECONDS", "HISTCMD",
		"FUNCNAME", "GROUPS", "DIRSTACK", "PIPESTATUS", "SHELLOPTS", "OPTIND", "OPTERR", "PS0", "PS1", "PROMPT_COMMAND",
		"COLUMNS", "LINES", "HISTFILE", "MAPFILE", EnvInside:
		return true
	}
	return false
}

// script puts back everything that differs from base, of the variables only own; base nil: everything.
func (sn snapshot) script(base *snapshot, own map[string]bool) string {
	var b strings.Builder
	if base != nil {
		for _, name := range base.order {
			_, ok := sn.vars[name]
			switch {
			case special(name) || !own[name] || base.vars[name] == sn.vars[name]:
			case isReference(base.vars[name]):
				fmt.Fprintf(&b, "\\builtin unset -n %s 2>/dev/null\n", name)
			case !ok:
				fmt.Fprintf(&b, "\\builtin unset -v %s 2>/dev/null\n", name)
			}
		}
	}
	for _, name := range sn.order {
		if special(name) || name == "IFS" || base != nil && (!own[name] || base.vars[name] == sn.vars[name]) {
			continue
		}
		b.WriteString(sn.vars[name] + " 2>/dev/null\n")
	}
	if base != nil {
		for name := range base.alias {
			if _, ok := sn.alias[name]; !ok {
				fmt.Fprintf(&b, "\\builtin unalias -- %s\n", quote(name))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sn.alias)) {
		if base == nil || base.alias[name] != sn.alias[name] {
			b.WriteString("\\builtin " + sn.alias[name] + "\n")
		}
	}
	if base != nil && sn.State.Functions != nil {
		for name := range base.State.Functions {
			if _, ok := sn.State.Functions[name]; !ok {
				fmt.Fprintf(&b, "\\builtin unset -f -- %s\n", quote(name))
			}
		}
	}
	if base == nil {
		writeFunctions(&b, nil, sn.State.Functions, sn.State.Options)
	} else {
		writeFunctions(&b, base.State.Functions, sn.State.Functions, base.State.Options)
	}
	if base == nil || base.State.Dir != sn.State.Dir {
		fmt.Fprintf(&b, "\\builtin cd -- %s >/dev/null 2>&1\n", quote(sn.State.Dir))
	}
	if base == nil {
		sn.writeRest(&b)
	}
	return b.String()
}

// writeRest puts back in a new shell what a subshell does not hand back. Options come last: under errexit a failure of what
// stood behind them would end the shell.
func (sn snapshot) writeRest(b *strings.Builder) {
	if sn.State.umask != "" {
		fmt.Fprintf(b, "\\builtin umask %s\n", sn.State.umask)
	}
	if ps1 := sn.State.kept["PS1"]; ps1 != "" {
		fmt.Fprintf(b, "[[ ${PS1@a} == *r* ]] || PS1=%s\n", quote(valueOf(ps1)))
	}
	writeOptions(b, nil, sn.State.Options)
}

// writeFunctions defines functions. Each is parsed by itself, with patterns (extglob) and without aliases, as it was where it
// was defined: one that does not parse would cost what stands behind it, and an alias would become a part of it. The names of
// those that cannot be defined come into the file o.
func writeFunctions(b *strings.Builder, now, want map[string]string, options []string) {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(want)), func(name string) bool {
		text, ok := now[name]
		return ok && text == want[name]
	})
	if len(names) == 0 {
		return
	}
	b.WriteString("\\builtin shopt -s extglob\n\\builtin shopt -u expand_aliases\n")
	for _, name := range names {
		text, name := quote(want[name]), quote(name)
		fmt.Fprintf(b, "\\builtin eval %s 2>/dev/null || [[ $(\\builtin declare -f -- %s) == %s ]] || \\builtin printf '%%s ' %s >>\"$__sublet_dir/o\"\n", text, name, text, name)
	}
	was := slices.DeleteFunc([]string{"expand_aliases", "extglob"}, func(o string) bool { return !slices.Contains(options, o) })
	writeOptions(b, []string{"extglob"}, was)
}

// readState reads what the shell wrote down (d in rc/state.bash).
func (s *Shell) readState(path string) (snapshot, error) {
	file, err := os.Open(path)
	if err != nil {
		return snapshot{}, fmt.Errorf("read shell state: %w", err)
	}
	defer file.Close()
	var f [15]string
	for i, r := 0, bufio.NewReaderSize(file, 32<<10); i < len(f); i++ { // what lies behind is of an earlier, longer one
		part, err := r.ReadString(0)
		if err != nil {
			return snapshot{}, fmt.Errorf("read shell state: %w", err)
		}
		f[i] = part[:len(part)-1]
	}
	if f[0] != f[14] {
		return snapshot{}, errors.New("read shell state: not whole")
	}
	dir, setOpts, shopts, full := f[1], f[2], f[3], f[4]
	var sn snapshot
	sn.number, err = strconv.Atoi(f[0])
	if err != nil {
		return snapshot{}, fmt.Errorf("read shell state: its number: %w", err)
	}
	sn.State.Dir = dir
	for _, list := range []string{setOpts, shopts} {
		for o := range strings.SplitSeq(list, ":") {
			if o != "" {
				sn.State.Options = append(sn.State.Options, o)
			}
		}
	}
	slices.Sort(sn.State.Options)
	sn.readVars(f[5])
	sn.readAliases(f[6])
	sn.builtins = strings.Contains(full, "e")
	if full != "" {
		s.mu.Lock()
		known := s.snap
		s.mu.Unlock()
		sn.readFunctions(f[7], f[8], known)
		sn.readMore(f[9], f[10], f[11])
	}
	sn.readCommands(f[12])
	umask, trap, _ := strings.Cut(f[13], "\n")
	sn.State.umask, sn.trapped = strings.TrimSpace(umask), trap != ""
	return sn, nil
}
