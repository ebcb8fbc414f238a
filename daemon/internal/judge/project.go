package judge

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
	"sublet/daemon/internal/policy"
	"sublet/wire"
)

// Projects remembers the projects' own files (config.ProjectFile) as they were when last looked at.
type Projects struct {
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

// Tightening combines the restrictions of the project files that concern an action.
type Tightening struct {
	mode  policy.Mode // the strictest; "" = none
	Rules []wire.Rule
	bad   []error // files that cannot be used
}

// Tighten looks at the files in the folders given and in all above them, up to home, and reads those that changed. It
// does not end at a repository's top: an agent may make a repository or a nearer file, and neither may loosen anything.
func (p *Projects) Tighten(home string, dirs ...string) Tightening {
	var t Tightening
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

func (t *Tightening) add(f projectFile) {
	if f.err != nil {
		t.bad = append(t.bad, f.err)
	}
	t.mode = Stricter(t.mode, f.mode)
	t.Rules = append(t.Rules, f.rules...)
}

// at returns the file in dir; the zero value where there is none.
func (p *Projects) at(dir string) projectFile {
	path := filepath.Join(dir, config.ProjectFile)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err != nil { // a dangling link does not count as absent
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

// readProject reads the file in dir. One pattern that cannot be parsed makes the file unusable; a rule that contradicts its
// examples is kept, with Fault set, and Faults reports it. Examples are checked before the pattern is made absolute: they are
// judged in a made-up project.
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
		if err := policy.CheckExamples(rule); err != nil {
			rule.Fault = p.Fault(r.Pattern, err).Error()
		}
		rule.Pattern = below(dir, r.Pattern)
		f.rules = append(f.rules, rule)
	}
	return f
}

// below makes the relative glob of a write, edit or read rule absolute, below dir: the policy would take it as relative to the
// repository's top. A pattern is KIND: GLOB or KIND[LEVEL, in FOLDER]: GLOB, see policy.ParseRule; FOLDER may contain a colon.
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
	return pattern + ": " + policy.QuoteGlob(strings.TrimSuffix(dir, "/")) + "/" + strings.TrimPrefix(glob, "./")
}

// Stricter returns the mode of the two in which less runs; "" sets no mode.
func Stricter(a, b policy.Mode) policy.Mode {
	order := []policy.Mode{policy.ModePlan, policy.ModeAsk, policy.ModeAuto, policy.ModeFull, ""}
	if slices.Index(order, a) <= slices.Index(order, b) { // one that is not known is the strictest
		return a
	}
	return b
}

// Apply tightens p. With a file that cannot be used, no mode beyond ask and no rule of the user's that allows is in force,
// because the file may have been meant to forbid what they let run.
func (t Tightening) Apply(p policy.Policy) policy.Policy {
	p.Mode = Stricter(p.Mode, t.mode)
	if len(t.bad) > 0 {
		p.Mode = Stricter(p.Mode, policy.ModeAsk)
		p.Rules = slices.DeleteFunc(slices.Clone(p.Rules), func(r wire.Rule) bool { return r.Decision == policy.Allow })
	}
	p.Rules = append(p.Rules, t.Rules...)
	return p
}

// A Fault describes a file or a rule that does not have the effect that was meant.
type Fault struct{ Text, Hint string }

// Faults returns which files cannot be used and which of their rules do not do what they say.
func (t Tightening) Faults() []Fault {
	var faults []Fault
	for _, err := range t.bad {
		faults = append(faults, Fault{
			"the project's file is ignored: " + err.Error(), "until it is repaired, mode ask holds here at most, without your allow rules",
		})
	}
	for _, r := range t.Rules {
		if r.Fault != "" {
			faults = append(faults, ruleFault(r))
		}
	}
	return faults
}

// AfterPlan returns the mode in which an accepted plan is carried out: the session's or, if that is plan, the one of the settings, or ask
// if both are plan.
func AfterPlan(session, settings policy.Mode) policy.Mode {
	for _, mode := range []policy.Mode{session, settings} {
		if mode != policy.ModePlan {
			return mode
		}
	}
	return policy.ModeAsk
}
