package hub

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sublet/daemon/internal/risk"
	"sublet/wire"
)

// A saved session is a file: one line that says what it is, then frames as on the wire: a SessionReply that holds the
// session, and its events in order.
const savedHeader = "sublet session 1\n"

// maxSaved bounds a file that is loaded, in bytes.
const maxSaved = 1 << 30

// export writes a session as text: json (one object, as `session show --json` has its lines) or markdown.
func (s *session) export(ctx context.Context, r *wire.SessionRequest) (string, error) {
	events, err := s.events(ctx, 0)
	if err != nil {
		return "", err
	}
	info := s.snapshot()
	switch r.Format {
	case "json", "":
		return exportJSON(info, events)
	case "markdown":
		return exportMarkdown(info, events), nil
	}
	return "", invalid("format: %q is neither json nor markdown", risk.Visible(cut(r.Format, 64)))
}

func exportJSON(info wire.SessionInfo, events []wire.EventMessage) (string, error) {
	head, err := wire.ToJSON(&wire.SessionReply{Session: info})
	if err != nil {
		return "", err
	}
	var reply struct {
		Session json.RawMessage `json:"session"`
	}
	if err := json.Unmarshal(head, &reply); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "{\"session\": %s,\n\"events\": [", reply.Session)
	for i, m := range events {
		line, err := wire.ToJSON(m)
		if err != nil {
			return "", err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n")
		b.Write(line)
	}
	b.WriteString("\n]}\n")
	return b.String(), nil
}

func exportMarkdown(info wire.SessionInfo, events []wire.EventMessage) string {
	var b strings.Builder
	title := info.Name
	if title == "" {
		title = info.Title
	}
	fmt.Fprintf(&b, "# %s\n\n", risk.Visible(title))
	fmt.Fprintf(&b, "%s, in `%s`\n", time.UnixMilli(info.CreatedAtMS).Format(time.DateTime), risk.Visible(string(info.Cwd)))
	speaking := "" // whose text comes in pieces just now
	for _, m := range events {
		if c, ok := m.(*wire.AgentStreamChunk); ok {
			if c.Chunk.Type != wire.ChunkText {
				continue
			}
			if speaking != c.Agent {
				fmt.Fprintf(&b, "\n**%s:**\n\n", risk.Visible(c.Agent))
				speaking = c.Agent
			}
			b.WriteString(c.Chunk.Text)
			continue
		}
		speaking = ""
		switch m := m.(type) {
		case *wire.TurnStarted:
			fmt.Fprintf(&b, "\n\n## %s\n", risk.Visible(m.Prompt))
		case *wire.CommandResult:
			what := string(m.Command)
			if what == "" {
				what = m.Tool
			}
			out := m.Output
			if m.Tool == "" {
				out = m.OutputTail
			}
			fence := fenceFor(what + string(out))
			fmt.Fprintf(&b, "\n\n%sconsole\n$ %s\n%s\n%s\n", fence, risk.Visible(what), strings.TrimRight(risk.Visible(string(out)), "\n"), fence)
		case *wire.ConfirmationResolved:
			fmt.Fprintf(&b, "\n*%s by %s*\n", m.Decision, risk.Visible(m.By))
		case *wire.CompactionComplete:
			fmt.Fprintf(&b, "\n*compaction: %s*\n", m.Status)
		case *wire.Error:
			fmt.Fprintf(&b, "\n*error: %s*\n", risk.Visible(m.Message))
		}
	}
	return b.String()
}

// fenceFor is a code fence longer than any in the text.
func fenceFor(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence
}

// save writes a session to a file, atomically and readable by the user alone.
func (c *Client) save(ctx context.Context, s *session, r *wire.SessionRequest, out *wire.SessionReply) error {
	path, err := c.path(r.Path)
	if err != nil {
		return err
	}
	info := s.snapshot()
	f, err := os.CreateTemp(filepath.Dir(path), ".sublet-*") // 0600
	if err != nil {
		return invalid("path: %v", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	w := bufio.NewWriter(f)
	frames := [][]byte{[]byte(savedHeader)}
	head, err := wire.AppendFrame(nil, &wire.SessionReply{Session: info})
	if err != nil {
		return err
	}
	frames = append(frames, head)
	if r.IncludeHistory {
		events, err := s.events(ctx, 0)
		if err != nil {
			return err
		}
		for _, e := range envelopes(events, r.IncludeBlocks) {
			frame, err := wire.AppendFrame(nil, e.Message)
			if err != nil {
				return err
			}
			frames = append(frames, frame)
		}
	}
	for _, frame := range frames {
		out.Size += int64(len(frame))
		if _, err := w.Write(frame); err != nil {
			return fmt.Errorf("save session: %w", err)
		}
	}
	if err := errors.Join(w.Flush(), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("save session: %w", err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("save session: %w", err)
	}
	out.Path = wire.OSString(path)
	return nil
}

// path is a path that the client named, against the client's folder.
func (c *Client) path(p wire.OSString) (string, error) {
	if p == "" {
		return "", invalid("path: is missing")
	}
	path := string(p)
	if !filepath.IsAbs(path) {
		_, cwd := c.environ()
		path = filepath.Join(string(cwd), path)
	}
	if !filepath.IsAbs(path) {
		return "", invalid("path: %s is not absolute, and the client told no folder", risk.Visible(string(p)))
	}
	return filepath.Clean(path), nil
}

// load reads a saved session as a new one: its events get new ids of session and their numbers anew.
func (c *Client) load(ctx context.Context, r *wire.SessionRequest, out *wire.SessionReply) error {
	path, err := c.path(r.Path)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return invalid("path: %v", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() || st.Size() > maxSaved {
		return invalid("path: %s is not a file of at most %d bytes", risk.Visible(path), maxSaved)
	}
	in := bufio.NewReader(f)
	head := make([]byte, len(savedHeader))
	if _, err := io.ReadFull(in, head); err != nil || !bytes.Equal(head, []byte(savedHeader)) {
		return invalid("path: %s is not a saved session", risk.Visible(path))
	}
	first, err := readFrame(in)
	saved, ok := first.(*wire.SessionReply)
	if err != nil || !ok {
		return invalid("path: %s: the session's own record cannot be read", risk.Visible(path))
	}
	s := c.hub.newSession(saved.Session.Cwd)
	defer c.hub.release(s)
	s.mu.Lock()
	s.info.Name = risk.Visible(cut(saved.Session.Name, maxName))
	s.mu.Unlock()
	turns := map[wire.TurnID]wire.TurnID{} // a turn's id is unique in the store, so a copy has one of its own
	for n := 1; ; n++ {
		m, err := readFrame(in)
		if errors.Is(err, io.EOF) {
			break
		}
		event, ok := m.(wire.EventMessage)
		if err != nil || !ok {
			_ = s.remove(ctx)
			return invalid("path: %s: event %d cannot be read", risk.Visible(path), n)
		}
		e := event.Meta()
		if e.TurnID != "" {
			if turns[e.TurnID] == "" {
				turns[e.TurnID] = wire.TurnID(wire.NewID())
			}
			e.TurnID = turns[e.TurnID]
		}
		if err := s.emit(event); err != nil {
			return err
		}
	}
	// A turn that was under way when the session was saved has no end in the file.
	if err := c.hub.endUnfinishedOf(ctx, s); err != nil {
		return err
	}
	out.Session, out.Path, out.Size = s.snapshot(), wire.OSString(path), st.Size()
	return nil
}

// readFrame reads one frame of a saved session; io.EOF at the end.
func readFrame(r io.Reader) (wire.Message, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := int(head[0])<<24 | int(head[1])<<16 | int(head[2])<<8 | int(head[3])
	if size == 0 || size > wire.MaxFrame {
		return nil, fmt.Errorf("frame of %d bytes", size)
	}
	payload := make([]byte, size)
	if _, err := io.ReadFull(r, payload); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	return wire.Unmarshal(payload)
}
