package operator

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sublet/client/internal/gateway/gatewaytest"
)

// F15: images reach the model from both dialects: by path in the project, and in S4 also as bytes.
func TestImages(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	w := newWorld(t, []scene{{Match: ".", Steps: []step{{Text: "saw {images}"}}}})
	one, two := gatewaytest.PNG(t, 31, 17), gatewaytest.PNG(t, 5, 3)
	if err := os.WriteFile(filepath.Join(w.Project, "in project.png"), one, 0o600); err != nil {
		t.Fatal(err)
	}
	c := w.dial()
	m := ask("1", "what is it?")
	m["files"] = []string{"in project.png"}
	c.send(m)
	if got := said(c.turn("1")); !strings.Contains(got, gatewaytest.Saw(one)) {
		t.Errorf("S3: got %q", got)
	}

	query := func(id string, blocks ...msg) string {
		t.Helper()
		c.send(msg{"type": "query", "id": id, "messages": []msg{{"role": "user", "content": blocks}}})
		answer := c.results(id)
		return fmt.Sprint(answer[len(answer)-1])
	}
	image := func(url string) msg { return msg{"type": "image", "url": url, "mimeType": "image/png"} }
	data := "data:image/png;base64," + base64.StdEncoding.EncodeToString(two)
	if got := query("2", msg{"type": "text", "text": "which?"}, image(data), image("file://"+w.Project+"/in%20project.png")); !strings.Contains(got, gatewaytest.Saw(one)) || !strings.Contains(got, gatewaytest.Saw(two)) {
		t.Errorf("S4: got %q", got)
	}
	if got := query("3", image(data)); !strings.Contains(got, gatewaytest.Saw(two)) {
		t.Errorf("alone: got %q", got)
	}
	if got := query("4", msg{"type": "file", "path": "in project.png"}, msg{"type": "text", "text": "this?"}); !strings.Contains(got, gatewaytest.Saw(one)) {
		t.Errorf("as a file: got %q", got)
	}
	if got := query("5", image("https://example.org/x.png")); !strings.Contains(got, "saw no image") {
		t.Errorf("elsewhere: got %q", got)
	}
	for id, url := range map[string]string{"6": "data:image/png;base64,*", "7": "file:///etc/passwd", "8": "file://" + w.Project + "/../x.png"} {
		if got := query(id, image(url)); !strings.Contains(got, "INVALID_REQUEST") {
			t.Errorf("%s: got %q", url, got)
		}
	}
	gatewaytest.NothingHanded(t)
}
