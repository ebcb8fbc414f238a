// Package picture reads the headers of image files that models take: the kind, the size, and whether the file is complete
// and within the limits of providers. It never decodes pixels. Which files may be read is left to others.
package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"

	"golang.org/x/image/webp"
)

// Limits of providers. Anthropic's are the lowest that are published (platform.claude.com/docs/en/build-with-claude/vision):
// 5 MiB for one image, measured as base64 ("image exceeds 5 MB maximum: 5272940 bytes > 5242880 bytes"), 8000 pixels a
// side, 2000 in requests of more than 20 images, 32 MB for a request. OpenAI takes 50 MB a request.
const (
	MaxBytes   = 5 << 20 / 4 * 3 // of one file: its base64 is 5 MiB
	MaxSide    = 8000            // pixels
	MaxMany    = 20              // in one request
	MaxRequest = 16 << 20        // bytes of all in one request: 22 MB of base64 next to up to 10 MB of prompt
)

// Image is an image file as it was read. It is not changed afterwards.
type Image struct {
	Name          string // the path it was read from, for models and people
	MIME          string // image/png, image/jpeg, image/gif, image/webp
	Width, Height int    // pixels
	Size          int    // bytes of the file
	Data          []byte // the file; nil: not stored any more
}

// kinds are the supported MIME types, as http.DetectContentType returns them.
var kinds = map[string]struct {
	name   string
	config func(io.Reader) (image.Config, error)
	whole  func([]byte) bool
}{
	"image/png":  {"PNG", png.DecodeConfig, wholePNG},
	"image/jpeg": {"JPEG", jpeg.DecodeConfig, func(b []byte) bool { return bytes.Contains(b[2:], []byte{0xFF, 0xD9}) }},
	"image/gif":  {"GIF", gif.DecodeConfig, func(b []byte) bool { return bytes.IndexByte(b[10:], 0x3B) >= 0 }},
	"image/webp": {"WebP", webp.DecodeConfig, func(b []byte) bool { return int64(binary.LittleEndian.Uint32(b[4:]))+8 <= int64(len(b)) }},
}

// Is reports whether a file that begins with head, its first 512 bytes or all of it, is a supported image. Name and declared
// type do not matter.
func Is(head []byte) bool {
	_, ok := kinds[http.DetectContentType(head)]
	return ok
}

// Known reports whether a MIME type such as image/png is supported.
func Known(mime string) bool {
	_, ok := kinds[mime]
	return ok
}

// Read reads an image from r; name is for messages. For a file that is too large, incomplete or not an image it returns an
// error for people and models. It reads at most MaxBytes+1 bytes.
func Read(name string, r io.Reader) (*Image, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("an image of more than %.1f MB, the most that models take; make it smaller first", MaxBytes/1e6)
	}
	i := &Image{Name: name, MIME: http.DetectContentType(data), Size: len(data), Data: data}
	kind, ok := kinds[i.MIME]
	if !ok {
		return nil, errors.New("not a PNG, JPEG, GIF or WebP image")
	}
	c, err := kind.config(bytes.NewReader(data))
	if err != nil || c.Width <= 0 || c.Height <= 0 {
		return nil, fmt.Errorf("a %s image with a broken header", kind.name)
	}
	i.Width, i.Height = c.Width, c.Height
	switch {
	case c.Width > MaxSide || c.Height > MaxSide:
		return nil, fmt.Errorf("an image of %d×%d pixels; models take %d a side", c.Width, c.Height, MaxSide)
	case !kind.whole(data):
		return nil, fmt.Errorf("a %s image that is cut off", kind.name)
	}
	return i, nil
}

// wholePNG reports whether a PNG's chunks are complete up to IEND. Providers refuse every request of a conversation that
// contains a broken image.
func wholePNG(b []byte) bool {
	for at := 8; at+12 <= len(b); { // after the signature; a chunk has 12 bytes besides its data: length, type and checksum
		size := int64(binary.BigEndian.Uint32(b[at:]))
		if string(b[at+4:at+8]) == "IEND" {
			return true
		}
		next := int64(at) + 12 + size
		if next > int64(len(b)) {
			return false
		}
		at = int(next)
	}
	return false
}

// String returns the image's name, kind and size.
func (i *Image) String() string {
	return fmt.Sprintf("%s (%s, %d×%d)", i.Name, kinds[i.MIME].name, i.Width, i.Height)
}

// Tokens estimates the tokens of the image: one for each patch of 28×28 pixels, after a provider has scaled it down (Anthropic:
// to about 1,600 tokens, newer models to more; OpenAI: to 1,105 or 1,536). The provider's count in the first answer corrects
// the estimate.
func (i *Image) Tokens() int {
	return min((i.Width+27)/28*((i.Height+27)/28), 1600)
}
