package archive

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sublet/daemon/internal/picture"
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

// A call without a command is named with what it worked on.
func TestMarkdownNamesCalls(t *testing.T) {
	text := Markdown(wire.SessionInfo{}, []wire.EventMessage{
		&wire.AgentStreamChunk{Agent: "a", Chunk: wire.Chunk{Type: wire.ChunkToolCall, ExecutionID: "x", Tool: "read", Arguments: `{"path":"main.go"}`}},
		&wire.CommandResult{Agent: "a", ExecutionID: "x", Tool: "read", Output: []byte("package main"), Status: wire.StatusSuccess},
	})
	if !strings.Contains(text, "$ read main.go\npackage main\n") || strings.Contains(text, wire.StatusSuccess) {
		t.Errorf("got %q", text)
	}
}

// What did not succeed is named: a command, a tool and a turn.
func TestMarkdownNamesFailures(t *testing.T) {
	two := 2
	text := Markdown(wire.SessionInfo{}, []wire.EventMessage{
		&wire.CommandResult{Command: "false", ExitCode: &two, Status: wire.StatusOK},
		&wire.CommandResult{Tool: "edit", Status: wire.StatusDenied},
		&wire.AgentComplete{Status: wire.StatusCancelled},
	})
	for _, want := range []string{"*exit status 2*", "*denied*", "*the turn ended: cancelled*"} {
		if !strings.Contains(text, want) {
			t.Errorf("got %q, want %q", text, want)
		}
	}
}

// Images called keep for event 0, with no images, before those of the first event.
func TestImagesOfEachEvent(t *testing.T) {
	var file bytes.Buffer
	w := NewWriter(&file, wire.SessionInfo{})
	for i, seq := range []int64{2, 2, 5} {
		if err := w.Image(seq, &picture.Image{Name: fmt.Sprint("image ", i), MIME: "image/png", Width: 1, Height: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	in, _, err := NewReader(&file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.Event(); err != io.EOF {
		t.Fatalf("got %v, want no event", err)
	}
	got := ""
	err = in.Images(func(seq int64, images []*picture.Image) error {
		got += fmt.Sprint(seq, ":", len(images), " ")
		return nil
	})
	if err != nil || got != "2:2 5:1 " {
		t.Errorf("got %q, %v", got, err)
	}
}
