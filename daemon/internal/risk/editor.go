package risk

import (
	"slices"
	"strings"
)

// editorScripts are the options by which editors take commands or files of them.
var editorScripts = map[string][]string{
	"emacs": {"-eval", "-execute", "-l", "-load", "-f", "-funcall", "-script", "-insert"}, "emacsclient": {"-eval", "-e"},
	"ed": {}, "red": {}, "ex": {"-c", "-cmd"}, "": {"-c", "-cmd", "-S", "-s", "-u", "-U", "-W", "-w", "-i"},
}

// doVim judges editors: they cannot be driven without a person, and run what their options hold.
func (a *analysis) doVim(c *cmdCall) {
	a.base(c)
	scripts, ok := editorScripts[c.name]
	if !ok {
		scripts = editorScripts[""]
	}
	for i := 1; i < len(c.fields); i++ {
		f := &c.fields[i]
		option, value, joined := strings.Cut(f.s, "=")
		option = "-" + strings.TrimLeft(option, "-")
		switch {
		case strings.HasPrefix(f.s, "-") && slices.Contains(scripts, option):
			a.runs()
			a.note(High, RunCode, f.span, "runs commands in the editor")
			v := *f
			v.s = value
			if !joined && i+1 < len(c.fields) {
				i++
				v = c.fields[i]
			}
			a.editorScript(c, &v)
		case option == "-batch" || option == "-es" || option == "-Es" || option == "-e" && c.name == "ex":
			a.runs()
			a.note(High, RunCode, f.span, "runs commands in the editor")
		case strings.HasPrefix(f.s, "+") && len(f.s) > 1 && !isDigits(f.s[1:]) && f.s[1] != '/':
			a.runs()
			a.note(High, RunCode, f.span, "runs commands in the editor")
			v := *f
			v.s = f.s[1:]
			a.editorScript(c, &v)
		case strings.HasPrefix(f.s, "-") || strings.HasPrefix(f.s, "+"):
		default:
			if c.name == "view" || c.name == "less" {
				a.touch(Read, f, c.st, touchOptions{})
			} else {
				a.touch(Write, f, c.st, touchOptions{verb: "edits"})
			}
		}
	}
	if t := c.st.stdin.text; t != nil {
		a.runs()
		a.note(High, RunCode, c.span, "runs commands in the editor")
		a.editorScript(c, &field{s: *t, known: true, span: c.span})
	}
}

// editorWriteRe finds the file that a command of an editor writes: :w FILE, :saveas FILE, w FILE.
var editorWriteRe = lazyRe(`(?:^|[|\n:])\s*(?:silent!?\s+)?\d*[,%$]?\d*\s*(?:w|wq|wri\w*|sav\w*|x|up\w*)!?\s+(?:>>\s*)?([^\s|!"'][^\s|]*)`)

// editorScript judges commands given to an editor for what they run and write.
func (a *analysis) editorScript(c *cmdCall, f *field) {
	a.spend(len(f.s) / bytesMatched)
	for line := range strings.Lines(f.s) {
		k := strings.IndexByte(line, '!')
		if k < 0 {
			continue
		}
		a.raiseBy(strings.TrimSpace(line[k+1:]), f.span, c.st) // with its pipes
		for part := range strings.SplitSeq(line, "|") {
			if k := strings.IndexByte(part, '!'); k >= 0 {
				v := *f
				v.s = strings.TrimSpace(part[k+1:])
				if editorWriteRe().MatchString(part) {
					continue // :w! FILE
				}
				a.shellText(c, &v, c.st)
			}
		}
	}
	for _, m := range editorWriteRe().FindAllStringSubmatch(f.s, 16) {
		a.touch(Write, &field{s: m[1], known: true, span: f.span}, c.st, touchOptions{})
	}
	a.commandsIn(c, f.s, f.span)
	a.wideLoss(f.s, f.span)
}
