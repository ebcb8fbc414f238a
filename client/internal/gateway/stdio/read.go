package stdio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"sublet/client/internal/gateway"
	"sublet/wire"
)

// request is an incoming line. Unknown fields are ignored.
type request struct {
	ID          string                  `json:"id"`
	Kind        string                  `json:"kind"`
	Message     string                  `json:"message"`
	Attachments gateway.Few[attachment] `json:"attachments"`
	Metadata    struct {
		Conversation string `json:"conversationId"`
		User         string `json:"userId"`
	} `json:"metadata"`
}

type attachment struct {
	Path string `json:"path"`
	MIME string `json:"mime"`
}

// read serves lines until there are no more, or ctx ends.
func (s *server) read(ctx context.Context) error {
	err := gateway.NewLineReader(s.o.In, s.limit.MessageBytes).Each(func(line []byte) error {
		if err := s.line(line); err != nil {
			return fmt.Errorf("write standard output: %w", err)
		}
		return ctx.Err()
	}, func(long *gateway.LineTooLongError) error {
		s.log.Error("a line was left out", "err", long)
		return nil
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// line handles one line. The error is that of writing to a parent that has ended.
func (s *server) line(line []byte) error {
	r, id, err := parse(line)
	s.log.Debug("received", "kind", gateway.Clip(r.Kind), "id", gateway.Clip(id))
	if err != nil {
		// Invalid input is logged and ignored (C11); if its id can be read, an error is sent.
		s.log.Error("a line was not understood", "err", err, "line", gateway.Clip(string(line)))
		if id != "" {
			return s.fail(id, err.Error())
		}
		return nil
	}
	if ok, retry := s.rate.Take(s.limit.RequestsPerSecond); !ok {
		return s.fail(id, fmt.Sprintf("rate limit: more than %d requests in a second; try again in %v", s.limit.RequestsPerSecond, retry))
	}
	switch r.Kind {
	case "user_message":
		err = s.userMessage(r)
	case "clear_history":
		err = s.clearHistory(r)
	case "get_status":
		err = s.status(r)
	default:
		err = fmt.Errorf("kind: %q is none of user_message, clear_history, get_status", gateway.Clip(r.Kind))
	}
	if err != nil {
		return s.fail(id, wire.Explain(err))
	}
	return nil
}

// parse parses a line. It returns the id also with an error, if it could be read.
func parse(line []byte) (r *request, id string, err error) {
	r = &request{}
	if !utf8.Valid(line) {
		return r, "", errors.New("not UTF-8")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return r, "", fmt.Errorf("not a JSON object: %w", err)
	}
	raw, there := fields["id"]
	if err := json.Unmarshal(raw, &id); !there || err != nil {
		// Print a number as it was written, so that its sender finds it.
		if there && raw[0] != '{' && raw[0] != '[' && string(raw) != "null" {
			return r, gateway.Clip(string(raw)), errors.New("id: want a string")
		}
		return r, "", errors.New("id: want a string")
	}
	if id == "" {
		return r, "", errors.New("id: is empty")
	}
	if err := json.Unmarshal(line, r); err != nil {
		return r, id, errors.New(gateway.Fault(err))
	}
	return r, id, nil
}

// userMessage begins a turn (E10). Its responses follow.
func (s *server) userMessage(r *request) error {
	if strings.TrimSpace(r.Message) == "" {
		return errors.New("message: is missing or empty")
	}
	files, err := s.attachments(r.Attachments)
	if err != nil {
		return err
	}
	turn := &gateway.Turn{
		ID: r.ID, Handle: func(e wire.EventMessage) { s.event(r.ID, e) },
		Ended: func(status string, why *wire.Error) { s.ended(r.ID, status, why) },
	}
	switch err := s.turns.Begin(turn, s.limit.RunningTurns); {
	case errors.Is(err, gateway.ErrRepeated):
		return fmt.Errorf("id: %q is that of a request that still runs", gateway.Clip(r.ID)) // E22
	case err != nil:
		return fmt.Errorf("concurrent requests: %w", err)
	}
	t, err := s.conversation(r.Metadata.Conversation)
	if err != nil {
		turn.Abandon()
		return err
	}
	return turn.Ask(s.ctx, t, &wire.AgentRequest{Prompt: r.Message, Attachments: files, Options: wire.RequestOptions{Mode: s.o.Mode}})
}

// attachments checks that the files exist (P6), since an agent could invent the content of one that does not.
func (s *server) attachments(list []attachment) ([]wire.Attachment, error) {
	files := []wire.Attachment{}
	for i, a := range list {
		path := a.Path
		if path == "" || strings.ContainsRune(path, 0) {
			return nil, fmt.Errorf("attachments[%d].path: is missing or not a path", i)
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.o.Daemon.Cwd, path)
		}
		path = filepath.Clean(path)
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return nil, fmt.Errorf("attachments[%d].path: %w", i, err)
		case !info.Mode().IsRegular():
			return nil, fmt.Errorf("attachments[%d].path: %s is not a file", i, gateway.Clip(path))
		}
		files = append(files, wire.Attachment{Path: wire.OSString(path), MIME: a.MIME})
	}
	return files, nil
}
