package operator

import (
	"regexp"
	"strconv"
	"strings"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

// The blocks of S4's output (F13, F14) are of six kinds: text, tool, code, svg, image, error.

func textBlock(s string) body { return body{"type": "text", "text": s} }

func errorBlock(code, message string) body {
	return body{"type": "error", "message": message}.with("code", code)
}

func codeBlock(language, source string) body {
	return body{"type": "code", "language": language, "source": source}
}

// svgBlock returns the block of an SVG document, with the width and the height of its svg element where they are positive numbers.
func svgBlock(content string) body {
	b := body{"type": "svg", "content": content}
	open := svgOpen().FindString(content)
	for name, rx := range map[string]*regexp.Regexp{"width": svgWidth(), "height": svgHeight()} {
		if found := rx.FindStringSubmatch(open); found != nil {
			if n, _ := strconv.ParseFloat(found[1], 64); n > 0 { // cannot fail: the pattern allows only numbers
				b[name] = n
			}
		}
	}
	return b
}

var (
	svgOpen   = gateway.Pattern(`(?is)<svg\b[^>]*>`)
	svgWidth  = gateway.Pattern(`(?i)\swidth\s*=\s*["']([0-9]{1,6}(?:\.[0-9]{1,6})?)(?:px)?["']`)
	svgHeight = gateway.Pattern(`(?i)\sheight\s*=\s*["']([0-9]{1,6}(?:\.[0-9]{1,6})?)(?:px)?["']`)
)

// markdownBlocks splits Markdown into blocks: fenced code is code, or svg by its language; an image alone on its line is an
// image; the rest is text.
func markdownBlocks(markdown string) []body {
	var blocks []body
	var f gateway.Fences
	for _, p := range append(f.Add(markdown), f.End()...) {
		switch language, _, _ := strings.Cut(p.Info, " "); {
		case !p.Code:
			blocks = append(blocks, textBlocks(p.Text)...)
		case strings.EqualFold(language, "svg"):
			blocks = append(blocks, svgBlock(p.Text))
		default:
			blocks = append(blocks, codeBlock(language, p.Text))
		}
	}
	return blocks
}

// textBlocks splits Markdown without fenced code into texts and images.
func textBlocks(markdown string) (blocks []body) {
	var text strings.Builder
	flush := func() {
		if strings.TrimSpace(text.String()) != "" {
			blocks = append(blocks, textBlock(text.String()))
		}
		text.Reset()
	}
	for l := range strings.Lines(markdown) {
		if found := imageLine().FindStringSubmatch(strings.TrimSpace(l)); found != nil {
			flush()
			blocks = append(blocks, body{"type": "image", "url": found[2]}.with("alt", found[1]))
			continue
		}
		text.WriteString(l)
	}
	flush()
	return blocks
}

var imageLine = gateway.Pattern(`^!\[([^\]]*)\]\(((?i:https?://|data:image/)[^\s)]+)\)$`)

// blocks returns the turn's answer so far as blocks of S4, with its failed tools and its own failure (L18, L30).
func (t *turn) blocks() []body {
	blocks := []body{}
	for _, it := range t.items {
		switch {
		case it.text != nil:
			blocks = append(blocks, markdownBlocks(it.text.String())...)
		case it.tool != nil:
			blocks = append(blocks, body{"type": "tool", "id": it.tool.id, "name": it.tool.name, "input": it.tool.input})
			if it.tool.failed() {
				code, message := toolProblem(it.tool)
				blocks = append(blocks, errorBlock(code, message))
			}
		}
	}
	if t.ended() && t.status != wire.StatusSuccess {
		p := problemOf(gateway.Why(t.status, t.failure))
		blocks = append(blocks, errorBlock(p.s4, p.message))
	} else if len(blocks) == 0 && t.ended() && t.summary != "" {
		blocks = append(blocks, markdownBlocks(t.summary)...)
	}
	return blocks
}
