package store

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"sublet/daemon/internal/project"
	"sublet/wire"
)

// examples is the stored form of a rule's examples.
type examples struct {
	Match   []string `json:"match"`
	NoMatch []string `json:"no_match"`
}

// AddRule stores a rule of scope project or always.
func (s *Store) AddRule(ctx context.Context, r wire.Rule) error {
	text, err := json.Marshal(examples{r.Match, r.NoMatch})
	if err != nil {
		return fmt.Errorf("add rule: %w", err)
	}
	_, err = s.exec(ctx, "add rule",
		"INSERT INTO rules (id, decision, pattern, scope, subject, source, created_at, expires_at, examples) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
		r.ID, r.Decision, r.Pattern, r.Scope, []byte(r.Subject), r.Source, r.CreatedAtMS, r.ExpiresAtMS, string(text))
	return err
}

// Rules returns all stored rules, oldest first, expired ones included.
func (s *Store) Rules(ctx context.Context) ([]wire.Rule, error) {
	var list []wire.Rule
	err := each(ctx, s.db, func(scan func(...any) error) error {
		var r wire.Rule
		var subject, text []byte
		if err := scan(&r.ID, &r.Decision, &r.Pattern, &r.Scope, &subject, &r.Source, &r.CreatedAtMS, &r.ExpiresAtMS, &text); err != nil {
			return err
		}
		var e examples
		if err := json.Unmarshal(text, &e); err != nil {
			return fmt.Errorf("examples of %s: %w", r.ID, err)
		}
		r.Subject, r.Match, r.NoMatch = wire.OSString(subject), e.Match, e.NoMatch
		list = append(list, r)
		return nil
	}, "SELECT id, decision, pattern, scope, subject, source, created_at, expires_at, examples FROM rules ORDER BY created_at, id")
	return list, s.failed("list rules", err)
}

// DeleteRule removes a rule, or returns ErrNotFound.
func (s *Store) DeleteRule(ctx context.Context, id wire.RuleID) error {
	return s.one(ctx, "delete rule", "DELETE FROM rules WHERE id = ?", id)
}

// DecideFolder stores whether the user trusts the folder at path, so that its instruction files are more than data.
func (s *Store) DecideFolder(ctx context.Context, path string, trusted bool) error {
	_, err := s.exec(ctx, "trust folder", "INSERT OR REPLACE INTO folders (path, trusted, decided_at) VALUES (?, ?, ?)", []byte(path), trusted, time.Now().UnixMilli())
	return err
}

// Folders returns the folders that the user decided about, by path.
func (s *Store) Folders(ctx context.Context) ([]wire.TrustedFolder, error) {
	list := []wire.TrustedFolder{}
	err := each(ctx, s.db, func(scan func(...any) error) error {
		var f wire.TrustedFolder
		var path []byte
		err := scan(&path, &f.Trusted, &f.DecidedAtMS)
		f.Path = wire.OSString(path)
		list = append(list, f)
		return err
	}, "SELECT path, trusted, decided_at FROM folders ORDER BY path")
	return list, s.failed("list folders", err)
}

// TrustsFolder returns the decision that applies to dir, whose links must be resolved: that of dir or of the nearest folder above it,
// up to the top of its repository. A repository inside a trusted folder needs a decision of its own.
func (s *Store) TrustsFolder(ctx context.Context, dir string) (trusted, decided bool, err error) {
	list, err := s.Folders(ctx)
	if err != nil || !filepath.IsAbs(dir) {
		return false, false, err
	}
	decisions := map[string]bool{}
	for _, f := range list {
		decisions[string(f.Path)] = f.Trusted
	}
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if trusted, decided = decisions[at]; decided {
			return trusted, true, nil
		}
		if strings.HasSuffix(filepath.Dir(at), "/.sublet/worktrees") {
			continue // an agent's working tree belongs to its repository
		}
		if project.IsRepository(at) || at == filepath.Dir(at) {
			return false, false, nil
		}
	}
}

// ForgetFolder removes the decision about the folder at path; it returns ErrNotFound if there is none.
func (s *Store) ForgetFolder(ctx context.Context, path string) error {
	return s.one(ctx, "forget folder", "DELETE FROM folders WHERE path = ?", []byte(path))
}
