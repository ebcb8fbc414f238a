package lender

import (
	"regexp"
	"slices"
	"strings"

	"sublet/wire"
)

// How names are judged. Package risk of the daemon has the same rule for what it hands to private shells; the two are
// held together by wire/testdata/secret-names.txt.
var (
	// secretWords, as a part of a name, say that its value is nobody else's business, unless the part after it says that
	// the value is about the secret only.
	secretWords = set("password passwd passphrase passcode secret secrets secretkey clientsecret credential credentials creds " +
		"privatekey accesskey apikey authtoken accesstoken sessiontoken token pgpassword mysqlpwd sshpass authorization cookie")
	// secretEnds say it as the last part of several, or alone where the name is more than that.
	secretEnds = set("pass pwd pw auth key pat jwt dsn")
	// wholeNames are those of secretEnds that say it alone too. PWD is a folder.
	wholeNames = set("pass auth pat jwt dsn")
	// aboutIt are parts that follow where a name is of a place, a bound or a kind.
	aboutIt = set("file path dir name helper length len policy command cmd prompt field env url uri manager required hint id store " +
		"sock type limit count endpoint expiry ttl budget usage")
	// keyKinds are parts before KEY, in mid-name, that make it a secret one; at the end of a name every KEY is one but
	// those of openKeys.
	keyKinds = set("api secret private access encryption signing master auth account ssh gpg license service storage deploy session app hmac aes")
	openKeys = set("public primary foreign sort partition hash host lock cache hot")
	// databases are parts before URL or URI: such addresses hold a password.
	databases = set("database db redis mongo mongodb postgres postgresql mysql amqp broker rabbitmq connection")
)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		m[word] = true
	}
	return m
}

// userinfo is a password inside a URL: scheme://user:password@host.
var userinfo = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://[^/?#@:\s]*:[^/?#@\s]+@`)

// Secret reports whether the value of an environment variable must stay in this process: by the variable's name, or
// because the value is a URL with a password in it.
func Secret(name, value string) bool {
	return secretName(name) || userinfo.MatchString(value)
}

func secretName(name string) bool {
	parts := nameParts(name)
	for len(parts) > 1 && strings.Trim(parts[len(parts)-1], "0123456789") == "" { // MAILGUN_KEY_2
		parts = parts[:len(parts)-1]
	}
	for i, part := range parts {
		last, before, next := i == len(parts)-1, "", ""
		if i > 0 {
			before = parts[i-1]
		}
		if !last {
			next = parts[i+1]
		}
		switch {
		case part == "key":
			if last && i > 0 && !openKeys[before] || !last && keyKinds[before] && !aboutIt[next] {
				return true
			}
		case secretEnds[part]:
			if last && (i > 0 || wholeNames[part]) || part == "pass" && i > 0 && !aboutIt[next] { // DB_PASS_PROD
				return true
			}
		case part == "url" || part == "uri":
			if last && databases[before] {
				return true
			}
		case secretWords[part] || written(part):
			if !aboutIt[next] {
				return true
			}
		}
	}
	return false
}

// written reports a secret's word at the end of a part: PGPASSWORD, GITHUBTOKEN.
func written(part string) bool {
	return slices.ContainsFunc([]string{"password", "passwd", "apikey", "token", "secret"}, func(end string) bool {
		return len(part) > len(end) && strings.HasSuffix(part, end)
	})
}

// nameParts are a name's words in lower case: cut at _, - and ., and where a capital follows a small letter.
func nameParts(name string) []string {
	var cut strings.Builder
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case c == '-' || c == '.':
			c = '_'
		case c >= 'A' && c <= 'Z':
			if i > 0 && name[i-1] >= 'a' && name[i-1] <= 'z' {
				cut.WriteByte('_')
			}
			c += 'a' - 'A'
		}
		cut.WriteByte(c)
	}
	return strings.FieldsFunc(cut.String(), func(r rune) bool { return r == '_' })
}

// Public is vars as it may travel: a secret's name is listed, its value is empty.
func Public(vars map[string]string) map[string]wire.OSString {
	public := make(map[string]wire.OSString, len(vars))
	for name, value := range vars {
		if Secret(name, value) {
			value = ""
		}
		public[name] = wire.OSString(value)
	}
	return public
}
