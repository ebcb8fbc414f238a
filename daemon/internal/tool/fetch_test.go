package tool

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHTML(t *testing.T) {
	for page, want := range map[string]string{
		"a<BR>b<br/>c": "a  \nb  \nc",
		`<a href='http://x.test/?a=1&amp;b=2'><b>bold</b> link</a> <a href="/rel">more</a>`:                           "[**bold** link](http://x.test/?a=1&b=2) [more](http://a.test/rel)",
		"<template><p>no</p></template>x<svg><text>no</text></svg><noscript>no</noscript>":                            "x",
		"<script>if (a < b) { '</p>' }</script>&lt;p&gt; caf&eacute; a_b *":                                           "<p> café a_b *",
		"<table><thead><tr><th>a<th>b<tbody><tr><td>1<td colspan=2000000000>2</table>end <3 &":                        "| a | b\n | 1 | 2\n\nend <3 &",
		"<p>a:</p> <pre class=x><code><span>def</span> f():\n    <b>return</b> 1\n\n\n    # end\n</code></pre>  <p>b": "a:\n\n```\ndef f():\n    return 1\n\n\n    # end\n```\n\nb",
		"<head><title>T</title><style>s</style></head><body>x":                                                        "T\n\nx",
		`<p>x<img src="data:image/png;base64,AAAA" alt="logo"> y`:                                                     "x y",
		"<p": "", "<!-- c --><!doctype html>x": "x",
	} {
		if got, err := pageText(t.Context(), "http://a.test/b", "text/html", []byte(page)); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", page, got, err, want)
		}
	}
}

// A list or quotation indents each line in it, so that a page which nests them makes a text of many times its size.
func TestHTMLNested(t *testing.T) {
	for _, open := range []string{"<blockquote>", "<ul><li>", "<ol start=99999999999><li>"} {
		page := strings.Repeat(open, 100) + strings.Repeat("x<br>", 1000)
		got, err := pageText(t.Context(), "http://a.test/", "text/html", []byte(page))
		if err != nil || strings.Count(got, "x") != 1000 || len(got) > 30*len(page) {
			t.Errorf("%s: got %d bytes of %d, %v", open, len(got), len(page), err)
		}
	}
}

func TestFetch(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "other") }))
	defer other.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `<html><head><style>p{}</style><script>evil()</script></head><body><h1>Title</h1><p>One &amp; two <a href="https://x.test/y">link</a></p><ul><li>item</ul></body>`)
	})
	mux.HandleFunc("/plain", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "text") })
	mux.HandleFunc("/bin", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
	})
	var kind, body string
	mux.HandleFunc("/as", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		fmt.Fprint(w, body)
	})
	mux.HandleFunc("/here", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/plain", http.StatusFound) })
	mux.HandleFunc("/there", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) })
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	srv := httptest.NewServer(mux)
	defer srv.Close()
	f := Fetch()
	defer http.DefaultClient.CloseIdleConnections()
	env := newEnv(t)

	a, err := f.Plan(t.Context(), env, args(t, m{"url": srv.URL + "/page"}))
	if err != nil || "http://"+a.Network != srv.URL {
		t.Errorf("got %+v, %v; want the host named", a, err)
	}
	// A page in another encoding, as its header, itself, or its bytes say.
	for _, p := range []struct{ kind, body string }{
		{"text/html; charset=iso-8859-1", "<p>caf\xe9</p>"},
		{"text/html", "<meta charset=windows-1252><p>caf\xe9</p>"},
		{"text/plain", "caf\xe9"},
		{"text/plain", "\xff\xfec\x00a\x00f\x00\xe9\x00"},
		{"text/plain", strings.Repeat(" ", 2000) + "café"},
		{"application/json; charset=utf-8", "café"},
	} {
		kind, body = p.kind, p.body
		if r := mustDo(t, f, env, m{"url": srv.URL + "/as"}); !strings.HasSuffix(r.Content, "café") {
			t.Errorf("%s %q: got %q", p.kind, p.body, r.Content)
		}
	}
	r := mustDo(t, f, env, m{"url": srv.URL + "/page"})
	if want := "# Title\n\nOne & two [link](https://x.test/y)\n\n- item"; !strings.HasSuffix(r.Content, want) || strings.Contains(r.Content, "evil") {
		t.Errorf("got %q, want %q at the end", r.Content, want)
	}
	if r := mustDo(t, f, env, m{"url": srv.URL + "/here"}); !strings.HasSuffix(r.Content, "text") {
		t.Errorf("got %q, want the redirect on the same host followed", r.Content)
	}
	if r := mustDo(t, f, env, m{"url": srv.URL + "/none"}); !r.IsError || !strings.HasPrefix(r.Content, "404") {
		t.Errorf("got %+v", r)
	}
	// The host that was judged is the only one that is asked.
	if _, err := do(t, f, env, m{"url": srv.URL + "/there"}); !errors.Is(err, errOtherHost) || !strings.Contains(err.Error(), other.URL) {
		t.Errorf("got %v, want errOtherHost naming the place", err)
	}
	_, err = do(t, f, env, m{"url": srv.URL + "/bin"})
	wantErr(t, err, "not text")
	_, err = do(t, f, env, m{"url": srv.URL + "/loop"})
	wantErr(t, err, "redirects")
	for url, want := range map[string]string{"file:///etc/passwd": "scheme", "http://": "no host", "http://u:p@x.test/": "password", "ftp://x": "scheme"} {
		_, err := do(t, f, env, m{"url": url})
		wantErr(t, err, want)
	}
}

// A page that was asked for with encryption does not come without, from the same host either.
func TestRedirects(t *testing.T) {
	for _, r := range []struct {
		from, to string
		follow   bool
	}{
		{"http://x.test/", "http://x.test/a", true},
		{"http://x.test/", "https://x.test/", true},
		{"https://x.test/", "https://x.test/a", true},
		{"https://x.test/", "http://x.test/", false},
		{"http://x.test/", "http://y.test/", false},
		{"http://x.test/", "http://x.test:81/", false},
	} {
		request := func(url string) *http.Request { return httptest.NewRequest(http.MethodGet, url, nil) }
		if err := checkRedirect(request(r.to), []*http.Request{request(r.from)}); (err == nil) != r.follow {
			t.Errorf("%s to %s: got %v", r.from, r.to, err)
		}
	}
}
