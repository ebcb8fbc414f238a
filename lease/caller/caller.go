// Package caller recognises agents of other programs by name, and finds those that a process was started by. What follows from
// that is left to the callers.
package caller

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sublet/lease/procstat"
)

// known are the names that users know, with those of the packages that the programs are installed from.
var known = map[string][]string{
	"claude": {"claude-code"}, "codex": nil, "crush": nil, "gemini": {"gemini-cli"}, "goose": nil, "opencode": {"opencode-ai"}, "qwen": {"qwen-code"},
}

// Name returns the name that users know for what a client calls itself, "" where it is not known.
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

// interpreters run the programs that people know by other names. With each: the letters of the options that are followed by
// program text, which may stand together with others as in `bash -lc`.
var interpreters = map[string]string{"node": "ep", "bun": "ep", "deno": "ep", "python": "c", "sh": "c", "bash": "c", "dash": "c"}

// Program returns the executable of a process, or the script that an interpreter runs; "" where the system does not report it.
// An interpreter that was given program text in place of a script is itself the program.
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

// script returns the script that an interpreter runs with these arguments, or program where it is none or runs none.
func script(program string, args []string) string {
	text, ok := interpreters[strings.TrimRight(filepath.Base(program), "0123456789.")]
	if !ok {
		return program
	}
	for _, arg := range args {
		switch {
		case arg == "":
		case arg[0] != '-':
			return arg
		case strings.HasPrefix(arg, "--eval"), strings.HasPrefix(arg, "--print"):
			return program
		case !strings.HasPrefix(arg, "--") && strings.ContainsAny(arg, text):
			return program
		}
	}
	return program
}

// Above returns the nearest agent of another program that a process was started by, itself included; false where there is none,
// or the system does not report it.
func Above(pid int) (Agent, bool) {
	list, _ := procstat.Ancestors(pid) // as far as they can be read
	for _, p := range list {
		program := Program(p)
		if name := of(program); name != "" {
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

// of returns the agent that a program is, by its own name or that of the package that it lies in.
func of(program string) string {
	parts := strings.Split(program, "/")
	for name, packages := range known {
		if parts[len(parts)-1] == name || slices.ContainsFunc(packages, func(p string) bool { return slices.Contains(parts, p) }) {
			return name
		}
	}
	return ""
}
