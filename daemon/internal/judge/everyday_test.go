package judge

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sublet/daemon/internal/policy"
	"sublet/daemon/internal/project"
	"sublet/daemon/internal/reach"
	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/risk/secret"
	"sublet/daemon/internal/worktree"
	"sublet/lease/confine"
	"sublet/lease/confine/confinetest"
	"sublet/wire"
)

// everyday is a row of testdata/everyday/commands.txt.
type everyday struct {
	line   int
	want   string   // the reach, or "ask"
	needs  []string // what a command with the reach read uses, of everydayNeeds
	status string   // how it ends
	text   string
}

// everydayNeeds is what commands use beside the files of their project and of the system.
var everydayNeeds = []string{
	"git",     // the repository
	"proc",    // processes and the machine, from /proc or /sys
	"names",   // the lookup of users, groups or hosts
	"tmp",     // a temporary file
	"cache",   // a cache of a build tool, or settings in the home
	"devices", // a device other than /dev/null
}

// everydayTable reads the commands by the kind of project that they are for.
func everydayTable(t *testing.T) map[string][]everyday {
	f, err := os.Open("testdata/everyday/commands.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table, kind, seen := map[string][]everyday{}, "", map[string]bool{}
	in := bufio.NewScanner(f)
	for n := 1; in.Scan(); n++ {
		line := in.Text()
		words, text, row := strings.Cut(line, "\t")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[' && !row:
			kind = strings.Trim(line, "[]")
		case !row || kind == "" || seen[kind+"\t"+text]:
			t.Fatalf("line %d of the table is no row, or stands there twice: %q", n, line)
		default:
			seen[kind+"\t"+text] = true
			r := everyday{line: n, status: "exit 0", text: strings.ReplaceAll(text, "␤", "\n")}
			for i, word := range strings.Fields(words) {
				number, ends := strings.CutPrefix(word, "=")
				switch {
				case i == 0:
					r.want = word
				case ends:
					r.status = "exit " + number
				case slices.Contains(everydayNeeds, word) && r.want == string(risk.ReachRead):
					r.needs = append(r.needs, word)
				default:
					t.Fatalf("line %d of the table has the word %q", n, word)
				}
			}
			table[kind] = append(table[kind], r)
		}
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	return table
}

const (
	everydayLeast = 500 // commands in the table
	everydayReads = 200 // of them with the reach read
	everydayAsked = 3   // percent that may be asked about
)

// everydayTally counts what became of the commands.
type everydayTally struct {
	sync.Mutex
	rows, reads, asked, broken, ran int
	missing                         []string
}

// TestEveryday judges everyday commands in real projects in mode auto and where edits and builds were allowed, and runs
// those that are not asked about, held to their reach: they end as they do elsewhere. Those of Go, npm and Rust run only
// where SUBLET_EVERYDAY is set, as they take minutes. Where it is "compare", all also
// run in another copy of the project, held by nothing, and the files of both have to be the same afterwards.
func TestEveryday(t *testing.T) {
	launcher, table := everydayLauncher(t), everydayTable(t)
	compare := os.Getenv("SUBLET_EVERYDAY") == "compare"
	var n everydayTally
	t.Run("kinds", func(t *testing.T) {
		for kind, list := range table {
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				launcher := launcher
				if builds := kind == "go" || kind == "node" || kind == "rust"; testing.Short() && kind != "data" || builds && os.Getenv("SUBLET_EVERYDAY") == "" {
					launcher = "" // judged alone: builds take minutes
				}
				p := newEverydayProject(t, kind, launcher, compare && launcher != "")
				for _, row := range list {
					p.try(t, row, &n)
				}
			})
		}
	})
	t.Logf("%d commands, %d of which read: %d asked about (%.1f %%), %d run, %d broken; not run, as a program is not installed: %q",
		n.rows, n.reads, n.asked, 100*float64(n.asked)/float64(max(n.rows, 1)), n.ran, n.broken, n.missing)
	if len(table) < 6 || n.rows < everydayLeast || n.reads < everydayReads {
		t.Errorf("the table has %d kinds and %d commands, %d of which read, want at least 6, %d and %d", len(table), n.rows, n.reads, everydayLeast, everydayReads)
	}
	if n.asked*100 > n.rows*everydayAsked {
		t.Errorf("%d of %d commands are asked about, want at most %d %%", n.asked, n.rows, everydayAsked)
	}
	if len(n.missing) > 0 && os.Getenv("CI") != "" {
		t.Error("programs are missing: make shells installs them")
	}
}

// try judges a command, and runs it unless it is asked about.
func (p *everydayProject) try(t *testing.T, row everyday, n *everydayTally) {
	d := p.decide(t, row, policy.Policy{Mode: policy.ModeAuto})
	allowed := p.decide(t, row, policy.Policy{Mode: policy.ModeAsk, Rules: []wire.Rule{
		{Decision: policy.Allow, Pattern: "reach: project", Scope: policy.ScopeProject, Subject: wire.OSString(p.held.dir), Source: "user"},
	}})
	if d.Outcome != allowed.Outcome || d.Reach != allowed.Reach {
		t.Errorf("line %d: %q: %s with reach %s in mode auto, %s with reach %s where edits and builds are allowed", row.line, row.text, d.Outcome, d.Reach, allowed.Outcome, allowed.Reach)
	}
	got := string(d.Reach)
	if d.Outcome != policy.Allow {
		got = string(d.Outcome)
	}
	if got != row.want {
		t.Errorf("line %d: %q: got %s (reach %s: %s), want %s", row.line, row.text, got, d.Reach, d.Why, row.want)
	}
	runs := d.Outcome == policy.Allow && d.Reach.Confines() && p.launcher != ""
	var result string
	absent := false
	if runs {
		result, absent = p.runHeld(t, row, string(d.Reach))
	}
	n.Lock()
	defer n.Unlock()
	n.rows++
	switch {
	case d.Outcome != policy.Allow:
		n.asked++
	case got == string(risk.ReachRead):
		n.reads++
	}
	switch {
	case absent:
		n.missing = append(n.missing, row.text)
	case result != "":
		t.Errorf("line %d: %q is broken by the reach %s: %s", row.line, row.text, d.Reach, result)
		n.broken++
	case runs:
		n.ran++
	}
}

// everydayLauncher builds the launcher; "" where nothing can be held here, which fails where CI runs.
func everydayLauncher(t *testing.T) string {
	path, err := confinetest.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if s := confine.Probe(path); s.Missing != "" {
		if os.Getenv("CI") != "" {
			t.Fatal(s.Missing)
		}
		t.Logf("the commands are judged and not run: %s", s.Missing)
		return ""
	}
	return path
}

// An everydayProject is a project, or two copies of it, each with a home of its own.
type everydayProject struct {
	launcher   string // "" = commands do not run
	compare    bool   // with the other copy
	held, free everydayCopy
	spec       string          // a file
	differ     map[string]bool // files that an earlier command left different
}

type everydayCopy struct {
	home, dir string
	env       []string
}

func (c *everydayCopy) getenv(name string) string {
	for _, kv := range c.env {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

func newEverydayProject(t *testing.T, kind, launcher string, compare bool) *everydayProject {
	user, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	base, err := os.MkdirTemp(user, "sublet-everyday-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error { // modules that go fetched are read-only
			if err == nil && d.IsDir() {
				_ = os.Chmod(path, 0o700)
			}
			return nil
		})
		if err := os.RemoveAll(base); err != nil {
			t.Error(err)
		}
	})
	p := &everydayProject{launcher: launcher, compare: compare, spec: filepath.Join(t.TempDir(), "spec"), differ: map[string]bool{}}
	copies := []*everydayCopy{&p.held}
	if compare {
		copies = append(copies, &p.free)
	}
	for _, c := range copies {
		if c.home, err = os.MkdirTemp(base, "home"); err != nil {
			t.Fatal(err)
		}
		c.dir = filepath.Join(c.home, "work", kind)
		if err := os.MkdirAll(c.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		c.env = everydayEnv(t, user, c.home)
		script, err := filepath.Abs("testdata/everyday/" + kind + ".sh")
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{
			"set -e; . " + script,
			"set -e; git init -q -b main; git config user.name Ann; git config user.email ann@example.com; git add -A; git commit -qm first; git remote add origin ../origin.git",
			"sed -i '1s/$/ /' README.md && git commit -qam 'readme: a space'",
		} {
			if status, out := c.run(t, nil, text); status != "exit 0" {
				t.Fatalf("make the project: %s\n%s", status, out)
			}
		}
	}
	return p
}

// everydayEnv is the environment of somebody whose home is home, who has the programs and caches of user.
func everydayEnv(t *testing.T, user, home string) []string {
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	env := []string{
		"HOME=" + home, "LANG=C.UTF-8", "GOCACHE=" + strings.TrimSpace(string(cache)), "GOTOOLCHAIN=local", "GOPROXY=off", "GOFLAGS=", "CARGO_INCREMENTAL=0", "CARGO_PROFILE_DEV_DEBUG=0", "CARGO_PROFILE_TEST_DEBUG=0",
		"GIT_AUTHOR_DATE=2024-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2024-01-02T03:04:05Z", "RUSTUP_HOME=" + filepath.Join(user, ".rustup"), "PYENV_ROOT=" + filepath.Join(user, ".pyenv"),
	}
	path := os.Getenv("PATH")
	if python, err := exec.Command("python3", "-c", "import os, sys; print(os.path.dirname(sys.executable))").Output(); err == nil {
		path = strings.TrimSpace(string(python)) + ":" + path // and not a script that looks for it each time
	}
	env = append(env, "PATH="+path)
	for _, name := range []string{"USER", "LOGNAME", "TERM", "TMPDIR", "RUSTUP_HOME", "PYENV_ROOT", "RUSTUP_TOOLCHAIN", "PYENV_VERSION"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

func (p *everydayProject) secrets() secret.Table { return secret.New(p.held.home, nil, nil) }

// decide judges a command in the copy that is held, as the hub does.
func (p *everydayProject) decide(t *testing.T, row everyday, rules policy.Policy) policy.Decision {
	env := map[string]string{}
	for _, kv := range p.held.env {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	dir := p.held.dir
	v := risk.Analyze(row.text, risk.Context{
		Cwd: dir, Home: p.held.home, Secrets: p.secrets(), ProjectRoot: project.Root(dir), Env: env,
		Tracked: func(path string) bool { return worktree.Tracked(t.Context(), dir, path) },
		Venv:    func(file string) bool { return standardVenv(file, dir, env["PATH"]) },
		Shadow:  shadow(env["PATH"], dir, p.held.home, env["TMPDIR"]),
	})
	return rules.Decide(v, policy.Action{Tool: "bash", Command: row.text, Cwd: dir, Project: dir, Editable: reach.IsProject(dir, p.held.home), Home: p.held.home, Reach: v.Reach})
}

// runHeld runs a command, and returns how it is broken by its reach, "" where it is not. absent reports that a program is not
// installed.
func (p *everydayProject) runHeld(t *testing.T, row everyday, reach string) (result string, absent bool) {
	spec := confine.Spec{
		Reach: reach, Project: project.Root(p.held.dir), Hidden: p.secrets().Hidden(p.held.dir), Caches: confine.Caches(p.held.home, p.held.getenv),
	}
	if err := os.WriteFile(p.spec, spec.Encode(), 0o600); err != nil {
		t.Fatal(err)
	}
	status, out := p.held.run(t, []string{p.launcher, p.spec}, row.text)
	switch {
	case notInstalled.Match(out):
		return "", !strings.HasSuffix(row.text, "|| true")
	case status != row.status:
		return fmt.Sprintf("%s, want %s\n%s", status, row.status, out), false
	case !p.compare:
		return "", false
	}
	wantStatus, wantOut := p.free.run(t, nil, row.text)
	got, want := everydayFiles(t, p.held.dir), everydayFiles(t, p.free.dir)
	var differ []string
	for _, m := range []map[string]string{got, want} {
		for path := range m {
			if got[path] != want[path] && !p.differ[path] {
				p.differ[path] = true
				differ = append(differ, path)
			}
		}
	}
	switch {
	case status != wantStatus:
		return fmt.Sprintf("%s, without it %s\n%s\nwithout it:\n%s", status, wantStatus, out, wantOut), false
	case len(differ) > 0:
		slices.Sort(differ)
		return fmt.Sprintf("these files are not the same: %q\n%s\nwithout it:\n%s", differ[:min(len(differ), 10)], out, wantOut), false
	}
	return "", false
}

var notInstalled = regexp.MustCompile(`command not found|No module named '?(pytest|venv)|no such command: `)

// run runs a text by bash below words, and returns how it ended and what it printed.
func (c *everydayCopy) run(t *testing.T, words []string, text string) (status string, out []byte) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	words = append(slices.Clone(words), "bash", "-c", text)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir, cmd.Env = c.dir, append(slices.Clone(c.env), "PWD="+c.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		return err.Error(), out
	}
	if ctx.Err() != nil {
		return "did not end", out
	}
	if sig := cmd.ProcessState.Sys().(syscall.WaitStatus); sig.Signaled() {
		return sig.Signal().String(), out
	}
	return fmt.Sprint("exit ", cmd.ProcessState.ExitCode()), out
}

var (
	// everydayHash is what tools derive from where a project lies.
	everydayHash = regexp.MustCompile(`[0-9a-f]{8,}`)
	// everydayMade are files whose content, or name, differs from one run to the next.
	everydayMade = regexp.MustCompile(`^(target/.*(incremental|\.fingerprint|deps)|\.git/(index|logs/|ORIG_HEAD|gc\.)|.*__pycache__|build/|bin/|\.venv/|out/|site/.*\.(bundle|zip|tar|db)$|.*\.gz$|cover\.out|target/|src\.tar|shop$|docs/list)`)
	everydaySkip = regexp.MustCompile(`^target/.*/(incremental|\.fingerprint|deps)(/|$)|^\.git/objects/|__pycache__`)
)

// everydayFiles returns what a project holds: kinds, permissions, and the content of what is no product of a tool.
func everydayFiles(t *testing.T, dir string) map[string]string {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if everydaySkip.MatchString(rel) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := info.Mode().String()
		if info.Mode().IsRegular() && !everydayMade.MatchString(rel) {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			data = bytes.ReplaceAll(data, []byte(dir), []byte("DIR"))
			what += fmt.Sprintf(" %x", sha256.Sum256(data))
		}
		files[everydayHash.ReplaceAllString(rel, "#")] = what
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
