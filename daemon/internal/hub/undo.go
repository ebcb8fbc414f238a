package hub

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/tool"
	"sublet/wire"
	"sublet/wire/visible"
)

// Undo puts back the last change that the session's file tools made, or what the last borrowed command, or all of them,
// changed in the shell.
func (c *Client) Undo(ctx context.Context, r *wire.UndoRequest) error {
	if r.What != "file" && r.What != "shell" {
		return invalid("what: %q is neither file nor shell", visible.Exact(visible.Cut(r.What, 64)))
	}
	s, err := c.sessionOf(ctx, r.SessionID)
	if err != nil {
		return err
	}
	t := c.turn(s, r.RequestID)
	t.agent = "you"
	t.work = func(ctx context.Context, t *turn) agent.Outcome { return t.undo(ctx, r) }
	return c.hub.enqueue(t)
}

// undo undoes the last change to a file or, as r asks, the last or every change to the shell, and emits a CommandResult of the tool "undo",
// which it does not if there was nothing to undo. It is the work of a turn.
func (t *turn) undo(ctx context.Context, r *wire.UndoRequest) agent.Outcome {
	begun, id := time.Now(), wire.ExecutionID(wire.NewID())
	var text, path string
	var err error
	if r.What == "file" {
		text, path, err = t.undoFile(ctx)
	} else {
		text, err = t.undoShell(ctx, id, r.All)
	}
	res := &wire.CommandResult{
		Agent: t.agent, ExecutionID: id, Tool: "undo", Status: wire.StatusSuccess, Output: []byte(text),
		FilesModified: []wire.OSString{}, StartedAtMS: begun.UnixMilli(), DurationMS: time.Since(begun).Milliseconds(),
	}
	if err != nil {
		if !errors.Is(err, tool.ErrNothingToUndo) { // else nothing ran that could have a result
			res.Status, res.Output = wire.StatusError, []byte(err.Error())
			t.emitFromAgent(res)
		}
		return t.failed(ctx, &agent.ToolError{Tool: "undo", Status: wire.StatusError, Message: err.Error()})
	}
	if path != "" {
		res.FilesModified = []wire.OSString{wire.OSString(path)}
	}
	t.emitFromAgent(res)
	return succeeded("undo", text)
}

// undoFile undoes the newest change that the session's file tools made and returns, for the user, what that did to the file at path. With
// nothing left the error is tool.ErrNothingToUndo.
func (t *turn) undoFile(ctx context.Context) (text, path string, err error) {
	change, left, err := t.s.files.Undo(ctx)
	if err != nil {
		return "", "", err
	}
	text = "put back " + change.Path
	if !change.Existed {
		text = "removed " + change.Path + ", which was not there before"
	}
	if left > 0 {
		text += fmt.Sprintf("; changes before it that can be undone: %d", left)
	}
	return text, change.Path, nil
}

// undoShell asks whoever has the shell: the client that lends it, which puts it back under a lease of its own, or the
// session's private shell.
func (t *turn) undoShell(ctx context.Context, id wire.ExecutionID, all bool) (text string, err error) {
	ln, err := t.Lent()
	if err != nil {
		return "", err
	}
	var changed, left string
	if ln == nil {
		changed, left, err = t.s.undoPrivate(ctx, all)
	} else {
		changed, left, err = ln.Restore(ctx, id, all, t.terms())
	}
	switch {
	case err != nil:
		return "", err
	case changed == "" && left == "":
		return "", fmt.Errorf("%w in the shell", tool.ErrNothingToUndo)
	case changed == "":
		return "", fmt.Errorf("%w in the shell; %s", tool.ErrNothingToUndo, left)
	case left != "":
		left = "; " + left
	}
	return "put back in the shell: " + changed + left, nil
}

func (s *session) undoPrivate(ctx context.Context, all bool) (changed, left string, err error) {
	p := s.ownShell()
	if p == nil || p.Gone() {
		return "", "", nil
	}
	if changed, left, err = p.Restore(ctx, all); left != "" {
		left = "still different: " + left
	}
	return changed, left, err
}
