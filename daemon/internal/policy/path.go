package policy

import (
	"path"
	"strings"
)

// under reports whether a cleaned path is dir or below it.
func under(p, dir string) bool {
	return dir == "/" || dir != "" && (p == dir || strings.HasPrefix(p, dir+"/"))
}

// absolute returns p as seen from dir.
func absolute(dir, p string) string {
	if path.IsAbs(p) {
		return path.Clean(p)
	}
	return path.Join(dir, p)
}

// shellQuote returns s as one word of the shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
