package risk

import "strings"

var (
	sqlWideRe  = lazyRe(`(?i)\b(drop\s+(database|schema|table|user|role)|truncate\b|delete\s+from\s+[\w."` + "`" + `]+\s*(;|$)|dropDatabase|\.drop\(|flushall|flushdb|deleteMany\(\s*\{\s*\})`)
	sqlWriteRe = lazyRe(`(?i)\b(insert|update|delete|alter|create|grant|revoke|replace|merge|call|exec|execute|do|set|copy|load|attach|detach|vacuum|reindex|import|rename|lock|drop|truncate|pragma\s+\w+\s*=|insertOne|insertMany|updateOne|updateMany|deleteOne|deleteMany|begin|commit|rollback)\b`)
	sqlRunRe   = lazyRe(`(?i)(\\!|\\copy\b.*\bprogram\b|copy\b.*\b(from|to)\s+program\b|\bsystem\s|\.shell\b|\.system\b|load_extension|sys_exec|xp_cmdshell|into\s+(out|dump)file|load_file\s*\(|pg_read_file|pg_execute|lo_export|\\o\s*\|)`)
	sqlReadRe  = lazyRe(`(?i)^\s*(select|show|describe|desc|explain|with|pragma\s+\w+\s*(\(|;|$)|\\[dlc]\w*|\.(tables|schema|databases|indexes|dump|mode|headers?)|values|table|get|keys|info|scan|ttl|type|exists|llen|hget|hgetall|lrange|smembers|db\.\w+\.(find|count|aggregate)|ping)\b`)
)

var sqlUpdateRe = lazyRe(`(?i)\bupdate\s+\S+\s+set\b`)

// wideSQL finds statements that drop or empty data: also an update without a condition.
func wideSQL(s string) bool {
	if sqlWideRe().MatchString(s) {
		return true
	}
	for part := range strings.SplitSeq(s, ";") {
		if sqlUpdateRe().MatchString(part) && !strings.Contains(strings.ToLower(part), "where") {
			return true
		}
	}
	return false
}

// dotCommands judges the files that sqlite's own commands write or run.
func (a *analysis) dotCommands(s string, sp Span, st *state) {
	for line := range strings.Lines(s) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		f := field{s: strings.Trim(words[len(words)-1], `"'`), known: true, span: sp}
		switch words[0] {
		case ".output", ".once", ".save", ".backup", ".clone", ".log", ".excel", ".archive":
			if f.s != "stdout" && f.s != "off" {
				a.touch(Write, &f, st, touchOptions{})
			}
		case ".read", ".load", ".import":
			f.s = strings.Trim(words[1], `"'`)
			if rest, ok := strings.CutPrefix(f.s, "|"); ok {
				a.raiseBy(rest, sp, st)
			} else if words[0] != ".import" {
				a.note(High, RunCode, sp, "runs statements or code from "+show(f.s))
			}
		}
	}
}

// doSQL judges clients of databases by the statement they are given.
func (a *analysis) doSQL(c *cmdCall) {
	var text *field
	remote := c.name != "sqlite3" && c.name != "duckdb"
	for i := range c.opts {
		o := &c.opts[i]
		if o.val == nil {
			continue
		}
		switch o.name {
		case "-c", "--command", "-e", "--execute", "--eval", "-Q", "-q", "--query", "-cmd":
			text = o.val
		case "-f", "--file", "-i", "-init":
			a.touch(Read, o.val, c.st, touchOptions{})
			a.note(High, RunCode, o.span, "runs statements from a file")
		case "-o", "--output", "-L", "--log-file":
			a.touch(Write, o.val, c.st, touchOptions{})
		}
	}
	if text == nil {
		switch c.name {
		case "sqlite3", "duckdb":
			if len(c.operands) > 1 {
				text = &c.operands[1]
			}
			if len(c.operands) > 0 && c.operands[0].s != ":memory:" {
				a.touch(Read, &c.operands[0], c.st, touchOptions{})
			}
		case "redis-cli":
			if len(c.operands) > 0 {
				f := c.operands[0]
				f.s = joinFields(c.operands)
				text = &f
			}
		}
	}
	if text == nil && c.st.stdin.text != nil {
		text = &field{s: *c.st.stdin.text, known: true, span: c.span}
	}
	where := "a database"
	if text == nil {
		if c.has("-l", "--list", "--version", "-V") {
			a.note(Low, Read, c.span, "lists databases")
			return
		}
		a.note(High, Unknown, c.span, "works on "+where+" in ways that are not known here")
		return
	}
	if remote {
		a.facts.fetched = true
	}
	s := text.s
	a.spend(len(s) / bytesMatched)
	if !remote {
		a.dotCommands(s, text.span, c.st)
	}
	switch {
	case sqlRunRe().MatchString(s):
		a.runs()
		a.note(High, RunCode, text.span, "a statement that runs programs or reaches files")
		for _, mark := range []string{`\!`, ".shell", ".system", "system ", `\o |`, `\o|`} {
			if i := strings.Index(s, mark); i >= 0 {
				a.raiseBy(s[i+len(mark):], text.span, c.st)
			}
		}
		a.commandsIn(c, s, text.span)
		if wideSQL(s) {
			a.note(Critical, Delete, text.span, "drops or empties data").cannotUndo()
		}
	case wideSQL(s):
		a.note(Critical, Delete, text.span, "drops or empties data").cannotUndo()
	case text.opaque():
		a.opaque()
		a.note(High, Unknown, text.span, "a statement that is not known here")
	case sqlReadRe().MatchString(s) && !sqlWriteRe().MatchString(s):
		if remote {
			a.note(Medium, Read, text.span, "asks "+where)
		} else {
			a.note(Low, Read, text.span, "asks "+where)
		}
	default:
		a.note(High, Write, text.span, "changes "+where).cannotUndo()
		if !remote && len(c.operands) > 0 {
			a.touch(Write, &c.operands[0], c.st, touchOptions{})
		}
	}
}
