package daemon

import (
	"cmp"
	"context"
	"os"
	"path/filepath"

	"sublet/daemon/config"
	"sublet/daemon/internal/judge"
	"sublet/daemon/internal/policy"
	"sublet/daemon/internal/project"
	"sublet/daemon/internal/reach"
	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/risk/secret"
	"sublet/daemon/internal/worktree"
	"sublet/lease/confine"
	"sublet/lease/shell"
	"sublet/wire"
)

// Explain judges a command offline, for a fresh bash in cwd ("" is the current directory) without aliases or functions. Of
// the settings p only secrets and hosts count. It does not read the command's files or run anything of the project; for a
// command that would delete or run a file of a project it asks git whether the file is tracked. Without that it is fast enough
// for thousands of calls a second. It is safe for concurrent use.
func Explain(command, cwd string, p config.Policy) wire.Verdict {
	c := freshShell(cwd, p)
	return judge.Verdict(judge.Entering(risk.Analyze(command, c), c, nil))
}

// ExplainModes judges a command as Explain does, but for a new shell of the user's kind. It also returns what each
// mode would do with the command if no rule matched.
func ExplainModes(command, cwd string, s config.Config) (wire.Verdict, []wire.PolicyOutcome) {
	c := freshShell(cwd, s.Policy)
	c.Dialect = filepath.Base(cmp.Or(s.Shell.Path, os.Getenv("SHELL")))
	if !shell.Lendable(c.Dialect) {
		c.Dialect = "bash"
	}
	v := judge.Entering(risk.Analyze(command, c), c, nil)
	action := freshAction(command, c)
	if path, err := confine.Find(); err == nil && confine.Probe(path).Holds() {
		action.Reach = v.Reach
	}
	outcomes := judge.Outcomes(action.Reach != "", func(mode policy.Mode) policy.Decision { return policy.Policy{Mode: mode}.Decide(v, action) })
	return judge.Verdict(v), outcomes
}

// freshAction is what the policy judges of a command in c.
func freshAction(command string, c risk.Context) policy.Action {
	return policy.Action{Tool: "bash", Command: command, Cwd: c.Cwd, Project: c.ProjectRoot, Editable: reach.IsProject(c.ProjectRoot, c.Home), Home: c.Home}
}

// freshShell is the context of a shell that has just been opened in cwd.
func freshShell(cwd string, p config.Policy) risk.Context {
	if cwd == "" {
		cwd, _ = os.Getwd()
	}
	home, _ := os.UserHomeDir()
	c := risk.Context{Cwd: cwd, Home: home, ProjectRoot: project.Root(cwd), Secrets: secret.New(home, p.Secrets, p.NotSecrets), Hosts: p.Project.Hosts}
	if project.IsRepository(c.ProjectRoot) {
		c.Tracked = func(path string) bool { return worktree.Tracked(context.Background(), c.ProjectRoot, path) }
	}
	return c
}
