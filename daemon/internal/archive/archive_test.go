package archive

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sublet/wire"
)

// A named pipe without a writer blocked Open, and with it the client's request.
func TestOpenDoesNotBlockOnPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	opened := make(chan error, 1)
	go func() {
		_, _, err := Open(path)
		opened <- err
	}()
	select {
	case err := <-opened:
		if err == nil || !strings.Contains(err.Error(), "is not a file") {
			t.Errorf("got %v, want that it is not a file", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("Open is blocked")
		if w, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil { // releases it
			w.Close()
		}
	}
}

// The texts of a loaded session are as its file has them: control sequences in them stood in the exported text.
func TestMarkdownWithoutControlSequences(t *testing.T) {
	text := Markdown(wire.SessionInfo{}, []wire.EventMessage{
		&wire.AgentStreamChunk{Agent: "a", Chunk: wire.Chunk{Type: wire.ChunkText, Text: "red: \x1b[31m"}},
		&wire.ConfirmationResolved{Decision: "allow\x1b[31m", By: "you"},
		&wire.CompactionComplete{Status: "success\x1b[31m"},
	})
	if strings.Contains(text, "\x1b") {
		t.Errorf("got an escape in %q", text)
	}
}
