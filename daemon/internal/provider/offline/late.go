package offline

import "strings"

// lateIntents are tried when nothing else fits: commands named outright.
var lateIntents = []intent{
	{
		name:    "run command",
		example: "run `make lint`",
		patterns: []string{
			"^(?:run|execute|exec|do|try)(?: the)?(?: (?:command|shell command|cmd))?:? `(?P<rest>[^`]+)`$", `^(?:run|execute|exec)(?: the)? (?:command|shell command|cmd):? (?P<rest>.+)$`, `^\$ (?P<rest>.+)$`, "^`(?P<rest>[^`]+)`$",
			`^(?:run|execute|exec) (?P<rest>(?:\./|go|npm|cargo|make|git|python3?|node|ls|cat|echo|grep|find|docker|kubectl|pytest|bash|sh|pip3?|yarn|pnpm|rg|sed|awk|curl|date|df|du|ps|true|false|printf|env|uname|whoami|sleep)\b.*)$`,
		},
		plan: steps(func(j *job) *call { return bash("as you asked", j.args["rest"]) }),
		answer: func(j *job) string {
			r := j.last()
			switch {
			case !r.ok():
				return trouble(r)
			case strings.TrimSpace(r.text) == "":
				return code(r.command) + " ran and printed nothing (exit code 0)."
			}
			return code(cut(r.command, 200)) + " ran (exit code 0):\n\n" + fence("", r.text, 30, false)
		},
		no: "it was not run",
	},
}
