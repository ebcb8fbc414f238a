package programs

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Variable is what the value of a variable makes later commands do.
type Variable struct {
	Level Level  // of setting it; Low: nothing
	Code  bool   // its value is shell code
	By    string // the programs that it concerns; * is all
	What  string

	harmless *regexp.Regexp // nil: no value is
}

// Harmless reports whether a value does nothing of what the variable is for.
func (v Variable) Harmless(value string) bool {
	return v.harmless != nil && v.harmless.MatchString(value)
}

// Concerns reports whether a variable concerns a program, in any version of it.
func (v Variable) Concerns(program string) bool {
	return v.Level > Low && (v.By == "*" || slices.Contains(strings.Fields(v.By), strings.TrimRight(program, "0123456789.")))
}

var variables = sync.OnceValue(func() map[string]Variable {
	m := map[string]Variable{}
	for line := range strings.Lines(file("variables")) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) < 4 {
			continue // a comment; a test reads each line
		}
		level, code := strings.CutSuffix(f[1], "!")
		v := Variable{Level: must(ParseLevel(level)), Code: code, By: f[2], What: f[3]}
		if len(f) > 4 {
			v.harmless = regexp.MustCompile(`^(?:` + f[4] + `)$`)
		}
		for name := range strings.FieldsSeq(f[0]) {
			m[name] = v
		}
	}
	return m
})

// VariableOf returns what a variable's name means; its level is 0 or Low where that is nothing.
func VariableOf(name string) Variable {
	if strings.HasSuffix(name, "_proxy") || strings.HasPrefix(name, "npm_config_") {
		name = strings.ToUpper(name)
	}
	if v, ok := variables()[name]; ok {
		return v
	}
	for i := len(name); i > 0; i-- {
		if v, ok := variables()[name[:i]+"*"]; ok {
			return v
		}
	}
	return Variable{}
}

var places = sync.OnceValue(func() map[string][]string { return Sections(file("places") + file("reach")) })

// Sections reads a text of sections, as places.txt is one: the names of each, in their order. The last word of a section's name
// may stand for several, separated by commas.
func Sections(text string) map[string][]string {
	m := map[string][]string{}
	var of []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "\t") {
			name, _, _ := strings.Cut(line, " : ")
			at := strings.LastIndexByte(name, ' ') + 1
			of = strings.Split(name[at:], ",")
			for i := range of {
				of[i] = name[:at] + of[i]
			}
			continue
		}
		for w := range strings.FieldsSeq(line) {
			for _, name := range of {
				m[name] = append(m[name], strings.ReplaceAll(w, `\040`, " "))
			}
		}
	}
	return m
}

// Places returns the names of a section of places.txt, in their order.
func Places(section string) []string { return places()[section] }

// code are the lines of code.txt by their names. Each is compiled when it is first needed: most processes of this program need none. A
// line whose expression begins with ~ has what a match means, as in the table of programs.
var code = sync.OnceValue(func() map[string][]func() Match {
	m := map[string][]func() Match{}
	for line := range strings.Lines(file("code")) {
		if name, expr, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok {
			m[name] = append(m[name], sync.OnceValue(func() Match {
				if rule, ok := strings.CutPrefix(expr, "~"); ok {
					return readMatch(rule)
				}
				return Match{Re: regexp.MustCompile(expr)}
			}))
		}
	}
	return m
})

// Expression returns the expression of a name in code.txt.
func Expression(name string) *regexp.Regexp { return code()[name][0]().Re }

// Rules returns the rules for texts of a language, which code.txt must have.
func Rules(language string) (list []Match) {
	for _, read := range code()[language] {
		list = append(list, read())
	}
	return list
}

// In reports whether a section of places.txt has a name.
func In(section, name string) bool { return slices.Contains(Places(section), name) }

// Ends reports whether a name has one of the endings, and more before it.
func Ends(name string, endings []string) bool {
	return slices.ContainsFunc(endings, func(end string) bool { return len(name) > len(end) && strings.HasSuffix(name, end) })
}
