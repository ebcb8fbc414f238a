package shell

import (
	"strconv"
	"strings"
)

// readVars splits what `declare -p` prints into statements: `declare -x NAME="value"`, where the value may have lines of
// its own, an array in parentheses, or $'…'.
func (sn *snapshot) readVars(text string) {
	sn.vars, sn.State.Vars, sn.State.kept = make(map[string]string, 128), make(map[string]string, 64), make(map[string]string)
	sn.State.marks = make(map[string]string)
	for len(text) > 0 {
		rest, ok := strings.CutPrefix(text, "declare -")
		if !ok { // not ours to understand: to the next line
			_, text, _ = strings.Cut(text, "\n")
			continue
		}
		flags, rest, _ := strings.Cut(rest, " ")
		end := strings.IndexAny(rest, "=\n")
		if end < 0 {
			end = len(rest)
		}
		name := rest[:end]
		head := len(text) - len(rest) + end
		value, set := "", false
		if head < len(text) && text[head] == '=' {
			n := 0
			value, n = readWord(text[head+1:])
			head += 1 + n
			set = true
		}
		statement := text[:head]
		_, text, _ = strings.Cut(text[head:], "\n")
		if name == "__sublet_ps1" { // PS1 itself is hidden
			sn.State.kept["PS1"] = statement
		}
		if strings.HasPrefix(name, "__sublet_") || strings.Contains(flags, "r") && special(name) {
			continue
		}
		sn.vars[name] = statement
		if name == "PATH" {
			sn.path = value
		}
		sn.order = append(sn.order, name)
		exported := strings.Contains(flags, "x") && !strings.Contains(flags, "n")
		if keeps(name) && !exported {
			sn.State.kept[name] = statement
		}
		if exported && set && !strings.ContainsAny(flags, "aA") && name != "_" && name != EnvInside {
			sn.State.Vars[name] = value
			if len(flags) > 1 {
				sn.State.marks[name] = flags
			}
		}
	}
}

// keeps tells whether a variable that is not exported is for a command to leave behind: most of bash's own change by
// themselves, and guard puts IFS back.
func keeps(name string) bool {
	switch name {
	case "PROMPT_COMMAND", "PS0", "HISTFILE":
		return true
	case "IFS", "REPLY", "OPTARG":
		return false
	}
	return !special(name)
}

// isReference tells by its declare statement that a variable is a reference to another (declare -n): to unset it is to unset
// that.
func isReference(statement string) bool { return strings.Contains(attributes(statement), "n") }

// attributes are the flags in a declare statement, without their dash.
func attributes(statement string) string {
	flags, _, _ := strings.Cut(strings.TrimPrefix(statement, "declare -"), " ")
	return flags
}

// valueOf is the value in a declare statement.
func valueOf(statement string) string {
	_, word, _ := strings.Cut(statement, "=")
	value, _ := readWord(word)
	return value
}

// readAliases splits what `alias -p` prints: `alias name='value'`.
func (sn *snapshot) readAliases(text string) {
	sn.alias, sn.State.Aliases = make(map[string]string), make(map[string]string)
	for len(text) > 0 {
		rest, ok := strings.CutPrefix(text, "alias ")
		if !ok {
			_, text, _ = strings.Cut(text, "\n")
			continue
		}
		rest = strings.TrimPrefix(rest, "-- ")
		name, rest, ok := strings.Cut(rest, "=")
		if !ok {
			return
		}
		value, n := readWord(rest)
		sn.State.Aliases[name] = value
		sn.alias[name] = text[:len(text)-len(rest)+n]
		_, text, _ = strings.Cut(rest[n:], "\n")
	}
}

// readFunctions takes the functions over from the last state where the shell printed the same.
func (sn *snapshot) readFunctions(names, text string, last snapshot) {
	if names == last.functions.names && text == last.functions.text && last.State.Functions != nil {
		sn.State.Functions, sn.functions = last.State.Functions, last.functions
		return
	}
	sn.State.Functions = splitFunctions(names, text)
	sn.functions.names, sn.functions.text, sn.functions.sum = names, text, sumOf(sn.State.Functions)
}

// splitFunctions splits what `declare -f` prints, by the names `declare -F` lists in the same order: a body may hold lines
// that look like an end.
func splitFunctions(names, text string) map[string]string {
	functions := make(map[string]string)
	list := strings.Fields(names)
	header := func(s, name string, from int) int {
		for _, h := range []string{name + " () \n", "function " + name + " () \n"} {
			if from == 0 && strings.HasPrefix(s, h) {
				return 0
			}
			if i := strings.Index(s[from:], "\n"+h); i >= 0 {
				return from + i + 1
			}
		}
		return -1
	}
	for i, name := range list {
		start := header(text, name, 0)
		if start < 0 {
			continue
		}
		text = text[start:]
		end := len(text)
		for _, next := range list[i+1:] {
			if j := header(text, next, 1); j >= 0 {
				end = j
				break
			}
		}
		body := strings.TrimRight(text[:end], "\n")
		text = text[end:]
		if strings.HasPrefix(name, "__sublet_") {
			continue
		}
		functions[name] = body
	}
	return functions
}

// readWord reads one word as bash prints it for reading back: "…", '…', $'…', \c, (…) and plain text, in any sequence.
// It returns its value and how many bytes it took. The value of an array is its text.
func readWord(s string) (value string, n int) {
	if len(s) > 0 && s[0] == '"' { // nearly each: nothing in it to take off, nothing behind it
		if end := strings.IndexAny(s[1:], "\"\\") + 1; end > 0 && s[end] == '"' && (end+1 == len(s) || s[end+1] == '\n') {
			return s[1:end], end + 1
		}
	}
	var b strings.Builder
	i := 0
	for i < len(s) {
		switch c := s[i]; {
		case c == '\n' || c == ' ':
			return b.String(), i
		case c == '"':
			i = readDouble(&b, s, i+1)
		case c == '\'':
			j := strings.IndexByte(s[i+1:], '\'')
			if j < 0 {
				return b.String(), len(s)
			}
			b.WriteString(s[i+1 : i+1+j])
			i += j + 2
		case c == '$' && strings.HasPrefix(s[i:], "$'"):
			i = readANSI(&b, s, i+2)
		case c == '(':
			end := arrayEnd(s, i)
			b.WriteString(s[i:end])
			i = end
		case c == '\\' && i+1 < len(s):
			b.WriteByte(s[i+1])
			i += 2
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String(), i
}

func readDouble(b *strings.Builder, s string, i int) int {
	for i < len(s) {
		switch c := s[i]; {
		case c == '"':
			return i + 1
		case c == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\", s[i+1]) >= 0:
			b.WriteByte(s[i+1])
			i += 2
		default:
			b.WriteByte(c)
			i++
		}
	}
	return i
}

var ansiEscapes = map[byte]byte{
	'a': 7, 'b': 8, 'e': 27, 'E': 27, 'f': 12, 'n': 10, 'r': 13, 't': 9, 'v': 11, '\\': '\\', '\'': '\'', '"': '"', '?': '?',
}

func readANSI(b *strings.Builder, s string, i int) int {
	for i < len(s) {
		c := s[i]
		if c == '\'' {
			return i + 1
		}
		if c != '\\' || i+1 >= len(s) {
			b.WriteByte(c)
			i++
			continue
		}
		e := s[i+1]
		if r, ok := ansiEscapes[e]; ok {
			b.WriteByte(r)
			i += 2
			continue
		}
		base, from, most := 8, i+1, 3
		switch e {
		case 'x':
			base, from, most = 16, i+2, 2
		case 'u':
			base, from, most = 16, i+2, 4
		case 'U':
			base, from, most = 16, i+2, 8
		}
		j := from
		for j < len(s) && j < from+most {
			if _, err := strconv.ParseUint(s[j:j+1], base, 8); err != nil {
				break
			}
			j++
		}
		v, err := strconv.ParseUint(s[from:j], base, 32)
		if err != nil {
			b.WriteByte(c)
			i++
			continue
		}
		if e == 'u' || e == 'U' {
			b.WriteRune(rune(v))
		} else {
			b.WriteByte(byte(v))
		}
		i = j
	}
	return i
}

// arrayEnd is the position behind the parenthesis that closes the one at i.
func arrayEnd(s string, i int) int {
	var skip strings.Builder
	for i++; i < len(s); {
		switch c := s[i]; {
		case c == ')':
			return i + 1
		case c == '"':
			i = readDouble(&skip, s, i+1)
		case c == '$' && strings.HasPrefix(s[i:], "$'"):
			i = readANSI(&skip, s, i+2)
		case c == '\'':
			j := strings.IndexByte(s[i+1:], '\'')
			if j < 0 {
				return len(s)
			}
			i += j + 2
		case c == '\\':
			i += 2
		default:
			i++
		}
	}
	return len(s)
}
