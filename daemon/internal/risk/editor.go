package risk

import "strings"

// doVim judges editors: they cannot be driven without a person, and run what their options hold.
func (a *analysis) doVim(c *cmdCall) {
	a.base(c)
	for i := 1; i < len(c.fields); i++ {
		f := &c.fields[i]
		s := f.s
		switch {
		case s == "-c" || s == "--cmd" || s == "-S" || s == "-s" || s == "-u" || s == "-W" || s == "--eval" || s == "-f" && c.name == "emacs" || s == "-l" || s == "--load" || s == "--batch":
			a.runs()
			a.note(High, RunCode, f.span, "runs commands in the editor")
			if i+1 < len(c.fields) && s != "--batch" {
				i++
				v := c.fields[i]
				for part := range strings.SplitSeq(v.s, "|") {
					if k := strings.IndexByte(part, '!'); k >= 0 {
						v.s = part[k+1:]
						a.shellText(c, &v, c.st)
					}
				}
			}
		case strings.HasPrefix(s, "+") && len(s) > 1 && !isDigits(s[1:]) && s[1] != '/':
			a.runs()
			a.note(High, RunCode, f.span, "runs commands in the editor")
			if k := strings.IndexByte(s, '!'); k >= 0 {
				v := *f
				v.s = s[k+1:]
				a.shellText(c, &v, c.st)
			}
		case strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+"):
		default:
			if c.name == "view" || c.name == "less" {
				a.touch(Read, f, c.st, touchOptions{})
			} else {
				a.touch(Write, f, c.st, touchOptions{verb: "edits"})
			}
		}
	}
}
