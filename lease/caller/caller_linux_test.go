package caller

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sublet/lease/procstat/procstattest"
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
	here, _ := Above(os.Getpid()) // an agent may have started the tests
	for path, name := range map[string]string{"codex": "codex", "node_modules/@anthropic-ai/claude-code/cli.js": "claude", "harmless": ""} {
		file := filepath.Join(t.TempDir(), path)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		// A child below it says that it runs, and ends with its input.
		if err := os.WriteFile(file, []byte("#!/bin/sh\n(echo up; cat)\nexit 0\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		p := procstattest.Start(t, file)
		if _, err := io.ReadFull(p.Out, make([]byte, 3)); err != nil {
			t.Fatal(err)
		}
		want := here // where nothing is found below this process, its own agent is the nearest
		if name != "" {
			want = Agent{Name: name, Program: file, PID: p.PID}
		}
		if got, ok := Above(p.PID); got != want || ok != (want.Name != "") {
			t.Errorf("%s: got %+v, want %+v", path, got, want)
		}
	}
}

// The text that an interpreter was given is not its script: it names no agent, and is not shown as a program.
func TestProgramOfText(t *testing.T) {
	here, _ := Above(os.Getpid())
	for _, option := range []string{"-c", "-ec"} {
		p := procstattest.Start(t, "/bin/sh", option, "(echo up; cat); exit 0 # /x/claude-code/y")
		if _, err := io.ReadFull(p.Out, make([]byte, 3)); err != nil {
			t.Fatal(err)
		}
		want, err := os.Readlink("/proc/" + strconv.Itoa(p.PID) + "/exe")
		if err != nil {
			t.Fatal(err)
		}
		if got := Program(p.PID); got != want {
			t.Errorf("%s: got %q, want %q", option, got, want)
		}
		if got, _ := Above(p.PID); got != here {
			t.Errorf("%s: got %+v, want %+v", option, got, here)
		}
	}
}

func TestScript(t *testing.T) {
	for _, c := range []struct{ interpreter, args, want string }{
		{"/usr/bin/python3.11", "-u /x/agent.py -c", "/x/agent.py"},
		{"/usr/bin/python3.11", "-Ic /x/claude-code/y", "/usr/bin/python3.11"},
		{"/usr/bin/python3", "/x/agent.py", "/x/agent.py"},
		{"/usr/bin/node", "--no-warnings /x/cli.js", "/x/cli.js"},
		{"/usr/bin/node", "-e /x/claude-code/y", "/usr/bin/node"},
		{"/usr/bin/node", "--eval /x/claude-code/y", "/usr/bin/node"},
		{"/usr/bin/node", "-pe /x/claude-code/y", "/usr/bin/node"},
		{"/usr/bin/bash", "-lc /x/claude-code/y", "/usr/bin/bash"},
		// The argument of an option was taken for the script.
		{"/usr/bin/python3", "-W ignore /x/agent.py", "/x/agent.py"},
		{"/usr/bin/python3", "-Ximporttime /x/agent.py", "/x/agent.py"},
		{"/usr/bin/python3", "-m claude-code", "/usr/bin/python3"},
		{"/usr/bin/node", "-r /x/claude-code/y /x/cli.js", "/x/cli.js"},
		{"/usr/bin/node", "--import /x/claude-code/y /x/cli.js", "/x/cli.js"},
		{"/usr/bin/bash", "-eo pipefail /x/run.sh", "/x/run.sh"},
		{"/usr/bin/bash", "--rcfile /x/claude-code/y /x/run.sh", "/x/run.sh"},
		{"/bin/sh", "-e /x/claude", "/x/claude"},
		{"/bin/sh", "", "/bin/sh"},
		{"/usr/bin/cat", "/x/claude", "/usr/bin/cat"},
	} {
		if got := script(c.interpreter, strings.Fields(c.args)); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.interpreter, c.args, got, c.want)
		}
	}
}
