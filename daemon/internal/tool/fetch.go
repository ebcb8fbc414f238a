package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"
)

const (
	fetchPatience = 30 * time.Second
	maxFetch      = 4 << 20 // bytes of a page that are read
	maxRedirects  = 5
)

// errOtherHost reports a redirect to a host that was not approved, or to the same one without encryption.
var errOtherHost = errors.New("redirected to another host")

// Fetch returns the tool that gets a page by HTTP. The policy judges the URL's host; checkRedirect says what is followed.
func Fetch() Tool {
	return newTool(Spec{
		Name:        "fetch",
		Description: "Get a web page or text file by HTTP(S). HTML is converted to text.",
		Example:     `{"url":"https://go.dev/doc/"}`,
		Schema:      json.RawMessage(`{"type":"object","properties":{"url":{"type":"string"}},"required":["url"]}`),
		ReadOnly:    true,
	}, fetchArgs{client: &http.Client{Timeout: fetchPatience, CheckRedirect: checkRedirect}})
}

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
	kind := resp.Header.Get("Content-Type")
	if kind == "" {
		kind = http.DetectContentType(body)
	}
	text, err := pageText(kind, body)
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

// pageText returns the readable text of a page; other content than text is an error.
func pageText(contentType string, body []byte) (string, error) {
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
		return htmlText(string(body)), nil
	case strings.HasPrefix(kind, "text/"), strings.HasSuffix(kind, "json"), strings.HasSuffix(kind, "xml"), strings.HasSuffix(kind, "yaml"),
		strings.HasSuffix(kind, "javascript"), strings.HasSuffix(kind, "toml"):
		return string(body), nil
	}
	return "", fmt.Errorf("is %s, not text", kind)
}

// invisibleElements are the elements whose text a page does not show.
var invisibleElements = []string{"script", "style", "noscript", "template", "svg"}

// htmlText removes tags, scripts and styles, separates paragraphs, and adds the targets of links.
func htmlText(page string) string {
	var b strings.Builder
	skip, pre, href := 0, 0, ""
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		kind := z.Next()
		t := z.Token()
		switch kind {
		case html.ErrorToken:
			return tidy(b.String())
		case html.TextToken:
			if skip == 0 {
				b.WriteString(markIndents(strings.ReplaceAll(t.Data, keepIndent, ""), pre > 0))
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			switch {
			case slices.Contains(invisibleElements, t.Data) && (kind == html.StartTagToken || t.Data != "svg"): // of these only svg can end itself
				skip++
			case t.Data == "a":
				href = link(t)
			case t.Data == "pre":
				pre++
			}
			b.WriteString(markIndents(before(t.Data), pre > 0))
		case html.EndTagToken:
			switch {
			case slices.Contains(invisibleElements, t.Data):
				skip = max(skip-1, 0)
			case t.Data == "a" && href != "" && skip == 0:
				b.WriteString(" <" + href + ">")
				href = ""
			case t.Data == "pre":
				pre = max(pre-1, 0)
			}
			b.WriteString(after(t.Data))
		}
	}
}

// link returns the address that an element a leads to, "" if it is a relative one.
func link(a html.Token) string {
	for _, attr := range a.Attr {
		if attr.Key == "href" && strings.HasPrefix(attr.Val, "http") {
			return attr.Val
		}
	}
	return ""
}

// before and after are what stands for the beginning and the end of an element in text.
func before(tag string) string {
	switch tag {
	case "li":
		return "\n- "
	case "br", "p", "div", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "table", "ul", "ol", "section", "article":
		return "\n"
	case "td", "th":
		return "\t"
	}
	return ""
}

func after(tag string) string {
	switch tag {
	case "p", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "table":
		return "\n"
	}
	return ""
}

// keepIndent begins a line whose indentation must be kept: one of preformatted text.
const keepIndent = "\x00"

// markIndents has the lines that begin in text keep their indentation if pre is set.
func markIndents(text string, pre bool) string {
	if pre {
		text = strings.ReplaceAll(text, "\n", "\n"+keepIndent)
	}
	return text
}

// tidy trims lines and keeps at most one empty one in a row.
func tidy(s string) string {
	var b strings.Builder
	empty := 0
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, keepIndent); ok {
			line = strings.TrimRightFunc(rest, unicode.IsSpace)
		}
		if line == "" {
			empty++
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
			if empty > 0 {
				b.WriteByte('\n')
			}
		}
		empty = 0
		b.WriteString(line)
	}
	return b.String()
}
