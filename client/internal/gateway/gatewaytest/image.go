package gatewaytest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"testing"
)

// PNG is an image file of that size.
func PNG(t testing.TB, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Saw is how a scene's {images} ends where the model was given the file whole.
func Saw(file []byte) string {
	return fmt.Sprintf("of %d bytes, sha256 %x", len(file), sha256.Sum256(file))
}

// NothingHanded fails if a file that was handed over is left in the temporary folder, TMPDIR of this test.
func NothingHanded(t testing.TB) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "sublet-image-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}
