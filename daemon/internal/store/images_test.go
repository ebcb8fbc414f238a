package store

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sublet/daemon/internal/picture"
	"sublet/wire"
)

func pic(name string, size int) *picture.Image {
	return &picture.Image{Name: name, MIME: "image/png", Width: 4, Height: 3, Size: size, Data: []byte("pixels of " + name)}
}

// pixels are the names of the images whose pixels come, of at most so many bytes, with the numbers of their events.
func pixels(t *testing.T, s *Store, id wire.SessionID, most int) (names string, all int) {
	t.Helper()
	found, err := s.Images(t.Context(), id, most)
	if err != nil {
		t.Fatal(err)
	}
	for seq := int64(0); seq < 200; seq++ {
		for _, i := range found[seq] {
			all++
			if i.Data != nil {
				names += fmt.Sprintf("%d:%s ", seq, i.Name)
			}
		}
	}
	return names, all
}

func TestImagesAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sublet.db")
	s := open(t, path)
	id, other := newSession(t, s, "s1", 1), newSession(t, s, "s2", 1)
	keep := func(id wire.SessionID, seq int64, images ...*picture.Image) {
		t.Helper()
		if err := s.KeepImages(t.Context(), id, seq, images); err != nil {
			t.Fatal(err)
		}
	}
	keep(id, 1, pic("a", 10), pic("b", 10))
	keep(id, 7, pic("c", 10))
	keep(other, 1, pic("d", 10))
	s = open(t, path) // another daemon
	found, err := s.Images(t.Context(), id, MaxImages)
	if err != nil || len(found) != 2 || len(found[1]) != 2 {
		t.Fatal(found, err)
	}
	if got, want := found[1][1], pic("b", 10); got.Name != want.Name || got.MIME != want.MIME || got.Width != 4 || got.Height != 3 || got.Size != 10 || !bytes.Equal(got.Data, want.Data) {
		t.Errorf("got %+v", got)
	}
	if err := s.ForgetImages(t.Context(), id, 1); err != nil {
		t.Fatal(err)
	}
	if names, all := pixels(t, s, id, MaxImages); names != "7:c " || all != 3 {
		t.Errorf("got %q of %d after a refusal", names, all)
	}
	if err := s.KeepImages(t.Context(), "nobody", 1, []*picture.Image{pic("x", 1)}); err == nil {
		t.Error("an image of no session was kept")
	}
	if err := s.Clear(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := s.db.QueryRow("SELECT count(*) FROM images").Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d images of sessions that are gone, %v", rows, err)
	}
}

// A session's images are bounded: the oldest lose their pixels and keep their names.
func TestImagesAreBounded(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "sublet.db"))
	id := newSession(t, s, "s1", 1)
	for seq := int64(1); seq <= 40; seq++ {
		if err := s.KeepImages(t.Context(), id, seq, []*picture.Image{pic("i", 1<<20), pic("j", 2<<20)}); err != nil {
			t.Fatal(err)
		}
	}
	var kept, size int
	if err := s.db.QueryRow("SELECT count(*), sum(size) FROM images WHERE data IS NOT NULL").Scan(&kept, &size); err != nil || size > MaxImages || size < MaxImages-2<<20 {
		t.Errorf("got %d of %d bytes, %v; want up to %d", kept, size, err, MaxImages)
	}
	if names, all := pixels(t, s, id, MaxImages); all != 80 || !strings.HasPrefix(names, "20:i 20:j ") || !strings.HasSuffix(names, "40:i 40:j ") {
		t.Errorf("got %q of %d", names, all)
	}
	if names, all := pixels(t, s, id, 7<<20); all != 80 || names != "39:i 39:j 40:i 40:j " {
		t.Errorf("got %q of %d, want the newest of up to 7 MiB", names, all)
	}
}
