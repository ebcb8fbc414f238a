package client

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
)

// maxInputrc bounds what is read of the user's readline settings, in bytes.
const maxInputrc = 64 << 10

var editingMode = regexp.MustCompile(`(?m)^[ \t]*set[ \t]+editing-mode[ \t]+(vi|emacs)\b`)

// wantsVi tells that the user's readline settings ask for vi mode. readline itself is not there to read them: the line
// is written in this program. Conditions ($if) are not looked at; the last word counts.
func wantsVi(env []string) bool {
	path := lookup(env, "INPUTRC")
	if path == "" {
		path = filepath.Join(lookup(env, "HOME"), ".inputrc")
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return false // a FIFO would be waited for
	}
	text, err := io.ReadAll(io.LimitReader(f, maxInputrc))
	if err != nil {
		return false
	}
	all := editingMode.FindAllSubmatch(text, -1)
	return len(all) > 0 && string(all[len(all)-1][1]) == "vi"
}
