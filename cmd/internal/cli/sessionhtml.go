package cli

import (
	"bytes"
	"fmt"
	"html"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer"
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
pre { overflow: auto; padding: .7em; border: 1px solid #8886; border-radius: .3em }
</style>
`

// asHTML returns a session's Markdown as a page by itself, which a terminal can display too. HTML in it is shown as it is
// written, and so are tables: goldmark's extensions would cost each start of the program 260 kB.
func asHTML(title string, markdown []byte) (string, error) {
	var page bytes.Buffer
	fmt.Fprintf(&page, htmlHead, html.EscapeString(title))
	md := goldmark.New(goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(writtenHTML{}, 1))))
	err := md.Convert(markdown, &page)
	parts := strings.Split(page.String(), "\t") // a tab stays one
	for i, part := range parts {
		parts[i] = visible.Text(part) // also what an entity stands for
	}
	return strings.Join(parts, "\t"), err
}

// writtenHTML renders HTML in Markdown as text.
type writtenHTML struct{}

func (writtenHTML) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindRawHTML, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			_, err := w.Write(util.EscapeHTML(n.(*ast.RawHTML).Segments.Value(source)))
			return ast.WalkSkipChildren, err
		}
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindHTMLBlock, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		block := n.(*ast.HTMLBlock)
		text := block.Lines().Value(source)
		if block.HasClosure() {
			text = append(text, block.ClosureLine.Value(source)...)
		}
		if entering {
			_, err := fmt.Fprintf(w, "<pre>%s</pre>\n", util.EscapeHTML(text))
			return ast.WalkContinue, err
		}
		return ast.WalkContinue, nil
	})
}
