package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sublet/lease/confine"
)

// A gitUser is a user with a folder that has a home h, and a project p.
type gitUser struct {
	user
	dir, prefix string
}

// newGitUser returns a user whose project is a repository in which a script was run.
func newGitUser(t *testing.T, who user, script string) gitUser {
	t.Helper()
	dir, _ := placeOf(t, who, confine.Spec{Reach: confine.Read})
	u := gitUser{user: who, dir: dir}
	_, u.prefix = placeOf(t, who, confine.Spec{Reach: confine.Project, Project: u.project()})
	for _, name := range []string{"h", "p"} {
		if err := errors.Join(os.Mkdir(filepath.Join(dir, name), 0o755), os.Chown(filepath.Join(dir, name), who.uid, who.gid)); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := u.does("git init -q -b main\n" + script); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return u
}

func (u gitUser) project() string { return filepath.Join(u.dir, "p") }

// does runs a text in the project as the user does, and heldDoes as a held command.
func (u gitUser) does(text string) (string, error) { return u.output("bash", "-ec", text) }

func (u gitUser) heldDoes(text string) (string, error) {
	return u.output(append(strings.Fields(u.prefix), "bash", "-c", text)...)
}

func (u gitUser) output(argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience) // a script starts git a dozen times
	defer cancel()
	cmd := u.as(exec.CommandContext(ctx, argv[0], argv[1:]...))
	cmd.WaitDelay = time.Second
	cmd.Dir, cmd.Env = u.project(), []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + u.dir + "/h", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_COUNT=3", "GIT_CONFIG_KEY_0=user.name", "GIT_CONFIG_VALUE_0=x",
		"GIT_CONFIG_KEY_1=user.email", "GIT_CONFIG_VALUE_1=x@x", "GIT_CONFIG_KEY_2=protocol.file.allow", "GIT_CONFIG_VALUE_2=always",
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestUsersGitRunsNothing makes repositories in a project, held, by which the user's own git in the project, which did not change,
// would run something later.
func TestUsersGitRunsNothing(t *testing.T) {
	const setup = `git init -q ../lib && git -C ../lib commit -q --allow-empty -m l
git submodule --quiet add ../lib lib; git submodule --quiet add ../lib gone; git init -q own; git -C own commit -q --allow-empty -m o; git add own 2>/dev/null
git commit -qm one; rm -rf gone/.git .git/modules/gone; git config --file ../h/.gitconfig core.hooksPath .hooks`
	const evil = `run="touch $PWD/../h/RAN"; evil() { git init -q $1; git -C $1 commit -q --allow-empty -m x; git -C $1 config core.fsmonitor "$run; false"; }; `
	for i, attack := range []string{
		"evil new; git add new",
		"evil a/b; git add a; git update-index --index-version 4",
		"evil new; git update-index --split-index; git add new",
		"evil new; git update-index --add --cacheinfo 160000,$(git -C new rev-parse HEAD),new",
		"evil lib/in; git -C lib add in",
		"rm -f lib/.git; evil lib",
		"mv lib l2; evil lib",
		"evil gone",
		"evil new; git add new; chmod 1555 new/.git",
		"rm -rf gone; evil gone",
		`git -C own config core.fsmonitor "$run; false"`,
		"mv own/.git own/g; evil own",
		"evil x; mkdir .git/modules/x; cp -r x/.git/. .git/modules/x; rm -rf x/.git; echo gitdir: ../.git/modules/x >x/.git; git add x",
		"evil x; echo ../x/.git >.git/commondir",
		`for d in . lib; do mkdir $d/.hooks; echo "$run" >$d/.hooks/post-index-change; chmod +x $d/.hooks/post-index-change; done`,
	} {
		who := users(t)[i%len(users(t))]
		u := newGitUser(t, who, setup)
		tried := func(run func(string) (string, error)) (string, bool) {
			out, _ := run(evil + attack) // it may fail
			_ = os.Remove(filepath.Join(u.dir, "h/RAN"))
			later, _ := u.does("git status || :; git diff; touch file lib/file; git add file; git -C lib add file")
			return out + later, exists(filepath.Join(u.dir, "h/RAN"))
		}
		if out, effect := tried(u.heldDoes); effect {
			t.Errorf("%s: %s: the user's git runs it\n%s", who.name, attack, out)
		}
		if out, err := u.does("git fsck && git status"); err != nil {
			t.Errorf("%s: after %s: %v: %s", who.name, attack, err, out)
		}
		u = newGitUser(t, who, setup)
		if out, effect := tried(u.does); !effect {
			t.Errorf("%s: %s: has no effect where nothing holds it\n%s", who.name, attack, out)
		}
	}
}

// TestTwoCommandsAtOnce has two held commands bring a repository into an index: while the first runs that made it, the second begins,
// for which it was there before.
func TestTwoCommandsAtOnce(t *testing.T) {
	for what, steps := range map[string][2]string{
		"makes it again":    {"git add new; echo; read", "evil new"},
		"adds it by itself": {"git add new; echo; read; git update-index --force-remove new", "git update-index --add --cacheinfo 160000,$(git -C new rev-parse HEAD),new"},
	} {
		u := newGitUser(t, users(t)[0], `mkfifo ../h/out ../h/first ../h/second`)
		out, err := u.does(`exec 7<>../h/out 8<>../h/first 9<>../h/second
hold() { ` + u.prefix + `bash -c "$evil; $1"; }
evil='evil() { git init -q $1; git -C $1 commit -q --allow-empty -m x; git -C $1 config core.fsmonitor "touch $PWD/../h/RAN; false"; }'
hold 'evil new; ` + steps[0] + `' <&8 >&7 & read <&7
hold 'echo; read; ` + steps[1] + `' <&9 >&7 & read <&7
echo >&8; wait %1 || :; echo >&9; wait %2 || :; rm -f ../h/RAN; git status; git ls-files -s`)
		if err != nil || exists(filepath.Join(u.dir, "h/RAN")) || !strings.Contains(out, "new") {
			t.Errorf("the second %s, and the user's git runs it: %v\n%s", what, err, out)
		}
	}
}

// TestPromptsGitRunsNothing makes repositories in the folder that the user's shell is in, and above it, where a prompt runs git.
func TestPromptsGitRunsNothing(t *testing.T) {
	const bare = `; mkdir -p objects refs; echo ref: refs/heads/x >HEAD; printf '[core]\nrepositoryformatversion = 0\nbare = false\nworktree = .\nfsmonitor = "%s; false"\n' "touch $h/RAN" >config`
	const nested = `; git init -q; git config core.fsmonitor "touch $h/RAN; false"`
	for i, row := range []struct{ setup, dir, attack string }{
		{"rm -rf .git", "", "cd ." + bare},
		{"rm -rf .git; mkdir -p sub/objects", "sub", "cd sub" + bare},
		{"mkdir -p sub/refs", "sub", "cd sub" + bare},
		{"mkdir sub", "sub", "cd sub" + nested},
		{"mkdir -p sub/deep", "sub/deep", "cd sub" + nested},
		{"mkdir -p sub/deep", "sub/deep", "cd sub" + bare},
		{"mkdir sub", "sub", "rm .git/HEAD" + bare},                       // git passes over a .git that is no repository
		{"", "", `printf 'ref:%300srefs/heads/x\n' "" >.git/HEAD` + bare}, // of which git reads 255 bytes
		{"", "", `chmod 0 .git` + bare},
		{"mkdir refs", "", "chmod 0 .git/objects; mv .git/objects .git/o" + bare},
		{"mkdir sub", "sub", "mkdir evil; cd evil" + bare + `; git config -f config diff.external "touch $h/RAN; false"; cd ../sub; cp ../evil/HEAD .; echo ../evil >commondir`},
		{"rm -rf .git; git init -q --bare; git config core.bare false; git config core.worktree .", "", `git config core.fsmonitor "touch $h/RAN; false"`},
	} {
		who := users(t)[i%len(users(t))]
		tried := func(held bool) (string, bool) {
			u := newGitUser(t, who, row.setup)
			dir := filepath.Join(u.project(), row.dir)
			_, u.prefix = placeOf(t, who, confine.Spec{Reach: confine.Project, Project: u.project(), Dir: dir})
			run := u.does
			if held {
				run = u.heldDoes
			}
			if held && !strings.Contains(row.setup, ".git") {
				if out, err := u.heldDoes("cd " + dir + " && echo x >x && git add . && git commit -qm x && git log -p HEAD && git diff HEAD && ! git ls-files | grep -vx x"); err != nil {
					t.Errorf("%s: %q: what is allowed fails: %v: %s", who.name, row.attack, err, out)
				}
			}
			out, _ := run("h=" + u.dir + "/h; " + row.attack) // it may fail
			_ = os.Remove(filepath.Join(u.dir, "h/RAN"))
			later, _ := u.does("cd " + dir + "; git status || :; git diff --no-index /etc/passwd /etc/group")
			effect := exists(filepath.Join(u.dir, "h/RAN"))
			if left, _ := u.does("find . -perm -1000 2>/dev/null || :"); left != "" {
				t.Errorf("%s: %q: left %s", who.name, row.attack, left)
			}
			return out + later, effect
		}
		if out, effect := tried(true); effect {
			t.Errorf("%s: %q in %q: the user's git runs it\n%s", who.name, row.attack, row.dir, out)
		}
		if out, effect := tried(false); !effect {
			t.Errorf("%s: %q in %q: has no effect where nothing holds it\n%s", who.name, row.attack, row.dir, out)
		}
	}
}

// TestKnownSubmodule: the .git file of a submodule that was there before stays where a command checks out the branch that has it.
func TestKnownSubmodule(t *testing.T) {
	for _, who := range users(t) {
		u := newGitUser(t, who, `git init -q ../lib && git -C ../lib commit -q --allow-empty -m l; git commit -q --allow-empty -m one; git branch old
git submodule --quiet add ../lib lib; git commit -qm two; git checkout -q old 2>/dev/null`)
		if out, err := u.heldDoes("git checkout -q main && git submodule status"); err != nil || strings.Contains(out, "untrusted") {
			t.Errorf("%s: %v: %s", who.name, err, out)
		}
		if out, err := u.does("git -C lib status && git submodule status"); err != nil || strings.HasPrefix(out, "-") || !exists(filepath.Join(u.project(), "lib/.git")) {
			t.Errorf("%s: afterwards: %v: %s", who.name, err, out)
		}
		// But not with hooks in its work tree, which no index named before.
		out, err := u.does("git checkout -q old 2>/dev/null; git config --file ../h/.gitconfig core.hooksPath .hooks")
		held, _ := u.heldDoes(`git checkout -q main; mkdir lib/.hooks; echo "touch $PWD/../h/RAN" >lib/.hooks/post-index-change; chmod +x lib/.hooks/post-index-change`)
		_, _ = u.does("git status; touch lib/file; git -C lib add file")
		if err != nil || exists(filepath.Join(u.dir, "h/RAN")) {
			t.Errorf("%s: the user's git runs a new hook: %v: %s", who.name, err, out+held)
		}
	}
}

// TestKilledSetsAside kills the launcher of a command that made such a repository.
func TestKilledSetsAside(t *testing.T) {
	for _, who := range users(t) {
		u := newGitUser(t, who, "mkfifo ../h/begun")
		out, err := u.does(`exec 7<>../h/begun
` + u.prefix + `bash -c 'git init -q new; git -C new commit -q --allow-empty -m x; git add new; echo begun; sleep 1000' 2>/dev/null >&7 &
read x <&7; [ -e .envrc ] && [ -e .git/sublet.repositories ] && kill -9 $! || exit
while [ -e new/.git ] || [ -e .envrc ] || [ -e .git/sublet.repositories ]; do sleep .01; done; ls -d new/.git.untrusted-*`)
		if err != nil {
			t.Errorf("%s: %v: %s", who.name, err, out)
		}
	}
}

// TestIncludedSettings: no command changes settings that those of git include, nor makes them where they do not exist.
func TestIncludedSettings(t *testing.T) {
	for _, who := range users(t) {
		u := newGitUser(t, who, `git config include.path ../.gitconfig && git config --add include.path ../none/x && mkdir conf hooks2 hooks3
git config extensions.worktreeConfig true; git config --worktree core.hooksPath hooks3
git config --file .gitconfig include.path conf/git; echo "[core]hooksPath = hooks2" >conf/git`)
		for _, text := range []string{
			"echo evil >>.gitconfig", "rm .gitconfig", "echo evil >>conf/git", "mv conf c2", "touch hooks2/pre-commit", "touch hooks3/pre-commit",
			"mkdir none", "mkdir none; echo evil >none/x", "echo evil >.git/commondir", "rm .git/commondir",
		} {
			if out, err := u.heldDoes(text); err == nil {
				t.Errorf("%s: %s: works: %s", who.name, text, out)
			}
		}
		if out, err := u.heldDoes("touch conf/x && git add conf/x && git commit -qm x && git gc -q && git stash list"); err != nil {
			t.Errorf("%s: what is allowed fails: %v: %s", who.name, err, out)
		}
		if out, err := u.does("git config --global include.path $PWD/.mine"); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		if out, err := u.heldDoes("echo evil >.mine"); err == nil || !strings.Contains(out, "not run: git's settings include "+u.project()+"/.mine, which does not exist: make that file") {
			t.Errorf("%s: with settings that do not exist: %v: %s", who.name, err, out)
		}
		if out, err := u.does("touch .mine; [ -z \"$(ls -d none .git/commondir* 2>/dev/null)\" ]"); err != nil {
			t.Errorf("%s: left: %v: %s", who.name, err, out)
		}
		if out, err := u.heldDoes("! echo evil 2>/dev/null >.mine"); err != nil {
			t.Errorf("%s: with settings that do not exist: %v: %s", who.name, err, out)
		}
	}
}

// TestUsersFilesStay: what the user puts, while a command runs, where no command may put anything is there when it has ended. A
// file that settings include was removed.
func TestUsersFilesStay(t *testing.T) {
	const files = ".git/commondir .gitconfig .envrc .vscode sub/x"
	for _, who := range users(t) {
		u := newGitUser(t, who, "git config include.path ../.gitconfig; touch .gitconfig; mkdir sub")
		out, err := u.does(`mkfifo ../h/begun ../h/end; exec 7<>../h/begun 8<>../h/end
` + u.prefix + `bash -c 'echo begun; read x' <&8 >&7 &
read x <&7; for f in ` + files + `; do mkdir -p "new/$(dirname $f)"; echo mine >new/$f; rm -rf $f; mkdir -p "$(dirname $f)"; mv new/$f $f; done; echo >&8; wait; cat ` + files)
		if err != nil || out != strings.Repeat("mine\n", 5) {
			t.Errorf("%s: %v: %s", who.name, err, out)
		}
	}
}

// TestCommondirOfAnother: what one command puts into the place of .git/commondir takes nothing of the protection of another that
// begins before the first ends, and does not stop it.
func TestCommondirOfAnother(t *testing.T) {
	who := users(t)[0]
	for _, first := range []string{"mkdir evil && echo ../evil >.git/commondir", "mkfifo .git/commondir"} {
		u := newGitUser(t, who, "git init -q --bare .git/modules/m; "+first)
		out, err := u.heldDoes("echo begun; echo evil >>.git/modules/m/config && echo works")
		if strings.Contains(out, "works") || !strings.Contains(out, "begun") {
			t.Errorf("%s: %v: %s", first, err, out)
		}
	}
}

// A submodule with the name of a folder that git folders have was not found, so a command could write its hooks. Beyond
// maxModules no submodule can be written.
func TestSubmodules(t *testing.T) {
	project := t.TempDir()
	var want []string
	make := func(dir string) {
		dir = filepath.Join(project, ".git", dir)
		want = append(want, dir)
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, "logs"), 0o700), os.WriteFile(filepath.Join(dir, "HEAD"), nil, 0o600),
			os.WriteFile(filepath.Join(dir, "logs", "HEAD"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"", "modules/hooks", "modules/logs/b", "modules/m", "modules/m/modules/refs"} {
		make(dir)
	}
	var got []string
	for _, r := range repositories(project) {
		got = append(got, r.dir)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for i := range maxModules {
		make(fmt.Sprint("modules/many", i))
	}
	if list := protected(confine.Spec{Project: project}); !slices.Contains(list, filepath.Join(project, ".git/modules")) {
		t.Error("what is beyond the bound can be written")
	}
}
