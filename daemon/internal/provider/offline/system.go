package offline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// systemIntents are about the machine and the shell itself.
var systemIntents = []intent{
	{
		name:    "ip",
		example: "what is my ip address",
		patterns: []string{
			`\bmy (?:local |lan |internal |private )?(?:ip|ip address|addresses|network address(?:es)?)\b`, `^(?:{show} )?(?:the )?(?:ip|ips|ip addr(?:ess(?:es)?)?|network (?:addresses|interfaces|cards)|interfaces)$`, `^ifconfig$`, `^(?:what is|what's) the ip(?: address)? of (?:this|my) (?:machine|computer|host|server|box)$`,
		},
		plan: steps(
			run("the addresses of this machine", "ip -brief address"),
			func(j *job) *call {
				if j.last().ok() {
					return nil
				}
				return bash("the addresses of this machine", "ifconfig")
			},
		),
		answer: func(j *job) string {
			r := j.last()
			if !r.ok() {
				return trouble(r)
			}
			var rows [][]string
			first := ""
			for _, l := range r.lines() {
				f := strings.Fields(l)
				if len(f) < 3 || r.command == "ifconfig" {
					continue
				}
				for _, a := range f[2:] {
					addr, _, ok := strings.Cut(a, "/")
					if !ok {
						continue
					}
					if first == "" && f[0] != "lo" && !strings.HasPrefix(addr, "fe80") {
						first = addr
					}
					rows = append(rows, []string{code(addr), f[0], strings.ToLower(f[1])})
				}
			}
			if len(rows) == 0 {
				return fence("", r.text, 30, true)
			}
			s := "This machine has no address beyond itself."
			if first != "" {
				s = "Your address is **" + first + "**."
			}
			return s + " How the internet sees you only a server out there could tell; I ask none.\n\n" + mdTable([]string{"address", "interface", "state"}, rows)
		},
		no: "I did not look",
	},
	{
		name:     "path",
		example:  "show my PATH",
		patterns: []string{`^(?:{show} )?(?:my |the )?\$?PATH(?: variable)?(?: (?:nicely|pretty|line by line))?$`, `^echo \$PATH$`, `^what(?:'s| is) (?:in|on) (?:my |the )?\$?PATH$`},
		plan:     steps(run("where programs are looked for", `printf '%s\n' "$PATH"`)),
		answer: func(j *job) string {
			r := j.last()
			if !r.ok() {
				return trouble(r)
			}
			dirs := strings.Split(strings.TrimSpace(strings.ReplaceAll(r.text, "\n", "")), ":")
			var b strings.Builder
			seen := map[string]bool{}
			var odd []string
			for i, d := range dirs {
				note := ""
				switch {
				case d == "" || d == ".":
					note, odd = " ← the current folder: whatever lies there can pose as a program", append(odd, "the current folder")
				case seen[d]:
					note = " ← again"
				case !strings.HasPrefix(d, "/"):
					note = " ← not an absolute path"
				}
				seen[d] = true
				fmt.Fprintf(&b, "%d. %s%s\n", i+1, code(d), note)
			}
			s := fmt.Sprintf("Your PATH has %s, looked through in this order", count(len(dirs), "folder"))
			if n := len(dirs) - len(seen); n > 0 {
				s += fmt.Sprintf("; %d of them twice", n)
			}
			if len(odd) > 0 {
				s += "; **it includes the current folder**, which is unsafe"
			}
			return s + ":\n\n" + strings.TrimRight(b.String(), "\n")
		},
		no: "I did not look",
	},
	{
		name:    "variable",
		example: "what is $HOME",
		patterns: []string{
			`^(?:{show} |echo |print |printenv )?(?:the )?(?:value of |contents of )?(?:the )?(?:env(?:ironment)? )?(?:variable )?\$\{?(?P<name>[A-Za-z_]\w*)\}?(?: set to| variable)?$`, `^(?:{show} |printenv )(?:the )?(?:value of )?(?:the )?(?:env(?:ironment)? )?variable (?P<name>[A-Za-z_]\w*)(?: set to)?$`, `^is \$?(?P<name>[A-Z_][A-Z0-9_]+) set$`, `^printenv (?P<name>\w+)$`, `^what(?:'s| is) (?P<name>[A-Z]+_[A-Z0-9_]+)(?: set to)?$`,
		},
		plan: steps(func(j *job) *call {
			return bash("the value of a variable", `printf '%s\n' "${`+j.args["name"]+`-`+notSet+`}"`)
		}),
		answer: func(j *job) string {
			name := code("$" + j.args["name"])
			switch r := j.last(); {
			case !r.ok():
				return trouble(r)
			case strings.TrimSpace(r.text) == notSet:
				return name + " is not set."
			case strings.TrimSpace(r.text) == "":
				return name + " is set, and empty."
			case strings.Contains(r.text, "\n"):
				return name + ":\n\n" + fence("", r.text, 30, true)
			default:
				return name + " is " + code(r.text) + "."
			}
		},
		no: "I did not look",
	},
	{
		name:     "variables",
		example:  "which environment variables are set",
		patterns: []string{`^(?:{show} )?(?:the |my |all )*(?:env|environment|env(?:ironment)? variables?)(?: (?:are set|are there|do i have))?$`, `^printenv$`},
		plan:     steps(run("the names of the variables; not their values", "compgen -e")),
		answer: func(j *job) string {
			r := j.last()
			if !r.ok() {
				return trouble(r)
			}
			var names []string
			for _, l := range r.lines() {
				names = append(names, strings.Fields(l)...)
			}
			slices.Sort(names)
			var shown []string
			for _, n := range names {
				shown = append(shown, code(n))
			}
			return fmt.Sprintf("**%s**, names only, as values may be secrets: %s. “what is $NAME” shows one.", count(len(names), "variable"), list(shown, 80))
		},
		no: "I did not look",
	},
	{
		name:     "alias",
		example:  "show my aliases",
		patterns: []string{`^(?:{show} )?(?:my |the |shell )*alias(?:es)?$`},
		plan:     steps(run("your aliases", "alias")),
		answer: func(j *job) string {
			r := j.last()
			switch {
			case !r.ok():
				return trouble(r)
			case len(r.lines()) == 0:
				return "You have no aliases in this shell."
			}
			return "Your " + count(len(r.lines()), "alias") + ":\n\n" + fence("sh", r.text, 60, true)
		},
		no: "I did not look",
	},
	{
		name:    "where is",
		example: "where is python3 installed",
		patterns: []string{
			`^(?:which|where|whence|type)(?: -\w+)? (?:is )?(?P<name>[A-Za-z][\w+-]*(?:\.\d+)*)(?: (?:installed|located|program|command|binary))?$`, `^where(?:'s| is) (?:the )?(?P<name>[A-Za-z][\w+-]*(?:\.\d+)*)(?: (?:installed|program|command|binary|executable))$`, `^(?:is|do i have) (?P<name>[A-Za-z][\w+-]*(?:\.\d+)*) installed$`, `^do i have (?P<name>[A-Za-z][\w+-]*(?:\.\d+)*)$`,
		},
		plan: steps(func(j *job) *call { return bash("what the shell would run", "type -a", quote(j.args["name"])) }),
		answer: func(j *job) string {
			r := j.last()
			name := code(j.args["name"])
			if !r.ok() {
				return "No: the shell knows no " + name + ", neither as a program on PATH nor as alias, function or builtin."
			}
			lines := r.lines()
			if len(lines) == 1 {
				if at, ok := strings.CutPrefix(lines[0], j.args["name"]+" is "); ok && strings.HasPrefix(at, "/") {
					return "Yes: " + name + " is " + code(at) + "."
				}
			}
			return "Yes. The shell takes the first of these:\n\n" + fence("", r.text, 15, true)
		},
		no: "I did not look",
	},
	{
		name:     "where am i",
		example:  "where am I",
		patterns: []string{`^(?:where am i|pwd|(?:what(?:'s| is) )?(?:the |my )?(?:current|working) (?:folder|directory|dir)|which (?:folder|directory) (?:am i in|is this)|what (?:folder|directory) (?:am i in|is this))$`},
		plan:     steps(run("the current folder", "pwd")),
		answer: func(j *job) string {
			if j.failed() {
				return trouble(j.last())
			}
			return "You are in " + code(firstLine(j.last().text)) + "."
		},
		no: "I did not look",
	},
	{
		name:     "go to",
		example:  "go to FOLDER",
		patterns: []string{`^(?:cd|chdir)(?: {file})?$`, `^(?:go|change|switch|move|jump)(?: back)?(?: (?:in)?to)(?: the)?(?: (?:folder|directory|dir))? {file}(?: (?:folder|directory))?$`, `^(?P<up>go up|up|up one(?: (?:folder|level|directory))?|go (?:back|up) one(?: (?:folder|level|directory))?)$`, `^go (?P<home>home)$`},
		plan: steps(func(j *job) *call {
			to := j.args["file"]
			switch {
			case j.args["up"] != "", strings.EqualFold(to, "parent"):
				to = ".."
			case j.args["home"] != "", strings.EqualFold(to, "home"):
				to = "~"
			}
			if to == "" {
				return bash("go home", "cd && pwd")
			}
			if to == "-" {
				return bash("go back", "cd -")
			}
			return bash("change the folder", "cd --", file(to), "&& pwd")
		}),
		answer: func(j *job) string {
			if j.failed() {
				return trouble(j.last())
			}
			return "You are in " + code(firstLine(j.last().text)) + " now, in your own shell too."
		},
	},
	{
		name:     "who am i",
		example:  "who am I",
		patterns: []string{`^(?:who am i|whoami|id|(?:what(?:'s| is) )?my (?:user ?name|user|uid|groups?))$`, `^(?:am i|do i have) (?:root|admin|sudo)(?: rights)?$`, `^(?:what(?:'s| is) )?(?:my |the |this )?(?P<host>host ?name)(?: of this (?:machine|computer))?$`},
		plan: steps(func(j *job) *call {
			if j.args["host"] != "" {
				return bash("the name of this machine", "hostname")
			}
			return bash("who you are", "id")
		}),
		answer: func(j *job) string {
			r := j.last()
			if !r.ok() {
				return trouble(r)
			}
			if j.args["host"] != "" {
				return "This machine is called " + code(firstLine(r.text)) + "."
			}
			user, group := between(r.text, "uid=", ")"), between(r.text, "groups=", "\n")
			uid, name, _ := strings.Cut(user, "(")
			s := "You are **" + visible(name) + "** (number " + uid + ")"
			if uid == "0" {
				s += ", the administrator: nothing holds you back"
			}
			if group != "" {
				s += ". Groups: " + code(group)
			}
			return s + "."
		},
		no: "I did not look",
	},
	{
		name:    "system",
		example: "what system is this",
		patterns: []string{
			`^(?:what|which) (?:system|os|operating system|distro|distribution|linux|kernel|machine|computer|platform)(?: (?:is this|am i on|do i have|version))*$`, `^(?:{show} )?(?:the |my )?(?:system|machine|os|hardware|computer)(?: (?:info(?:rmation)?|details|version|status|overview))$`, `^(?:uptime|uname(?: -a)?|neofetch|system info|lscpu|nproc)$`, `^how long (?:has|is) (?:this|the|my) (?:machine|computer|system|server|box) (?:been )?(?:up|running|on)\b`, `^how many (?:cpus?|cores|processors)\b`, `^(?:{show} )?(?:the )?uptime$`, `^(?:what(?:'s| is) )?(?:the |my )?(?:load average|load|kernel version)$`,
		},
		plan: steps(
			run("system, kernel and machine", "uname -a"),
			run("which distribution", "cat /etc/os-release"),
			run("how long it runs, and its load", "uptime"),
			run("how many processors", "nproc"),
		),
		answer: func(j *job) string {
			if !slices.ContainsFunc(j.results, result.ok) {
				return trouble(j.last())
			}
			var rows [][]string
			for _, r := range j.results {
				if !r.ok() {
					continue
				}
				switch text := strings.TrimSpace(r.text); {
				case strings.HasPrefix(r.command, "uname"):
					rows = append(rows, []string{"kernel", visible(text)})
				case strings.HasPrefix(r.command, "cat"):
					if name := strings.Trim(between(text, "PRETTY_NAME=", "\n"), `"`); name != "" {
						rows = append(rows, []string{"system", visible(name)})
					}
				case r.command == "nproc":
					rows = append(rows, []string{"processors", visible(text)})
				case r.command == "uptime":
					if up := between(text, " up ", ","); up != "" {
						rows = append(rows, []string{"up for", visible(strings.TrimSpace(up))})
					}
					if _, load, ok := strings.Cut(text, "load average"); ok {
						rows = append(rows, []string{"load (1, 5, 15 min)", strings.TrimLeft(load, "s: ")})
					}
				}
			}
			return mdTable([]string{"what", "value"}, rows)
		},
		no: "I did not look",
	},
	{
		name:     "ping",
		example:  "is example.org reachable",
		patterns: []string{`^ping {name}$`, `^(?:is|can i reach|check (?:if|whether)) (?P<name>[\w-]+(?:\.[\w-]+)+)(?: is)?(?: (?:up|reachable|online|down|there|alive))?$`},
		plan: steps(func(j *job) *call {
			if !plainWord.MatchString(j.args["name"]) || strings.HasPrefix(j.args["name"], "-") {
				return nil
			}
			return bash("see whether it answers", "ping -c 3 -W 2", j.args["name"])
		}),
		answer: func(j *job) string {
			if len(j.results) == 0 {
				return "That is no name of a machine."
			}
			r, name := j.last(), code(j.args["name"])
			if r.exit == 127 {
				return "There is no `ping` here to find out with."
			}
			if !r.ok() {
				return name + " does not answer to ping. (Some machines never do.)\n\n" + fenceOrNothing(r.text)
			}
			s := name + " answers"
			if ms := between(r.text, "min/avg/max", "\n"); ms != "" {
				if f := strings.Split(ms, "/"); len(f) >= 3 {
					if _, err := strconv.ParseFloat(f[len(f)-3], 64); err == nil {
						s += ", in " + f[len(f)-3] + " ms on average"
					}
				}
			}
			return s + "."
		},
		no: "I did not try",
	},
	{
		name:     "what does command do",
		example:  "what does the command tar do",
		patterns: []string{`^what (?:does|is)(?: the)? (?:command|program|tool) {name}(?: do| for)?$`, `^what does (?P<name>[a-z][\w+-]{0,20}) do$`, `^(?:man|whatis|explain the command|explain command) (?P<name>[\w+-]+)$`},
		plan: steps(
			func(j *job) *call { return bash("what the shell takes it for", "type -t", quote(j.args["name"])) },
			func(j *job) *call {
				switch strings.TrimSpace(j.last().text) {
				case "builtin", "keyword":
					return bash("bash's own word on it", "help -d", quote(j.args["name"]))
				case "file":
					return bash("its manual's first line", "whatis", quote(j.args["name"]))
				case "alias":
					return bash("what the alias stands for", "alias", quote(j.args["name"]))
				}
				return nil
			},
		),
		answer: func(j *job) string {
			r, name := j.last(), code(j.args["name"])
			switch {
			case len(j.results) < 2 && r.ok():
				return name + " is a " + visible(strings.TrimSpace(r.text)) + " of your shell."
			case len(j.results) < 2:
				return "The shell knows no " + name + "."
			case !r.ok():
				return name + " is a program, and has no manual page here. Its `--help` may tell."
			}
			return fence("", r.text, 8, true) + "\n\n`man " + strings.Trim(name, "`") + "` has the rest; `sublet explain '…'` tells what a whole command line would do."
		},
		no: "I did not look",
	},
}

// notSet stands in for a variable that there is none of.
const notSet = "(not set)"

// between is what stands after the first from, up to the next to; all of the rest where there is no to.
func between(s, from, to string) string {
	_, rest, ok := strings.Cut(s, from)
	if !ok {
		return ""
	}
	rest, _, _ = strings.Cut(rest, to)
	return rest
}
