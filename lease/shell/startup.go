package shell

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// startup are the parts of what a lent shell reads at its start, in order. The last is run when all are there.
var startup = []string{"hook", "arm", "borrow", "state", "complete", "start"}

//go:embed rc/*.bash
var startupText embed.FS

// writeRC writes the start-up file for a terminal and returns its path.
func (s *Shell) writeRC(tty, restore string) (string, error) {
	rc := s.o.RC
	if rc == "" {
		if home := getEnv(s.env, "HOME"); home != "" {
			rc = filepath.Join(home, ".bashrc")
		}
	}
	if rc == NoRC {
		rc = ""
	}
	private := "0"
	if s.o.Private {
		private = "1"
	}
	var b strings.Builder
	for _, kv := range [][2]string{
		{"dir", s.folder},
		{"tty", tty},
		{"rc", rc},
		{"private", private},
		{"restore", restore},
		{"inherit", s.inherit},
		{"old", map[bool]string{true: "1", false: "0"}[s.oldBash]},
	} {
		fmt.Fprintf(&b, "__sublet_%s=%s\n", kv[0], quote(kv[1]))
	}
	for _, part := range startup {
		text, err := startupText.ReadFile("rc/" + part + ".bash")
		if err != nil {
			return "", fmt.Errorf("start-up file: %w", err)
		}
		b.Write(text)
	}
	path := filepath.Join(s.folder, "rc")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		return "", fmt.Errorf("write start-up file: %w", err)
	}
	return path, nil
}
