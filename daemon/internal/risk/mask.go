package risk

import (
	"strings"
	"unsafe"
)

// Mask replaces secrets of known formats in a text: keys of AWS, GitHub, GitLab, Anthropic, OpenAI, Slack, Stripe, Google,
// npm, PyPI, SendGrid, Hugging Face and others, JSON web tokens, private keys in PEM, Authorization headers, passwords in
// URLs, the values of assignments whose name says that it is a secret, random-looking values of
// variables and of headers beginning with X-, and whatever KeepSecret was told. Each becomes `[masked:KIND:xxxx]`, where
// xxxx tells two secrets apart without telling anything about them. The rest of the text is unchanged, byte for byte; a
// text without secrets is returned as it is. Mask(Mask(s)) is Mask(s). Time grows linearly with the text.
func Mask(s string) string {
	s = maskKept(s)
	// A second look finds what stood in the name of a secret, and makes twice the same as once.
	for range 8 {
		m := masker{in: s}
		m.run()
		if m.last == 0 {
			break
		}
		m.out.WriteString(s[m.last:])
		s = m.out.String()
	}
	return s
}

// MaskBytes is Mask for bytes. It returns b itself when nothing was masked, else a new slice.
func MaskBytes(b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	s := unsafe.String(&b[0], len(b)) // read only, and not kept: Mask copies what it changes
	masked := Mask(s)
	if unsafe.StringData(masked) == &b[0] {
		return b
	}
	return []byte(masked)
}

type masker struct {
	in   string
	out  strings.Builder
	last int // everything before it is in out
}

// replace masks in[start:end], which lies behind all that was masked before.
func (m *masker) replace(start, end int, kind string) {
	m.out.WriteString(m.in[m.last:start])
	m.out.WriteString(placeholder(kind, m.in[start:end]))
	m.last = end
}

const maskedPrefix = "[masked:"

func keyByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// run goes through the text once. Every check at a position looks ahead by a bounded number of bytes or masks what it
// looked at.
func (m *masker) run() {
	s := m.in
	for i := 0; i < len(s); {
		c := s[i]
		if c == '[' && strings.HasPrefix(s[i:], maskedPrefix) {
			i += len(maskedPrefix)
			if end := strings.IndexByte(s[i:min(len(s), i+32)], ']'); end >= 0 {
				i += end + 1
			}
			continue
		}
		wordStart := i == 0 || !isNameByte(s[i-1])
		if tokenStart[c] && (i == 0 || !keyByte(s[i-1]) || s[i-1] == '-' || s[i-1] == '_') {
			if end, kind := knownToken(s, i); end > i && i >= m.last {
				m.replace(i, end, kind)
				i = end
				continue
			}
		}
		if c == '-' && strings.HasPrefix(s[i:], "-----BEGIN ") {
			if end := pemBlock(s, i); end > i {
				m.replace(i, end, "private-key")
				i = end
				continue
			}
		}
		if c == ':' && strings.HasPrefix(s[i:], "://") {
			if start, end := userinfo(s, i+3); end > start {
				m.replace(start, end, "password")
				i = end
				continue
			}
			if start, end := hook(s, i+3); end > start {
				m.replace(start, end, "webhook")
				i = end
				continue
			}
			i += 3
			continue
		}
		if c == 'L' && wordStart {
			if end := packedKey(s, i); end > i {
				m.replace(i, end, "private-key")
				i = end
				continue
			}
		}
		if c == '-' && (i == 0 || s[i-1] <= ' ') && i+1 < len(s) {
			if start, end := optionSecret(s, i); end > start {
				m.replace(start, end, "password")
				i = end
				continue
			}
		}
		if i == 0 || s[i-1] == '\n' {
			if start, end := passwordLine(s, i); end > start {
				m.replace(start, end, "password")
				i = end
				continue
			}
		}
		if wordStart && isNameByte(c) {
			end := i
			for end < len(s) && (isNameByte(s[end]) || s[end] == '-' || s[end] == '.') && end-i < 128 {
				end++
			}
			if start, stop := loginEntry(s, end, i); stop > start {
				m.replace(start, stop, "password")
				i = stop
				continue
			}
			if start, stop, kind := m.assignment(i, end); stop > start {
				m.replace(start, stop, kind)
				i = stop
				continue
			}
		}
		i++
	}
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// maxKey is the longest part of a key that is looked at to find out whether it is one, in bytes. What is one is masked
// to its end.
const maxKey = 2048

// keyRun is the end of the key characters from i on, at most most of them.
func keyRun(s string, i, most int) int {
	end := min(len(s), i+most)
	for i < end && keyByte(s[i]) {
		i++
	}
	return i
}

func knownToken(s string, i int) (end int, kind string) {
	for _, k := range tokenKinds {
		if s[i] != k.prefix[0] || !strings.HasPrefix(s[i:], k.prefix) {
			continue
		}
		if k.kind == "jwt" {
			if end := webToken(s, i); end > i {
				return end, k.kind
			}
			continue
		}
		from := i + len(k.prefix)
		j := from
		for j < len(s) && j-from < k.more && (keyByte(s[j]) || s[j] == '.' && dotted(k.kind)) {
			j++
		}
		if j-from < k.more {
			continue
		}
		switch k.kind {
		case "aws":
			if j < len(s) && keyByte(s[j]) || strings.ToUpper(s[from:j]) != s[from:j] {
				continue
			}
		case "openai", "mailgun", "notion", "pulumi", "xai":
			if entropy(s[from:j]) < 3.2 {
				continue
			}
		}
		for j < len(s) && (keyByte(s[j]) || s[j] == '.' && dotted(k.kind)) {
			j++
		}
		for s[j-1] == '.' {
			j--
		}
		return j, k.kind
	}
	return i, ""
}

// webToken finds the end of a JSON web token: a short head, a body and a signature, with dots between them.
func webToken(s string, i int) int {
	head := keyRun(s, i, maxKey)
	if head-i < 10 || head >= len(s) || s[head] != '.' {
		return i
	}
	body := keyRun(s, head+1, 8*maxKey)
	if body-head < 4 || body >= len(s) || s[body] != '.' {
		return i
	}
	end := keyRun(s, body+1, len(s))
	for end < len(s)-1 && s[end] == '.' && keyByte(s[end+1]) { // five parts when it is encrypted
		end = keyRun(s, end+1, len(s))
	}
	return end
}

func dotted(kind string) bool {
	switch kind {
	case "jwt", "google", "sendgrid", "vault", "doppler":
		return true
	}
	return false
}

// pemBlock finds the end of a private key that begins at i; a block that is cut off ends with the text, bounded.
func pemBlock(s string, i int) int {
	head := s[i:min(len(s), i+80)]
	nl := strings.Index(head[11:], "-----")
	if nl < 0 || !strings.Contains(head[:11+nl], "PRIVATE KEY") {
		return i
	}
	rest := s[i+11+nl:]
	const maxPEM = 64 << 10
	rest = rest[:min(len(rest), maxPEM)]
	if end := strings.Index(rest, "-----END "); end >= 0 {
		tail := rest[end+9:]
		if stop := strings.Index(tail[:min(len(tail), 64)], "-----"); stop >= 0 {
			return i + 11 + nl + end + 9 + stop + 5
		}
	}
	// Cut off: base64 lines as far as they go.
	j := 5
	for j < len(rest) && (keyByte(rest[j]) || strings.IndexByte("+/=\r\n\\ ", rest[j]) >= 0) {
		j++
	}
	return i + 11 + nl + j
}

// userinfo finds the password of scheme://user:password@host; from is behind the "://".
func userinfo(s string, from int) (start, end int) {
	colon := -1
	for i := from; i < len(s) && i < from+512; i++ {
		switch c := s[i]; {
		case c == '@':
			if colon < 0 {
				// scheme://token@host
				if i-from >= 20 && entropy(s[from:i]) > 3.2 {
					return from, i
				}
				return 0, 0
			}
			if i == colon+1 || secretReference(s[colon+1:i]) {
				return 0, 0
			}
			return colon + 1, i
		case c == ':' && colon < 0:
			colon = i
		case c <= ' ' || c == '/' || c == '"' || c == '\'' || c == '<' || c == '>' || c == '`':
			return 0, 0
		}
	}
	return 0, 0
}

// assignment masks the value that follows a name: NAME=value, name: value, "name": "value", --name value, and
// Authorization headers.
func (m *masker) assignment(start, end int) (from, to int, kind string) {
	s := m.in
	name := s[start:end]
	for len(name) > 0 && (name[len(name)-1] == '.' || name[len(name)-1] == '-') {
		name, end = name[:len(name)-1], end-1
	}
	i := end
	if i < len(s) && (s[i] == '"' || s[i] == '\'') { // "name": …
		i++
	} else if i+1 < len(s) && s[i] == '\\' && s[i+1] == '"' { // in JSON inside a string
		i += 2
	}
	spaces := i
	for i < len(s) && s[i] == ' ' && i-spaces < 4 {
		i++
	}
	if i >= len(s) {
		return 0, 0, ""
	}
	option := start >= 2 && s[start-1] == '-' && s[start-2] == '-'
	sep := s[i]
	switch {
	case sep == ':' && i+1 < len(s) && s[i+1] == '=':
		i += 2
	case sep == '=' && i+1 < len(s) && (s[i+1] == '=' || s[i+1] == '~'):
		return 0, 0, ""
	case sep == '=' && i+1 < len(s) && s[i+1] == '>':
		i += 2
	case sep == '=' || sep == ':':
		i++
	case option && i > spaces:
	default:
		return 0, 0, ""
	}
	sure := judgeName(name)
	if sure == plainName && signedName(s, start, name) {
		if from, to, kind = plainValue(s, i, sep, false); to-from >= 20 {
			return from, to, kind
		}
		return 0, 0, ""
	}
	if sure == plainName {
		if start > 0 && s[start-1] == '-' || !openName(name, sep) {
			return 0, 0, ""
		}
		from, to, kind = plainValue(s, skipBlanks(s, i), sep, false)
		if !randomLooking(s[from:to]) {
			return 0, 0, ""
		}
		return from, to, kind
	}
	blank := i
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') && i-blank < 8 {
		i++
	}
	if sep == '=' && i > blank && !(spaces < blank-1) {
		// NAME= value is an empty assignment in a shell, a setting elsewhere: only with blanks on both sides.
		return 0, 0, ""
	}
	if promptText(s, start, i) {
		return 0, 0, ""
	}
	lower := strings.ToLower(name)
	header := strings.HasSuffix(lower, "authorization") || strings.HasSuffix(lower, "cookie")
	if header {
		return headerValue(s, i)
	}
	from, to, kind = plainValue(s, i, sep, sep == ':' && lineStart(s, start))
	if sure == likelyName && !keyLike(s[from:to]) {
		return 0, 0, ""
	}
	return from, to, kind
}

// promptText tells that the text around the name at start is what a program asks with, and ends at i: read -rsp 'Enter
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

// openName tells that what a name's value is cannot be told from it, and that it is set as an environment's variable or
// sent as a header of somebody's own: FOO=…, X-Foo: …. Names of check sums and numbers are none.
func openName(name string, sep byte) bool {
	lower := strings.ToLower(name)
	switch {
	case sep == '=' && strings.ToUpper(name) == name:
	case sep == ':' && strings.HasPrefix(lower, "x-"):
	default:
		return false
	}
	for _, about := range [...]string{"sum", "hash", "sha", "digest", "integrity", "etag", "nonce", "commit", "rev", "version", "path", "uuid", "trace", "request"} {
		if strings.Contains(lower, about) {
			return false
		}
	}
	return true
}

// randomLooking tells that a value can only be a key: long, of letters of both kinds and digits, without order.
func randomLooking(v string) bool {
	if len(v) < 32 || len(v) > 512 || v[0] == '/' || v[0] == '.' {
		return false
	}
	var lower, upper, digit bool
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case c >= 'a' && c <= 'z':
			lower = true
		case c >= 'A' && c <= 'Z':
			upper = true
		case c >= '0' && c <= '9':
			digit = true
		case c != '+' && c != '/' && c != '_' && c != '-' && c != '=' && c != '.':
			return false
		}
	}
	return lower && upper && digit && entropy(v) >= 4.3
}

// keyLike tells that a value looks like a key rather than like the name of a field.
func keyLike(v string) bool {
	return len(v) >= 16 && strings.ContainsAny(v, "0123456789") && !wordOnly(v) && entropy(v) >= 3
}

// lineStart tells that only blanks, dashes and quotes stand before i in its line: a key of a settings file, not prose.
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

// plainValue masks a quoted or bare value, unless it is a reference, a word of prose or empty.
func plainValue(s string, i int, sep byte, key bool) (from, to int, kind string) {
	if i >= len(s) {
		return 0, 0, ""
	}
	var j int
	escaped := s[i] == '\\' && i+1 < len(s) && s[i+1] == '"'
	switch {
	case escaped:
		i += 2
		j = i
		for j < len(s) && !(s[j] == '\\' && j+1 < len(s) && s[j+1] == '"') && s[j] != '\n' && j-i < 4096 {
			j++
		}
	case s[i] == '"' || s[i] == '\'' || s[i] == '`':
		q := s[i]
		i++
		j = i
		for j < len(s) && s[j] != q && s[j] != '\n' && j-i < 4096 {
			if s[j] == '\\' && q == '"' {
				j++
			}
			j++
		}
		j = min(j, len(s))
	default:
		j = i
		for j < len(s) && s[j] > ' ' && s[j] != '"' && s[j] != '\'' && s[j] != ',' && s[j] != ';' && s[j] != '&' && s[j] != ')' && s[j] != '}' && s[j] != '|' && s[j] != '`' && s[j] != '<' && j-i < 4096 {
			j++
		}
	}
	v := s[i:j]
	bare := i == 0 || s[i-1] != '"' && s[i-1] != '\''
	if len(v) < 4 || secretReference(v) || strings.HasPrefix(v, maskedPrefix) {
		return 0, 0, ""
	}
	if key && (j == len(s) || s[j] == '\n' || s[j] == '\r') && len(v) >= 6 && !notASecret(v) && !strings.ContainsAny(v, "([{") {
		return i, j, "secret"
	}
	if bare && sep == ':' && (wordOnly(v) || entropy(v) < 2.5) {
		return 0, 0, "" // prose: "password: required", types in code: `token: string`
	}
	if wordOnly(v) && notASecret(v) {
		return 0, 0, ""
	}
	// Code: token = getToken(x), os.environ["X"], a function's parameter.
	if bare && strings.ContainsAny(v, "([{") {
		return 0, 0, ""
	}
	return i, j, "secret"
}
