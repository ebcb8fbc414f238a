package offline

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// quote makes one shell word of any text: as it stands where that is safe, else in single quotes, else in $'…'.
func quote(s string) string {
	if s == "" {
		return "''"
	}
	if plainWord.MatchString(s) {
		return s
	}
	if strings.IndexFunc(s, unicode.IsControl) < 0 && utf8.ValidString(s) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i := range len(s) {
		switch c := s[i]; {
		case c == 0: // no argument can hold it
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

var plainWord = rx(`^[A-Za-z0-9_./@%+=:,-]+$`)

// file makes a shell word of a file's name: a leading ~ is the home folder, a leading dash is no option.
func file(name string) string {
	switch {
	case name == "~":
		return "~"
	case strings.HasPrefix(name, "~/"):
		if rest := name[2:]; rest != "" {
			return "~/" + quote(rest)
		}
		return "~/"
	case strings.HasPrefix(name, "-"), strings.HasPrefix(name, "+"):
		return quote("./" + name)
	}
	return quote(name)
}

// code is text as inline code, whatever is in it. Control characters become visible.
func code(s string) string {
	s = visible(s)
	if s == "" {
		return "(empty)"
	}
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if len(fence) > 1 || strings.HasPrefix(s, "`") {
		return fence + " " + s + " " + fence
	}
	return fence + s + fence
}

func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError {
			return '␦'
		}
		return r
	}, s)
}

// fence is a block of code, at most max lines and 6,000 bytes of it: the end, or the beginning where head is set.
func fence(language, text string, maxLines int, head bool) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i := range lines {
		lines[i] = cut(strings.Map(func(r rune) rune {
			if r == '\t' {
				return r
			}
			if unicode.IsControl(r) {
				return -1
			}
			return r
		}, lines[i]), 300)
	}
	left := 0
	for len(lines) > maxLines || len(lines) > 1 && len(strings.Join(lines, "\n")) > 6000 {
		if head {
			lines = lines[:len(lines)-1]
		} else {
			lines = lines[1:]
		}
		left++
	}
	body := strings.Join(lines, "\n")
	marks := "```"
	for strings.Contains(body, marks) {
		marks += "`"
	}
	out := marks + language + "\n" + body + "\n" + marks
	switch {
	case left > 0 && head:
		out += fmt.Sprintf("\n%s more.", count(left, "line"))
	case left > 0:
		out = fmt.Sprintf("The last %s:\n\n", count(len(lines), "line")) + out
	}
	return out
}

// cut shortens s to about n bytes, between characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

func firstLine(s string) string {
	line, _, more := strings.Cut(strings.TrimSpace(s), "\n")
	if more {
		line += " …"
	}
	return line
}

func quoteText(s string) string { return "“" + strings.TrimRight(visible(s), ". ") + ".”" }

// mdTable is a Markdown table; cells are plain text and escaped here.
func mdTable(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) {
		for _, c := range cells {
			b.WriteString("| ")
			b.WriteString(strings.NewReplacer("|", `\|`, "\n", " ").Replace(c))
			b.WriteByte(' ')
		}
		b.WriteString("|\n")
	}
	line(head)
	marks := make([]string, len(head))
	for i := range marks {
		marks[i] = "---"
		if len(rows) > 0 && len(rows[0]) > i && isNumber.MatchString(rows[0][i]) {
			marks[i] = "---:"
		}
	}
	line(marks)
	for _, r := range rows {
		line(r)
	}
	return strings.TrimRight(b.String(), "\n")
}

var isNumber = rx(`^[+-]?[\d.,]+ ?(?:%|[KMGTP]?i?B?)?$`)

// count is "1 file", "3 files", "1,204 files".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	switch {
	case strings.HasSuffix(noun, "y") && !strings.HasSuffix(noun, "ey") && !strings.HasSuffix(noun, "ay"):
		noun = noun[:len(noun)-1] + "ies"
	case strings.HasSuffix(noun, "ch"), strings.HasSuffix(noun, "s"), strings.HasSuffix(noun, "x"):
		noun += "es"
	default:
		noun += "s"
	}
	return number(int64(n)) + " " + noun
}

// number writes thousands apart.
func number(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// size is a number of bytes for people.
func size(n int64) string {
	if n < 1024 {
		return number(n) + " B"
	}
	f, unit := float64(n), ""
	for _, unit = range []string{"KB", "MB", "GB", "TB", "PB"} {
		f /= 1024
		if f < 1000 {
			break
		}
	}
	if f >= 10 {
		return fmt.Sprintf("%.0f %s", f, unit)
	}
	return fmt.Sprintf("%.1f %s", f, unit)
}

// list joins names in a sentence: "a, b and c"; more than max are counted.
func list(names []string, most int) string {
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " and " + number(int64(len(names)-most)) + " more"
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// join is list without a bound.
func join(names []string) string { return list(names, len(names)) }

// trouble is what a command says that failed, for the end of an answer.
func trouble(r result) string {
	what := code(firstLine(r.command))
	if r.tool != "bash" || r.command == "" {
		what = "the " + r.tool + " tool"
	}
	switch {
	case r.stopped == "timeout":
		return "It took too long: " + what + " was ended.\n\n" + fenceOrNothing(r.text)
	case r.text == "" && r.exit > 0:
		return fmt.Sprintf("That failed: %s ended with exit code %d and said nothing.", what, r.exit)
	case r.exit > 0:
		return fmt.Sprintf("That failed: %s ended with exit code %d.\n\n%s", what, r.exit, fenceOrNothing(r.text)) + hintFor(r)
	}
	return "That failed: " + what + ".\n\n" + fenceOrNothing(r.text)
}

func hintFor(r result) string {
	if e := explain(r.command, r.exit, r.text); e != "" {
		return "\n\n" + e
	}
	return ""
}

func fenceOrNothing(s string) string {
	if strings.TrimSpace(s) == "" {
		return "It printed nothing."
	}
	return fence("", s, 20, false)
}
