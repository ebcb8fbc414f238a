package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/policy"
	"sublet/daemon/internal/project"
	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/store"
	"sublet/daemon/internal/tool"
	"sublet/wire"
	"sublet/wire/visible"
)

// folders are those that the user decided to trust, or not to, as stored. What instructs agents in any other is data.
type folders struct {
	mu      sync.Mutex
	trusted map[string]bool // by path, links resolved; guarded by mu
}

func (f *folders) load(ctx context.Context, s *store.Store) error {
	list, err := s.Folders(ctx)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trusted = make(map[string]bool, len(list))
	for _, one := range list {
		f.trusted[string(one.Path)] = one.Trusted
	}
	return nil
}

// of returns what was decided about the folder that dir belongs to: dir itself, or one above it up to the top of its
// repository. A repository within a trusted folder is a folder of its own.
func (f *folders) of(dir string) (trusted, decided bool) {
	if !filepath.IsAbs(dir) {
		return false, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for at := real(filepath.Clean(dir)); ; at = filepath.Dir(at) {
		if trusted, decided = f.trusted[at]; decided {
			return trusted, true
		}
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil || at == filepath.Dir(at) {
			return false, false
		}
	}
}

// trusts reports whether the user trusts the folder that dir belongs to.
func (h *Hub) trusts(dir string) bool {
	trusted, _ := h.folders.of(dir)
	return trusted
}

// decide stores whether the folder at path is trusted.
func (h *Hub) decide(ctx context.Context, path string, trusted bool) error {
	f := wire.TrustedFolder{Path: wire.OSString(path), Trusted: trusted, DecidedAtMS: time.Now().UnixMilli()}
	if err := h.opts.Store.SetFolder(ctx, f); err != nil {
		return err
	}
	h.folders.mu.Lock()
	defer h.folders.mu.Unlock()
	h.folders.trusted[path] = trusted
	return nil
}

// trust serves the operations of a PolicyRequest that are about folders.
func (c *Client) trust(ctx context.Context, r *wire.PolicyRequest, reply *wire.PolicyReply) (err error) {
	h := c.hub
	if r.Op != "trust_list" {
		path := string(r.Cwd)
		if !filepath.IsAbs(path) {
			return invalid("cwd: %s is not absolute", visible.Exact(path))
		}
		switch path = real(project.Root(path)); r.Op {
		case "trust":
			if info, err := os.Stat(path); err != nil || !info.IsDir() {
				return invalid("cwd: %s is not a folder", visible.Exact(path))
			}
			if err := h.decide(ctx, path, true); err != nil {
				return err
			}
			c.announce("folder trusted: %s", path)
		case "untrust":
			err := h.opts.Store.DeleteFolder(ctx, wire.OSString(path))
			if errors.Is(err, store.ErrNotFound) {
				return invalid("nothing was decided about %s", visible.Exact(path))
			}
			if err != nil {
				return err
			}
			h.folders.mu.Lock()
			delete(h.folders.trusted, path)
			h.folders.mu.Unlock()
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
	trusted, decided := t.hub.folders.of(cwd)
	if trusted || decided || !filepath.IsAbs(cwd) {
		return
	}
	root := real(project.Root(cwd))
	files, roles := agent.Instructions(root, real(cwd))
	if len(files)+len(roles) == 0 {
		return
	}
	var would []string
	if len(files) > 0 {
		would = append(would, strings.Join(files, ", ")+" would instruct agents here")
	}
	if len(roles) > 0 {
		would = append(would, ".sublet/agents would add "+strings.Join(roles, ", "))
	}
	if !t.confirm || t.approve != nil && !*t.approve {
		t.s.mu.Lock()
		told := t.s.told["trust "+root]
		if t.s.told == nil {
			t.s.told = map[string]bool{}
		}
		t.s.told["trust "+root] = true
		t.s.mu.Unlock()
		if !told {
			t.origin.Send(&wire.Notice{Level: "warning", Text: fmt.Sprintf(
				"%s is not trusted, so %s not read as instructions; `sublet trust add` there trusts it",
				visible.Exact(root), isOrAre(append(files, roles...)))})
		}
		return
	}
	args, err := json.Marshal(map[string]string{"path": strings.ToValidUTF8(root, "\uFFFD")})
	if err != nil {
		return
	}
	q := agent.Question{
		Agent: "sublet", Tool: wire.ToolTrust, ExecutionID: wire.ExecutionID(wire.NewID()), Arguments: args,
		Action: tool.Action{Cwd: root},
	}
	v := risk.Verdict{
		Level: risk.Medium, Reversible: true, UndoHint: "sublet trust rm",
		Reasons: []risk.Reason{{Text: strings.Join(would, "; "), Effect: risk.Unknown, Level: risk.Medium}},
	}
	d, err := t.s.ask(ctx, t, q, v, policy.Decision{Outcome: policy.Ask})
	if err != nil {
		return // the turn is over
	}
	(&approver{t: t}).decided(q, v, policy.Decision{Outcome: policy.Ask, Why: strings.Join(would, "; ")}, d)
	if err := t.hub.decide(context.WithoutCancel(ctx), root, d.Allowed); err != nil {
		t.hub.log.Error("trust could not be stored", "folder", root, "err", err)
		return
	}
	if d.Allowed {
		t.origin.announce("folder trusted: %s", root)
	}
}

func isOrAre(names []string) string {
	list := visible.Exact(strings.Join(names, ", "))
	if len(names) == 1 {
		return list + " is"
	}
	return list + " are"
}
