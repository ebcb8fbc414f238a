package risk

import (
	"strings"

	"sublet/daemon/internal/mask"
)

var (
	// queryEnv finds what reads the environment in an expression of jq or yq, and which variable it is where it says so. It
	// is no field (.env), no string ("env"), and no key of an object (env:).
	queryEnv = lazyRe(`(?:^|[^.\w$"\\-])(?:\$ENV|strenv|envsubst|env)\b\s*(?:\.\s*"?(\w+)|\[\s*"(\w+)"|\(\s*"?(\w+)"?\s*\))?\s*(:)?`)
	// queryLoad finds a file that an expression of yq reads.
	queryLoad = lazyRe(`\b(?:load|load_str|strload|load_xml|load_props|load_base64)\s*\(\s*(?:"([^"\\]*)"\s*\))?`)
)

// doQuery judges jq and yq: an expression may read variables of the environment, and one of yq's other files.
func (a *analysis) doQuery(c *cmdCall) {
	if len(c.operands) > 1 && c.name == "yq" {
		switch c.operands[0].s {
		case "e", "eval", "ea", "eval-all":
			c.operands = c.operands[1:]
		}
	}
	a.usual(c)
	if len(c.operands) == 0 || c.has("-f", "--from-file", "-L") {
		return
	}
	f := &c.operands[0]
	a.spend(len(f.s) / bytesMatched)
	for _, m := range queryEnv().FindAllStringSubmatch(f.s, -1) {
		name := m[1] + m[2] + m[3]
		if m[4] == "" && (name == "" || mask.SecretName(name)) {
			a.note(Medium, Secret, f.span, "an expression that reads variables of the environment")
			break
		}
	}
	if c.name != "yq" {
		return
	}
	for _, m := range queryLoad().FindAllStringSubmatch(f.s, -1) {
		if m[1] == "" {
			a.note(Medium, Read, f.span, "reads a file that the expression names")
			continue
		}
		file := field{s: m[1], known: true, span: f.span}
		a.touch(Read, &file, c.st, touchOptions{})
	}
}

var psLetters = lazyRe(`^[A-Za-z]*e[A-Za-z]*$`)

// doPs judges ps: the letter e without a dash (and -E on macOS) prints each program's environment.
func (a *analysis) doPs(c *cmdCall) {
	a.usual(c)
	for i := range c.operands {
		if f := &c.operands[i]; f.known && psLetters().MatchString(f.s) {
			a.note(Medium, Secret, f.span, "shows the environment of programs, with the secrets in it")
		}
	}
	if o := c.opt("-E"); o != nil {
		a.note(Medium, Secret, o.span, "shows the environment of programs, with the secrets in it")
	}
}

// doGitBundle judges git bundle create: the first operand is the file, the rest are revisions.
func (a *analysis) doGitBundle(c *cmdCall) {
	a.base(c)
	if len(c.operands) > 0 {
		a.touch(Write, &c.operands[0], c.st, touchOptions{})
	}
}

// doPipAsk judges what asks pip: --python, also before the sub-command, runs another interpreter for it.
func (a *analysis) doPipAsk(c *cmdCall) {
	a.usual(c)
	for i := range c.fields {
		if f := &c.fields[i]; f.s == "--python" || strings.HasPrefix(f.s, "--python=") {
			a.note(High, RunCode, f.span, "runs an interpreter")
		}
	}
}
