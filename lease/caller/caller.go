// Package caller recognises AI agents of other programs (Claude Code, Codex, …) by name, and finds the one among the ancestors
// of a process. What an agent may do is left to the callers.
package caller

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sublet/lease/procstat"
)

// known maps an agent's name to the names of the packages that install it under another name.
var known = map[string][]string{
	"claude": {"claude-code"}, "codex": nil, "crush": nil, "gemini": {"gemini-cli"}, "goose": nil, "opencode": {"opencode-ai"}, "qwen": {"qwen-code"},
}

// Name returns the known agent for the name that an MCP client reports of itself, such as "claude-code" for claude; "" if
// there is none.
func Name(client string) string {
	client = strings.ToLower(client)
	for name := range known {
		if client == name || strings.HasPrefix(client, name+"-") {
			return name
		}
	}
	return ""
}

// An Agent is a process of an agent of another program.
type Agent struct {
	Name    string
	Program string // its executable, or the script that an interpreter runs; "" = not known
	PID     int
}

// An interpreter has options before its script. A letter may be one of several, as in `bash -lc`.
type interpreter struct {
	text   string // letters of options whose argument is program text, or a module
	valued string // letters of options with another argument
	long   []string
}

var (
	javascript = interpreter{"ep", "rC", []string{"--require", "--import", "--loader", "--experimental-loader", "--conditions"}}
	shell      = interpreter{"c", "oO", []string{"--rcfile", "--init-file"}}

	interpreters = map[string]interpreter{
		"node": javascript, "bun": javascript, "deno": javascript, "python": {"cm", "WX", nil}, "sh": shell, "bash": shell, "dash": shell,
	}
)

// Program returns the path of a process's executable or, of an interpreter, of the script that it runs; "" if /proc does not
// show it. For an interpreter that was given program text instead of a script it returns the interpreter.
func Program(pid int) string {
	proc := "/proc/" + strconv.Itoa(pid) + "/"
	program, err := os.Readlink(proc + "exe")
	if err != nil {
		return ""
	}
	line, err := os.ReadFile(proc + "cmdline")
	if err != nil {
		return program
	}
	return script(program, strings.Split(string(line), "\x00")[1:])
}

// script returns the script that program runs with these arguments if it is an interpreter, else program.
func script(program string, args []string) string {
	in, ok := interpreters[strings.TrimRight(filepath.Base(program), "0123456789.")]
	if !ok {
		return program
	}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		letter := -1 // the first that takes an argument
		if !strings.HasPrefix(arg, "--") {
			letter = strings.IndexAny(arg, in.text+in.valued)
		}
		switch {
		case arg == "":
		case arg[0] != '-':
			return arg
		case strings.HasPrefix(arg, "--eval"), strings.HasPrefix(arg, "--print"), letter > 0 && strings.IndexByte(in.text, arg[letter]) >= 0:
			return program
		case slices.Contains(in.long, arg), letter == len(arg)-1:
			i++ // its argument
		}
	}
	return program
}

// Above returns the nearest agent of another program among a process and its ancestors; false if there is none, or /proc does
// not show it.
func Above(pid int) (Agent, bool) {
	list, _ := procstat.Ancestors(pid) // as far as they can be read
	for _, p := range list {
		program := Program(p)
		if name := agentName(program); name != "" {
			return Agent{Name: name, Program: program, PID: p}, true
		}
		if st, err := procstat.Read(p); err == nil {
			if _, ok := known[st.Name]; ok {
				return Agent{Name: st.Name, Program: program, PID: p}, true
			}
		}
	}
	return Agent{}, false
}

// agentName returns the known agent for the path of a program: by its base name, or by a package's name in the path. It
// returns "" if there is none.
func agentName(program string) string {
	parts := strings.Split(program, "/")
	for name, packages := range known {
		if parts[len(parts)-1] == name || slices.ContainsFunc(packages, func(p string) bool { return slices.Contains(parts, p) }) {
			return name
		}
	}
	return ""
}
