package mask

import (
	"encoding/base64"
	"strings"
)

// lineBefore is what stands before i in its line, as far as it is looked at.
func lineBefore(s string, i int) string {
	const most = 256
	from := max(0, i-most)
	if nl := strings.LastIndexByte(s[from:i], '\n'); nl >= 0 {
		from += nl + 1
	}
	return s[from:i]
}

// wordEnd is the end of the word that begins at i: of what is not blank, quotes taken off.
func wordEnd(s string, i int) (start, end int) {
	if i < len(s) && (s[i] == '"' || s[i] == '\'') {
		q := s[i]
		for end = i + 1; end < len(s) && s[end] != q && s[end] != '\n' && end-i < 4096; end++ {
		}
		return i + 1, end
	}
	for end = i; end < len(s) && s[end] > ' ' && strings.IndexByte("\"'`;|&)<>", s[end]) < 0 && end-i < 4096; end++ {
	}
	return i, end
}

// loginEntry finds the password of an entry of .netrc: login NAME password VALUE.
func loginEntry(s string, end, start int) (from, to int) {
	if name := s[start:end]; name != "password" && name != "passwd" || end >= len(s) || s[end] != ' ' && s[end] != '\t' {
		return 0, 0
	}
	before := strings.Fields(s[max(0, start-256):start])
	n, host := len(before), false
	for k := range before[:max(0, n-1)] {
		host = host || before[k] == "machine" && strings.Contains(before[k+1], ".")
	}
	switch {
	case n >= 1 && before[n-1] == "default":
	case n >= 2 && (before[n-2] == "login" || before[n-2] == "machine" || before[n-2] == "account"):
	default:
		return 0, 0
	}
	from, to = wordEnd(s, skipBlanks(s, end))
	if to-from < 3 || secretReference(s[from:to]) || !host && wordOnly(s[from:to]) {
		return 0, 0 // prose
	}
	return from, to
}

// passwordLine finds the password of a line of .pgpass: host:port:database:user:password.
func passwordLine(s string, i int) (from, to int) {
	end, colons := i, 0
	var at [4]int
	for end < len(s) && s[end] > ' ' && end-i < 512 {
		if s[end] == ':' {
			if colons < 4 {
				at[colons] = end
			}
			colons++
		}
		end++
	}
	if colons < 4 || end < len(s) && s[end] != '\n' && s[end] != '\r' {
		return 0, 0
	}
	host, port := s[i:at[0]], s[at[0]+1:at[1]]
	if host == "" || strings.ContainsAny(host, "/\\\"'") || port != "*" && (!isNumber(port) || len(port) < 4 || len(port) > 5) ||
		at[2] == at[1]+1 || at[3] == at[2]+1 || isNumber(s[at[1]+1:at[2]]) || end-at[3] < 5 || secretReference(s[at[3]+1:end]) {
		return 0, 0
	}
	return at[3] + 1, end
}

// optionSecret finds a password that a program is given by an option without a telling name: curl -u NAME:PASSWORD,
// mysql -pPASSWORD, sshpass -p PASSWORD, docker login -p PASSWORD.
func optionSecret(s string, i int) (from, to int) {
	if at := i + 1; s[at] != 'p' && s[at] != 'u' && s[at] != 'U' && s[at] != '-' {
		return 0, 0
	}
	line := lineBefore(s, i)
	start, end := wordEnd(s, i)
	word := s[start:end]
	next := func() (int, int) {
		if end < len(s) && (s[end] == ' ' || s[end] == '\t') {
			return wordEnd(s, skipBlanks(s, end))
		}
		return 0, 0
	}
	switch {
	case word == "-p" && (strings.Contains(line, "sshpass") || strings.Contains(line, " login ")):
		from, to = next()
	case len(word) > 5 && strings.HasPrefix(word, "-p") && word[2] != '=' && (strings.Contains(line, "mysql") || strings.Contains(line, "mariadb")):
		from, to = i+2, end
	case strings.Contains(line, "curl"):
		from, to = curlUser(s, i, word, next)
		colon := strings.IndexByte(s[from:to], ':')
		if colon < 0 {
			return 0, 0
		}
		from += colon + 1
	}
	if to-from < 4 || secretReference(s[from:to]) || strings.HasPrefix(s[from:to], "-") {
		return 0, 0
	}
	return from, to
}

// curlUser finds what the option of curl at i, word, gives as the user.
func curlUser(s string, i int, word string, next func() (int, int)) (from, to int) {
	switch word {
	case "-u", "-U", "--user", "--proxy-user":
		return next()
	}
	if strings.HasPrefix(word, "--user=") || strings.HasPrefix(word, "--proxy-user=") {
		return wordEnd(s, i+strings.IndexByte(word, '=')+1)
	}
	if strings.HasPrefix(word, "-u") {
		return i + 2, i + len(word)
	}
	return 0, 0
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

// hookHosts are addresses whose path is all that it takes to use them.
var hookHosts = []string{
	"hooks.slack.com/services/", "hooks.slack.com/workflows/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/",
	"api.telegram.org/bot",
}

// hook finds the secret part of such an address; from is behind the "://".
func hook(s string, from int) (start, end int) {
	for _, h := range hookHosts {
		if !strings.HasPrefix(s[from:], h) {
			continue
		}
		start = from + len(h)
		for end = start; end < len(s) && (keyByte(s[end]) || s[end] == ':' || s[end] == '/' && h != "api.telegram.org/bot") && end-start < 512; end++ {
		}
		if end-start >= 20 {
			return start, end
		}
	}
	return 0, 0
}

// packedKey finds the end of a private key in base64, as kubeconfig and secrets of clusters hold it.
func packedKey(s string, i int) int {
	const begin = "LS0tLS1CRUdJTi" // -----BEGIN
	if !strings.HasPrefix(s[i:], begin) {
		return i
	}
	packed := func(c byte) bool {
		return c >= '/' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '+' || c == '='
	}
	end := i
	for end < len(s) && packed(s[end]) && end-i < 64 {
		end++
	}
	if text, err := base64.StdEncoding.DecodeString(s[i : i+(end-i)&^3]); err != nil || !strings.Contains(string(text), "PRIVATE KEY") {
		return i // a certificate
	}
	for end < len(s) && packed(s[end]) && end-i < 64<<10 {
		end++
	}
	return end
}

// signedName reports whether a parameter of an address is the signature that gives access to what it names.
func signedName(s string, start int, name string) bool {
	if start == 0 || s[start-1] != '?' && s[start-1] != '&' {
		return false
	}
	switch strings.ToLower(name) {
	case "sig", "signature", "x-amz-signature", "x-goog-signature", "x-amz-security-token":
		return true
	}
	return false
}

func isNumber(s string) bool { return strings.Trim(s, "0123456789") == "" }
