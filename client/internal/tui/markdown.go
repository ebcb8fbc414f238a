package tui

import (
	"strings"
	"sync"

	"charm.land/glamour/v2"
	gansi "charm.land/glamour/v2/ansi"
	"github.com/charmbracelet/colorprofile"
)

// mdWidth is the widest that prose is set; longer lines tire the eye.
const mdWidth = 100

// markdown renders whole blocks. Rendering costs about 8 ms for each KiB (perf-limits.md section 6), so each block is
// rendered once, when it is complete, and never on the event loop. It is safe for concurrent use.
type markdown struct {
	profile colorprofile.Profile
	ascii   bool

	mu sync.Mutex
	// Guarded by mu, which also serializes rendering: a TermRenderer is not safe for concurrent use.
	width    int
	renderer *glamour.TermRenderer
}

// Render returns block set for a terminal of width cells, without empty lines around it.
func (m *markdown) Render(block string, width int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	width = min(max(width, 10), mdWidth)
	if w := tableWidth(block); w > 0 {
		width = min(width, w) // glamour stretches tables over the whole width
	}
	if m.renderer == nil || m.width != width {
		options := []glamour.TermRendererOption{
			glamour.WithStyles(m.style()), glamour.WithWordWrap(width), glamour.WithInlineTableLinks(true),
		}
		if m.profile >= colorprofile.ANSI {
			options = append(options, glamour.WithChromaFormatter("terminal16"))
		} else {
			options = append(options, glamour.WithChromaFormatter("noop"))
		}
		r, err := glamour.NewTermRenderer(options...)
		if err != nil { // only a style that cannot be: ours is a constant
			return strings.Trim(block, "\n")
		}
		m.renderer, m.width = r, width
	}
	out, err := m.renderer.Render(block)
	if err != nil {
		return strings.Trim(block, "\n")
	}
	lines := strings.Split(out, "\n")
	for i, l := range lines {
		lines[i] = trimPadding(l)
	}
	for len(lines) > 0 && cells(lines[0]) == 0 {
		lines = lines[1:]
	}
	for len(lines) > 0 && cells(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	return strings.Join(lines, "\n")
}

// trimPadding removes the spaces with which glamour fills its lines, so that copied text has none and a narrower
// window wraps nothing that is not there.
func trimPadding(l string) string {
	for {
		cut := strings.TrimRight(l, " ")
		inner, reset := strings.CutSuffix(cut, "\x1b[m")
		if !reset {
			if inner, reset = strings.CutSuffix(cut, "\x1b[0m"); !reset {
				return cut
			}
		}
		bare := strings.TrimRight(inner, " ")
		open := strings.LastIndex(bare, "\x1b[")
		switch {
		case open >= 0 && strings.IndexByte(bare[open:], 'm') == len(bare)-open-1 && !isReset(bare[open:]):
			l = bare[:open] // a style opened for spaces alone
		case isReset(bare[max(0, open):]) && open >= 0:
			l = bare
		case bare == inner:
			return cut
		default:
			return bare + "\x1b[m"
		}
	}
}

func isReset(seq string) bool { return seq == "\x1b[m" || seq == "\x1b[0m" }

// tableWidth is the width that a table would like, 0 for a block that is none.
func tableWidth(block string) int {
	lines := strings.Split(strings.TrimSpace(block), "\n")
	if len(lines) < 2 || !strings.Contains(lines[0], "|") || strings.Trim(lines[1], "|-: \t") != "" || !strings.Contains(lines[1], "-") {
		return 0
	}
	var widths []int
	for _, l := range lines {
		for i, c := range strings.Split(strings.Trim(strings.TrimSpace(l), "|"), "|") {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if strings.Trim(c, "-: ") != "" {
				widths[i] = max(widths[i], cells(strings.TrimSpace(c)))
			}
		}
	}
	total := len(widths) - 1
	for _, w := range widths {
		total += w + 2
	}
	return total
}

func (m *markdown) style() gansi.StyleConfig {
	on := true
	str := func(s string) *string {
		if m.profile < colorprofile.ANSI {
			return nil
		}
		return &s
	}
	text := func(s string) *string { return &s }
	n := func(u uint) *uint { return &u }
	bullet, quote, rule, ticked, unticked := "• ", "│ ", "────────", "[✓] ", "[ ] "
	if m.ascii {
		bullet, quote, rule, ticked = "* ", "| ", "--------", "[x] "
	}
	heading := gansi.StyleBlock{StylePrimitive: gansi.StylePrimitive{Bold: &on, Color: str("6")}}
	c := gansi.StyleConfig{
		Document:       gansi.StyleBlock{Margin: n(0)},
		BlockQuote:     gansi.StyleBlock{StylePrimitive: gansi.StylePrimitive{Faint: &on}, Indent: n(1), IndentToken: text(quote)},
		List:           gansi.StyleList{LevelIndent: 2},
		Heading:        heading,
		H1:             gansi.StyleBlock{StylePrimitive: gansi.StylePrimitive{Bold: &on, Underline: &on, Color: str("6")}},
		H2:             heading,
		H3:             heading,
		H4:             heading,
		H5:             heading,
		H6:             heading,
		Strikethrough:  gansi.StylePrimitive{CrossedOut: &on},
		Emph:           gansi.StylePrimitive{Italic: &on},
		Strong:         gansi.StylePrimitive{Bold: &on},
		HorizontalRule: gansi.StylePrimitive{Faint: &on, Format: rule + "\n"},
		Item:           gansi.StylePrimitive{BlockPrefix: bullet},
		Enumeration:    gansi.StylePrimitive{BlockPrefix: ". "},
		Task:           gansi.StyleTask{Ticked: ticked, Unticked: unticked},
		Link:           gansi.StylePrimitive{Color: str("4"), Underline: &on},
		LinkText:       gansi.StylePrimitive{Bold: &on},
		Image:          gansi.StylePrimitive{Color: str("4"), Underline: &on},
		ImageText:      gansi.StylePrimitive{Format: "image: {{.text}}"},
		Code:           gansi.StyleBlock{StylePrimitive: gansi.StylePrimitive{Color: str("3")}},
		CodeBlock:      gansi.StyleCodeBlock{StyleBlock: gansi.StyleBlock{Margin: n(2)}},
		Table:          gansi.StyleTable{},
	}
	if m.profile >= colorprofile.ANSI {
		p := func(color string, bold bool) gansi.StylePrimitive {
			s := gansi.StylePrimitive{}
			if color != "" {
				s.Color = &color
			}
			if bold {
				s.Bold = &on
			}
			return s
		}
		// The terminal's own colours: readable on light and dark alike.
		const green, red, blue, purple, teal = "#ansidarkgreen", "#ansidarkred", "#ansidarkblue", "#ansipurple", "#ansiteal"
		c.CodeBlock.Chroma = &gansi.Chroma{
			Comment: p("#ansidarkgray", false), CommentPreproc: p(purple, false),
			Keyword: p(blue, true), KeywordReserved: p(blue, true), KeywordNamespace: p(purple, false), KeywordType: p(teal, false),
			NameBuiltin: p(teal, false), NameTag: p(blue, false), NameAttribute: p(teal, false), NameFunction: p(teal, false),
			NameDecorator: p(purple, false), NameClass: p(teal, false), NameConstant: p(purple, false),
			LiteralNumber: p(purple, false), LiteralString: p(green, false), LiteralStringEscape: p(red, false),
			GenericDeleted: p(red, false), GenericInserted: p(green, false), GenericSubheading: p(teal, false),
		}
	}
	return c
}
