package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"
)

const (
	fetchPatience = 30 * time.Second
	maxFetch      = 2 << 20 // bytes of a page that are read: a page made to be slow takes seconds to convert
	maxRedirects  = 5
)

// errOtherHost reports a redirect to a host that was not approved, or to the same one without encryption.
var errOtherHost = errors.New("redirected to another host")

// Fetch returns the tool that gets a page by HTTP. The policy judges the URL's host; checkRedirect decides which redirects are followed.
func Fetch() Tool {
	return newTool(Spec{
		Name:        "fetch",
		Description: "Get a web page or text file by HTTP(S). HTML is converted to text.",
		Example:     `{"url":"https://go.dev/doc/"}`,
		Schema:      json.RawMessage(`{"type":"object","properties":{"url":{"type":"string"}},"required":["url"]}`),
		ReadOnly:    true,
	}, fetchArgs{client: &http.Client{Timeout: fetchPatience, CheckRedirect: checkRedirect}})
}

// checkRedirect allows at most maxRedirects redirects, all to the host that was approved, and none from https to http. It implements
// http.Client.CheckRedirect: via has the earlier requests, the oldest first.
func checkRedirect(req *http.Request, via []*http.Request) error {
	asked := via[0].URL
	switch {
	case len(via) > maxRedirects:
		return fmt.Errorf("more than %d redirects", maxRedirects)
	case req.URL.Host != asked.Host, asked.Scheme == "https" && req.URL.Scheme != "https":
		return errOtherHost
	}
	return nil
}

type fetchArgs struct {
	URL string `json:"url"`

	client *http.Client
	url    *url.URL
}

func (a *fetchArgs) check(Env) (err error) {
	a.url, err = url.Parse(a.URL)
	switch {
	case err != nil:
		return fmt.Errorf("url: %w", err)
	case a.url.Scheme != "http" && a.url.Scheme != "https":
		return fmt.Errorf("url: got scheme %q, want http or https", a.url.Scheme)
	case a.url.Host == "":
		return errors.New("url: has no host")
	case a.url.User != nil:
		return errors.New("url: must hold no user name or password")
	}
	return nil
}

func (a *fetchArgs) plan(context.Context, Env) (Action, error) {
	return Action{Network: a.url.Host, Preview: Preview{Type: "text", Content: "GET " + a.url.String()}}, nil
}

func (a *fetchArgs) run(ctx context.Context, _ Env, approved Action, _ func([]byte)) (Result, error) {
	u := a.url
	if u.Host != approved.Network {
		return Result{}, ErrChanged
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return Result{}, err
	}
	req.Header.Set("User-Agent", "sublet")
	req.Header.Set("Accept", "text/*, application/json;q=0.9, application/xml;q=0.8, */*;q=0.1")
	resp, err := a.client.Do(req)
	if err != nil {
		if resp != nil && errors.Is(err, errOtherHost) { // on a refused redirect both are set, and the body is closed
			return Result{}, fmt.Errorf("%w: %s; fetch that if you need it", errOtherHost, resp.Header.Get("Location"))
		}
		return Result{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxFetch+1))
	if err != nil {
		return Result{}, fmt.Errorf("fetch %s: %w", u, err)
	}
	whole := len(body) <= maxFetch
	body = body[:min(len(body), maxFetch)]
	kind := cmp.Or(resp.Header.Get("Content-Type"), http.DetectContentType(body))
	text, err := pageText(ctx, u.String(), kind, body)
	if err != nil {
		return Result{}, fmt.Errorf("fetch %s: %w", u, err)
	}
	res := bounded(text)
	res.Content = fmt.Sprintf("%s (%s)\n%s", resp.Status, kind, res.Content)
	if !whole {
		res.Content += fmt.Sprintf("\n[the page is longer than %d MiB; the rest was not read]", maxFetch>>20)
	}
	res.IsError = resp.StatusCode >= 400
	return res, nil
}

// pageText returns the readable text of a page at an address; other content than text is an error.
func pageText(ctx context.Context, from, contentType string, body []byte) (string, error) {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind = http.DetectContentType(body)
	}
	// Undeclared text is guessed from its first KiB; if all of it is UTF-8, the guess does not matter.
	if e, _, declared := charset.DetermineEncoding(body, contentType); declared || !utf8.Valid(body) {
		if text, err := e.NewDecoder().Bytes(body); err == nil {
			body = text
		}
	}
	switch {
	case kind == "text/html" || kind == "application/xhtml+xml":
		return toMarkdown().ConvertString(string(body), converter.WithContext(ctx), converter.WithDomain(from))
	case strings.HasPrefix(kind, "text/"), strings.HasSuffix(kind, "json"), strings.HasSuffix(kind, "xml"), strings.HasSuffix(kind, "yaml"),
		strings.HasSuffix(kind, "javascript"), strings.HasSuffix(kind, "toml"):
		return string(body), nil
	}
	return "", fmt.Errorf("is %s, not text", kind)
}

// toMarkdown converts HTML. It leaves out scripts, and images, whose address can be the whole image in base64.
var toMarkdown = sync.OnceValue(func() *converter.Converter {
	c := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin()),
		converter.WithEscapeMode(converter.EscapeModeDisabled))
	for _, element := range []string{"svg", "template", "img"} {
		c.Register.TagType(element, converter.TagTypeRemove, converter.PriorityStandard)
	}
	c.Register.TagType("head", converter.TagTypeBlock, converter.PriorityEarly) // for the title
	// The library's own tables have as many cells as the widest row has columns, or a colspan says, in every row: a page can take all memory.
	for tag, before := range map[string]string{"tr": "\n", "td": " | ", "th": " | "} {
		c.Register.RendererFor(tag, converter.TagTypeInline, func(ctx converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
			w.WriteString(before)
			ctx.RenderChildNodes(ctx, w, n)
			return converter.RenderSuccess
		}, converter.PriorityStandard)
	}
	c.Register.PreRenderer(func(_ converter.Context, page *html.Node) { flatten(page, maxNested) }, converter.PriorityStandard)
	c.Register.TextTransformer(func(_ converter.Context, text string) string { // a model does not render it
		return strings.NewReplacer("&lt;", "<", "&gt;", ">").Replace(text)
	}, converter.PriorityLate)
	return c
})

// maxNested bounds how many lists and quotations lie in each other: each begins all lines in it.
const maxNested = 8

// flatten makes plain blocks of the lists and quotations below n that are nested deeper than left.
func flatten(n *html.Node, left int) {
	switch n.Data {
	case "ul", "ol", "blockquote":
		if left--; left < 0 {
			n.Data = "div"
		}
	case "li":
		if left < 0 {
			n.Data = "div"
		}
	}
	for child := range n.ChildNodes() {
		flatten(child, left)
	}
}
