package mask

import (
	"strings"

	"sublet/wire/secretname"
)

// mayAssign rules out most names that no value follows.
func mayAssign(s string, start, end int) bool {
	if end == len(s) {
		return false
	}
	switch s[end] {
	case '=', ':', '"', '\'', '\\':
		return true
	case ' ':
		return end+1 < len(s) && class[s[end+1]]&letterByte == 0 || start > 0 && s[start-1] == '-'
	}
	return false
}

// separator finds what stands between a name, with what ends it, and the value at i. apart reports blanks before it; ok is
// false where no value follows.
func separator(s string, start, end int) (i int, sep byte, apart, ok bool) {
	i = end
	if i < len(s) && (s[i] == '"' || s[i] == '\'') { // "name": …
		i++
	} else if strings.HasPrefix(s[i:], `\"`) { // in JSON inside a string
		i += 2
	}
	from := i
	for i < len(s) && s[i] == ' ' && i-from < 4 {
		i++
	}
	if i >= len(s) {
		return 0, 0, false, false
	}
	option := start >= 2 && s[start-1] == '-' && s[start-2] == '-'
	sep, apart = s[i], i > from
	next := byte(0)
	if i+1 < len(s) {
		next = s[i+1]
	}
	switch {
	case sep == ':' && next == '=', sep == '=' && next == '>':
		i += 2
	case sep == '=' && (next == '=' || next == '~'):
		return 0, 0, false, false
	case sep == '=' || sep == ':':
		i++
	case !option || !apart:
		return 0, 0, false, false
	}
	return i, sep, apart, true
}

// assignment masks the value that follows a name: NAME=value, name: value, "name": "value", --name value, and
// Authorization headers.
func (m *masker) assignment(start, end int) (from, to int, kind string) {
	s := m.in
	name := strings.TrimRight(s[start:end], ".-")
	i, sep, apart, ok := separator(s, start, start+len(name))
	if !ok {
		return 0, 0, ""
	}
	sure := secretname.Judge(name)
	if sure == secretname.Plain {
		return m.openValue(name, start, i, sep)
	}
	blank := i
	i = skipBlanks(s, i)
	switch lower := strings.ToLower(name); {
	case sep == '=' && i > blank && !apart, promptText(s, start, i):
		// NAME= value is an empty assignment in a shell, a setting elsewhere: only with blanks on both sides.
		return 0, 0, ""
	case strings.HasSuffix(lower, "authorization") || strings.HasSuffix(lower, "cookie"):
		return headerValue(s, i)
	}
	from, to, kind = m.plainValue(i, sep, sep == ':' && lineStart(s, start))
	if sure == secretname.Likely && !keyLike(s[from:to]) {
		return 0, 0, ""
	}
	return from, to, kind
}

// openValue masks a value by what it looks like, since its name does not say that it is a secret.
func (m *masker) openValue(name string, start, i int, sep byte) (from, to int, kind string) {
	if signedName(m.in, start, name) {
		if from, to, kind = m.plainValue(i, sep, false); to-from >= 20 {
			return from, to, kind
		}
		return 0, 0, ""
	}
	if start > 0 && m.in[start-1] == '-' || !openName(name, sep) {
		return 0, 0, ""
	}
	if from, to = m.randomValue(skipBlanks(m.in, i)); to == from || aboutNumber(name) {
		return 0, 0, ""
	}
	return from, to, "secret"
}

// promptText reports whether the text around the name at start is what a program asks with, and ends at i: read -rsp 'Enter
// password: ' p. What the secret will be is not in it, and behind it comes the rest of the command.
func promptText(s string, start, i int) bool {
	if i >= len(s) || s[i] != '\'' && s[i] != '"' {
		return false
	}
	const most = 64 // bytes before the name that are looked at
	line := s[max(0, start-most):start]
	open := strings.LastIndexByte(line, s[i])
	if open < 2 || line[open-1] != ' ' || strings.IndexByte(line[open:], '\n') >= 0 {
		return false
	}
	option := line[strings.LastIndexAny(line[:open-1], " \t\n")+1 : open-1]
	return len(option) > 1 && option[0] == '-' && (option[len(option)-1] == 'p' || strings.HasSuffix(option, "prompt"))
}

// skipBlanks is the place behind a few blanks.
func skipBlanks(s string, i int) int {
	for end := min(len(s), i+8); i < end && (s[i] == ' ' || s[i] == '\t'); {
		i++
	}
	return i
}

// openName reports whether a name is one that somebody chose for an environment variable or a header, and that says nothing
// about its value: FOO=…, X-Foo: …. Names of check sums and numbers are none: see aboutNumber.
func openName(name string, sep byte) bool {
	if sep == ':' {
		return len(name) > 1 && name[0]|0x20 == 'x' && name[1] == '-'
	}
	for i := 0; i < len(name); i++ {
		if name[i] >= 'a' && name[i] <= 'z' {
			return false
		}
	}
	return sep == '='
}

func aboutNumber(name string) bool {
	lower := strings.ToLower(name)
	for _, about := range [...]string{"sum", "hash", "sha", "digest", "integrity", "etag", "nonce", "commit", "rev", "version", "path", "uuid", "trace", "request"} {
		if strings.Contains(lower, about) {
			return true
		}
	}
	return false
}

// randomValue finds the value at i, quoted or bare, that can only be a key: long, of letters of both kinds and digits,
// without order.
func (m *masker) randomValue(i int) (from, to int) {
	s := m.in
	quote := byte(0)
	switch {
	case i >= len(s):
		return 0, 0
	case s[i] == '\\' && i+1 < len(s) && s[i+1] == '"': // in JSON inside a string
		quote = '\\'
		i += 2
	case s[i] == '"' || s[i] == '\'' || s[i] == '`':
		quote = s[i]
		i++
	}
	const shortest, longest = 32, 512
	end := m.values.endAt(s, i, valueByte)
	if end-i < shortest || end-i > longest || s[i] == '/' || s[i] == '.' || !valueEnds(s, end, quote) {
		return 0, 0
	}
	var lower, upper, digit bool
	for j := i; j < end; j++ {
		switch c := s[j]; {
		case c >= 'a' && c <= 'z':
			lower = true
		case c >= 'A' && c <= 'Z':
			upper = true
		case c >= '0' && c <= '9':
			digit = true
		}
	}
	if !lower || !upper || !digit || entropy(s[i:end]) < 4.3 {
		return 0, 0
	}
	return i, end
}

// valueEnds reports whether a value in a quote, 0 for none, that goes on to i ends there.
func valueEnds(s string, i int, quote byte) bool {
	switch {
	case i == len(s) || s[i] == '\n':
		return true
	case quote == '\\':
		return s[i] == '\\' && i+1 < len(s) && s[i+1] == '"'
	case quote != 0:
		return s[i] == quote
	}
	return class[s[i]]&bareByte == 0
}

// keyLike reports whether a value looks like a key rather than like the name of a field.
func keyLike(v string) bool {
	return len(v) >= 16 && strings.ContainsAny(v, "0123456789") && !wordOnly(v) && entropy(v) >= 3
}

// lineStart reports whether only blanks, dashes and quotes stand before i in its line: a key of a settings file, not prose.
func lineStart(s string, i int) bool {
	for i--; i >= 0 && s[i] != '\n'; i-- {
		if strings.IndexByte(" \t-\"'", s[i]) < 0 {
			return false
		}
	}
	return true
}

// headerValue keeps the scheme of an Authorization header and masks the rest of the value.
func headerValue(s string, i int) (from, to int, kind string) {
	if i < len(s) && (s[i] == '"' || s[i] == '\'') {
		i++
	}
	for _, scheme := range []string{"bearer ", "basic ", "token ", "digest ", "negotiate ", "apikey "} {
		if len(s) >= i+len(scheme) && strings.EqualFold(s[i:i+len(scheme)], scheme) {
			i += len(scheme)
			break
		}
	}
	j := i
	for j < len(s) && s[j] != '"' && s[j] != '\'' && s[j] != '\n' && s[j] != '\r' && s[j] != '\\' && s[j] != '`' && s[j] != '<' && j-i < 4096 {
		j++
	}
	for j > i && s[j-1] == ' ' {
		j--
	}
	if j-i < 4 || secretReference(s[i:j]) {
		return 0, 0, ""
	}
	return i, j, "header"
}

// bounds returns where the quoted or bare value at i begins and ends.
func (m *masker) bounds(i int) (from, to int) {
	s := m.in
	end, escapes := "", false
	switch c := s[i]; {
	case strings.HasPrefix(s[i:], `\"`):
		end = `\"`
	case c == '"' || c == '\'' || c == '`':
		end, escapes = string(c), c == '"'
	default:
		return i, min(m.bare.endAt(s, i, bareByte), i+4096)
	}
	i += len(end)
	j := i
	for j < len(s) && !strings.HasPrefix(s[j:], end) && s[j] != '\n' && j-i < 4096 {
		if s[j] == '\\' && escapes {
			j++
		}
		j++
	}
	return i, min(j, len(s))
}

// plainValue masks a quoted or bare value, unless it is a reference, a word of prose or empty.
func (m *masker) plainValue(i int, sep byte, key bool) (from, to int, kind string) {
	s := m.in
	if i >= len(s) {
		return 0, 0, ""
	}
	i, j := m.bounds(i)
	v := s[i:j]
	bare := i == 0 || s[i-1] != '"' && s[i-1] != '\''
	switch {
	case len(v) < 4 || secretReference(v) || strings.HasPrefix(v, maskedPrefix):
		return 0, 0, ""
	case key && (j == len(s) || s[j] == '\n' || s[j] == '\r') && len(v) >= 6 && !notASecret(v) && !strings.ContainsAny(v, "([{"):
		return i, j, "secret"
	case bare && strings.ContainsAny(v, "([{"): // code: token = getToken(x), os.environ["X"], a function's parameter
		return 0, 0, ""
	case bare && sep == ':' && (wordOnly(v) || entropy(v) < 2.5): // "password: required", types in code: `token: string`
		return 0, 0, ""
	case wordOnly(v) && notASecret(v):
		return 0, 0, ""
	}
	return i, j, "secret"
}
