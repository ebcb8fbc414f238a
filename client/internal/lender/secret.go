package lender

import (
	"regexp"

	"sublet/wire"
	"sublet/wire/secretname"
)

// userinfo is a password inside a URL: scheme://user:password@host.
var userinfo = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://[^/?#@:\s]*:[^/?#@\s]+@`)

// Secret reports whether the value of an environment variable must stay in this process: by the variable's name, or
// because the value is a URL with a password in it.
func Secret(name, value string) bool {
	return secretname.IsSecret(name) || userinfo.MatchString(value)
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
