package lender

import (
	"regexp"

	"sublet/wire"
	"sublet/wire/secretname"
)

// userinfo matches a password inside a URL: scheme://user:password@host.
var userinfo = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://[^/?#@:\s]*:[^/?#@\s]+@`)

// Secret reports whether the value of an environment variable must not leave this process: by the variable's name, or
// because the value is a URL with a password.
func Secret(name, value string) bool {
	return secretname.IsSecret(name) || userinfo.MatchString(value)
}

// Public returns vars for sending: a secret variable has an empty value.
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
