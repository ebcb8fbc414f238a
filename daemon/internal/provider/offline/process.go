package offline

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// processIntents are about what runs on the machine.
var processIntents = []intent{
	{
		name:    "kill port",
		example: "kill whatever is on port 8080",
		patterns: []string{
			`^(?:kill|stop|end|terminate|free|close)(?: (?:what(?:ever)?(?:'s| is)?|the (?:process|program|server|thing)|process|it))?(?: (?:that is|that's|which is|running|listening|using))*(?: (?:on|at|using))?(?: the)? port {n}$`,
		},
		plan: func(j *job) []call {
			if calls := portPlan(j); calls != nil {
				return calls
			}
			pids := portPIDs(j)
			if len(pids) != 1 || j.last().command != "" && strings.HasPrefix(j.last().command, "kill ") {
				return nil
			}
			return []call{*bash("end the program on port "+j.args["n"], "kill", pids[0])}
		},
		answer: func(j *job) string {
			r := j.last()
			if !strings.HasPrefix(r.command, "kill ") {
				if pids := portPIDs(j); len(pids) > 1 {
					return "Several processes listen there; say which, by its number.\n\n" + portAnswer(j)
				}
				return portAnswer(j)
			}
			if !r.ok() {
				return trouble(r)
			}
			return "Asked process " + strings.TrimPrefix(r.command, "kill ") + " on port " + j.args["n"] + " to end. If it does not, `kill -9` does it by force."
		},
		no: "nothing was ended",
	},
	{
		name:    "ports",
		example: "who listens on port 8080",
		patterns: []string{
			`^(?:who|what)(?:'s| is| are)?(?: (?:process|program|app))?(?: (?:listening|listens?|running|using|uses|on|open|blocking|occupying|has))+(?: (?:on|at|to))?(?: the)?(?: tcp| local)? ?(?:port )?{n}$`, `^(?:who|what|which)\b.* port {n}$`, `^(?:is|check(?: if)?) (?:the )?port {n} (?:is )?(?:free|open|used|in use|taken|available|busy)$`, `^port {n}$`,
			`^(?:who|what|which)(?: (?:process(?:es)?|programs?|ports?|is|are))*\b.*\b(?:listen(?:s|ing)?|open ports?|ports? (?:are )?open)\b.*$`, `^{show} (?:the )?(?:open|listening|used|tcp)? ?(?:ports|sockets|listeners)(?: (?:are|in) (?:open|use|used))?$`, `^(?:open|listening) ports$`, `^netstat|^ss$`,
		},
		plan: portPlan, answer: portAnswer, no: "I did not look",
	},
	{
		name:    "kill",
		example: "kill process 1234",
		patterns: []string{
			`^(?:kill|stop|end|terminate)(?: -9| -term)?(?: the)?(?: (?:process|pid|program|job))?(?: (?:number|with (?:the )?pid|id))? {n}$`, `^(?:kill|terminate|stop|end)(?: all)?(?: the)?(?: (?:process(?:es)?|programs?))?(?: (?:called|named))? (?P<name>[A-Za-z][\w.+-]*)(?: process(?:es)?)?$`,
		},
		plan: steps(
			func(j *job) *call {
				if n := j.args["n"]; n != "" {
					return bash("see what it is", "ps -o pid,user,etime,args -p", n)
				}
				return bash("find the process", "pgrep -ax --", quote(j.args["name"]))
			},
			func(j *job) *call {
				pids := pidsOf(j.results[0])
				if len(pids) != 1 || len(pids[0]) < 2 || j.args["n"] == "" && j.failed() {
					return nil // none, several, or a single digit: the system's own
				}
				return bash("ask the process to end", "kill", pids[0])
			},
		),
		answer: func(j *job) string {
			first := j.results[0]
			pids := pidsOf(first)
			what := j.args["n"]
			if what == "" {
				what = j.args["name"]
			}
			switch {
			case len(pids) == 0:
				return "There is no process " + code(what) + "."
			case len(pids) > 1:
				return fmt.Sprintf("There are %d processes of that name. Say which one, as in “kill process %s”:\n\n", len(pids), pids[0]) + fence("", first.text, 20, true)
			case len(j.results) < 2:
				return "Process " + pids[0] + " belongs to the system itself; I leave it alone."
			case j.failed():
				return trouble(j.last())
			}
			return "Asked process " + pids[0] + " to end: " + code(cut(lastField(first.text), 120)) + ". If it does not, `kill -9 " + pids[0] + "` does it by force."
		},
		no: "nothing was ended",
	},
	{
		name:    "cpu",
		example: "what is using the cpu",
		patterns: []string{
			`\b(?:using|uses|use|eating|eats|hogging|taking|burning)\b.*\b(?:cpu|processor)\b`, `^(?:cpu|cpu usage|cpu load|top|htop|load|processor)(?: usage)?$`, `^{show} (?:the )?(?:top|busiest|cpu|heaviest|hungriest) ?(?:processes|programs|usage)?(?: by cpu)?$`, `\b(?:top|busiest) processes\b`, `^why is (?:my |the |this )?(?:computer|machine|laptop|system|server|box|it) (?:so )?slow$`, `^what(?:'s| is) (?:making|slowing)\b.*\bslow`, `^{show} cpu usage$`,
		},
		plan:   steps(run("the processes that use most of the processor", "ps -eo pid,pcpu,pmem,etime,comm | sort -rnk2 | head -n 12")),
		answer: processTable, no: "I did not look",
	},
	{
		name:    "memory",
		example: "what is using memory",
		patterns: []string{
			`\b(?:using|uses|use|eating|eats|hogging|taking)\b.*\b(?:memory|ram|mem)\b`, `^(?:memory|ram|mem|free)(?: (?:usage|use|free|left|status))?(?: -h)?$`, `\b(?:how much|free|available) (?:memory|ram)\b`, `^{show} (?:the )?(?:memory|ram)(?: usage| use)?$`, `\bmemory usage\b`,
		},
		plan: steps(
			run("memory in all", "free -m"),
			run("the processes that use most of it", "ps -eo pid,pmem,pcpu,rss,comm | sort -rnk2 | head -n 12"),
		),
		answer: memoryAnswer, no: "I did not look",
	},
	{
		name:    "processes",
		example: "is nginx running",
		patterns: []string{
			`^is (?:there (?:an?|any) )?(?P<name>[\w.+-]+)(?: process)? (?:running|up|alive|started)$`, `^(?:find|{show}|search)(?: the)? process(?:es)?(?: (?:called|named|of|for|like|matching))? {name}$`, `^{show} (?:the )?(?P<name>[\w.+-]+) process(?:es)?$`, `^(?:pgrep|pidof) {name}$`, `^(?:what(?:'s| is) )?the pid of {name}$`, `^how many (?P<name>[\w.+-]+) processes(?: are (?:there|running))?$`,
		},
		plan: steps(func(j *job) *call {
			return bash("look for the process", "pgrep -af --", quote(regexp.QuoteMeta(j.args["name"])))
		}),
		answer: func(j *job) string {
			r := j.last()
			lines := slices.DeleteFunc(r.lines(), func(l string) bool { return strings.Contains(l, "pgrep -af") })
			name := code(j.args["name"])
			if len(lines) == 0 {
				if r.exit > 1 {
					return trouble(r)
				}
				return "No: nothing runs whose command contains " + name + "."
			}
			return fmt.Sprintf("Yes, **%s** with %s in the command:\n\n", count(len(lines), "process"), name) + fence("", strings.Join(lines, "\n"), 20, true)
		},
		no: "I did not look",
	},
	{
		name:     "all processes",
		example:  "how many processes run",
		patterns: []string{`^how many processes(?: (?:are (?:there|running)|run))?$`, `^{show} (?:the )?(?:running )?processes$`, `^(?:ps|processes)$`, `^what(?:'s| is) running(?: here| now)?$`, `^{show} (?:my )?(?:background )?jobs$`},
		plan:     steps(run("how many processes there are", "ps -e | wc -l"), run("your own, the newest last", "ps -o pid,etime,args -u \"$USER\" | tail -n 15")),
		answer: func(j *job) string {
			if len(j.results) < 2 || !j.results[0].ok() {
				return trouble(j.last())
			}
			n, _ := strconv.Atoi(strings.TrimSpace(j.results[0].text))
			s := fmt.Sprintf("%s run on this machine.", count(max(0, n-1), "process"))
			if r := j.results[1]; r.ok() && r.text != "" {
				s += " The newest of yours:\n\n" + fence("", r.text, 15, false)
			}
			return s
		},
		no: "I did not look",
	},
	{
		name:     "docker clean",
		example:  "clean up docker",
		patterns: []string{`^(?:clean(?: up)?|prune)(?: (?:my|the|all))?(?: (?:unused|old|dangling))? (?:docker|containers|docker (?:images|containers|system|volumes)|images)$`, `^docker (?:prune|system prune|clean ?up)$`, `^(?:remove|delete) (?:all )?(?:unused|old|dangling|stopped) (?:docker )?(?:images|containers|docker \w+)$`},
		plan: steps(
			run("what docker holds", "docker system df"),
			func(j *job) *call {
				if j.failed() {
					return nil
				}
				return bash("remove stopped containers, dangling images, unused networks and build cache", "docker system prune -f")
			},
		),
		answer: func(j *job) string {
			if j.failed() {
				return trouble(j.last())
			}
			s := "Cleaned up docker"
			for _, l := range j.last().lines() {
				if v, ok := strings.CutPrefix(l, "Total reclaimed space: "); ok {
					s += ": " + v + " freed"
				}
			}
			return s + ". Volumes and images that have a name were left alone. Before it was:\n\n" + fence("", j.results[0].text, 10, true)
		},
		no: "docker was left as it is",
	},
	{
		name:     "docker",
		example:  "which containers run",
		patterns: []string{`^(?:{show} )?(?:the )?(?:running )?(?:docker )?containers(?: (?:are )?running| run)?$`, `^docker(?: ps)?$`, `^(?:which|what) containers (?:are (?:running|there)|run)$`, `^is docker running$`},
		plan:     steps(run("the running containers", `docker ps --format '{{.Names}}|{{.Image}}|{{.Status}}|{{.Ports}}'`)),
		answer: func(j *job) string {
			r := j.last()
			if !r.ok() {
				return trouble(r)
			}
			var rows [][]string
			for _, l := range r.lines() {
				if f := strings.Split(l, "|"); len(f) == 4 {
					rows = append(rows, []string{code(f[0]), code(f[1]), f[2], f[3]})
				}
			}
			if len(rows) == 0 {
				return "No container is running."
			}
			return count(len(rows), "container") + " running:\n\n" + mdTable([]string{"name", "image", "status", "ports"}, rows)
		},
		no: "I did not look",
	},
	{
		name:     "services",
		example:  "which services failed",
		patterns: []string{`^(?:{show} )?(?:the )?(?:failed|broken) (?:services|units)$`, `^(?:which|what) services (?:failed|are (?:failed|down|broken))$`, `^(?:are )?(?:all )?services (?:ok|running|up|fine)$`},
		plan:     steps(run("services that failed", "systemctl list-units --failed --no-pager --plain --no-legend")),
		answer: func(j *job) string {
			r := j.last()
			switch {
			case strings.Contains(r.text, "not been booted with systemd"), strings.Contains(r.text, "Failed to connect to bus"):
				return "This system does not run systemd, so I have nobody to ask about services."
			case !r.ok():
				return trouble(r)
			case len(r.lines()) == 0:
				return "No service has failed."
			}
			return count(len(r.lines()), "service") + " failed:\n\n" + fence("", r.text, 20, true)
		},
		no: "I did not look",
	},
}

// portPlan asks who listens: ss, else lsof, else the kernel's own table.
func portPlan(j *job) []call {
	switch n := len(j.results); {
	case n == 0:
		return []call{*bash("who listens on which port", "ss -Hltnp")}
	case n == 1 && !j.results[0].ok():
		return []call{*bash("who listens on which port", "lsof -nP -iTCP -sTCP:LISTEN")}
	case n == 2 && !j.results[0].ok() && !j.results[1].ok() && j.results[1].exit == 127:
		return []call{*bash("which ports are open", "cat /proc/net/tcp /proc/net/tcp6")}
	}
	return nil
}

// listener is a port somebody listens on.
type listener struct{ port, addr, program, pid string }

var (
	ssUsers  = rx(`\(\("([^"]+)",pid=(\d+)`)
	lsofLine = rx(`^(\S+)\s+(\d+)\s+\S+\s+.*TCP (\S+):(\d+) \(LISTEN\)$`)
	procLine = rx(`^\s*\d+: ([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4}) \S+ 0A `)
)

// listeners reads what any of the three says.
func listeners(j *job) (list []listener) {
	for _, r := range j.results {
		if strings.HasPrefix(r.command, "kill ") {
			continue
		}
		for _, l := range r.lines() {
			var x listener
			if m := lsofLine.FindStringSubmatch(l); m != nil {
				x = listener{m[4], m[3], m[1], m[2]}
			} else if m := procLine.FindStringSubmatch(l); m != nil {
				port, _ := strconv.ParseUint(m[2], 16, 16) // four hex digits by the pattern
				x = listener{port: strconv.FormatUint(port, 10), addr: hexAddr(m[1])}
			} else if f := strings.Fields(l); len(f) >= 4 && f[0] == "LISTEN" {
				i := strings.LastIndexByte(f[3], ':')
				if i < 0 {
					continue
				}
				x = listener{port: f[3][i+1:], addr: strings.Trim(f[3][:i], "[]")}
				if m := ssUsers.FindStringSubmatch(l); m != nil {
					x.program, x.pid = m[1], m[2]
				}
			} else {
				continue
			}
			if !slices.Contains(list, x) {
				list = append(list, x)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b listener) int {
		x, _ := strconv.Atoi(a.port)
		y, _ := strconv.Atoi(b.port)
		return x - y
	})
	return list
}

// hexAddr is an address as the kernel writes it: words of four bytes in the machine's order, taken as little-endian.
func hexAddr(s string) string {
	b, err := hex.DecodeString(s)
	if err != nil {
		return s
	}
	for i := 0; i+4 <= len(b); i += 4 {
		slices.Reverse(b[i : i+4])
	}
	a, ok := netip.AddrFromSlice(b)
	if !ok {
		return s
	}
	return a.Unmap().String()
}

func portPIDs(j *job) (pids []string) {
	for _, l := range listeners(j) {
		if l.port == j.args["n"] && l.pid != "" && !slices.Contains(pids, l.pid) {
			pids = append(pids, l.pid)
		}
	}
	return pids
}

func portAnswer(j *job) string {
	list := listeners(j)
	if port := j.args["n"]; port != "" {
		list = slices.DeleteFunc(list, func(l listener) bool { return l.port != port })
		if len(list) == 0 {
			if !slices.ContainsFunc(j.results, result.ok) {
				return trouble(j.last())
			}
			return "Nobody listens on port " + port + "; it is free."
		}
		who := "a process that I am not allowed to see (another user's)"
		if list[0].program != "" {
			who = fmt.Sprintf("**%s** (process %s)", visible(list[0].program), list[0].pid)
		}
		var addrs []string
		for _, l := range list {
			if a := reach(l.addr); !slices.Contains(addrs, a) {
				addrs = append(addrs, a)
			}
		}
		return fmt.Sprintf("Port %s is taken by %s, reachable from %s.", port, who, join(addrs))
	}
	if len(list) == 0 {
		if !slices.ContainsFunc(j.results, result.ok) {
			return trouble(j.last())
		}
		return "Nobody listens on any TCP port."
	}
	var rows [][]string
	for _, l := range list {
		who := "(not yours to see)"
		if l.program != "" {
			who = visible(l.program) + " (" + l.pid + ")"
		}
		rows = append(rows, []string{l.port, who, reach(l.addr)})
	}
	return count(len(rows), "listener") + ":\n\n" + mdTable([]string{"port", "program", "reachable from"}, rows[:min(len(rows), 40)])
}

// reach says in words who can get at an address.
func reach(addr string) string {
	switch {
	case addr == "*", addr == "0.0.0.0", addr == "::":
		return "everywhere"
	case strings.HasPrefix(addr, "127."), addr == "::1", strings.HasPrefix(addr, "127.0.0.1%"):
		return "this machine only"
	}
	return addr
}

// pidsOf are the numbers that begin lines of ps or pgrep.
func pidsOf(r result) (pids []string) {
	for _, l := range r.lines() {
		if f := strings.Fields(l); len(f) > 1 || len(f) == 1 && r.ok() {
			if _, err := strconv.Atoi(f[0]); err == nil {
				pids = append(pids, f[0])
			}
		}
	}
	return pids
}

func lastField(text string) string {
	lines := splitLines(text)
	if len(lines) == 0 {
		return ""
	}
	f := strings.Fields(lines[len(lines)-1])
	if len(f) > 3 && len(lines) > 1 {
		return strings.Join(f[3:], " ") // ps: pid, user, time, args
	}
	return strings.Join(f[min(1, len(f)):], " ")
}

func processTable(j *job) string {
	r := j.last()
	if !r.ok() {
		return trouble(r)
	}
	var rows [][]string
	for _, l := range r.lines() {
		if f := strings.Fields(l); len(f) >= 5 && f[0] != "PID" {
			rows = append(rows, []string{f[1] + " %", f[2] + " %", f[3], code(strings.Join(f[4:], " ")), f[0]})
		}
	}
	if len(rows) == 0 {
		return fence("", r.text, 15, true)
	}
	s := fmt.Sprintf("Most of the processor goes to %s: %s of one core on average since it started.", rows[0][3], rows[0][0])
	if f, _ := strconv.ParseFloat(strings.TrimSuffix(rows[0][0], " %"), 64); f < 5 {
		s = "Nothing uses the processor much; at the top is " + rows[0][3] + " with " + rows[0][0] + "."
	}
	return s + "\n\n" + mdTable([]string{"cpu", "memory", "runs for", "program", "pid"}, rows[:min(len(rows), 10)])
}

func memoryAnswer(j *job) string {
	if len(j.results) < 2 || !j.results[1].ok() {
		return trouble(j.last())
	}
	s := ""
	if r := j.results[0]; r.ok() {
		for _, l := range r.lines() {
			if f := strings.Fields(l); len(f) >= 7 && f[0] == "Mem:" {
				total, _ := strconv.ParseInt(f[1], 10, 64)
				available, _ := strconv.ParseInt(f[6], 10, 64)
				if total > 0 {
					s = fmt.Sprintf("**%s of %s** are available (%d %%). ", size(available<<20), size(total<<20), available*100/total)
				}
			}
		}
	}
	var rows [][]string
	for _, l := range j.results[1].lines() {
		if f := strings.Fields(l); len(f) >= 5 && f[0] != "PID" {
			kb, _ := strconv.ParseInt(f[3], 10, 64)
			rows = append(rows, []string{size(kb << 10), f[1] + " %", code(strings.Join(f[4:], " ")), f[0]})
		}
	}
	if len(rows) == 0 {
		return s + "\n\n" + fence("", j.results[1].text, 15, true)
	}
	return s + "The most is used by " + rows[0][2] + ", " + rows[0][0] + ".\n\n" + mdTable([]string{"memory", "share", "program", "pid"}, rows[:min(len(rows), 10)])
}
