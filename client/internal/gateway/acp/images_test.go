package acp

import (
	"encoding/base64"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"sublet/client/internal/gateway/gatewaytest"
)

// An image that the editor hands over as bytes reaches the model as it is; no file of it is left. One that is none is told.
func TestImages(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	w := gatewaytest.New(t, []scene{{Match: ".", Steps: []step{{Text: "saw {images}"}}}})
	e := start(t, w)
	id := e.open(w)
	one, two := gatewaytest.PNG(t, 31, 17), gatewaytest.PNG(t, 5, 3)
	encode := base64.StdEncoding.EncodeToString
	mime := "image/png"
	blob := sdk.ResourceBlock(sdk.EmbeddedResourceResource{BlobResourceContents: &sdk.BlobResourceContents{Blob: encode(two), MimeType: &mime, Uri: "file:///b.png"}})
	r, updates, err := e.prompt(id, sdk.TextBlock("what is"), sdk.ImageBlock(encode(one), "image/png"), blob)
	if err != nil || r.StopReason != sdk.StopReasonEndTurn {
		t.Fatal(r, err)
	}
	if got := text(updates); !strings.Contains(got, "(PNG, 31×17) "+gatewaytest.Saw(one)) || !strings.Contains(got, "(PNG, 5×3) "+gatewaytest.Saw(two)) {
		t.Errorf("got %q", got)
	}
	gatewaytest.NothingHanded(t)
	// Alone, and with the one before still in the conversation.
	if _, updates, err = e.prompt(id, sdk.ImageBlock(encode(two), "image/png")); err != nil || strings.Count(text(updates), "sha256") != 3 {
		t.Errorf("got %q, %v", text(updates), err)
	}
	if _, _, err = e.prompt(id, sdk.ImageBlock("not base64!", "image/png")); err == nil || !strings.Contains(err.Error(), "prompt[0].data") {
		t.Errorf("got %v", err)
	}
	_, updates, err = e.prompt(id, sdk.ImageBlock(encode(one[:40]), "image/png"))
	told := ""
	for _, u := range updates {
		if u.AgentMessageChunk != nil && u.AgentMessageChunk.Content.Text != nil {
			told += u.AgentMessageChunk.Content.Text.Text
		}
	}
	if err != nil || !strings.Contains(told, "not shown to the model") || !strings.Contains(told, "cut off") {
		t.Errorf("got %q, %v", told, err)
	}
	gatewaytest.NothingHanded(t)
}
