package cli

import (
	"strings"
	"testing"
)

// What a session says is text in its page: it runs nothing and loads nothing.
func TestExportedPageIsSafe(t *testing.T) {
	page, err := asHTML("a <b>\x1b[2J", []byte("# You\n\nhello <script>alert(1)</script> <b>x</b>\n\n<script>\nalert(2)\n</script>\n\n"+
		"[click](javascript:alert(3)) ![i](https://example.com/i.png)\n\n```\n<i>code</i>\n```\n\n| 1 | <br> |\n\n"+
		"\x1b]0;title\a \x9b31m \u009b31m \u202e &#27;[31m `\x1b[1m`\r\n\n```\n\x1b[1m\tx\n```\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script", "javascript:", "<b>", "<i>", "raw HTML omitted", "\x1b", "\a", "\x9b3", "\u009b", "\u202e", "\r"} {
		if strings.Contains(page, bad) {
			t.Errorf("%q is in the page:\n%s", bad, page)
		}
	}
	for _, want := range []string{
		"<title>a &lt;b&gt;␛[2J</title>", "default-src 'none'", "hello &lt;script&gt;alert(1)&lt;/script&gt; &lt;b&gt;x&lt;/b&gt;",
		"<p>&lt;script&gt;\nalert(2)\n&lt;/script&gt;</p>", "<code>&lt;i&gt;code&lt;/i&gt;\n</code>", "| 1 | &lt;br&gt; |",
		"␛]0;title␇", "<code>␛[1m</code>", "<code>␛[1m\tx\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in the page:\n%s", want, page)
		}
	}
}
