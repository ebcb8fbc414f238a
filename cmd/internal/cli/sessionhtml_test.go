package cli

import (
	"strings"
	"testing"
)

// What a session says is text in its page: it runs nothing and loads nothing.
func TestExportedPageIsSafe(t *testing.T) {
	page, err := asHTML("a <b>", []byte("# You\n\nhello <script>alert(1)</script> <b>x</b>\n\n<script>\nalert(2)\n</script>\n\n"+
		"[click](javascript:alert(3)) ![i](https://example.com/i.png)\n\n```\n<i>code</i>\n```\n\n| 1 | <br> |\n"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for _, bad := range []string{"<script", "javascript:", "<b>", "<i>", "raw HTML omitted"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q is in the page:\n%s", bad, text)
		}
	}
	for _, want := range []string{
		"<title>a &lt;b&gt;</title>", "default-src 'none'", "hello &lt;script&gt;alert(1)&lt;/script&gt; &lt;b&gt;x&lt;/b&gt;",
		"<pre>&lt;script&gt;\nalert(2)\n&lt;/script&gt;\n</pre>", "<code>&lt;i&gt;code&lt;/i&gt;\n</code>", "| 1 | &lt;br&gt; |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the page:\n%s", want, text)
		}
	}
}
