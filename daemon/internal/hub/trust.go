package hub

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/judge"
	"sublet/daemon/internal/project"
	"sublet/daemon/internal/reach"
	"sublet/daemon/internal/store"
	"sublet/wire"
	"sublet/wire/visible"
)

// trusts reports whether the user trusts the folder that dir belongs to; false if that cannot be read.
func (h *Hub) trusts(dir string) bool {
	trusted, _, err := h.opts.Store.TrustsFolder(h.ctx, reach.Real(dir))
	if err != nil {
		h.log.Warn("which folders are trusted cannot be read", "err", err)
	}
	return trusted
}

// trust serves the operations of a PolicyRequest that are about folders.
func (c *Client) trust(ctx context.Context, r *wire.PolicyRequest, reply *wire.PolicyReply) (err error) {
	h := c.hub
	if r.Op != "trust_list" {
		path := string(r.Cwd)
		if !filepath.IsAbs(path) {
			return invalid("cwd: %s is not absolute", visible.Exact(path))
		}
		switch path = reach.Real(project.Root(path)); r.Op {
		case "trust":
			if info, err := os.Stat(path); err != nil || !info.IsDir() {
				return invalid("cwd: %s is not a folder", visible.Exact(path))
			}
			if err := h.opts.Store.DecideFolder(ctx, path, true); err != nil {
				return err
			}
			c.announce("folder trusted: %s", path)
		case "untrust":
			err := h.opts.Store.ForgetFolder(ctx, path)
			if errors.Is(err, store.ErrNotFound) {
				return invalid("nothing was decided about %s", visible.Exact(path))
			}
			if err != nil {
				return err
			}
			c.announce("folder not trusted any more: %s", path)
		}
		reply.Folder = wire.OSString(path)
	}
	reply.Folders, err = h.opts.Store.Folders(ctx)
	return err
}

// askTrust asks once, where the folder that a turn works in holds what would instruct agents and nobody has decided about
// it. Where nobody can be asked it says in one line what is not read.
func (t *turn) askTrust(ctx context.Context, cwd string) {
	_, decided, err := t.hub.opts.Store.TrustsFolder(ctx, reach.Real(cwd))
	if err != nil || decided || !filepath.IsAbs(cwd) {
		return
	}
	root := reach.Real(project.Root(cwd))
	names, would := agent.Instructions(root, reach.Real(cwd))
	if len(names) == 0 {
		return
	}
	if !t.confirm || t.approve != nil && !*t.approve {
		if t.s.first("trust " + root) {
			t.origin.Send(&wire.Notice{Level: "warning", Text: fmt.Sprintf(
				"%s is not trusted, so these are not read as instructions: %s; `sublet trust add` there trusts it",
				visible.Exact(root), visible.Exact(strings.Join(names, ", ")))})
		}
		return
	}
	q, v := judge.Trust(root, would)
	d, err := (&approver{t: t}).ask(ctx, q, v, would)
	if err != nil || d.By == "expiry" { // the turn is over, or nobody decided
		return
	}
	if err := t.hub.opts.Store.DecideFolder(context.WithoutCancel(ctx), root, d.Allowed); err != nil {
		t.hub.log.Error("trust could not be stored", "folder", root, "err", err)
		return
	}
	if d.Allowed {
		t.origin.announce("folder trusted: %s", root)
	}
}
