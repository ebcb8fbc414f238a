// Package programs is what is known of programs, variables and places, as data: the texts beside this file, which are
// embedded and read when they are first asked for. docs/programs.md says how to add to them.
package programs

import (
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Level of a risk. What is not understood is never Low.
type Level int

const (
	Low      Level = 1
	Medium   Level = 2
	High     Level = 3
	Critical Level = 4
)

var levelNames = []string{"", "low", "medium", "high", "critical"}

// String returns the level's name on the wire: low, medium, high or critical.
func (l Level) String() string { return levelNames[l] }

// ParseLevel reads what String writes.
func ParseLevel(s string) (Level, error) {
	if l := slices.Index(levelNames[Low:], s); l >= 0 {
		return Low + Level(l), nil
	}
	return 0, fmt.Errorf("risk level %q is none of low, medium, high, critical", s)
}

// Effect is what a command does to the world, as it is written on the wire and in rules.
type Effect string

const (
	Read        Effect = "read"
	Write       Effect = "write"
	Delete      Effect = "delete"
	RunCode     Effect = "run-code"
	Network     Effect = "network"
	Privilege   Effect = "privilege"
	Signal      Effect = "signal"
	ShellState  Effect = "shell-state"
	Persistence Effect = "persistence"
	Secret      Effect = "secret"
	History     Effect = "history"
	Unknown     Effect = "unknown"
)

// Effects lists every effect, in the order of the wire's documentation.
func Effects() []Effect {
	return []Effect{Read, Write, Delete, RunCode, Network, Privilege, Signal, ShellState, Persistence, Secret, History, Unknown}
}

// Roles of operands and of the values of options.
const (
	Text    = "text"   // only shown or compared
	Reads   = "read"   // a file that is read
	Writes  = "write"  // a file that is written
	Deletes = "delete" // a file that is deleted
	Drops   = "drop"   // a file of which git drops the changes
	Sends   = "send"   // a file, after an @ where there is one, that is sent over the network
	Copy    = "copy"   // operands: the last is written, the others are read
	Move    = "move"   // operands: the last is written, the others are deleted
	Run     = "run"    // operands: a command that is run
	Join    = "join"   // operands: words that are joined to shell text
	Script  = "script" // a file of code
	Shell   = "shell"  // shell text
	Code    = "code"   // code of another language
	Tool    = "tool"   // a program that is started
	Name    = "name"   // the name of a variable that is set
	Index   = "index"  // text with an index, which is evaluated
	Folder  = "folder" // the folder in which the command works
)

var roles = Words("text read write delete drop send copy move run join script shell code tool val name index folder")

// Spec is one line of the table: a program or a sub-command.
type Spec struct {
	Level   Level
	Effects []Effect
	Says    string
	Args    []string // roles of the operands; the last is that of all further ones
	Skip    int      // operands before the command that is run
	Opts    map[string]*Option
	Match   []Match
	Up      *Spec // whose options it knows too
	Subs    map[string]*Spec
	Long    bool // options have one dash, as those of Up have
	Bare    bool // alone it only shows something
	Runs    bool // it runs what its words name
	Plain   bool // options that the line does not name are harmless
	Undo    string
	Handler string
}

// Option is one option of a line.
type Option struct {
	Role   string // of its value; "" takes none
	Raise  Level
	Effect Effect
	Says   string
	Lower  bool // makes the command low
}

// Match raises a command that has a word which an expression matches.
type Match struct {
	Re     *regexp.Regexp
	Raise  Level
	Effect Effect
	Says   string
	Whole  bool   // the expression is about all words, joined
	Role   string // of what its group matches; "" has the level instead
}

// Option returns what is known of an option, also by a shortened long name.
func (s *Spec) Option(name string) *Option {
	for t := s; t != nil; t = t.Up {
		if o := t.Opts[name]; o != nil {
			return o
		}
	}
	if len(name) < 4 || !strings.HasPrefix(name, "--") {
		return nil
	}
	// GNU programs take any beginning that is unique. Of several the one that raises most is meant.
	var best *Option
	for t := s; t != nil; t = t.Up {
		for n, o := range t.Opts {
			if strings.HasPrefix(n, name) && !o.Lower && (best == nil || o.Raise > best.Raise || o.Raise == best.Raise && o.Role > best.Role) {
				best = o
			}
		}
	}
	return best
}

// Has reports whether e is one of the line's effects.
func (s *Spec) Has(e Effect) bool { return slices.Contains(s.Effects, e) }

//go:embed *.txt
var texts embed.FS

var table = sync.OnceValue(func() map[string]*Spec {
	t := map[string]*Spec{}
	for _, name := range []string{"files", "text", "git", "dev", "packages", "containers", "cloud", "network", "system", "wrappers", "shell"} {
		for _, line := range lines(file(name)) {
			readLine(t, line)
		}
	}
	return t
})

// must returns v. What is read here is embedded, and a test reads all of it: an error is a mistake in it.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func file(name string) string { return string(must(texts.ReadFile(name + ".txt"))) }

// Lookup returns a program's line, nil where it has none.
func Lookup(name string) *Spec { return table()[name] }

// Builtin reports whether bash runs a name itself.
func Builtin(name string) bool { return builtins[name] }

var builtins = Words(`. : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo enable eval exec
	exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly return set shift
	shopt source suspend test times trap true type typeset ulimit umask unalias unset wait`)

// Known reports whether a name is a program of the table or a builtin.
func Known(name string) bool { return Builtin(name) || Lookup(name) != nil }

// Words returns the words of a text as a set.
func Words(s string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(s) {
		m[w] = true
	}
	return m
}

// lines returns the lines of a text, without comments. One that begins with a tab continues the line before it: after a
// blank, or at once where that line ends within a list of names.
func lines(text string) (list []string) {
	line := ""
	for next := range strings.SplitSeq(text+"\n.", "\n") {
		if strings.HasPrefix(next, "\t") {
			prose := strings.Contains(line, " ; ") || strings.Count(line, `"`)%2 == 1
			if prose || !strings.HasSuffix(line, ",") {
				line += " "
			}
			line += strings.TrimSpace(next)
			continue
		}
		if line != "" && line[0] != '#' {
			list = append(list, line)
		}
		line = next
	}
	return list
}

// lineWord matches a word of a line, in which blanks stand only inside quotes.
var lineWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:[^\s"]|"[^"]*")+`) })

// readLine reads a line into t. It panics where the line is not as docs/programs.md has it.
func readLine(t map[string]*Spec, line string) {
	head, rest, _ := strings.Cut(line, " : ")
	names := strings.Fields(head)
	if same, ok := strings.CutPrefix(rest, "= "); ok { // another program's line, with its sub-commands
		s := &Spec{Subs: t}
		for w := range strings.FieldsSeq(same) {
			s = s.Subs[w]
		}
		put(t, nil, names, s)
		return
	}
	what, says, ok := strings.Cut(rest, " ; ")
	if !ok {
		panic("it does not say what it does")
	}
	words := lineWord().FindAllString(what, -1)
	s := &Spec{Level: must(ParseLevel(words[0])), Effects: effects(words[1]), Says: says, Args: []string{Text}}
	if s.Effects[0] == Read {
		s.Args[0] = Reads
	}
	for _, w := range words[2:] {
		s.word(strings.ReplaceAll(w, `"`, ""))
	}
	put(t, nil, names, s)
}

// put files a line under every combination of its names. Of two lines for a sub-command the later counts, with the sub-commands of
// both: a line for many names comes before one for a few of them.
func put(t map[string]*Spec, up *Spec, names []string, s *Spec) {
	for n := range strings.SplitSeq(names[0], ",") {
		old := t[n]
		switch {
		case len(names) > 1:
			if old.Subs == nil {
				old.Subs = map[string]*Spec{}
			}
			put(old.Subs, old, names[1:], s)
		case up == nil && old != nil:
			panic(n + " stands twice")
		default:
			own := *s
			own.Long = own.Long || up != nil && up.Long
			if own.Up = up; old != nil && own.Subs == nil {
				own.Subs = old.Subs
			}
			t[n] = &own
		}
	}
}

// word reads one word of a line that follows its effects: an option, a pattern (~), a setting (args=, skip=, do=, undo=) or a flag.
func (s *Spec) word(w string) {
	flags := map[string]*bool{"long": &s.Long, "bare": &s.Bare, "runs": &s.Runs, "plain": &s.Plain}
	key, value, _ := strings.Cut(w, "=")
	switch {
	case w[0] == '-' || w[0] == '+' || key != "args" && key != "do" && roles[value]: // dd has options without a dash
		s.option(w)
	case w[0] == '~':
		s.Match = append(s.Match, readMatch(w[1:]))
	case key == "args":
		s.Args = strings.Split(value, ",")
		if i := slices.IndexFunc(s.Args, func(role string) bool { return !roles[role] }); i >= 0 {
			panic("no role " + s.Args[i])
		}
	case key == "skip":
		s.Skip = must(strconv.Atoi(value))
	case key == "do":
		s.Handler = value
	case key == "undo":
		s.Undo = value
	case flags[w] != nil:
		*flags[w] = true
	default:
		panic("no word " + w)
	}
}

func effects(w string) (es []Effect) {
	for e := range strings.SplitSeq(w, ",") {
		if !slices.Contains(Effects(), Effect(e)) {
			panic("no effect " + e)
		}
		es = append(es, Effect(e))
	}
	return es
}

// raise reads LEVEL,EFFECT=says.
func raise(w string) (l Level, e Effect, says string) {
	what, says, _ := strings.Cut(w, "=")
	level, effect, _ := strings.Cut(what, ",")
	return must(ParseLevel(level)), effects(effect)[0], says
}

// option reads -x,--long=ROLE, -x!LEVEL,EFFECT=says, -x? and -x, which is harmless. One option may have both a role and a level.
func (s *Spec) option(w string) {
	if s.Opts == nil {
		s.Opts = map[string]*Option{}
	}
	var o Option
	names := w
	switch i := strings.IndexAny(w, "!?"); {
	case i > 0 && w[i] == '!':
		names = w[:i]
		o.Raise, o.Effect, o.Says = raise(w[i+1:])
	case i > 0:
		names, o.Lower = strings.TrimSuffix(w, "?"), true
	case strings.Contains(w, "="):
		i := strings.LastIndexByte(w, '=')
		if names, o.Role = w[:i], w[i+1:]; !roles[o.Role] {
			panic("no role " + o.Role)
		}
	}
	for n := range strings.SplitSeq(names, ",") {
		own := o
		if old := s.Opts[n]; old != nil {
			if own = *old; o.Role != "" {
				own.Role = o.Role
			} else {
				own.Raise, own.Effect, own.Says, own.Lower = o.Raise, o.Effect, o.Says, o.Lower
			}
		}
		s.Opts[n] = &own
	}
}

// readMatch reads EXPRESSION!LEVEL,EFFECT=says, EXPRESSION!ROLE and ~EXPRESSION!… . The last ! counts.
func readMatch(w string) (m Match) {
	w, m.Whole = strings.CutPrefix(w, "~")
	i := strings.LastIndexByte(w, '!')
	if m.Re = regexp.MustCompile(w[:i]); roles[w[i+1:]] {
		m.Role = w[i+1:]
	} else {
		m.Raise, m.Effect, m.Says = raise(w[i+1:])
	}
	return m
}
