package risk

import "strings"

// doAwk judges awk programs: they can run commands and write files.
func (a *analysis) doAwk(c *cmdCall) {
	a.note(Low, Read, c.span, "works through text")
	a.anySecret(c)
	ops := c.operands
	for i := range c.opts {
		o := &c.opts[i]
		switch {
		case o.val == nil:
			if o.name == "-i" || o.name == "--include" || o.name == "-E" {
				a.note(High, RunCode, o.span, "loads code")
			}
		case o.name == "-f" || o.name == "--file" || o.name == "-E" || o.name == "--exec":
			a.runFile(c, o.val)
		case o.name == "-i" || o.name == "--include" || o.name == "-l" || o.name == "--load":
			if o.val.s == "inplace" {
				for k := 1; k < len(ops); k++ {
					a.touch(Write, &ops[k], c.st, touchOptions{})
				}
			} else {
				a.note(High, RunCode, o.span, "loads code")
			}
		case o.name == "-e" || o.name == "--source":
			a.awkProgram(c, o.val)
		}
	}
	if !c.has("-f", "--file", "-e", "--source", "-E", "--exec") {
		if len(ops) == 0 {
			return
		}
		a.awkProgram(c, &ops[0])
		ops = ops[1:]
	}
	for i := range ops {
		if strings.IndexByte(ops[i].s, '=') > 0 && nameLike(ops[i].s[:strings.IndexByte(ops[i].s, '=')]) {
			continue
		}
		a.touch(Read, &ops[i], c.st, touchOptions{})
	}
}

var (
	awkRunsRe  = lazyRe(`\bsystem\s*\(|\|\s*&?\s*getline|"\s*\|\s*getline|\bprintf?\b[^;}\n]*\|[^|]|\|\s*"|@load|@include|/inet/`)
	awkWriteRe = lazyRe(`\bprintf?\b[^;}\n]*>>?\s*("[^"]*"|[A-Za-z_$(][^;}\n]*)`)
	awkReadRe  = lazyRe(`getline\b[^;}\n<]*<\s*"([^"]*)"`)
)

func (a *analysis) awkProgram(c *cmdCall, f *field) {
	text := f.s
	if f.opaque() {
		a.runs()
		a.opaque()
		a.note(High, RunCode, f.span, "runs an awk program that is not known here")
	}
	if len(text) > 16<<10 {
		a.note(High, RunCode, f.span, "runs a long awk program that was not examined")
		return
	}
	a.spend(len(text) / bytesMatched)
	bare := codeStringRe().ReplaceAllString(text, `""`)
	if awkRunsRe().MatchString(text) && (awkRunsRe().MatchString(bare) || strings.Contains(bare, "|")) {
		a.runs()
		a.note(High, RunCode, f.span, "an awk program that runs commands")
		a.commandsIn(c, text, f.span)
		fl := c.st.stdin.flow
		for i := range c.operands {
			fl |= c.operands[i].flow | a.fileFlow(&c.operands[i], c.st)
		}
		if fl&flowNet != 0 {
			a.note(Critical, RunCode, f.span, "runs commands with what was just fetched from the network").cannotUndo()
		}
		for i := range c.opts { // -v c='rm -rf /' and system(c)
			if o := &c.opts[i]; o.val != nil && (o.name == "-v" || o.name == "--assign") {
				_, value, _ := strings.Cut(o.val.s, "=")
				a.raiseBy(value, o.span, c.st)
			}
		}
	}
	for _, m := range awkWriteRe().FindAllStringSubmatch(text, 16) {
		if !strings.Contains(bare, ">") {
			break
		}
		name := strings.Trim(m[1], `"`)
		if !strings.HasPrefix(m[1], `"`) {
			if comparison(m[0]) {
				continue
			}
			name = string(unknownPart)
		}
		g := field{s: name, known: m[1] != name, span: f.span}
		a.touch(Write, &g, c.st, touchOptions{})
	}
	for _, m := range awkReadRe().FindAllStringSubmatch(text, 16) {
		g := field{s: m[1], known: true, span: f.span}
		a.touch(Read, &g, c.st, touchOptions{})
	}
	if strings.Contains(bare, "ENVIRON") {
		a.note(Medium, Secret, f.span, "an awk program that reads variables of the environment")
	}
}

// comparison tells that the > of an awk statement stands in parentheses: print (a > b).
func comparison(s string) bool {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth--
		case '>':
			return depth > 0
		}
	}
	return false
}
