// Package markdown renders the Markdown of an answer for a terminal, block by block as it grows.
package markdown

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
	"github.com/charmbracelet/colorprofile"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"sublet/client/internal/tui/cells"
	"sublet/wire/visible"
)

const (
	// maxWidth is the widest that prose is set; longer lines tire the eye.
	maxWidth = 100
	// minWidth is the width below which nested blocks are no longer indented.
	minWidth = 10
	// maxNested is how many quotes and list items may begin on one line. The parser's time grows with the square of that number.
	maxNested = 100
)

// Renderer renders whole blocks.
type Renderer struct {
	Profile colorprofile.Profile
}

// Render returns block, made safe to display and laid out for a terminal of width cells, without empty lines around it. Lines of
// code are not wrapped, so that a copy of them is the code. A block in which one line begins more than maxNested quotes or items is
// shown as it is written.
func (m *Renderer) Render(block string, width int) string {
	block = visible.Text(block)
	width = min(max(width, minWidth), maxWidth)
	for line := range strings.Lines(block) {
		if nested(line) > maxNested {
			return strings.Join(reflow(strings.TrimRight(block, "\n"), width), "\n")
		}
	}
	p := page{src: []byte(block), md: m}
	return strings.Join(p.blocks(newParser().Parse(text.NewReader(p.src)), width, ""), "\n")
}

// nested returns how many quotes and list items begin on a line, each inside the one before, but at most maxNested+1.
func nested(line string) (n int) {
	for ; n <= maxNested; n++ {
		line = strings.TrimLeft(line, " \t")
		if after, quote := strings.CutPrefix(line, ">"); quote {
			line = after
			continue
		}
		after := strings.TrimLeft(line, "0123456789")
		if after == "" || !strings.Contains("-*+.)", after[:1]) || !strings.HasPrefix(after[1:], " ") {
			break
		}
		line = after[1:]
	}
	return n
}

// sgr returns the parameters of an escape sequence (SGR) for attributes and a colour, as far as the terminal has them.
func (m *Renderer) sgr(attributes, color string) string {
	switch {
	case m.Profile <= colorprofile.NoTTY:
		return ""
	case m.Profile <= colorprofile.ASCII:
		return attributes
	}
	return join(attributes, color)
}

// join returns the parameters of two styles as one. What a has already is not repeated: emphasis nests without end.
func join(a, b string) string {
	switch {
	case a == "" || b == "":
		return a + b
	case strings.Contains(";"+a+";", ";"+b+";"):
		return a
	}
	return a + ";" + b
}

// paint returns s in the style that the SGR parameters describe, ended on each of its lines.
func paint(sgr, s string) string {
	if sgr == "" || s == "" {
		return s
	}
	on, off := "\x1b["+sgr+"m", "\x1b[m"
	return on + strings.ReplaceAll(s, "\n", off+"\n"+on) + off
}

// page is one text while it is rendered.
type page struct {
	src  []byte
	md   *Renderer
	skip int // the text before this place in src is not shown: the box of a task
}

// blocks returns the lines of the blocks inside parent, with an empty line between two of them unless parent is an item of a
// tight list.
func (p *page) blocks(parent ast.Node, width int, sgr string) (out []string) {
	tight := false
	if list, ok := parent.Parent().(*ast.List); ok {
		tight = list.IsTight
	}
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		lines := p.block(n, width, sgr)
		if len(out) > 0 && len(lines) > 0 && !tight {
			out = append(out, "")
		}
		out = append(out, lines...)
	}
	return out
}

func (p *page) block(n ast.Node, width int, sgr string) []string {
	switch n := n.(type) {
	case *ast.Paragraph, *ast.TextBlock:
		return reflow(p.inline(n, sgr), width)
	case *ast.Heading:
		style := p.md.sgr("1", "36")
		if n.Level == 1 {
			style = p.md.sgr("1;4", "36")
		}
		return reflow(p.inline(n, join(sgr, style)), width)
	case *ast.List:
		return p.list(n, width, sgr)
	case *ast.Blockquote:
		sgr = join(sgr, p.md.sgr("2", ""))
		bar := paint(sgr, "│") + " "
		return p.indented(n, bar, bar, width, sgr)
	case *ast.FencedCodeBlock:
		return p.code(n, string(n.Language(p.src)))
	case *ast.CodeBlock:
		return p.code(n, "")
	case *ast.HTMLBlock:
		raw := string(n.Lines().Value(p.src))
		if n.HasClosure() {
			raw += string(n.ClosureLine.Value(p.src))
		}
		return reflow(paint(sgr, strings.TrimRight(raw, "\n")), width)
	case *ast.ThematicBreak:
		return []string{paint(join(sgr, p.md.sgr("2", "")), strings.Repeat("─", 8))}
	case *tableNode:
		return p.table(n, width, sgr)
	}
	return nil // a link reference definition shows nothing
}

// reflow wraps s at spaces into lines of at most width cells, without spaces at their ends.
func reflow(s string, width int) []string {
	lines := cells.Wrap(s, width)
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return lines
}

// indented returns the blocks inside n, with first before the first line and rest, of the same width, before the others, unless too
// few cells would be left for them.
func (p *page) indented(n ast.Node, first, rest string, width int, sgr string) []string {
	indent := cells.Width(rest)
	if width-indent < minWidth {
		return p.blocks(n, width, sgr)
	}
	lines := p.blocks(n, width-indent, sgr)
	if len(lines) == 0 {
		lines = []string{""}
	}
	for i, l := range lines {
		if l == "" {
			first = strings.TrimRight(first, " ")
		}
		lines[i] = first + l
		first = rest
	}
	return lines
}

func (p *page) list(list *ast.List, width int, sgr string) (out []string) {
	number := list.Start
	for item := list.FirstChild(); item != nil; item = item.NextSibling() {
		marker := "• "
		if list.IsOrdered() {
			marker = strconv.Itoa(number) + string(list.Marker) + " "
			number++
		}
		if box, checked := p.task(item); box {
			marker = "[ ] "
			if checked {
				marker = "[✓] "
			}
		}
		if len(out) > 0 && !list.IsTight {
			out = append(out, "")
		}
		out = append(out, p.indented(item, paint(sgr, marker), strings.Repeat(" ", cells.Width(marker)), width, sgr)...)
	}
	return out
}

// task reports whether an item of a list begins with a box, and whether that is checked. The box is then not part of its text.
func (p *page) task(item ast.Node) (box, checked bool) {
	switch n := item.FirstChild().(type) {
	case *ast.Paragraph, *ast.TextBlock:
		if n.Lines().Len() == 0 {
			return false, false
		}
		line := n.Lines().At(0)
		s := string(line.Value(p.src))
		checked = strings.HasPrefix(s, "[x] ") || strings.HasPrefix(s, "[X] ")
		if checked || strings.HasPrefix(s, "[ ] ") {
			p.skip = line.Start + len("[ ] ")
			return true, checked
		}
	}
	return false, false
}

func (p *page) code(n ast.Node, language string) []string {
	code := strings.TrimRight(string(n.Lines().Value(p.src)), "\n")
	if p.md.Profile >= colorprofile.ANSI {
		code = highlight(code, language)
	}
	lines := strings.Split(code, "\n")
	for i, l := range lines {
		if l != "" {
			lines[i] = "  " + l
		}
	}
	return lines
}

// table sets each cell on as few lines as the width allows.
func (p *page) table(t *tableNode, width int, sgr string) []string {
	var cells []string
	for cell := t.FirstChild(); cell != nil; cell = cell.NextSibling() {
		cells = append(cells, p.inline(cell, sgr))
	}
	rows := slices.Collect(slices.Chunk(cells, len(t.columns)))
	line := "─"
	border := lipgloss.Border{Top: line, Bottom: line, Left: "│", Right: "│", Middle: "┼"}
	set := table.New().Headers(rows[0]...).Rows(rows[1:]...).Border(border).
		BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).
		StyleFunc(func(_, column int) lipgloss.Style {
			style := lipgloss.NewStyle().Padding(0, 1)
			switch t.columns[column] {
			case "-:":
				return style.Align(lipgloss.Right)
			case ":-:":
				return style.Align(lipgloss.Center)
			}
			return style
		})
	text := set.String()
	if lipgloss.Width(text) > width {
		text = set.Width(width).String()
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return lines
}

// inline returns the text inside n, in which a line feed is a line break that the author asked for.
func (p *page) inline(n ast.Node, sgr string) string {
	var b strings.Builder
	p.write(&b, n, sgr)
	return b.String()
}

// write writes the inline nodes inside parent to b, painted in the style sgr (SGR parameters, "" = none) and their own. It omits nodes of
// other kinds.
func (p *page) write(b *strings.Builder, parent ast.Node, sgr string) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			seg := n.Segment.WithStart(min(max(n.Segment.Start, p.skip), n.Segment.Stop))
			s := string(seg.Value(p.src))
			if !n.IsRaw() {
				s = unescape(s)
			}
			switch {
			case n.HardLineBreak():
				s += "\n"
			case n.SoftLineBreak():
				s += " "
			}
			b.WriteString(paint(sgr, s))
		case *ast.CodeSpan:
			var code strings.Builder
			for c := n.FirstChild(); c != nil; c = c.NextSibling() {
				if t, ok := c.(*ast.Text); ok {
					code.Write(t.Segment.Value(p.src))
				}
			}
			s := strings.ReplaceAll(code.String(), "\n", " ")
			if _, cell := parent.Parent().(*tableNode); cell {
				s = strings.ReplaceAll(s, `\|`, "|")
			}
			b.WriteString(paint(join(sgr, p.md.sgr("", "33")), s))
		case *ast.Emphasis:
			style := p.md.sgr("3", "")
			if n.Level == 2 {
				style = p.md.sgr("1", "")
			}
			p.write(b, n, join(sgr, style))
		case *strikeNode:
			p.write(b, n, join(sgr, p.md.sgr("9", "")))
		case *ast.Link:
			label := p.inline(n, "")
			url := unescape(string(n.Destination))
			if label != url {
				p.write(b, n, join(sgr, p.md.sgr("1", "")))
				b.WriteString(paint(sgr, " "))
			}
			b.WriteString(paint(join(sgr, p.md.sgr("4", "34")), url))
		case *ast.Image:
			b.WriteString(paint(sgr, "image: "+p.inline(n, "")+" "))
			b.WriteString(paint(join(sgr, p.md.sgr("4", "34")), unescape(string(n.Destination))))
		case *ast.AutoLink:
			b.WriteString(paint(join(sgr, p.md.sgr("4", "34")), string(n.Label(p.src))))
		case *ast.RawHTML:
			s := string(n.Segments.Value(p.src))
			if strings.HasPrefix(s, "<br") {
				s = "\n"
			}
			b.WriteString(paint(sgr, s))
		}
	}
}

var escape = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\\[[:punct:]]|&#?\w+;`) })

// unescape resolves backslash escapes and character references. What a reference stands for is made visible like all text
// that a model writes: &#27; would begin an escape sequence.
func unescape(s string) string {
	return visible.Line(escape().ReplaceAllStringFunc(s, func(found string) string {
		if found[0] == '\\' {
			return found[1:]
		}
		return string(util.ResolveEntityNames(util.ResolveNumericReferences([]byte(found))))
	}))
}
