package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sublet/daemon/config"
	"sublet/lease"
	"sublet/wire"
	"sublet/wire/visible"
)

// maxForeignName bounds the name of an agent of another program, in bytes.
const maxForeignName = 32

// ForeignName returns the name of an agent of another program as it is shown and written down: letters, digits, dots and dashes,
// and never that of the user or of an agent of ours.
func ForeignName(cfg config.Config, name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, visible.Cut(name, maxForeignName))
	roles, _ := Roles(cfg, "")
	_, role := roles[strings.TrimRight(strings.ToLower(name), "-0123456789")] // also a sub-agent's
	if role || slices.Contains([]string{"user", "you"}, strings.ToLower(name)) {
		return "mcp-" + name
	}
	return name
}

// CheckForeign returns what of a request of an agent of another program is out of its bounds.
func CheckForeign(r *wire.ToolRequest) error {
	if most := lease.MaxTimeout.Milliseconds(); r.AnswerMS < 0 || r.AnswerMS > most {
		return fmt.Errorf("answer_ms: want 0 to %d", most)
	}
	if r.Cwd == "" {
		return nil
	}
	cwd := visible.Exact(visible.Cut(string(r.Cwd), 200))
	if !filepath.IsAbs(string(r.Cwd)) {
		return fmt.Errorf("cwd: %s is not absolute", cwd)
	}
	if info, err := os.Stat(string(r.Cwd)); err != nil || !info.IsDir() {
		return fmt.Errorf("cwd: %s is not a folder", cwd)
	}
	return nil
}
