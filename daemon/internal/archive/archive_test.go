package archive

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sublet/daemon/internal/picture"
	"sublet/wire"
)

// A named pipe without a writer blocked Load, and with it the client's request.
func TestLoadDoesNotBlockOnPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	opened := make(chan error, 1)
	go func() {
		_, _, err := Load(path)
		opened <- err
	}()
	select {
	case err := <-opened:
		if err == nil || !strings.Contains(err.Error(), "is not a file") {
			t.Errorf("got %v, want that it is not a file", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("Load is blocked")
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

// A saved session has the images of each event in their order, also those whose pixels are not kept any more.
func TestImagesOfEachEvent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "saved")
	image := func(name string) *picture.Image {
		return &picture.Image{Name: name, MIME: "image/png", Width: 1, Height: 1}
	}
	size, err := Save(path, Session{Info: wire.SessionInfo{ID: "s"}, Images: map[int64][]*picture.Image{5: {image("c")}, 2: {image("a"), image("b")}}})
	if err != nil {
		t.Fatal(err)
	}
	s, read, err := Load(path)
	if err != nil || read != size || s.Info.ID != "s" {
		t.Fatalf("got %+v of %d bytes, %v, want %d", s.Info, read, err, size)
	}
	got := ""
	for seq, images := range s.Images {
		for _, i := range images {
			if want := map[string]int64{"a": 2, "b": 2, "c": 5}[i.Name]; seq != want || i.Data != nil {
				t.Errorf("%+v is of event %d, want %d", i, seq, want)
			}
			got += i.Name
		}
	}
	if len(got) != 3 || s.Images[2][0].Name != "a" {
		t.Errorf("got %q", got)
	}
}

// A code block that a prompt or an answer leaves open, as a cancelled one does, ends with it: what followed was in the block, and what
// is in one was not.
func TestMarkdownClosesCodeBlocks(t *testing.T) {
	text := Markdown(wire.SessionInfo{}, []wire.EventMessage{
		&wire.TurnStarted{Prompt: "mend\n```go\nx"},
		&wire.AgentStreamChunk{Agent: "a", Chunk: wire.Chunk{Type: wire.ChunkText, Text: "```\nwhole\n```\n````md\n```\nha"}},
		&wire.AgentStreamChunk{Agent: "a", Chunk: wire.Chunk{Type: wire.ChunkText, Text: "lf"}},
		&wire.CommandResult{Tool: "bash", Command: "ls", Output: []byte("# out"), Status: wire.StatusOK},
		&wire.TurnStarted{Prompt: "next"},
	})
	if want := "## mend\n```go\nx\n```\n\n**a:**\n\n```\nwhole\n```\n````md\n```\nhalf\n````\n\n```console\n$ ls\n# out\n```\n\n\n## next\n"; !strings.HasSuffix(text, want) {
		t.Errorf("got %q, want %q at the end", text, want)
	}
}
