// Package secretname judges by the name of a variable whether its value is a secret. Client and daemon share it: the client does
// not send such values, and the daemon masks them.
package secretname

import (
	"bytes"
	"strings"
)

var (
	// secretWords are parts of names of secrets, unless the next part shows that the value only describes the secret.
	secretWords = wordSet(`password passwd passphrase passcode secret secrets secretkey clientsecret credential credentials creds
		privatekey accesskey apikey authtoken accesstoken sessiontoken token pgpassword mysqlpwd sshpass authorization cookie`)
	// secretEnds mean a secret as the last of several parts; those in wholeNames also alone.
	secretEnds = wordSet("pass pwd pw auth key pat jwt dsn")
	wholeNames = wordSet("pass auth pat jwt dsn")
	// aboutSecret are next parts that mean a path, a bound or a kind of the secret rather than the secret.
	aboutSecret = wordSet(`file path dir name helper length len policy command cmd prompt field env url uri manager required hint id store
		sock type limit count endpoint expiry ttl budget usage`)
	// keyKinds are parts before KEY inside a name that make it a secret; at the end of a name every KEY is one except those of
	// openKeys.
	keyKinds = wordSet("api secret private access encryption signing master auth account ssh gpg license service storage deploy session app hmac aes")
	openKeys = wordSet("public primary foreign sort partition hash host lock cache hot")
	// addressed are parts before URL, URI or STRING (AZURE_STORAGE_CONNECTION_STRING) whose values contain a password, or are all that
	// it takes to use what they name.
	addressed = wordSet("database db redis mongo mongodb postgres postgresql mysql amqp broker rabbitmq connection webhook")
	addresses = wordSet("url uri string")
)

// Sureness is how certain a name means a secret.
type Sureness uint8

const (
	Plain  Sureness = iota
	Likely          // some KEY: in an environment a secret, in a text only if the value looks like one
	Secret
)

// IsSecret reports whether a variable's name means a secret, whose value must not be sent.
func IsSecret(name string) bool { return Judge(name) != Plain }

// Judge looks for words that mean a secret; of a name of more than 128 bytes, at both ends. It does not allocate, because masking
// calls it for every assignment in a text.
func Judge(name string) Sureness {
	const most = 128
	if len(name) > most {
		return max(Judge(name[:most]), Judge(name[len(name)-most:]))
	}
	// The name's words in lower case, cut at _, - and . and where a capital follows a small letter.
	var buf [most]byte
	var parts [most / 2][]byte
	n, end, start := 0, 0, 0
	known := false
	for i := 0; i <= len(name); i++ {
		c, low := byte('_'), byte('_')
		if i < len(name) {
			c = name[i]
			low = lowered[c]
		}
		if low == '_' || low != c && i > 0 && name[i-1] >= 'a' && name[i-1] <= 'z' {
			if end > start {
				parts[n] = buf[start:end]
				known = known || mayBeSecretWord(parts[n])
				n++
			}
			start = end
		}
		if low != '_' {
			buf[end] = low
			end++
		}
	}
	if !known {
		return Plain
	}
	for n > 1 && isNumber(parts[n-1]) { // MAILGUN_KEY_2, CI_JOB_JWT_V2
		n--
	}
	likely := Plain
	for i, part := range parts[:n] {
		last := i == n-1
		var before, next []byte
		if i > 0 {
			before = parts[i-1]
		}
		if !last {
			next = parts[i+1]
		}
		switch sure := judgePart(part, before, next, i == 0, last); {
		case sure == Secret:
			return Secret
		case sure == Likely:
			likely = Likely
		}
	}
	return likely
}

// judgePart judges one part of a name with the parts before and after it.
func judgePart(part, before, next []byte, first, last bool) Sureness {
	about := aboutSecret[string(next)]
	switch word := string(part); {
	case word == "key" && keyKinds[string(before)] && !about:
		return Secret
	case word == "key":
		if last && !first && !openKeys[string(before)] {
			return Likely
		}
	case secretEnds[word]:
		if last && (!first || wholeNames[word]) || word == "pass" && !first && !about { // DB_PASS_PROD
			return Secret
		}
	case addresses[word]:
		if last && addressed[string(before)] {
			return Secret
		}
	case (secretWords[word] || hasSecretEnding(part)) && !about:
		return Secret
	}
	return Plain
}

// lowered maps a byte of a name to lower case, and separators to _.
var lowered = func() (t [256]byte) {
	for c := range t {
		t[c] = byte(c)
		switch {
		case c >= 'A' && c <= 'Z':
			t[c] += 'a' - 'A'
		case c == '-', c == '.':
			t[c] = '_'
		}
	}
	return t
}()

// secretLengths maps the first byte of a word to a bit mask of the lengths of the words that Judge knows.
var secretLengths = func() (t [256]uint32) {
	for _, words := range []map[string]bool{secretWords, secretEnds, addresses, wordSet("key")} {
		for w := range words {
			t[w[0]] |= 1 << len(w)
		}
	}
	return t
}()

// mayBeSecretWord quickly excludes most words that do not mean a secret.
func mayBeSecretWord(part []byte) bool {
	if len(part) < 32 && secretLengths[part[0]]>>len(part)&1 != 0 {
		return true
	}
	switch part[len(part)-1] {
	case 'd', 'y', 'n', 't': // see secretEndings
		return hasSecretEnding(part)
	}
	return false
}

// secretEndings mean a secret at the end of a longer word, too: PGPASSWORD, GITHUBTOKEN.
var secretEndings = [...][]byte{[]byte("password"), []byte("passwd"), []byte("apikey"), []byte("token"), []byte("secret")}

func hasSecretEnding(part []byte) bool {
	for _, end := range secretEndings {
		if len(part) > len(end) && bytes.HasSuffix(part, end) {
			return true
		}
	}
	return false
}

func isNumber(b []byte) bool {
	return len(bytes.Trim(bytes.TrimPrefix(b, []byte("v")), "0123456789")) == 0
}

// wordSet returns the words of a text as a set.
func wordSet(s string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(s) {
		set[w] = true
	}
	return set
}
