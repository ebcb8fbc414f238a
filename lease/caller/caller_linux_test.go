package caller

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestName(t *testing.T) {
	for client, want := range map[string]string{
		"codex-mcp-client": "codex", "claude-code": "claude", "Gemini-CLI-mcp": "gemini", "qwen": "qwen", "codexter": "", "": "", "my-agent": "",
	} {
		if got := Name(client); got != want {
			t.Errorf("%q: got %q, want %q", client, got, want)
		}
	}
}

// An agent is found above a process by its executable, or by the script that an interpreter runs for it.
func TestAbove(t *testing.T) {
	for _, path := range []string{"codex", "node_modules/@anthropic-ai/claude-code/cli.js", "harmless"} {
		file := filepath.Join(t.TempDir(), path)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		// A child below it says that it runs, and ends with its input.
		if err := os.WriteFile(file, []byte("#!/bin/sh\n(echo up; cat)\nexit 0\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(file)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, 3)); err != nil {
			t.Fatal(err)
		}
		got, ok := Above(cmd.Process.Pid)
		want := map[string]string{"codex": "codex", "node_modules/@anthropic-ai/claude-code/cli.js": "claude"}[path]
		if got.Name != want || ok && (got.PID != cmd.Process.Pid || got.Program != file) {
			t.Errorf("%s: got %+v, want %q", path, got, want)
		}
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}
