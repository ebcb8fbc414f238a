package offline

import (
	"fmt"
	"strings"

	"sublet/daemon/internal/provider"
)

var whyIntents = []intent{
	{
		name:    "why failed",
		example: "why did the last command fail",
		patterns: []string{
			`^why (?:did|does|do|has|is|was) .*\b(?:fail|failed|failing|break|broken|error|crash|crashed|not work|wrong)\b`,
			`^why (?:doesn't|didn't|won't|isn't|wasn't) .*\b(?:work|working|run|start|build|compile)\b`, `^why(?: not)?$`,
			`^what happened(?: there| just now)?$`, `^what (?:went wrong|failed|broke|is wrong|'s wrong|was that)\b`, `^what's wrong\b`, `^(?:explain|what does|what is|what's|what was|show)(?: me)? (?:this|that|the) (?:last )?(?:error|failure|problem)\b`,
			`^what (?:does|did) (?:this|that|the) (?:last )?error mean`, `^(?:explain|diagnose) (?:the |my )?last (?:command|error|failure)`, `\b(?:it|that|last command) (?:failed|broke|crashed|didn't work|doesn't work)$`,
			`^what (?:does|do|is) exit (?:code|status) (?P<code>\d+)`, `^exit (?:code|status) (?P<code2>\d+)`,
		},
		plan:   whyPlan,
		answer: why,
		no:     "I did not look further",
	},
	{
		name:     "history",
		example:  "what did I run",
		patterns: []string{`^what (?:did|have) i (?:just )?(?:run|typed?|done?|do)(?: so far| last| recently| just now| lately| before)?$`, `^(?:show )?(?:my )?(?:recent|last|latest) commands$`, `^{show} (?:recent|last|latest|previous) commands$`, `^(?:shell |command |bash )?history$`},
		answer:   recentCommands,
	},
}

// failure picks the command that is asked about: the newest that failed.
func failure(f provider.Facts) (cmd provider.RecentCommand, later int, ok bool) {
	for i := len(f.RecentCommands) - 1; i >= 0; i-- {
		c := f.RecentCommands[i]
		if c.ExitCode != nil && *c.ExitCode != 0 {
			return c, len(f.RecentCommands) - 1 - i, true
		}
	}
	return provider.RecentCommand{}, 0, false
}

// whyPlan looks at one thing where the error names it: a file that may not be used, a port that is taken.
func whyPlan(j *job) []call {
	c, _, ok := failure(j.facts)
	if !ok || j.args["code"] != "" || j.args["code2"] != "" {
		return nil
	}
	if m := portInUse.FindStringSubmatch(c.OutputTail); m != nil {
		port := m[1]
		if port == "" {
			port = portIn.FindString(c.Command + " " + c.OutputTail)
		}
		if port != "" {
			k := *j
			k.args = map[string]string{"n": strings.TrimLeft(port, ":")}
			return portPlan(&k)
		}
	}
	if m := deniedPath.FindStringSubmatch(c.OutputTail); m != nil && len(j.results) == 0 {
		return []call{*bash("look at the file's permissions", "command ls -ld --", file(m[1]))}
	}
	return nil
}

var (
	portInUse  = rx(`(?i)(?:[:\s](\d{2,5})\D{0,20})?(?:address already in use|EADDRINUSE|port (?:\d+ )?is already (?:in use|allocated))`)
	portIn     = rx(`:\d{2,5}\b`)
	deniedPath = rx(`(?m)^(?:\S*?sh: )?(?:line \d+: )?(?:\w+: )?(?:cannot \w+ (?:\w+ )?)?'?([^\s:'"]*[./][^\s:'"]*)'?: Permission denied`)
)

func why(j *job) string {
	if n := j.args["code"] + j.args["code2"]; n != "" {
		var exit int
		_, _ = fmt.Sscan(n, &exit) // digits by the pattern
		if e := exitMeaning(exit); e != "" {
			return fmt.Sprintf("Exit code %d: %s", exit, e)
		}
		return fmt.Sprintf("Exit code %d has no fixed meaning; each program chooses its own. 0 is success, anything else is not.", exit)
	}
	c, later, ok := failure(j.facts)
	if !ok {
		if len(j.facts.RecentCommands) == 0 {
			return "I have not seen any command of yours yet in this window. Run it here (Tab changes to command mode), then ask again."
		}
		last := j.facts.RecentCommands[len(j.facts.RecentCommands)-1]
		return fmt.Sprintf("None of your last %s failed. The newest was %s, with exit code 0.", count(len(j.facts.RecentCommands), "command"), code(firstLine(last.Command)))
	}
	var b strings.Builder
	which := "Your last command"
	if later > 0 {
		which = fmt.Sprintf("The last command that failed, %s ago", count(later, "command"))
	}
	fmt.Fprintf(&b, "%s, %s, ended with exit code %d", which, code(firstLine(c.Command)), *c.ExitCode)
	if m := exitMeaning(*c.ExitCode); m != "" {
		b.WriteString(": " + strings.ToLower(m[:1]) + m[1:])
	} else {
		b.WriteString(".")
	}
	if e := explain(c.Command, *c.ExitCode, c.OutputTail); e != "" {
		b.WriteString("\n\n" + e)
	}
	if r := j.last(); r.ok() && strings.TrimSpace(r.text) != "" {
		if strings.Contains(r.command, "ls -ld") {
			b.WriteString("\n\nThe file as it is: " + code(firstLine(r.text)))
		} else {
			b.WriteString("\n\n" + portAnswer(j))
		}
	}
	if tail := strings.TrimSpace(c.OutputTail); tail != "" {
		b.WriteString("\n\n" + fence("", tail, 12, false))
	} else {
		b.WriteString("\n\nIt printed nothing that I was given.")
	}
	return b.String()
}

// exitMeaning is what bash and the kernel mean by a code; "" for a program's own.
func exitMeaning(exit int) string {
	switch {
	case exit == 0:
		return "Success."
	case exit == 2:
		return "Mostly wrong usage: an option or argument the program does not take."
	case exit == 124:
		return "`timeout` ended it because its time was over."
	case exit == 125:
		return "The wrapper itself (timeout, docker run, git bisect) failed."
	case exit == 126:
		return "The file was found and could not be executed: no execute permission, or not a program."
	case exit == 127:
		return "The command was not found."
	case exit > 128 && exit < 128+32:
		names := map[int]string{1: "SIGHUP (its terminal went away)", 2: "SIGINT (Ctrl-C)", 3: "SIGQUIT (Ctrl-\\)", 6: "SIGABRT (it gave up: an assertion or abort)", 9: "SIGKILL (killed by force; often the kernel, out of memory)", 11: "SIGSEGV (it touched memory that is not its own: a bug in it)", 13: "SIGPIPE (the program it wrote to had ended)", 15: "SIGTERM (asked to end)"}
		if n, ok := names[exit-128]; ok {
			return "It was ended by " + n + "."
		}
		return fmt.Sprintf("It was ended by signal %d.", exit-128)
	}
	return ""
}

// explanations are what common errors mean, most telling first. $1 is what the pattern caught, as inline code.
var explanations = []struct {
	pattern *pattern
	says    string
}{
	{rx(`(?i)\b(?:bash|sh|zsh): (?:line \d+: )?(\S+): command not found`), "There is no program $1 on your PATH. Is it misspelt, not installed, or in this folder (then `./NAME`)? Ask “where is NAME”."},
	{rx(`(?i)Command '([^']+)' not found`), "There is no program $1 on your PATH; the system suggests a package above."},
	{rx(`(?i)CONFLICT \(.*?\): (?:Merge conflict in )?(\S+)`), "Git could not merge $1 by itself. Open it, decide between the parts at `<<<<<<<` and `>>>>>>>`, then `git add` it and go on; `git merge --abort` gives up."},
	{rx(`(?i)(?:unmerged files|you have unmerged paths|needs merge|merge is not possible)`), "A merge is half done. Ask “are there conflicts”; mend and `git add` them, or `git merge --abort`."},
	{rx(`(?i)(?:address already in use|EADDRINUSE|port is already allocated)`), "Another program already listens on that port. End it, or use another port."},
	{rx(`(?i)not a git repository`), "You are not inside a git repository. Change to one, or make one here with `git init`."},
	{rx(`(?i)(?:failed to push some refs|\[rejected\]|non-fast-forward|fetch first)`), "The remote has commits you do not have. `git pull --rebase`, look, then push again."},
	{rx(`(?i)has no upstream branch`), "This branch is not yet known at the remote. `git push -u origin HEAD` makes it so."},
	{rx(`(?i)(?:your local changes to the following files would be overwritten)`), "Git would overwrite changes you have not committed. Commit or `git stash` them first."},
	{rx(`(?i)Permission denied \(publickey`), "The server did not take your SSH key. `ssh-add -l` shows which are loaded."},
	{rx(`(?i)Host key verification failed`), "The server's key is not the one on record. Find out why before you accept a new one."},
	{rx(`(?i)Could not resolve host(?:name)?:? ?(\S*)`), "The name $1 could not be looked up: a typing error, or no network."},
	{rx(`(?i)Connection refused`), "Nobody listens at that address and port: the server is not running, or it is another port."},
	{rx(`(?i)(?:connection timed out|operation timed out|i/o timeout)`), "No answer came: a firewall, a wrong address, or no network."},
	{rx(`(?i)ModuleNotFoundError: No module named '([^']+)'`), "Python does not find the module $1. Is the right virtual environment active? `python3 -m pip install …` installs packages."},
	{rx(`(?i)Cannot find module '([^']+)'`), "Node does not find the module $1. `npm install` gets what package.json names; a path must be right and begin with `./`."},
	{rx(`(?i)(?:no required module provides package|cannot find package|is not in std) ?\"?(\S*?)[;\"]?(?:\s|$)`), "Go does not find that package. `go get` it, or mend the import path."},
	{rx(`(?i)undefined: (\S+)`), "The name $1 is not defined there: misspelt, in another package, or its file is not part of the build."},
	{rx(`(?i)error\[(E\d+)\]`), "The Rust compiler explains it with `rustc --explain` and the code $1."},
	{rx(`(?i)(?:error TS\d+)`), "TypeScript does not accept the types; the first message counts, later ones often follow from it."},
	{rx(`(?i)npm (?:ERR!|error) Missing script: \"?([^\"\s]+)`), "package.json has no script $1. `npm run` lists those there are."},
	{rx(`(?i)ENOENT.*package\.json`), "There is no package.json here: wrong folder?"},
	{rx(`(?i)No rule to make target '([^']+)'`), "The Makefile has no target $1, or a file it needs is missing."},
	{rx(`(?i)(?:No targets specified and no makefile found)`), "There is no Makefile in this folder."},
	{rx(`(?i)missing separator`), "A line in the Makefile begins with blanks where make wants a tab."},
	{rx(`(?i)SyntaxError: (.+)`), "The code does not parse: $1. The place is in the line above the message."},
	{rx(`(?i)syntax error near unexpected token (\S+)`), "Bash could not parse the line at $1: mostly an unclosed quote, or a special character that needs quotes."},
	{rx(`(?i)unexpected EOF while looking for matching`), "A quote or bracket was opened and not closed."},
	{rx(`(?i)(?:event not found)`), "In double quotes bash takes `!` for history. Use single quotes."},
	{rx(`(?i)Argument list too long`), "Too many file names for one command. `find … -exec … {} +` or `xargs` gives them in portions."},
	{rx(`(?i)No space left on device`), "The disk is full. Ask “disk free” and “biggest files”."},
	{rx(`(?i)Disk quota exceeded`), "Your quota on that disk is used up. Ask “disk use”."},
	{rx(`(?i)Read-only file system`), "That file system is mounted read-only."},
	{rx(`(?i)Too many open files`), "The process ran into its limit of open files; `ulimit -n` shows it."},
	{rx(`(?i)(?:cannot allocate memory|out of memory|OOM|MemoryError)`), "Memory ran out. Ask “what is using memory”."},
	{rx(`(?i)Killed\s*$`), "It was killed by force, often by the kernel when memory runs out."},
	{rx(`(?i)Segmentation fault`), "The program touched memory that is not its own: a bug in it."},
	{rx(`(?i)cannot execute binary file|Exec format error`), "That file is a program for another kind of machine, or a script without `#!` line."},
	{rx(`(?i)bad interpreter: (?:.*\^M|No such file)`), "The `#!` line names an interpreter that is not there; with `^M` the file has Windows line ends (`dos2unix` or `sed -i 's/\\r$//'`)."},
	{rx(`(?i)Is a directory`), "That is a folder where a file was wanted."},
	{rx(`(?i)Not a directory`), "A part of that path is a file, not a folder."},
	{rx(`(?i)Directory not empty`), "The folder still has something in it."},
	{rx(`(?i)File exists`), "Something of that name is there already."},
	{rx(`(?i)(?:cannot (?:access|stat|open|create|remove|find)[^:'‘\n]*)?['‘]?([^'’:\s]*)['’]?: No such file or directory`), "A file or folder does not exist: $1. Ask “what is in here” or “find file NAME”."},
	{rx(`(?i)Operation not permitted`), "The system does not allow that to you, even for your own file: an attribute, a container, or the system's protection."},
	{rx(`(?i)(?:permission denied|EACCES)`), "You lack the permission. `ls -l` shows whose it is; a script may need `chmod +x`."},
	{rx(`(?i)(?:unrecognized|unknown|invalid|illegal) option|unknown flag|unexpected argument`), "The program does not know that option; its `--help` lists those it knows."},
	{rx(`(?i)(?:missing (?:file )?operand|missing argument|required argument)`), "An argument is missing."},
	{rx(`(?i)is a TTY|not a tty|inappropriate ioctl`), "The program wants a terminal and had none, or the reverse."},
	{rx(`(?i)docker daemon|docker\.sock`), "Docker's daemon cannot be reached: not running, or you are not in its group."},
	{rx(`(?i)certificate (?:verify failed|has expired|signed by unknown)|x509:`), "The server's certificate was not accepted: expired, self-signed, or a proxy in between. Is the clock right?"},
	{rx(`(?i)panic: (.+)`), "The Go program crashed: $1. The first lines of your own files in the trace say where."},
	{rx(`(?i)Traceback \(most recent call last\)`), "The Python program crashed; the last line says how, the line above it where."},
	{rx(`(?m)^--- FAIL: (\S+)`), "The test $1 failed."},
	{rx(`(?m)^(?:FAIL|FAILED)\b`), "Tests failed; the lines around the first FAIL say which."},
}

// explain says what an error in output means, "" where no rule fits.
func explain(command string, exit int, output string) string {
	for _, e := range explanations {
		m := e.pattern.FindStringSubmatch(output)
		if m == nil {
			continue
		}
		says := e.says
		if strings.Contains(says, "$1") {
			caught := ""
			if len(m) > 1 {
				caught = strings.Trim(strings.TrimSpace(m[1]), `'"‘’`+"`")
			}
			if caught == "" {
				says = strings.NewReplacer(": $1.", ".", " $1", "").Replace(says)
			} else {
				says = strings.ReplaceAll(says, "$1", code(cut(caught, 120)))
			}
		}
		return says
	}
	switch {
	case exit == 127:
		return "Is the name misspelt, or the program not installed? Ask “where is " + strings.Trim(code(firstWord(command)), "`") + "”."
	case exit == 1 && noMatch[firstWord(command)]:
		return "For this program 1 only means “nothing found” or “different”, not an error."
	}
	return ""
}

var noMatch = map[string]bool{"grep": true, "egrep": true, "fgrep": true, "rg": true, "ag": true, "diff": true, "cmp": true, "test": true, "[": true, "pgrep": true, "which": true, "type": true}

func firstWord(command string) string {
	if f := strings.Fields(command); len(f) > 0 {
		return f[0]
	}
	return ""
}

func recentCommands(j *job) string {
	if len(j.facts.RecentCommands) == 0 {
		return "I have not seen any command of yours yet in this window."
	}
	var rows [][]string
	bad := 0
	for _, c := range j.facts.RecentCommands {
		exit := "–"
		if c.ExitCode != nil {
			exit = fmt.Sprint(*c.ExitCode)
			if *c.ExitCode != 0 {
				bad++
			}
		}
		rows = append(rows, []string{code(cut(firstLine(c.Command), 80)), exit})
	}
	s := fmt.Sprintf("Your last %s", count(len(rows), "command"))
	if bad > 0 {
		s += fmt.Sprintf(", %d of them failed", bad)
	}
	return s + ":\n\n" + mdTable([]string{"command", "exit code"}, rows)
}
