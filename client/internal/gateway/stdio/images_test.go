package stdio

import (
	"path/filepath"
	"strings"
	"testing"

	"sublet/client/internal/gateway/gatewaytest"
)

// D9: an attached image is shown to the model, whatever its mime says, and stays in its conversation.
func TestImages(t *testing.T) {
	w := gatewaytest.New(t, []gatewaytest.Scene{{Match: ".", Steps: []gatewaytest.Step{{Text: "saw {images}"}}}})
	file := gatewaytest.PNG(t, 31, 17)
	path := w.Write("shot", string(file))
	if !filepath.IsAbs(path) {
		t.Fatal(path)
	}
	r := start(t, w)
	r.send(ask("1", "what is it?", `,"attachments":[{"path":"`+path+`","mime":"text/plain"}]`))
	if got := text(r.answer("1")); !strings.Contains(got, gatewaytest.Saw(file)) {
		t.Errorf("got %q", got)
	}
	r.send(ask("2", "and in the corner?"))
	if got := text(r.answer("2")); !strings.Contains(got, gatewaytest.Saw(file)) {
		t.Errorf("the next question: got %q", got)
	}
}
