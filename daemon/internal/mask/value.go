package mask

import (
	"regexp"
	"strings"
	"sync"

	"sublet/wire/secretname"
)

// maskValues masks values behind a name, as in NAME=, name:, "name":, \"name\": and --name: those whose name says that they are secret,
// and those that look as only a key does.
func maskValues(s string) string {
	m := masked{in: s}
	for at := 0; ; {
		i := strings.IndexAny(s[at:], "=:-")
		if i < 0 {
			return m.text()
		}
		v, ok := valueAt(s, at+i)
		if at += i + 1; !ok || v.start < m.last {
			continue
		}
		at = v.at
		if from, to, kind := v.secret(); to > from {
			m.replace(from, to, kind)
			at = to
		}
	}
}

const (
	maxName   = 128 // bytes of a name, with what is behind it
	maxBlanks = 8   // behind the sign, and half as many before it
)

// inName reports whether names are made of a character.
func inName(c rune) bool {
	return c == '_' || c == '-' || c == '.' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// valueAt returns what stands behind the =, : or -- at i, and the name before or behind that.
func valueAt(s string, i int) (v value, ok bool) {
	v = value{text: s, sep: s[i], at: i + 1}
	switch sign := s[i:min(len(s), i+2)]; {
	case sign == "==" || sign == "=~": // compare
		return v, false
	case sign == ":=" || sign == "=>":
		v.at++
	case sign == "--":
		name := s[i+2 : min(len(s), i+maxName)]
		end := strings.IndexAny(name, " \t")
		if end < 0 || strings.TrimFunc(name[:end], inName) != "" {
			return v, false
		}
		v.name, v.start, v.at, v.sep, v.apart = name[:end], i+2, i+2+end, 0, true
	case s[i] == '-':
		return v, false
	}
	if v.sep != 0 {
		before := s[max(0, i-maxName):i]
		name := strings.TrimRight(before, " ")
		if v.apart = name != before; len(before)-len(name) > maxBlanks/2 {
			return v, false
		}
		name = strings.TrimSuffix(strings.TrimRight(name, `"'`), `\`)
		v.start = i - len(before) + len(name)
		v.name = strings.TrimLeft(name[len(strings.TrimRightFunc(name, inName)):], "-.")
		v.start -= len(v.name)
	}
	rest := s[v.at:min(len(s), v.at+maxBlanks)]
	blanks := len(rest) - len(strings.TrimLeft(rest, " \t"))
	v.blank = blanks > 0
	v.at += blanks
	// What stands behind [masked: is not a name, but the kind in a placeholder.
	return v, v.name != "" && !strings.HasSuffix(s[:v.start], maskedPrefix)
}

// value is what may follow a name.
type value struct {
	text         string
	name         string
	start, at    int  // of the name, and of the value with its quotes
	sep          byte // what stands between them; 0: blanks
	apart, blank bool // there are blanks before and behind it
}

// secret returns where the secret is in the value, if it is one.
func (v *value) secret() (from, to int, kind string) {
	sure := secretname.Judge(v.name)
	if sure == secretname.Plain {
		return v.byForm()
	}
	switch lower := strings.ToLower(v.name); {
	case v.sep == '=' && v.blank && !v.apart, v.prompt():
		// NAME= value is an empty assignment in a shell, a setting elsewhere: only with blanks on both sides.
		return 0, 0, ""
	case strings.HasSuffix(lower, "authorization") || strings.HasSuffix(lower, "cookie"):
		return v.header()
	}
	from, to = v.plain(v.sep == ':' && v.beginsLine())
	if sure == secretname.Likely && !keyLike(v.text[from:to]) {
		return 0, 0, ""
	}
	return from, to, "secret"
}

// byForm judges a value by its form, since its name does not say that it is a secret: the signature of an address, or the random
// value of a variable or a header.
func (v *value) byForm() (from, to int, kind string) {
	switch {
	case v.start > 0 && strings.IndexByte("?&", v.text[v.start-1]) >= 0 && signature().MatchString(v.name):
		if from, to = v.plain(false); to-from < minSignature {
			return 0, 0, ""
		}
		return from, to, "secret"
	case v.start > 0 && v.text[v.start-1] == '-': // an option, such as -DNAME=
		return 0, 0, ""
	case !openName(v.name, v.sep), aboutNumber().MatchString(v.name):
		return 0, 0, ""
	}
	from, to = v.bounds(maxKey + 1) // a longer value is seen to be longer
	if !random(v.text[from:to]) {
		return 0, 0, ""
	}
	return from, to, "secret"
}

var (
	// signature finds parameters of an address that give access to what it names.
	signature = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?i:sig|signature|x-amz-signature|x-goog-signature|x-amz-security-token)$`)
	})
	// aboutNumber finds names of check sums and numbers.
	aboutNumber = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i:sum|hash|sha|digest|integrity|etag|nonce|commit|rev|version|path|uuid|trace|request)`)
	})
	// prompting finds the beginning of a text that a program asks with.
	prompting = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\s-(?:\S*p|\S+prompt) (["'])[^\n]*$`) })
	// scheme finds the part of an Authorization header that is not a secret.
	scheme = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^["']?(?i:(?:bearer|basic|token|digest|negotiate|apikey) )?`)
	})
)

// openName reports whether a name is one that somebody chose for an environment variable or a header, and that says nothing
// about its value: FOO=…, X-Foo: ….
func openName(name string, sep byte) bool {
	if sep == ':' {
		return len(name) > 1 && name[0]|0x20 == 'x' && name[1] == '-'
	}
	return sep == '=' && strings.ToUpper(name) == name
}

// random reports whether a value can only be a key: long, of letters of both kinds and digits, without order.
func random(v string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	return len(v) >= 32 && len(v) <= maxKey && v[0] != '/' && v[0] != '.' && strings.ContainsAny(v, letters) && strings.ContainsAny(v, strings.ToUpper(letters)) &&
		strings.ContainsAny(v, "0123456789") && strings.Trim(v, letters+strings.ToUpper(letters)+"0123456789_-.+/=") == "" && entropy(v) >= 4.3
}

// keyLike reports whether a value looks like a key rather than like the name of a field.
func keyLike(v string) bool {
	return len(v) >= 16 && strings.ContainsAny(v, "0123456789") && !wordOnly(v) && entropy(v) >= 3
}

// prompt reports whether the name ends a text that a program asks with, as in read -rsp 'Enter password: ' p. The quote after the
// name closes that text then, and what follows is the rest of the command, not a secret.
func (v *value) prompt() bool {
	if v.at >= len(v.text) || v.text[v.at] != '\'' && v.text[v.at] != '"' {
		return false
	}
	const most = 64 // bytes before the name that are looked at
	m := prompting().FindStringSubmatch(v.text[max(0, v.start-most):v.start])
	return m != nil && m[1] == v.text[v.at:v.at+1]
}

// beginsLine reports whether only blanks, dashes and quotes stand before the name in its line: a key of a settings file.
func (v *value) beginsLine() bool {
	line := v.text[max(0, v.start-256):v.start]
	return strings.Trim(line[strings.LastIndexByte(line, '\n')+1:], " \t-\"'") == ""
}

// header keeps the scheme of an Authorization header and masks the rest of the value.
func (v *value) header() (from, to int, kind string) {
	from = v.at + len(scheme().FindString(v.text[v.at:min(len(v.text), v.at+16)]))
	rest := v.text[from:min(len(v.text), from+maxValue)]
	if i := strings.IndexAny(rest, "\"'\n\r\\`<"); i >= 0 {
		rest = rest[:i]
	}
	if rest = strings.TrimRight(rest, " "); len(rest) < 4 || secretReference(rest) {
		return 0, 0, ""
	}
	return from, from + len(rest), "header"
}

// Bounds of values, in bytes.
const (
	maxValue     = 4096
	maxKey       = 512 // of one that is masked for its form
	minSignature = 20  // the length of a SHA-1 digest, which text makes longer
)

// bareEnd is what ends a value that is not quoted.
var bareEnd = func() string {
	set := "\"',;&)}|`<\x7f"
	for c := range rune(' ' + 1) {
		set += string(c)
	}
	return set
}()

// bounds returns where the quoted or bare value begins and ends, at most so many bytes later.
func (v *value) bounds(most int) (from, to int) {
	s := v.text[v.at:min(len(v.text), v.at+most)]
	quote := ""
	for _, q := range []string{`\"`, `"`, "'", "`"} {
		if strings.HasPrefix(s, q) {
			quote = q
			break
		}
	}
	if quote == "" {
		if i := strings.IndexAny(s, bareEnd); i >= 0 {
			s = s[:i]
		}
		return v.at, v.at + len(s)
	}
	s = s[len(quote):]
	i := 0
	for i < len(s) && s[i] != '\n' && !strings.HasPrefix(s[i:], quote) {
		if s[i] == '\\' && quote == `"` {
			i++
		}
		i++
	}
	return v.at + len(quote), v.at + len(quote) + min(i, len(s))
}

// plain returns where the value is, unless it is a reference, a word of prose or empty. key: the name is a key of a settings
// file.
func (v *value) plain(key bool) (from, to int) {
	from, to = v.bounds(maxValue)
	s := v.text[from:to]
	bare := from == v.at || v.text[from-1] == '`'
	ends := to == len(v.text) || v.text[to] == '\n' || v.text[to] == '\r'
	switch {
	case len(s) < 4 || secretReference(s):
		return 0, 0
	case key && ends && len(s) >= 6 && !notASecret(s) && !strings.ContainsAny(s, "([{"):
		return from, to
	case bare && strings.ContainsAny(s, "([{"): // code: token = getToken(x), os.environ["X"], a function's parameter
		return 0, 0
	case bare && v.sep == ':' && (wordOnly(s) || entropy(s) < 2.5): // "password: required", types in code: `token: string`
		return 0, 0
	case wordOnly(s) && notASecret(s):
		return 0, 0
	}
	return from, to
}
