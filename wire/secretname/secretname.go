// Package secretname judges by the name of a variable whether its value is a secret. Client and daemon share it: the client does
// not send such values, and the daemon masks them.
package secretname

import (
	"slices"
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

// Sureness is how certain it is that a name means a secret.
type Sureness uint8

const (
	Plain  Sureness = iota
	Likely          // some KEY: in an environment a secret, in a text only if the value looks like one
	Secret
)

// IsSecret reports whether a variable's name means a secret, whose value must not be sent.
func IsSecret(name string) bool { return Judge(name) != Plain }

// Judge returns how certain it is, by its words, that a variable of that name has a secret as its value.
func Judge(name string) (sure Sureness) {
	parts := words(name)
	for len(parts) > 1 && isNumber(parts[len(parts)-1]) { // MAILGUN_KEY_2, CI_JOB_JWT_V2
		parts = parts[:len(parts)-1]
	}
	before := ""
	for i, part := range parts {
		next := ""
		if i+1 < len(parts) {
			next = parts[i+1]
		}
		sure = max(sure, judgePart(before, part, next))
		before = part
	}
	return sure
}

// words returns the words of a name in lower case, cut at _, - and . and where a capital follows a small letter.
func words(name string) []string {
	var cut strings.Builder
	for i := range len(name) {
		if i > 0 && 'A' <= name[i] && name[i] <= 'Z' && 'a' <= name[i-1] && name[i-1] <= 'z' {
			cut.WriteByte('_')
		}
		cut.WriteByte(name[i])
	}
	return strings.FieldsFunc(strings.ToLower(cut.String()), func(r rune) bool { return r == '_' || r == '-' || r == '.' })
}

// judgePart judges one part of a name with the parts before and after it, "" where there is none.
func judgePart(before, word, next string) Sureness {
	first, last, about := before == "", next == "", aboutSecret[next]
	switch {
	case word == "key" && keyKinds[before] && !about:
		return Secret
	case word == "key":
		if last && !first && !openKeys[before] {
			return Likely
		}
	case secretEnds[word]:
		if last && (!first || wholeNames[word]) || word == "pass" && !first && !about { // DB_PASS_PROD
			return Secret
		}
	case addresses[word]:
		if last && addressed[before] {
			return Secret
		}
	case (secretWords[word] || hasSecretEnding(word)) && !about:
		return Secret
	}
	return Plain
}

// secretEndings mean a secret at the end of a longer word, too: PGPASSWORD, GITHUBTOKEN.
var secretEndings = []string{"password", "passwd", "apikey", "token", "secret"}

func hasSecretEnding(word string) bool {
	return slices.ContainsFunc(secretEndings, func(end string) bool { return strings.HasSuffix(word, end) })
}

func isNumber(s string) bool { return strings.Trim(strings.TrimPrefix(s, "v"), "0123456789") == "" }

// wordSet returns the words of a text as a set.
func wordSet(s string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(s) {
		set[w] = true
	}
	return set
}
