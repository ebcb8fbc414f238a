package offline

import (
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"sublet/daemon/internal/provider"
	"sublet/wire/visible"
)

//go:embed errors.txt
var errorsText string

// explanations are the lines of errors.txt.
var explanations = sync.OnceValue(func() (list []condition) {
	for line := range strings.Lines(errorsText) {
		if pattern, says, ok := strings.Cut(strings.TrimSpace(line), " -> "); ok && line[0] != '#' {
			list = append(list, condition{regexp.MustCompile("(?i)" + pattern), says})
		}
	}
	return list
})

// why explains what failed last: a command of the user's, or one that the agent ran for the prompt before.
func why(j *job) string {
	for _, p := range j.beside { // what `make 2>&1 | sublet ask 'why does this fail?'` was given
		if name, text, ok := strings.Cut(p.Text, "\n"); ok && strings.HasPrefix(name, "Attached file ") {
			if e := explain("", 1, text); e != "" {
				return e + "\n\n" + block("", text, 12, false)
			}
			return "It ends with:\n\n" + block("", text, 12, false) + "\n\nWhat it means takes a real model."
		}
	}
	c, later, ok := failure(j)
	if !ok {
		n := len(j.facts.RecentCommands)
		if n == 0 {
			return "I have not seen any command of yours yet in this window. Run it here (Tab changes to command mode), then ask again."
		}
		return fmt.Sprintf("None of your last %s failed. The newest was %s, with exit code 0.", count(n, "command"), code(firstLine(j.facts.RecentCommands[n-1].Command)))
	}
	which := "Your last command"
	switch {
	case later < 0:
		which = "The last command that I ran"
	case later > 0:
		which = fmt.Sprintf("The last command that failed, %s ago", count(later, "command"))
	}
	s := fmt.Sprintf("%s, %s, ended with exit code %d", which, code(firstLine(c.Command)), *c.ExitCode)
	if m := exitMeaning(*c.ExitCode); m != "" {
		s += ": " + strings.ToLower(m[:1]) + m[1:]
	} else {
		s += "."
	}
	if e := explain(c.Command, *c.ExitCode, c.OutputTail); e != "" {
		s += "\n\n" + e
	}
	if strings.TrimSpace(c.OutputTail) == "" {
		return s + "\n\nIt printed nothing that I was given."
	}
	return s + "\n\n" + block("", c.OutputTail, 12, false)
}

// failure picks the command that is asked about. later is how many commands of the user's came after it, -1 for one of the
// agent's. The user's newest are in what came with the prompt, so those are newer than the agent's, older ones are not.
func failure(j *job) (c provider.RecentCommand, later int, ok bool) {
	recent := j.facts.RecentCommands
	for i := len(recent) - 1; i >= 0 && !ok; i-- {
		if c = recent[i]; c.ExitCode != nil && *c.ExitCode != 0 {
			later, ok = len(recent)-1-i, true
		}
	}
	for _, p := range j.beside {
		if ok && strings.Contains(p.Text, firstLine(c.Command)) {
			return c, later, true
		}
	}
	for i := len(j.before) - 1; i >= 0; i-- {
		if r := j.before[i]; r.tool == "bash" && r.exit > 0 && !r.refused() {
			return provider.RecentCommand{Command: r.command, ExitCode: &r.exit, OutputTail: r.text}, -1, true
		}
	}
	return c, later, ok
}

// exitMeaning is what bash and the kernel mean by a code; "" for a program's own.
func exitMeaning(exit int) string {
	meanings := map[int]string{
		2: "Mostly wrong usage: an option or argument the program does not take.", 124: "`timeout` ended it because its time ran out.",
		126: "The file was found and could not be executed: no execute permission, or not a program.", 127: "The command was not found.",
		129: "It was ended by SIGHUP (its terminal went away).", 130: "It was ended by SIGINT (Ctrl-C).", 134: "It was ended by SIGABRT (it gave up: an assertion or abort).",
		137: "It was ended by SIGKILL (killed by force; often the kernel, out of memory).", 139: "It was ended by SIGSEGV (it touched memory that is not its own: a bug in it).",
		141: "It was ended by SIGPIPE (the program it wrote to had ended).", 143: "It was ended by SIGTERM (asked to end).",
	}
	if m := meanings[exit]; m != "" || exit <= 128 || exit > 128+31 {
		return m
	}
	return fmt.Sprintf("It was ended by signal %d.", exit-128)
}

// explain returns what an error in output means, "" where no rule fits.
func explain(command string, exit int, output string) string {
	for _, e := range explanations() {
		m := e.pattern.FindStringSubmatch(output)
		if m == nil {
			continue
		}
		caught := ""
		if len(m) > 1 {
			caught = strings.Trim(strings.TrimSpace(m[1]), `'"‘’`+"`")
		}
		if caught == "" {
			return strings.NewReplacer(": $1.", ".", " $1", "").Replace(e.says)
		}
		return strings.ReplaceAll(e.says, "$1", code(visible.Clip(caught, 120)))
	}
	program, _, _ := strings.Cut(strings.TrimSpace(command), " ")
	switch program {
	case "grep", "egrep", "rg", "ag", "diff", "cmp", "test", "[", "pgrep", "which", "type":
		if exit == 1 {
			return "For this program 1 only means “nothing found” or “different”, not an error."
		}
	}
	return ""
}

// history lists the user's newest commands.
func history(j *job) string {
	if len(j.facts.RecentCommands) == 0 {
		return "I have not seen any command of yours yet in this window."
	}
	var rows [][]string
	for _, c := range j.facts.RecentCommands {
		exit := "–"
		if c.ExitCode != nil {
			exit = strconv.Itoa(*c.ExitCode)
		}
		rows = append(rows, []string{code(visible.Clip(firstLine(c.Command), 80)), exit})
	}
	return "Your last " + count(len(rows), "command") + ":\n\n" + markdownTable([]string{"command", "exit code"}, rows)
}
