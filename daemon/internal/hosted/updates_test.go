package hosted

import (
	"testing"

	sdk "github.com/coder/acp-go-sdk"
)

// Content of an agent that is no text is named in its place.
func TestTextOf(t *testing.T) {
	file := sdk.EmbeddedResourceResource{BlobResourceContents: &sdk.BlobResourceContents{Uri: "file:///a.pdf", Blob: "AAAA"}}
	for want, block := range map[string]sdk.ContentBlock{
		"[an image]": sdk.ImageBlock("AAAA", "image/png"), "[audio]": sdk.AudioBlock("AAAA", "audio/wav"), "[a file that is not text: file:///a.pdf]": sdk.ResourceBlock(file),
	} {
		if got := textOf(block); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
