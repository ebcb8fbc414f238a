package risk

import (
	"fmt"
	"iter"
	"strings"
	"sync"
)

// # The table of programs
//
// What each program does stands in the texts programs…, one line for a program or a sub-command:
//
//	NAMES [SUB-COMMANDS …] : LEVEL EFFECT,… [WORDS …] ; what it does, as the user reads it
//
// A line that begins with a tab goes on with the one before it. NAMES and every SUB-COMMANDS are words with commas between them; the longest line that fits a command counts, and of two
// for the same sub-command the later. A sub-command knows the options of the lines above it.
//
// LEVEL is what the command is before its operands are looked at (low, medium, high, critical); EFFECT is one or more of
// the effects of risk.go, the main one first. WORDS are:
//
//	args=ROLE     what the operands are: text, read, write, delete, copy (the last is written, the others read), move,
//	              pattern (text, then files that are read), mode (text, then files that are written), archive (the first
//	              is written, the others read), filter (the first is read, a second one is written), run (a command that is run: the line is a wrapper), script (a file of code,
//	              then text), shell (shell text), url, host. Without it: read when the effect is read, else text
//	skip=N        with args=run: N operands stand before the command
//	-x,--long=ROLE     an option with a value, and what the value is: val (text), or a role as above, dir (where the
//	              command works), code (code that is run), key (a key that is used, not shown)
//	-x,--long!LEVEL,EFFECT="says"   an option that raises the level
//	-x,--long?    an option that makes it low: a dry run, a listing
//	long          options are written with one dash (find, java): no clusters
//	do=NAME       a function of handlers.go or wrap.go that looks closer
//	sub           sub-commands that are not in the table are High: what they do is not known
//	bare          alone, without any word after it, it only shows something and is low
//	look          the same, whatever options it has
//	hard          cannot be undone
//	undo="how"    how it is undone
//
// To add a program: write its line in the file it belongs to, with the level that section 7 of the design gives it when
// nothing is known of its operands; add a row to testdata/commands.txt for its harmless and its worst use; run the tests,
// which check the line and compare the levels. A program that runs others by name or text needs args=run, or a handler.

// role is what a word of a command means.
type role uint8

const (
	roleDefault role = iota
	roleText
	roleRead
	roleWrite
	roleDelete
	roleCopy
	roleMove
	rolePattern
	roleMode
	roleArchive
	roleFilter
	roleRun
	roleScript
	roleShell
	roleURL
	roleHost
	roleDir
	roleCode
	roleKey
)

var roles = map[string]role{
	"text": roleText, "val": roleText, "read": roleRead, "write": roleWrite, "delete": roleDelete, "copy": roleCopy, "move": roleMove,
	"pattern": rolePattern, "mode": roleMode, "archive": roleArchive, "filter": roleFilter, "run": roleRun, "script": roleScript, "shell": roleShell,
	"url": roleURL, "host": roleHost, "dir": roleDir, "code": roleCode, "key": roleKey,
}

// spec is one line of the table.
type spec struct {
	level   Level
	effects []Effect
	says    string
	args    role
	skip    int
	opts    map[string]*optSpec
	up      *spec // whose options it knows too
	subs    map[string]*spec
	long    bool
	sub     bool
	bare    bool
	look    bool
	hard    bool
	undo    string
	handler string
	line    string
}

// optSpec is one option of a line.
type optSpec struct {
	value  role // roleDefault: none
	raise  Level
	effect Effect
	says   string
	lower  bool
}

// longNames tells that options are written with one dash.
func (s *spec) longNames() bool {
	return s.long || s.up != nil && s.up.longNames()
}

// option finds what is known of an option, also by a shortened long name.
func (s *spec) option(name string) *optSpec {
	for t := s; t != nil; t = t.up {
		if o := t.opts[name]; o != nil {
			return o
		}
	}
	if len(name) < 4 || !strings.HasPrefix(name, "--") {
		return nil
	}
	// GNU programs take any beginning that is unique (T3i). Of several the one that raises most is meant, to be safe.
	var best *optSpec
	for t := s; t != nil; t = t.up {
		for n, o := range t.opts {
			if strings.HasPrefix(n, name) && strings.HasPrefix(n, "--") && (best == nil || o.raise > best.raise || o.raise == best.raise && o.value > best.value) && !o.lower {
				best = o
			}
		}
	}
	return best
}

var tableTexts = []string{
	programsCore, programsText, programsGit, programsDev, programsPackages, programsContainers, programsCloud, programsNetwork,
	programsSystem, programsWrappers, programsShell,
}

var table = sync.OnceValue(func() map[string]*spec {
	t := map[string]*spec{}
	for _, text := range tableTexts {
		if err := readTable(t, text); err != nil {
			panic(err) // a test reads the table first
		}
	}
	return t
})

// lookup finds a program's line; nil: not in the table.
func lookup(name string) *spec {
	return table()[name]
}

func readTable(t map[string]*spec, text string) error {
	for line := range tableLines(text) {
		if err := readLine(t, line); err != nil {
			return fmt.Errorf("table of programs: %q: %w", line, err)
		}
	}
	return nil
}

// tableLines goes over the lines of a text. One that begins with a tab continues the line before it, after a blank, or at
// once where that line ends within a list of names: in a comma that is not part of a sentence for the user.
func tableLines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
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
			if line != "" && line[0] != '#' && !yield(line) {
				return
			}
			line = next
		}
	}
}

func readLine(t map[string]*spec, line string) error {
	head, rest, ok := strings.Cut(line, " : ")
	if !ok {
		return fmt.Errorf("no ` : `")
	}
	words, says, err := splitLine(rest)
	if err != nil {
		return err
	}
	s := &spec{says: says, line: line}
	for i, w := range words {
		if err := s.word(i, w); err != nil {
			return err
		}
	}
	if s.level == 0 || len(s.effects) == 0 {
		return fmt.Errorf("level or effect is missing")
	}
	if s.args == roleDefault {
		s.args = roleText
		if s.effects[0] == Read {
			s.args = roleRead
		}
	}
	if s.says == "" {
		return fmt.Errorf("it does not say what it does")
	}
	names := strings.Fields(head)
	return put(t, nil, names, s)
}

// put files a line under every combination of its names.
func put(t map[string]*spec, up *spec, names []string, s *spec) error {
	for n := range strings.SplitSeq(names[0], ",") {
		if n == "" {
			return fmt.Errorf("an empty name")
		}
		if len(names) == 1 {
			if up == nil && t[n] != nil {
				return fmt.Errorf("%s stands twice", n)
			}
			own := *s
			own.up = up
			if old := t[n]; old != nil {
				own.subs = old.subs
			}
			t[n] = &own
			continue
		}
		parent := t[n]
		if parent == nil {
			return fmt.Errorf("%s has no line of its own before its sub-commands", n)
		}
		if parent.subs == nil {
			parent.subs = map[string]*spec{}
		}
		if err := put(parent.subs, parent, names[1:], s); err != nil {
			return err
		}
	}
	return nil
}

// splitLine splits at blanks outside quotes, and cuts off what follows ` ; `.
func splitLine(s string) (words []string, says string, err error) {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case c == ' ' && !quoted:
			if b.Len() > 0 {
				words = append(words, b.String())
				b.Reset()
			}
		case c == ';' && !quoted && b.Len() == 0:
			return words, strings.TrimSpace(s[i+1:]), nil
		default:
			b.WriteByte(c)
		}
	}
	if quoted {
		return nil, "", fmt.Errorf("a quote is open")
	}
	if b.Len() > 0 {
		words = append(words, b.String())
	}
	return words, "", nil
}

func (s *spec) word(i int, w string) error {
	var err error
	switch {
	case i == 0:
		s.level, err = ParseLevel(w)
	case i == 1:
		s.effects, err = effectList(w)
	case w[0] == '-' || w[0] == '+' || strings.HasPrefix(w, "of=") || strings.HasPrefix(w, "if="):
		return s.optWord(w)
	case strings.HasPrefix(w, "args="):
		r, ok := roles[w[5:]]
		if !ok {
			return fmt.Errorf("no role %q", w[5:])
		}
		s.args = r
	case strings.HasPrefix(w, "skip="):
		n, ok := smallInt(w[5:])
		if !ok {
			return fmt.Errorf("skip takes a number")
		}
		s.skip = n
	case strings.HasPrefix(w, "do="):
		s.handler = w[3:]
		if handlers()[s.handler] == nil {
			return fmt.Errorf("no handler %q", s.handler)
		}
	case strings.HasPrefix(w, "undo="):
		s.undo = w[5:]
	case w == "long":
		s.long = true
	case w == "sub":
		s.sub = true
	case w == "bare":
		s.bare = true
	case w == "look":
		s.look = true
	case w == "hard":
		s.hard = true
	default:
		return fmt.Errorf("no word %q", w)
	}
	return err
}

func effectList(w string) ([]Effect, error) {
	var es []Effect
	for e := range strings.SplitSeq(w, ",") {
		ok := false
		for _, known := range Effects() {
			ok = ok || known == Effect(e)
		}
		if !ok {
			return nil, fmt.Errorf("no effect %q", e)
		}
		es = append(es, Effect(e))
	}
	return es, nil
}

// optWord reads -x,--long=ROLE, -x!LEVEL,EFFECT=says and -x?.
func (s *spec) optWord(w string) error {
	if s.opts == nil {
		s.opts = map[string]*optSpec{}
	}
	o := &optSpec{}
	names := w
	if i := strings.IndexAny(w, "!?"); i > 0 {
		names = w[:i]
		if w[i] == '?' {
			o.lower = true
			if w[i:] != "?" {
				return fmt.Errorf("nothing may follow the ? of %q", w)
			}
		} else {
			what, says, _ := strings.Cut(w[i+1:], "=")
			level, effect, ok := strings.Cut(what, ",")
			if !ok {
				return fmt.Errorf("%q lacks level or effect", w)
			}
			var err error
			if o.raise, err = ParseLevel(level); err != nil {
				return err
			}
			es, err := effectList(effect)
			if err != nil {
				return err
			}
			o.effect, o.says = es[0], says
		}
	} else if i := strings.LastIndexByte(w, '='); i > 0 {
		names = w[:i]
		r, ok := roles[w[i+1:]]
		if !ok {
			return fmt.Errorf("no role %q", w[i+1:])
		}
		o.value = r
	} else {
		return fmt.Errorf("option %q says nothing", w)
	}
	// -x=val and -x!… may both be given for one option.
	for n := range strings.SplitSeq(names, ",") {
		if old := s.opts[n]; old != nil {
			if o.value != 0 {
				old.value = o.value
			} else {
				old.raise, old.effect, old.says, old.lower = o.raise, o.effect, o.says, o.lower
			}
			continue
		}
		own := *o
		s.opts[n] = &own
	}
	return nil
}
