package cli

import (
	"bytes"
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/util"

	"sublet/wire/visible"
)

// A page of a session loads nothing and runs nothing, whatever its text asks for.
const htmlHead = `<!doctype html>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>%s</title>
<style>
body { max-width: 60em; margin: 2em auto; padding: 0 1em; font: 1em/1.5 sans-serif; color-scheme: light dark }
p { white-space: pre-line }
pre { overflow: auto; padding: .7em; border: 1px solid #8886; border-radius: .3em }
</style>
`

// asHTML returns a session's Markdown as a page by itself, which a terminal can display too. HTML in it is not parsed, and so is shown as
// it is written; nor are tables: goldmark's extensions would cost each start of the program 260 kB.
func asHTML(title string, markdown []byte) (string, error) {
	var page bytes.Buffer
	fmt.Fprintf(&page, htmlHead, html.EscapeString(title))
	ofHTML := func(p util.PrioritizedValue) bool {
		return p.Value == parser.NewHTMLBlockParser() || p.Value == parser.NewRawHTMLParser()
	}
	md := goldmark.New(goldmark.WithParser(parser.NewParser(
		parser.WithBlockParsers(slices.DeleteFunc(parser.DefaultBlockParsers(), ofHTML)...),
		parser.WithInlineParsers(slices.DeleteFunc(parser.DefaultInlineParsers(), ofHTML)...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
	)))
	err := md.Convert(markdown, &page)
	parts := strings.Split(page.String(), "\t") // a tab stays one
	for i, part := range parts {
		parts[i] = visible.Text(part) // also what an entity stands for
	}
	return strings.Join(parts, "\t"), err
}
