package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sublet/daemon/config"
	"sublet/daemon/internal/lend"
	"sublet/daemon/internal/policy"
	"sublet/daemon/internal/worktree"
	"sublet/wire"
	"sublet/wire/visible"
)

// projects remembers the projects' own files (config.ProjectFile) as they were when last looked at, and what git tracks.
type projects struct {
	trees worktree.Trees

	mu    sync.Mutex
	files map[string]projectFile // by path; guarded by mu
}

// projectFile is one of them. Where err is set nothing of it holds and everything is asked about.
type projectFile struct {
	size    int64
	changed time.Time
	inode   fs.FileInfo // of the file that was read: one renamed into its place is another
	mode    policy.Mode // "" = none
	rules   []wire.Rule
	err     error
}

// maxProjectFiles bounds how many files are remembered; more are read again.
const maxProjectFiles = 256

// tightening is what the files of the folders that an action is about ask for, taken together.
type tightening struct {
	mode  policy.Mode // the strictest; "" = none
	rules []wire.Rule
	bad   []error // files that cannot be used
}

// tighten looks at the files in the folders given and in all above them, up to home, and reads those that changed. It
// does not end at a repository's top: an agent may make a repository or a nearer file, and neither may loosen anything.
func (p *projects) tighten(home string, dirs ...string) tightening {
	var t tightening
	var seen []string
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) {
			continue
		}
		// The shell's own idea of where it is may lead through links; both ways up count.
		ways := []string{filepath.Clean(dir)}
		if real, err := filepath.EvalSymlinks(dir); err == nil && real != ways[0] {
			ways = append(ways, real)
		}
		for _, at := range ways {
			for ; !slices.Contains(seen, at); at = filepath.Dir(at) {
				seen = append(seen, at)
				t.add(p.at(at))
				if at == filepath.Clean(home) {
					break
				}
			}
		}
	}
	return t
}

func (t *tightening) add(f projectFile) {
	if f.err != nil {
		t.bad = append(t.bad, f.err)
	}
	t.mode = stricter(t.mode, f.mode)
	t.rules = append(t.rules, f.rules...)
}

// at returns the file in dir; the zero value where there is none.
func (p *projects) at(dir string) projectFile {
	path := filepath.Join(dir, config.ProjectFile)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err != nil { // but a link that leads nowhere is no absence
			return projectFile{}
		}
	}
	if err != nil {
		return projectFile{err: &config.Error{Path: path, Message: err.Error()}}
	}
	p.mu.Lock()
	known, ok := p.files[path]
	p.mu.Unlock()
	if ok && known.size == info.Size() && known.changed.Equal(info.ModTime()) && os.SameFile(known.inode, info) {
		return known
	}
	f := readProject(dir)
	f.size, f.changed, f.inode = info.Size(), info.ModTime(), info
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.files == nil || len(p.files) >= maxProjectFiles {
		p.files = map[string]projectFile{}
	}
	p.files[path] = f
	return f
}

func readProject(dir string) projectFile {
	p, err := config.LoadProject(dir)
	if err != nil {
		return projectFile{err: err}
	}
	f := projectFile{mode: policy.Mode(p.Mode)}
	for i, r := range p.Rules {
		if err := policy.ParseRule(r.Pattern); err != nil {
			return projectFile{err: p.Fault(r.Pattern, err)}
		}
		rule := wire.Rule{
			ID:       wire.RuleID(fmt.Sprintf("project-%s-%d", r.Decision, i+1)),
			Decision: r.Decision, Pattern: r.Pattern, Scope: policy.ScopeAlways, Source: policy.SourceProject,
			Match: append([]string{}, r.Match...), NoMatch: append([]string{}, r.NoMatch...),
		}
		if err := policy.CheckExamples(riskRule(rule), r.Match, r.NoMatch); err != nil {
			rule.Fault = p.Fault(r.Pattern, err).Error()
		}
		rule.Pattern = below(dir, r.Pattern)
		f.rules = append(f.rules, rule)
	}
	return f
}

// below makes a rule about a relative path one about a path below dir, which need not be the repository's top.
func below(dir, pattern string) string {
	kind, glob, ok := strings.Cut(pattern, ":")
	if open := strings.IndexByte(kind, '['); open >= 0 { // write[high, in /a:b]: x
		head, rest, found := strings.Cut(pattern, "]:")
		kind, glob, ok = kind[:open], rest, found
		pattern = head + "]"
	} else {
		pattern = kind
	}
	glob = strings.TrimSpace(glob)
	switch kind = strings.TrimSpace(kind); {
	case !ok, kind != "write" && kind != "edit" && kind != "read", strings.HasPrefix(glob, "/"), strings.HasPrefix(glob, "~/"):
		return pattern + ": " + glob
	}
	return pattern + ": " + globQuoter.Replace(strings.TrimSuffix(dir, "/")) + "/" + strings.TrimPrefix(glob, "./")
}

var globQuoter = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`, `\`, `\\`)

// stricter is the mode of the two in which less runs; "" says nothing.
func stricter(a, b policy.Mode) policy.Mode {
	order := []policy.Mode{policy.ModePlan, policy.ModeAsk, policy.ModeAuto, policy.ModeFull}
	switch {
	case a == "":
		return b
	case b == "":
		return a
	case slices.Index(order, a) <= slices.Index(order, b): // one that is not known is the strictest
		return a
	}
	return b
}

// tighten is what the projects' files ask for: of the folder that a call works in, of the shell and of the session. An
// agent that leaves a project does not leave its rules.
func (c *Client) tighten(s *session, dirs ...string) tightening {
	env, cwd := c.environ()
	return c.hub.projects.tighten(lend.Home(env), append(dirs, string(cwd), string(s.snapshot().Cwd))...)
}

// apply tightens p. With a file that cannot be used, whatever is not low is asked about: it may have meant to forbid just
// that.
func (t tightening) apply(p policy.Policy) policy.Policy {
	p.Mode = stricter(p.Mode, t.mode)
	if len(t.bad) > 0 {
		p.Mode = stricter(p.Mode, policy.ModeAsk)
		p.Rules = slices.DeleteFunc(slices.Clone(p.Rules), func(r policy.Rule) bool { return r.Decision == policy.Allow })
	}
	for _, r := range t.rules {
		p.Rules = append(p.Rules, riskRule(r))
	}
	return p
}

// fault is something of the policy that is not as it was meant, in words.
type fault struct{ text, hint string }

// tellBroken tells everyone attached which projects' files cannot be used and which rules do not do what they say, once
// until something about it changes.
func (s *session) tellBroken(t tightening, rules ...fault) {
	var faults []fault
	for _, err := range t.bad {
		faults = append(faults, fault{
			"the project's file is not taken: " + err.Error(), "until it is mended, everything but reading is asked about here",
		})
	}
	for _, r := range t.rules {
		if r.Fault != "" {
			faults = append(faults, ruleFault(r))
		}
	}
	faults = append(faults, rules...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.clients) == 0 {
		return // whoever comes next is told
	}
	for _, f := range faults {
		if !slices.Contains(s.broken, f) {
			s.hub.log.Warn("policy is not as it was meant", "session", s.id, "what", f.text)
			s.sendLocked(&wire.Notice{Level: "warning", Text: visible.Exact(f.text), Hint: f.hint})
		}
	}
	s.broken = faults
}
