package mask

import (
	_ "embed"
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// form is a secret that is known by how it looks, or by what stands around it.
type form struct {
	kind  string
	words []string // a text without any of them has no secret of this form
	expr  func() *regexp.Regexp
	is    func(secret, match string) bool // whether a match is one; nil: it is
}

// newForm returns a form whose expression has the secret as the one group that takes part in a match.
func newForm(kind, words, expr string, is func(secret, match string) bool) form {
	return form{kind, strings.Fields(words), sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) }), is}
}

func (f *form) mask(s string) string {
	if !slices.ContainsFunc(f.words, func(w string) bool { return strings.Contains(s, w) }) {
		return s
	}
	m := masked{in: s}
	for _, at := range f.expr().FindAllStringSubmatchIndex(s, -1) {
		match, end := s[at[0]:at[1]], slices.Max(at[2:])
		start := at[slices.Index(at[2:], end)+1]
		if secret := s[start:end]; !secretReference(secret) && (f.is == nil || f.is(secret, match)) {
			m.replace(start, end, f.kind)
		}
	}
	return m.text()
}

//go:embed tokens.txt
var tokenText string

// tokens are the forms of keys that are known by how they begin.
var tokens = sync.OnceValue(func() (list []form) {
	for line := range strings.Lines(tokenText) {
		f := strings.Fields(line)
		if f[0] == "#" {
			continue
		}
		kind, random := strings.CutSuffix(f[0], "!")
		var begin []string
		for _, prefix := range f[2:] {
			begin = append(begin, regexp.QuoteMeta(prefix))
		}
		of := newForm(kind, strings.Join(f[2:], " "), `(?:^|[^A-Za-z0-9])((?:`+strings.Join(begin, "|")+`)`+f[1]+`)`, nil)
		if random {
			of.is = func(key, _ string) bool { return entropy(key) >= 3.2 }
		}
		list = append(list, of)
	}
	return list
})

const (
	pemBegin    = "-----BEGIN "
	packedBegin = "LS0tLS1CRUdJTi" // the same in base64
)

// forms are all of them, in the order in which they are masked.
var forms = sync.OnceValue(func() []form {
	const pem = `-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----`
	return slices.Concat([]form{
		newForm("private-key", pemBegin, `(`+pem+`(?:[^-]|-{1,4}[^-])*-----END [A-Z0-9 ]*-----)`, nil),
		newForm("private-key", pemBegin, `(`+pem+`[\w+/=\s\\:,]*)`, nil), // cut off
		newForm("private-key", packedBegin, `\b(`+packedBegin+`[\w+/=]*)`, func(key, _ string) bool { // and no certificate
			text, err := base64.StdEncoding.DecodeString(key[:min(len(key), 64)&^3])
			return err == nil && strings.Contains(string(text), "PRIVATE KEY")
		}),
	}, tokens(), []form{
		newForm("password", "://", "://[^\\s/@:\"'<>`]*:([^\\s/@\"'<>`]+)@", nil),
		newForm("password", "://", "://([^\\s/@:\"'<>`]{20,})@", func(token, _ string) bool { return entropy(token) > 3.2 }),
		// Addresses whose path is all that it takes to use them.
		newForm("webhook", "hooks api.telegram.org", `://(?:(?:hooks\.slack\.com/(?:services|workflows)|discord(?:app)?\.com/api/webhooks)/([\w:/-]{20,})|api\.telegram\.org/bot([\w:-]{20,}))`, nil),
		// .netrc: machine HOST login NAME password VALUE
		newForm("password", "password passwd", `(?:machine\s+\S+\.\S+\s+(?:\S+\s+\S+\s+){0,3})?(?:\b(?:machine|login|account)\s+\S+|\bdefault)\s+passw(?:or)?d[ \t]+["']?([^\s"']{3,})`, func(secret, match string) bool {
			return strings.HasPrefix(match, "machine ") && strings.Contains(match, ".") || !wordOnly(secret) // and not prose
		}),
		// .pgpass: host:port:database:user:password
		newForm("password", ":*: :54 :64 :65", `(?m)^[^\s:/\\"']+:(?:\*|\d{4,5}):[^\s:]*[^\s:\d][^\s:]*:[^\s:]+:(\S{4,})\r?$`, nil),
		// Passwords that a program is given by an option without a telling name.
		newForm("password", "sshpass login", "(?:sshpass| login )[^\n]*?\\s-p\\s+[\"']?([^-\\s\"'`;|&)<>][^\\s\"'`;|&)<>]{3,})", nil),
		newForm("password", "mysql mariadb", "(?:mysql|mariadb)[^\n]*?\\s-p([^-\\s\"'`;|&)<>=][^\\s\"'`;|&)<>]{3,})", nil),
		newForm("password", "curl", "curl[^\n]*?\\s(?:-u|-U|--user|--proxy-user)[ =]*[\"']?[^\\s\"':]+:([^-\\s\"'`;|&)<>][^\\s\"'`;|&)<>]{3,})", nil),
	})
})
