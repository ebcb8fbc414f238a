package markdown

import (
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"sublet/client/internal/tui/cells"
)

const (
	// longBlock is a size in bytes: an unfinished block of that size or more is parsed again only when it has grown by a sixteenth.
	longBlock = 6 << 10
	// liveBytes is how much of the unfinished block is drawn while it grows.
	liveBytes = 2 * longBlock
)

// blockParser finds where the blocks of a text begin, and parses nothing inside them.
var blockParser = sync.OnceValue(func() parser.Parser {
	return parser.NewParser(parser.WithBlockParsers(parser.DefaultBlockParsers()...))
})

// Stream cuts a growing Markdown text into blocks that are complete: a paragraph, a heading, a whole list, table or
// code block.
type Stream struct {
	rest string // not complete yet
	wait int    // the length of rest at which it is parsed again
}

// Add appends text and returns the blocks that it completed.
func (m *Stream) Add(added string) (blocks []string) {
	m.rest += added
	if !strings.Contains(added, "\n") || len(m.rest) < m.wait {
		return nil
	}
	end := strings.LastIndexByte(m.rest, '\n') + 1
	// What is complete is what a line of text behind it would not belong to.
	doc := blockParser().Parse(text.NewReader([]byte(m.rest[:end] + "x")))
	from := 0
	var open ast.Node
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		start := m.lineStart(n.Pos())
		if open != nil && start == end && grows(open) {
			break
		}
		if open != nil {
			blocks = append(blocks, m.rest[from:start])
			from = start
		}
		open = n
	}
	m.rest, m.wait = m.rest[from:], 0
	if len(m.rest) > longBlock {
		m.wait = len(m.rest) + len(m.rest)/16
	}
	return blocks
}

// lineStart returns where the line begins that has the byte at pos.
func (m *Stream) lineStart(pos int) int { return strings.LastIndexByte(m.rest[:pos], '\n') + 1 }

// grows reports whether more of a block may follow the text behind it.
func grows(block ast.Node) bool {
	switch block.(type) {
	case *ast.List, *ast.CodeBlock:
		return true
	}
	return false
}

// Rest is what is not complete yet.
func (m *Stream) Rest() string { return m.rest }

// Finish returns what is left, complete or not, and starts again.
func (m *Stream) Finish() string {
	rest := m.rest
	*m = Stream{}
	if strings.TrimSpace(rest) == "" {
		return ""
	}
	return rest
}

// Live returns the last lines, at most height of them, of a block that is not complete yet. It is cheap enough for every frame.
func (m *Renderer) Live(block string, width, height int) []string {
	if cut := len(block) - liveBytes; cut > 0 {
		fence, _, _ := strings.Cut(block, "\n")
		block = strings.ToValidUTF8(block[cut+strings.IndexByte(block[cut:], '\n')+1:], "")
		if strings.HasPrefix(fence, "```") || strings.HasPrefix(fence, "~~~") {
			block = fence + "\n" + block
		}
	}
	return cells.Last(strings.Split(m.Render(block, width), "\n"), height)
}
