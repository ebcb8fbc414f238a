package markdown

import (
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// newParser parses CommonMark with tables and strikethrough. It is built with the first block, not at start. goldmark's own
// extensions for these come in one package, which compiles regular expressions of 0.3 MB whenever it is linked in.
var newParser = sync.OnceValue(func() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(append(parser.DefaultInlineParsers(), util.Prioritized(strikeParser{}, 500))...),
		parser.WithParagraphTransformers(append(parser.DefaultParagraphTransformers(), util.Prioritized(tableParser{}, 200))...),
	)
})

// A tableNode has the cells of its header and then of each row as children, one *ast.TextBlock for each column.
type tableNode struct {
	ast.BaseBlock
	columns []string // how each is aligned: "-", ":-", "-:" or ":-:", as in the delimiter row
}

var kindTable = ast.NewNodeKind("Table")

func (*tableNode) Kind() ast.NodeKind              { return kindTable }
func (t *tableNode) Dump(source []byte, level int) { ast.DumpHelper(t, source, level, nil, nil) }

// tableParser makes a table of a paragraph whose second or later line is a delimiter row.
type tableParser struct{}

func (tableParser) Transform(p *ast.Paragraph, reader text.Reader, _ parser.Context) {
	lines, src := p.Lines(), reader.Source()
	for i := 1; i < lines.Len(); i++ {
		line := lines.At(i)
		columns := delimiterRow(string(line.Value(src)))
		if columns == nil {
			continue
		}
		if header := tableRow(lines.At(i-1), src); len(header) != len(columns) {
			return
		}
		t := &tableNode{columns: columns}
		for j := i - 1; j < lines.Len(); j++ {
			if j == i {
				continue
			}
			row := tableRow(lines.At(j), src)
			for c := range columns {
				cell := ast.NewTextBlock()
				if c < len(row) {
					cell.Lines().Append(row[c])
				}
				t.AppendChild(t, cell)
			}
		}
		parent := p.Parent()
		parent.InsertAfter(parent, p, t)
		if i == 1 {
			parent.RemoveChild(parent, p)
			return
		}
		p.Lines().SetSliced(0, i-1)
		last := p.Lines().At(i - 2)
		p.Lines().Set(i-2, last.TrimRightSpace(src))
		return
	}
}

// delimiterRow returns the alignment of each column, or nil for another line. A line of dashes alone is another: it makes a
// heading of the line above.
func delimiterRow(line string) (columns []string) {
	line = strings.TrimSpace(line)
	if !strings.ContainsAny(line, "|:") {
		return nil
	}
	for cell := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|") {
		cell = strings.TrimSpace(cell)
		dashes := strings.TrimSuffix(strings.TrimPrefix(cell, ":"), ":")
		if dashes == "" || strings.Trim(dashes, "-") != "" {
			return nil
		}
		left, right := "", ""
		if cell[0] == ':' {
			left = ":"
		}
		if cell[len(cell)-1] == ':' {
			right = ":"
		}
		columns = append(columns, left+"-"+right)
	}
	return columns
}

// tableRow splits a line at each | without a backslash before it.
func tableRow(line text.Segment, src []byte) (row []text.Segment) {
	line = line.TrimLeftSpace(src)
	line = line.TrimRightSpace(src)
	s := line.Value(src)
	start := 0
	if len(s) > 0 && s[0] == '|' {
		start = 1
	}
	for i := start; i <= len(s) && start < len(s); i++ {
		if i == len(s) || s[i] == '|' && s[i-1] != '\\' {
			cell := text.NewSegment(line.Start+start, line.Start+i)
			cell = cell.TrimLeftSpace(src)
			row = append(row, cell.TrimRightSpace(src))
			start = i + 1
		}
	}
	return row
}

// A strikeNode is text between ~ or ~~.
type strikeNode struct{ ast.BaseInline }

var kindStrike = ast.NewNodeKind("Strikethrough")

func (*strikeNode) Kind() ast.NodeKind              { return kindStrike }
func (s *strikeNode) Dump(source []byte, level int) { ast.DumpHelper(s, source, level, nil, nil) }

// strikeParser is both the parser of ~ and what pairs them.
type strikeParser struct{}

func (strikeParser) Trigger() []byte         { return []byte{'~'} }
func (strikeParser) IsDelimiter(b byte) bool { return b == '~' }
func (strikeParser) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char
}
func (strikeParser) OnMatch(int) ast.Node { return &strikeNode{} }

func (p strikeParser) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, segment := block.PeekLine()
	d := parser.ScanDelimiter(line, before, 1, p)
	if d == nil || d.OriginalLength > 2 || before == '~' { // a run of three is text; goldmark then offers its rest, too
		return nil
	}
	d.Segment = segment.WithStop(segment.Start + d.OriginalLength)
	block.Advance(d.OriginalLength)
	pc.PushDelimiter(d)
	return d
}
