package server_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sublet/daemon/internal/provider/scripted"
	"sublet/wire"
	"sublet/wire/jsonview"
)

// An image that was attached is in the conversation: for the question itself, for the next one, after its file is gone, and
// after a restart of the daemon. What events carry is its name.
func TestAttachedImage(t *testing.T) {
	var file bytes.Buffer
	if err := png.Encode(&file, image.NewGray(image.Rect(0, 0, 31, 17))); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "shot.png")
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := json.Marshal(map[string]string{"path": path})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, say("what", "saw {images}"), scripted.Script{Match: "look", Steps: []scripted.Step{
		{ToolCalls: []scripted.Call{{Name: "read", Arguments: read}}}, {Text: "saw {images}"},
	}})
	saw := fmt.Sprintf("%s (PNG, 31×17) of %d bytes, sha256 %x", path, file.Len(), sha256.Sum256(file.Bytes()))
	p := r.dial(withoutShell)
	attached := func(a *wire.AgentRequest) {
		a.Attachments = []wire.Attachment{{Path: wire.OSString(path), MIME: "application/octet-stream"}}
	}
	if end := p.ended(p.ask("what is it?", attached)); end.Summary != "saw "+saw {
		t.Errorf("got %q, want %q", end.Summary, saw)
	}
	if end := p.ended(p.ask("look at it yourself")); end.Summary != "saw "+saw+"; "+saw {
		t.Errorf("by the tool: got %q", end.Summary)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if end := p.ended(p.ask("and what is in the corner?")); end.Summary != "saw "+saw+"; "+saw {
		t.Errorf("the next question: got %q", end.Summary)
	}
	for _, m := range p.all() {
		if text := jsonview.Of(m); len(text) > 4<<10 || bytes.Contains(text, []byte("IHDR")) {
			t.Errorf("an event of %d bytes: %.200s", len(text), text)
		}
	}
	p.close()
	r.close()
	r.start()
	p = r.dial(withoutShell, inSession(p.session, -1))
	if end := p.ended(p.ask("what was it?")); end.Summary != "saw "+saw+"; "+saw {
		t.Errorf("after a restart: got %q", end.Summary)
	}
	// It is in a saved session, and there again when that is loaded; a file with something else in its place is not.
	into := filepath.Join(dir, "saved")
	transfer := func(op, path string) wire.Message {
		id := requestID()
		p.send(&wire.SessionRequest{RequestID: id, Op: op, Path: wire.OSString(path), IncludeHistory: true, IncludeBlocks: true})
		return await(p, func(m wire.Message) bool {
			switch m := m.(type) {
			case *wire.SessionReply:
				return m.RequestID == id
			case *wire.Error:
				return m.RequestID == id
			}
			return false
		})
	}
	transfer("save", into)
	saved, err := os.ReadFile(into)
	if err != nil {
		t.Fatal(err)
	}
	loaded, ok := transfer("load", into).(*wire.SessionReply)
	if !ok {
		t.Fatal("a saved session with images is not loaded")
	}
	again := r.dial(withoutShell, inSession(loaded.Session.ID, -1))
	if end := again.ended(again.ask("what was it?")); end.Summary != "saw "+saw+"; "+saw {
		t.Errorf("saved and loaded: got %q", end.Summary)
	}
	for what, change := range map[string]func([]byte) []byte{
		"no image": func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("iVBORw0KGgo"), []byte("aVBORw0KGgo")) },
		"cut off":  func(b []byte) []byte { return b[:len(b)-9] },
	} {
		path := filepath.Join(dir, "odd")
		if err := os.WriteFile(path, change(bytes.Clone(saved)), 0o600); err != nil {
			t.Fatal(err)
		}
		if e, ok := transfer("load", path).(*wire.Error); !ok || e.Code != wire.CodeInvalidMessage || !strings.Contains(e.Message, "record ") {
			t.Errorf("%s: got %+v", what, e)
		}
	}
	// One that is not shown is told, and the turn goes on.
	end := p.ended(p.ask("what about this?", attached))
	await(p, func(m *wire.AgentStreamChunk) bool {
		return m.Chunk.Type == wire.ChunkNotice && strings.Contains(m.Chunk.Text, "shot.png (open")
	})
	if end.Status != wire.StatusSuccess {
		t.Errorf("got %+v", end)
	}
	clear := &wire.SessionRequest{RequestID: requestID(), Op: "clear"}
	p.send(clear)
	await(p, func(m *wire.SessionReply) bool { return m.RequestID == clear.RequestID })
	if end := p.ended(p.ask("what is left?")); end.Summary != "saw no image" {
		t.Errorf("after a clear: got %q", end.Summary)
	}
}
