package picture

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"strings"
	"testing"
)

// webpFile is a lossless WebP of 1×1 pixels (RFC 9649).
const webpFile = "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA=="

func encoded(t testing.TB, encode func(io.Writer, image.Image) error) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, 30, 20))
	m.Set(3, 4, color.RGBA{200, 100, 0, 255})
	var b bytes.Buffer
	if err := encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func samples(t testing.TB) map[string][]byte {
	t.Helper()
	w, err := base64.StdEncoding.DecodeString(webpFile)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		"image/png":  encoded(t, png.Encode),
		"image/jpeg": encoded(t, func(w io.Writer, m image.Image) error { return jpeg.Encode(w, m, nil) }),
		"image/gif":  encoded(t, func(w io.Writer, m image.Image) error { return gif.Encode(w, m, nil) }),
		"image/webp": w,
	}
}

// bomb is a PNG whose header promises so many pixels and whose data are a few bytes.
func bomb(width, height uint32) []byte {
	chunk := func(kind string, body []byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
		b = append(append(b, kind...), body...)
		return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
	}
	head := binary.BigEndian.AppendUint32(nil, width)
	head = append(binary.BigEndian.AppendUint32(head, height), 8, 6, 0, 0, 0)
	b := append([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", head)...)
	b = append(b, chunk("IDAT", []byte{1, 2, 3})...)
	return append(b, chunk("IEND", nil)...)
}

func TestRead(t *testing.T) {
	for mime, data := range samples(t) {
		i, err := Read("a", bytes.NewReader(data))
		if err != nil || i.MIME != mime || i.Size != len(data) || !bytes.Equal(i.Data, data) || !Is(data) {
			t.Fatalf("%s: got %+v, %v", mime, i, err)
		}
		if mime != "image/webp" && (i.Width != 30 || i.Height != 20 || i.Tokens() != 2) {
			t.Errorf("%s: got %s, %d tokens", mime, i, i.Tokens())
		}
	}
	for what, c := range map[string]struct {
		data []byte
		want string
	}{
		"text":            {[]byte("hello"), "not a PNG"},
		"a PDF":           {[]byte("%PDF-1.4 "), "not a PNG"},
		"a bitmap":        {[]byte("BM and so on"), "not a PNG"},
		"nothing":         {nil, "not a PNG"},
		"a wide bomb":     {bomb(200_000, 10), "200000×10 pixels"},
		"a bomb":          {bomb(30_000, 30_000), "30000×30000 pixels"},
		"an absurd one":   {bomb(1<<31-1, 1<<31-1), "broken header"},
		"no pixels":       {bomb(0, 0), "broken header"},
		"too many bytes":  {append(samples(t)["image/png"], make([]byte, MaxBytes)...), "more than 3.9 MB"},
		"an early end":    {samples(t)["image/webp"][:30], "WebP"},
		"half a GIF":      {samples(t)["image/gif"][:20], "GIF"},
		"a JPEG's start":  {samples(t)["image/jpeg"][:300], "JPEG"},
		"a signature":     {[]byte("\x89PNG\r\n\x1a\n"), "broken header"},
		"a long chunk":    {append(bomb(3, 3)[:33], 0xFF, 0xFF, 0xFF, 0xFF, 'I', 'D', 'A', 'T', 0, 0, 0, 0), "cut off"},
		"riff, not webp":  {[]byte("RIFF\x10\x00\x00\x00WEBPVP8 short"), "WebP"},
		"a gif of 6 byte": {[]byte("GIF89a"), "broken header"},
	} {
		if i, err := Read("a", bytes.NewReader(c.data)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, %v; want %q", what, i, err, c.want)
		}
	}
	if i, err := Read("a", bytes.NewReader(bomb(MaxSide, MaxSide))); err != nil || i.Tokens() != 1600 {
		t.Errorf("got %v, %v; want the largest that is taken", i, err)
	}
}

// Cut off anywhere, a PNG is refused: providers would refuse the conversation that has it, for good.
func TestCutOffPNG(t *testing.T) {
	data := samples(t)["image/png"]
	for n := range len(data) - 4 { // the last four bytes are a check sum that decoders do without
		if i, err := Read("a", bytes.NewReader(data[:n])); err == nil {
			t.Fatalf("%d of %d bytes: got %s", n, len(data), i)
		}
	}
}

// endless is a file that grows faster than it is read.
type endless struct{ head []byte }

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.head)
	e.head = e.head[n:]
	return max(n, len(p)), nil
}

func TestGrowingFile(t *testing.T) {
	if _, err := Read("a", &endless{samples(t)["image/png"]}); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("got %v", err)
	}
}

func FuzzRead(f *testing.F) {
	for _, data := range samples(f) {
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Add(bomb(30_000, 30_000))
	f.Fuzz(func(t *testing.T, data []byte) {
		i, err := Read("a", bytes.NewReader(data))
		if (i == nil) == (err == nil) {
			t.Fatalf("got %v, %v", i, err)
		}
		if err == nil && (i.Width <= 0 || i.Height <= 0 || i.Width > MaxSide || i.Height > MaxSide || i.Tokens() < 1 || !Is(data[:min(len(data), 512)])) {
			t.Errorf("got %+v", i)
		}
	})
}
