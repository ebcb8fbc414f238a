package agent

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"sublet/compaction"
	"sublet/daemon/internal/picture"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/risk/secret"
	"sublet/daemon/internal/tool"
	"sublet/wire"
)

func pngOf(t testing.TB, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func put(t testing.TB, path string, data []byte) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// album keeps images as the hub does, in memory.
type album struct {
	mu   sync.Mutex
	kept map[int64][]*picture.Image
}

func (a *album) Keep(seq int64, images []*picture.Image) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept == nil {
		a.kept = map[int64][]*picture.Image{}
	}
	a.kept[seq] = images
}

func (a *album) Forget(seq int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, image := range a.kept[seq] {
		gone := *image
		gone.Data = nil
		a.kept[seq][i] = &gone
	}
}

func attach(paths ...string) (list []wire.Attachment) {
	for _, p := range paths {
		list = append(list, wire.Attachment{Path: wire.OSString(p), MIME: "text/plain"}) // what others say it is does not count
	}
	return list
}

func notices(rec *recorder) string {
	var all []string
	for _, c := range rec.chunks(wire.ChunkNotice, "") {
		all = append(all, c.Text)
	}
	return strings.Join(all, "\n")
}

// wording is all that a conversation says, whole.
func wording(messages []provider.Message) string {
	var b strings.Builder
	for _, m := range messages {
		for _, p := range m.Parts {
			b.WriteString(p.Text + "\n")
			if p.ToolResult != nil {
				b.WriteString(p.ToolResult.Content + "\n")
			}
		}
	}
	return b.String()
}

// Images are shown by what they are, and what is not shown is named, to the model and to the user.
func TestImagesGoWithThePrompt(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	pic := pngOf(t, 40, 30)
	var jpg bytes.Buffer
	if err := jpeg.Encode(&jpg, image.NewGray(image.Rect(0, 0, 16, 8)), nil); err != nil {
		t.Fatal(err)
	}
	put(t, in("shot.png"), pic)
	put(t, in("photo.txt"), jpg.Bytes())
	put(t, in("cut.png"), pic[:len(pic)-20])
	bomb := bytes.Clone(pic)
	binary.BigEndian.PutUint32(bomb[16:], 60_000)
	binary.BigEndian.PutUint32(bomb[29:], crc32.ChecksumIEEE(bomb[12:29]))
	put(t, in("bomb.png"), bomb)
	put(t, in("large.png"), append(bytes.Clone(pic), make([]byte, picture.MaxBytes)...))
	put(t, in("program"), []byte("\x7fELF\x02\x01\x01\x00\x00"))
	put(t, in("name.png"), []byte("only its name is an image's"))
	key := put(t, filepath.Join(home, ".ssh", "qr.png"), pic)
	if err := os.Symlink(key, in("link.png")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("shot.png", in("same.png")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(in("pipe.png"), 0o600); err != nil {
		t.Fatal(err)
	}
	model, rec := newModel(step{text: "I see"}), &recorder{}
	rec.play(t.Context(), Turn{
		Model: model, Prompt: "what is it?", Env: tool.Env{Cwd: dir, Secrets: secret.New(home, nil, nil)},
		Attachments: attach("shot.png", "photo.txt", "same.png", "cut.png", "bomb.png", "large.png", "program", "name.png", key, "link.png",
			"pipe.png", "/dev/zero", dir, "none.png"),
	})
	req := model.requests()[0]
	shown := provider.Images(req.Messages)
	if len(shown) != 3 || !bytes.Equal(shown[0].Data, pic) || shown[1].MIME != "image/jpeg" || shown[1].Name != in("photo.txt") {
		t.Fatalf("got %v, want two images and one through a link", shown)
	}
	text := wording(req.Messages)
	for _, want := range []string{
		"Attached image " + in("shot.png") + " (PNG, 40×30):", "only its name is an image's",
		"cut.png (a PNG image that is cut off)", "bomb.png (an image of 60000×30 pixels; models take 8000 a side)", "large.png (an image of more than 3.9 MB",
		"program (neither text nor an image)", "qr.png (it lies where keys and passwords are)", "link.png (it lies where keys and passwords are)",
		"is a pipe", "is a device", "is a folder", "none.png (open",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the model is not told %q in\n%s", want, text)
		}
		if told := notices(rec); strings.Contains(want, " (") && !strings.HasPrefix(want, "Attached image") && !strings.Contains(told, want) {
			t.Errorf("the user is not told %q in\n%s", want, told)
		}
	}
	mustBeValid(t, req.Messages)
}

// A hundred images, and a hundred other files, are bounded: the first ones are shown, the others named.
func TestManyImages(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for i := range 100 {
		paths = append(paths, put(t, filepath.Join(dir, fmt.Sprint(i, ".png")), pngOf(t, i+1, 1)))
	}
	model, rec := newModel(step{text: "many"}), &recorder{}
	rec.play(t.Context(), Turn{Model: model, Prompt: "compare", Env: tool.Env{Cwd: dir}, Attachments: attach(paths...)})
	req := model.requests()[0]
	if got := provider.Images(req.Messages); len(got) != picture.MaxMany || got[19].Width != 20 {
		t.Errorf("got %d images", len(got))
	}
	if text := wording(req.Messages); strings.Count(text, "more than 20 images") != 80 {
		t.Errorf("got\n%s", text)
	}
	if told := notices(rec); strings.Count(told, "more than 20 images") != maxNamed || !strings.Contains(told, "and 60 more") {
		t.Errorf("got %q", told)
	}
}

// The question that follows still has the picture, as it was, and so has the one after the daemon was restarted.
func TestImagesStayInTheConversation(t *testing.T) {
	dir := t.TempDir()
	path := put(t, filepath.Join(dir, "shot.png"), pngOf(t, 40, 30))
	rec := &recorder{}
	model := newModel(call1("read", `{"path":"shot.png"}`), step{text: "a grey field"}, step{text: "nothing"}, step{text: "nothing"})
	turn := func(prompt string, files ...string) {
		t.Helper()
		rec.play(t.Context(), Turn{Model: model, Prompt: prompt, Env: tool.Env{Cwd: dir}, Attachments: attach(files...), Tools: []tool.Tool{tool.Read()}})
	}
	turn("what is it?", path)
	first, second := model.requests()[0], model.requests()[1]
	if got := provider.Images(first.Messages); len(got) != 1 {
		t.Fatalf("got %v", got)
	}
	if got := provider.Images(second.Messages); len(got) != 2 || got[1].Name != path {
		t.Fatalf("got %v, want the prompt's and the tool's", got)
	}
	put(t, path, pngOf(t, 1, 1)) // it is another one by now
	turn("and what is in the corner?")
	later := model.requests()[2].Messages
	got := provider.Images(later)
	if len(got) != 2 || got[0].Width != 40 || !bytes.Equal(got[0].Data, pngOf(t, 40, 30)) || got[1].Width != 40 {
		t.Errorf("got %v of\n%s", got, wording(later))
	}
	mustBeValid(t, later)
	// What is no longer kept is a note.
	for seq := range rec.images.kept {
		rec.images.Forget(seq)
	}
	turn("still there?")
	last := model.requests()[3].Messages
	if text := wording(last); len(provider.Images(last)) != 0 || strings.Count(text, "is not shown: it is no longer kept") != 2 {
		t.Errorf("got %v of\n%s", provider.Images(last), text)
	}
}

// A model that takes no images is told their names, whether it is known before or learned from its refusal; the user is told.
func TestModelWithoutImages(t *testing.T) {
	dir := t.TempDir()
	path := put(t, filepath.Join(dir, "shot.png"), pngOf(t, 40, 30))
	known := newModel(call1("read", `{"path":"shot.png"}`), step{text: "cannot see"})
	known.info.NoImages = true
	rec := &recorder{}
	rec.play(t.Context(), Turn{Model: known, Prompt: "q", Env: tool.Env{Cwd: dir}, Attachments: attach(path), Tools: []tool.Tool{tool.Read()}})
	if got := provider.Images(known.requests()[1].Messages); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	if text := wording(known.requests()[1].Messages); !strings.Contains(text, "[the image "+path) || !strings.Contains(text, "is not shown: this model takes no images") {
		t.Errorf("got\n%s", text)
	}
	if told := notices(rec); !strings.Contains(told, "shot.png (this model takes no images)") {
		t.Errorf("got %q", told)
	}

	refusal := &provider.Error{Kind: provider.ErrImages, Provider: "p", Message: "image input is not supported"}
	learning := newModel(step{err: refusal}, step{text: "cannot see"})
	rec = &recorder{}
	o := rec.play(t.Context(), Turn{Model: learning, Prompt: "q", Env: tool.Env{Cwd: dir}, Attachments: attach(path)})
	if reqs := learning.requests(); o.Status != wire.StatusSuccess || len(reqs) != 2 || len(provider.Images(reqs[0].Messages)) != 1 || len(provider.Images(reqs[1].Messages)) != 0 {
		t.Errorf("got %+v after %d requests", o, len(reqs))
	}
	if told := notices(rec); !strings.Contains(told, "takes no images") {
		t.Errorf("got %q", told)
	}

	// Without an image, such a refusal is the end, and it is not sent for ever.
	stubborn := newModel(step{err: refusal}, step{err: refusal}, step{err: refusal})
	if o := (&recorder{}).play(t.Context(), Turn{Model: stubborn, Prompt: "q"}); o.Status != wire.StatusError || len(stubborn.requests()) != 1 {
		t.Errorf("got %+v after %d", o, len(stubborn.requests()))
	}
	if o := (&recorder{}).play(t.Context(), Turn{Model: stubborn, Prompt: "q", Env: tool.Env{Cwd: dir}, Attachments: attach(path)}); o.Status != wire.StatusError || len(stubborn.requests()) != 3 {
		t.Errorf("got %+v after %d", o, len(stubborn.requests()))
	}
}

// An image that a provider refuses does not end the conversation: it is taken out for good, this turn's first.
func TestRefusedImage(t *testing.T) {
	dir := t.TempDir()
	path := put(t, filepath.Join(dir, "odd.png"), pngOf(t, 40, 30))
	refusal := &provider.Error{Kind: provider.ErrInvalid, Provider: "p", Message: "messages.2.content.1.image.source.base64: Could not process image (HTTP 400)"}
	old := &picture.Image{Name: "old.png", MIME: "image/png", Width: 2, Height: 2, Size: 3, Data: []byte("old")}
	rec := &recorder{}
	rec.play(t.Context(), Turn{Model: newModel(step{text: "yes"}), Prompt: "first"})
	rec.images.Keep(1, []*picture.Image{old})
	model := newModel(step{err: refusal}, step{err: refusal}, step{text: "at last"})
	o := rec.play(t.Context(), Turn{Model: model, Prompt: "q", Env: tool.Env{Cwd: dir}, Attachments: attach(path)})
	var counts []int
	for _, r := range model.requests() {
		counts = append(counts, len(provider.Images(r.Messages)))
	}
	if o.Status != wire.StatusSuccess || fmt.Sprint(counts) != "[2 1 0]" {
		t.Errorf("got %+v, %v images", o, counts)
	}
	if told := notices(rec); !strings.Contains(told, "odd.png") || !strings.Contains(told, "Could not process image") || !strings.Contains(told, "old.png") {
		t.Errorf("got %q", told)
	}
	for seq, images := range rec.images.kept {
		if images[0].Data != nil {
			t.Errorf("event %d: what was refused is still kept", seq)
		}
	}
	mustBeValid(t, model.requests()[2].Messages)
}

// A request carries what every provider takes: the newest images, the others by name.
func TestNewestImagesAreSent(t *testing.T) {
	r := newRunner(complete(Turn{Model: newModel()}))
	var messages []provider.Message
	for i := range 30 {
		pic := &picture.Image{Name: fmt.Sprint(i), MIME: "image/png", Width: 1, Height: 1, Size: 1 << 20, Data: make([]byte, 1)}
		part := provider.Part{Image: pic}
		if i%2 == 0 {
			part = provider.Part{ToolResult: &provider.ToolResult{CallID: "c", Images: []*picture.Image{pic}}}
		}
		messages = append(messages, provider.Message{Role: provider.User, Parts: []provider.Part{part}})
	}
	got := provider.Images(r.shownImages(messages))
	if len(got) != 16 || got[0].Name != "14" || got[15].Name != "29" {
		t.Errorf("got %d images, from %v", len(got), got[0])
	}
}

// Compaction gives up the pixels of what it folds, and keeps the names; an image counts in what a conversation takes.
func TestImagesInCompaction(t *testing.T) {
	pic := func(name string) *picture.Image {
		return &picture.Image{Name: name, MIME: "image/png", Width: 1120, Height: 840, Size: 4, Data: []byte("data")}
	}
	var events []wire.EventMessage
	kept := map[int64][]*picture.Image{}
	emit := func(id wire.TurnID, m wire.EventMessage) {
		m.Meta().Seq, m.Meta().TurnID = int64(len(events)+1), id
		events = append(events, m)
	}
	for i := range 8 {
		id := wire.TurnID(fmt.Sprint("t", i))
		emit(id, &wire.TurnStarted{Agent: "a", Prompt: fmt.Sprintf("question %d", i), Model: "m"})
		kept[int64(len(events))] = []*picture.Image{pic(fmt.Sprintf("shot%d.png", i))}
		emit(id, &wire.AgentStreamChunk{Agent: "a", Chunk: wire.Chunk{Type: wire.ChunkToolCall, ExecutionID: wire.ExecutionID(id), Tool: "read", Arguments: "{}"}})
		emit(id, &wire.CommandResult{Agent: "a", ExecutionID: wire.ExecutionID(id), Tool: "read", Status: wire.StatusSuccess, Output: fmt.Appendf(nil, "[the image read%d.png]", i)})
		kept[int64(len(events))] = []*picture.Image{pic(fmt.Sprintf("read%d.png", i))}
		emit(id, &wire.AgentComplete{Agent: "a", Status: wire.StatusSuccess})
	}
	conv := History(events).WithImages(kept)
	if n := compaction.Tokens(toItems(conv.entries)) - compaction.Tokens(toItems(History(events).entries)); n < 16*40*30 {
		t.Errorf("16 images of 1,200 patches count %d tokens", n)
	}
	// By the user's wish: the summary is asked for with names, and without a pixel.
	model := newModel(step{text: "they looked at pictures"})
	done, err := compact(t, Compaction{Conversation: History(events).WithImages(kept), Model: model})
	if err != nil || done.Status != wire.StatusSuccess {
		t.Fatal(done, err)
	}
	asked := model.requests()[0].Messages
	if text := wording(asked); len(provider.Images(asked)) != 0 || !strings.Contains(text, "question 3 [with shot3.png (PNG, 1120×840)]") || !strings.Contains(text, "[the image read3.png]") {
		t.Errorf("got\n%s", text)
	}
	// In a turn whose window is too small for them.
	small := newModel(step{text: "folded"}, step{text: "folded"}, step{text: "answer"}, step{text: "answer"})
	small.info.ContextWindow = 12_000
	rec := &recorder{events: events, images: album{kept: kept}}
	o := rec.play(t.Context(), Turn{Model: small, Prompt: "and now?"})
	reqs := small.requests()
	last := reqs[len(reqs)-1].Messages
	if left := provider.Images(last); o.Status != wire.StatusSuccess || len(left) > 5 {
		t.Errorf("got %+v with %d images of\n%s", o, len(left), wording(last))
	}
	if text := wording(last); !strings.Contains(text, "shot0.png (PNG, 1120×840) is not shown") {
		t.Errorf("the first request's image has no name:\n%s", text)
	}
	mustBeValid(t, last)
}

// A file that is swapped for a pipe does not hold the turn up, and neither does a turn that is cancelled.
func TestAttachmentsDoNotWait(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "p")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if o := (&recorder{}).play(ctx, Turn{Model: newModel(), Prompt: "q", Attachments: attach(pipe)}); o.Status != wire.StatusCancelled {
		t.Errorf("got %+v", o)
	}
}
