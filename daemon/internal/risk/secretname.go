package risk

import "strings"

// How names of variables are judged. The client has the same rule for what it sends to the daemon
// (client/internal/lender/secret.go), which a leaf cannot import; wire/testdata/secret-names.txt holds the two together.
var (
	// secretWords, as a part of a name, say that its value is nobody else's business, unless the part after it says that
	// the value is about the secret only.
	secretWords = wordSet(`password passwd passphrase passcode secret secrets secretkey clientsecret credential credentials creds
		privatekey accesskey apikey authtoken accesstoken sessiontoken token pgpassword mysqlpwd sshpass authorization cookie`)
	// secretEnds say it as the last part of several; those of wholeNames also alone.
	secretEnds = wordSet("pass pwd pw auth key pat jwt dsn")
	wholeNames = wordSet("pass auth pat jwt dsn")
	// aboutSecret are parts that follow where a name is of a place, a bound or a kind.
	aboutSecret = wordSet(`file path dir name helper length len policy command cmd prompt field env url uri manager required hint id store
		sock type limit count endpoint expiry ttl budget usage`)
	// keyKinds are parts before KEY, in mid-name, that make it a secret one; at the end of a name every KEY is one but
	// those of openKeys.
	keyKinds = wordSet("api secret private access encryption signing master auth account ssh gpg license service storage deploy session app hmac aes")
	openKeys = wordSet("public primary foreign sort partition hash host lock cache hot")
	// databases are parts before URL or URI: such addresses hold a password.
	databases = wordSet("database db redis mongo mongodb postgres postgresql mysql amqp broker rabbitmq connection")
)

// sureness of a name: whether its value is a secret.
type sureness uint8

const (
	plainName  sureness = iota
	likelyName          // some KEY: in an environment a secret, in a text only if the value looks like one
	secretName
)

// LooksSecret tells from a variable's name that its value is a secret and never travels.
func LooksSecret(name string) bool { return judgeName(name) != plainName }

// judgeName looks for words that mean a secret.
func judgeName(name string) sureness {
	if len(name) > 128 {
		name = name[:128]
	}
	var lower [192]byte
	var parts [16]string
	n := nameParts(name, lower[:0], &parts)
	for n > 1 && isDigits(parts[n-1]) { // MAILGUN_KEY_2
		n--
	}
	likely := plainName
	for i, part := range parts[:n] {
		last, before, next := i == n-1, "", ""
		if i > 0 {
			before = parts[i-1]
		}
		if !last {
			next = parts[i+1]
		}
		switch {
		case part == "key":
			switch {
			case keyKinds[before] && !aboutSecret[next]:
				return secretName
			case last && i > 0 && !openKeys[before]:
				likely = likelyName
			}
		case secretEnds[part]:
			if last && (i > 0 || wholeNames[part]) || part == "pass" && i > 0 && !aboutSecret[next] { // DB_PASS_PROD
				return secretName
			}
		case part == "url" || part == "uri":
			if last && databases[before] {
				return secretName
			}
		case secretWords[part] || writtenSecret(part):
			if !aboutSecret[next] {
				return secretName
			}
		}
	}
	return likely
}

// writtenSecret reports a secret's word at the end of a part: PGPASSWORD, GITHUBTOKEN.
func writtenSecret(part string) bool {
	for _, end := range [...]string{"password", "passwd", "apikey", "token", "secret"} {
		if len(part) > len(end) && strings.HasSuffix(part, end) {
			return true
		}
	}
	return false
}

// nameParts cuts a name into its words, in lower case, at _, - and . and where a capital follows a small letter. buf is
// where they are written; what does not fit into parts is left out.
func nameParts(name string, buf []byte, parts *[16]string) (n int) {
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case c == '-' || c == '.':
			c = '_'
		case c >= 'A' && c <= 'Z':
			if i > 0 && name[i-1] >= 'a' && name[i-1] <= 'z' {
				buf = append(buf, '_')
			}
			c += 'a' - 'A'
		}
		buf = append(buf, c)
	}
	for part := range strings.SplitSeq(string(buf), "_") {
		if part != "" && n < len(parts) {
			parts[n] = part
			n++
		}
	}
	return n
}
