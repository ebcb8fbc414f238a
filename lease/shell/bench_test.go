package shell

import (
	"os"
	"os/exec"
	"testing"
)

// BenchmarkTrue runs a borrowed `true` under one Hold; BenchmarkBashC starts a shell for it.
func BenchmarkTrue(b *testing.B) {
	s, err := Start(Options{
		NoStartup: true, Dir: b.TempDir(), Folder: b.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=/", "TERM=xterm", "SHELL=/bin/bash"},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if err := s.Hold(b.Context()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Run(b.Context(), Command{Text: "true"}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBashC(b *testing.B) {
	for b.Loop() {
		if err := exec.Command("bash", "-c", "true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}
