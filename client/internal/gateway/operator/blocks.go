package operator

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

// A responseBlock is one of S4's six kinds of output (F13, F14): which fields are there depends on Type.
type responseBlock struct {
	Type     string          `json:"type"` // text, tool, code, svg, image, error
	Text     *string         `json:"text,omitempty"`
	ID       string          `json:"id,omitempty"`
	Name     string          `json:"name,omitempty"`
	Input    json.RawMessage `json:"input,omitempty"`
	Language *string         `json:"language,omitempty"`
	Source   *string         `json:"source,omitempty"`
	Content  *string         `json:"content,omitempty"`
	Width    float64         `json:"width,omitempty"`
	Height   float64         `json:"height,omitempty"`
	URL      string          `json:"url,omitempty"`
	Alt      string          `json:"alt,omitempty"`
	Message  *string         `json:"message,omitempty"`
	Code     string          `json:"code,omitempty"`
}

func textBlock(s string) responseBlock { return responseBlock{Type: "text", Text: &s} }

func errorBlock(code, message string) responseBlock {
	return responseBlock{Type: "error", Message: &message, Code: code}
}

func codeBlock(language, source string) responseBlock {
	return responseBlock{Type: "code", Language: &language, Source: &source}
}

func svgBlock(content string) responseBlock {
	b := responseBlock{Type: "svg", Content: &content}
	if open := svgOpen().FindString(content); open != "" {
		b.Width, b.Height = svgSize(svgWidth(), open), svgSize(svgHeight(), open)
	}
	return b
}

var (
	svgOpen   = gateway.Pattern(`(?is)<svg\b[^>]*>`)
	svgWidth  = gateway.Pattern(`(?i)\swidth\s*=\s*["']([0-9]{1,6}(?:\.[0-9]{1,6})?)(?:px)?["']`)
	svgHeight = gateway.Pattern(`(?i)\sheight\s*=\s*["']([0-9]{1,6}(?:\.[0-9]{1,6})?)(?:px)?["']`)
)

func svgSize(rx *regexp.Regexp, open string) float64 {
	found := rx.FindStringSubmatch(open)
	if found == nil {
		return 0
	}
	n, _ := strconv.ParseFloat(found[1], 64) // the pattern lets nothing else through
	return n
}

// markdownBlocks splits Markdown into blocks: fenced code is code, or svg by its language; an image alone on its line is an
// image; the rest is text. An unclosed fence of a streaming answer contains what has arrived.
func markdownBlocks(text string) []responseBlock {
	var blocks []responseBlock
	var plain, body strings.Builder
	flush := func() {
		if strings.TrimSpace(plain.String()) != "" {
			blocks = append(blocks, textBlock(plain.String()))
		}
		plain.Reset()
	}
	fence, language := "", ""
	shut := func() {
		source := body.String()
		body.Reset()
		if strings.EqualFold(language, "svg") {
			blocks = append(blocks, svgBlock(source))
		} else {
			blocks = append(blocks, codeBlock(language, strings.TrimSuffix(source, "\n")))
		}
		fence = ""
	}
	for l := range strings.Lines(text) {
		switch mark, info := gateway.Fence(l); {
		case fence != "" && info == "" && strings.HasPrefix(mark, fence):
			shut()
		case fence != "":
			body.WriteString(l)
		case mark != "":
			flush()
			fence = mark
			language, _, _ = strings.Cut(info, " ")
		default:
			if found := imageLine().FindStringSubmatch(strings.TrimSpace(l)); found != nil {
				flush()
				blocks = append(blocks, responseBlock{Type: "image", URL: found[2], Alt: found[1]})
				continue
			}
			plain.WriteString(l)
		}
	}
	flush()
	if fence != "" {
		shut()
	}
	return blocks
}

var imageLine = gateway.Pattern(`^!\[([^\]]*)\]\(((?i:https?://|data:image/)[^\s)]+)\)$`)

// nativeBlock is a block of the daemon's in S4's words.
func nativeBlock(b *wire.Block) []responseBlock {
	switch b.Type {
	case "code", "tool_output", "interactive":
		if strings.EqualFold(b.Language, "svg") {
			return []responseBlock{svgBlock(b.Content)}
		}
		return []responseBlock{codeBlock(b.Language, b.Content)}
	case "diff":
		return []responseBlock{codeBlock("diff", b.Content)}
	case "error":
		return []responseBlock{errorBlock("", b.Content)}
	}
	return markdownBlocks(b.Content)
}

// blocks is the turn's answer so far as S4 has it, what failed in it included (L18, L30).
func (t *turn) blocks() []responseBlock {
	blocks := []responseBlock{}
	for _, it := range t.items {
		switch {
		case it.text != nil:
			blocks = append(blocks, markdownBlocks(it.text.String())...)
		case it.block != nil:
			blocks = append(blocks, nativeBlock(it.block)...)
		case it.tool != nil:
			blocks = append(blocks, responseBlock{Type: "tool", ID: string(it.tool.id), Name: it.tool.name, Input: it.tool.input})
			if it.tool.failed() {
				code, message := toolProblem(it.tool)
				blocks = append(blocks, errorBlock(code, message))
			}
		}
	}
	if t.over() && t.status != wire.StatusSuccess {
		p := t.problem()
		blocks = append(blocks, errorBlock(p.s4, p.message))
	} else if len(blocks) == 0 && t.over() && t.summary != "" {
		blocks = append(blocks, markdownBlocks(t.summary)...)
	}
	return blocks
}
