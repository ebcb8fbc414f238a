package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sublet/lease/confine"
)

// TestLedToAndMissing: what a protected link leads to is protected where it does not exist and where the link leaves the project
// on the way, and so is a protected name in a folder that does not exist. Nothing is left of what stood for them.
func TestLedToAndMissing(t *testing.T) {
	for _, who := range users(t) {
		t.Run(who.name, func(t *testing.T) {
			dir, prefix := placeOf(t, who, confine.Spec{Reach: confine.Project})
			alias := dir + "-alias"
			if err := os.Symlink(dir, alias); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.Remove(alias) })
			setup := who.as(exec.Command("bash", "-ec", `git init -q --template= . && git config core.hooksPath tools/git/hooks && mkdir conf
ln -s conf/envrc .envrc; ln -s none/travis .travis.yml; ln -s `+alias+`/conf/mcp .mcp.json; ln -s `+alias+`/conf/claude .claude
echo before >conf/mcp`))
			setup.Dir = dir
			if out, err := setup.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			list := func() string {
				out, err := exec.Command("find", dir, "-not", "-path", "*/.git/*").Output()
				if err != nil {
					t.Fatal(err)
				}
				return string(out)
			}
			before := list()
			for _, text := range []string{
				"echo evil >conf/envrc", "mkdir -p none; echo evil >none/travis", "echo evil >conf/mcp", "mkdir conf/claude",
				"mkdir -p tools/git/hooks && touch tools/git/hooks/pre-commit", "mkdir -p .git/info; echo '* filter=x' >.git/info/attributes",
				"rm conf/mcp", "mv conf c2",
			} {
				if out, err := who.run(t, dir, prefix, text); err == nil {
					t.Errorf("%s: works: %s", text, out)
				}
			}
			if out, err := who.run(t, dir, prefix, "touch conf/x && rm conf/x && git add conf && git gc -q && git status --short"); err != nil {
				t.Errorf("what is allowed fails: %v: %s", err, out)
			}
			if after := list(); after != before {
				t.Errorf("the project had %s and has %s", before, after)
			}
		})
	}
}

// TestPlaces runs commands in a project at the same time: the end of one, be it the first or the last that began, does not
// give another what none may make, and in the end nothing is left.
func TestPlaces(t *testing.T) {
	who := users(t)[0]
	dir, prefix := placeOf(t, who, confine.Spec{Reach: confine.Project})
	words := strings.Fields(prefix)
	begin := func(text string) (end func()) {
		cmd := who.as(exec.Command(words[0], append(words[1:], "bash", "-c", "echo begun; read x; "+text)...))
		cmd.Dir = dir
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		return func() {
			in.Close()
			_ = cmd.Wait() // the last of what it does may be denied, or not
		}
	}
	const evil = "echo evil >.envrc; echo evil >.git/config; mkdir .vscode && touch .vscode/x"
	first := begin("true")
	second := begin(evil + "; touch made")
	first()
	if out, err := who.run(t, dir, prefix, "echo third; git status"); !strings.Contains(out, "not a git repository") {
		t.Errorf("git in no repository: %q, %v", out, err)
	}
	second()
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 1 || list[0].Name() != "made" {
		t.Errorf("the project holds %v, %v", list, err)
	}
	if out, err := who.run(t, dir, prefix, "ln -s / .vscode"); err == nil {
		t.Errorf("made a link in a place: %s", out)
	}
}

// TestInert: a command does not see, and may create, a name that starts nothing by appearing; where it exists, it stays as it is.
func TestInert(t *testing.T) {
	for _, who := range users(t) {
		dir, prefix := placeOf(t, who, confine.Spec{Reach: confine.Project, Inert: []string{".idea", "Jenkinsfile", ".hg/hgrc", ".travis.yml"}})
		for _, name := range []string{".hg", ".travis.yml"} {
			if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
				t.Fatal(err)
			}
		}
		out, err := who.run(t, dir, prefix, "ls -A | grep -e idea -e Jenkins -e vscode; touch Jenkinsfile .idea && echo made; { touch .travis.yml/x; touch .hg/hgrc; } 2>/dev/null || echo held")
		if out != ".vscode\nmade\nheld\n" {
			t.Errorf("%s: %q, %v", who.name, out, err)
		}
		if _, err := os.Lstat(filepath.Join(dir, ".travis.yml/x")); err == nil {
			t.Errorf("%s: changed what exists", who.name)
		}
	}
}

// TestMoves: files go from one folder of a project to another without being copied, as compilers have them.
func TestMoves(t *testing.T) {
	for _, who := range users(t) {
		project, _ := placeOf(t, who, confine.Spec{Reach: confine.Read})
		_, prefix := placeOf(t, who, confine.Spec{Reach: confine.Project, Project: project})
		if text, err := who.run(t, project, prefix, "mkdir a b && touch a/x && ln a/x b/y && echo fine"); text != "fine\n" { // mv would copy
			t.Errorf("%s: %q, %v", who.name, text, err)
		}
	}
}

// TestKept: what is to stay as it is in a project cannot be written, moved or removed.
func TestKept(t *testing.T) {
	for _, who := range users(t) {
		project, _ := placeOf(t, who, confine.Spec{Reach: confine.Read})
		_, plain := placeOf(t, who, confine.Spec{Reach: confine.Project, Project: project})
		if text, err := who.run(t, project, plain, "mkdir -p .venv/bin && touch .venv/bin/tool && echo fine"); text != "fine\n" {
			t.Fatalf("%s: %q, %v", who.name, text, err)
		}
		_, prefix := placeOf(t, who, confine.Spec{Reach: confine.Project, Project: project, Kept: []string{filepath.Join(project, ".venv/bin"), filepath.Join(project, "absent"), "/usr/bin"}})
		text, err := who.run(t, project, prefix, "{ touch .venv/bin/ls; mv .venv .other; rm -f .venv/bin/tool; } 2>/dev/null; ls .venv/bin; touch .venv/x && echo fine")
		if text != "tool\nfine\n" {
			t.Errorf("%s: %q, %v", who.name, text, err)
		}
	}
}

// TestProject runs what has to work in a project.
func TestProject(t *testing.T) {
	for _, who := range users(t) {
		t.Run(who.name, func(t *testing.T) {
			dir, prefix := placeOf(t, who, confine.Spec{Reach: confine.Project})
			setup := who.as(exec.Command("bash", "-ec", "git init -q -b main; mkdir d ci .vscode; echo x | tee d/f >ci/f; ln -s ci .github; git add -A; git -c user.name=x -c user.email=x@x commit -qm one"))
			setup.Dir = dir
			setup.Env = append(os.Environ(), "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1")
			if out, err := setup.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for _, text := range []string{
				"echo y >>d/f; git add -A && git commit -qm two",
				"echo z >>d/f; git stash -q && git stash pop -q",
				"git checkout -qb other && git checkout -q main && git merge -q other && git tag v1 && git branch -d other",
				"git gc -q && git fsck && git log --oneline | grep -q two",
				"mv d/f d/g && git mv -f d/g d/f 2>/dev/null || git checkout -q . && git status --short",
				"cp -r . /tmp/copy$$ && tar cf /tmp/$$.tar . && find . -type f -exec cat {} + >/dev/null && grep -rq x .",
				"mkdir -p build/sub && touch build/sub/o && mv build out && rm -r out",
				"mkfifo p && { echo x >p & read -r x <p && [ \"$x\" = x ]; } && rm p",
				`perl -MIO::Socket -e '$l = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1") or die $@; IO::Socket::INET->new("127.0.0.1:".$l->sockport) or die $@'`,
				`perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) or die $!'`,
				"touch /tmp/x$$ /dev/shm/x$$ && [ \"$TMPDIR\" = /tmp ] && mktemp >/dev/null",
				"nice -n 1 true && kill -0 $$ && { sleep 100 & kill $!; }",
			} {
				if out, err := who.run(t, dir, prefix, "export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=user.name GIT_CONFIG_VALUE_0=x GIT_CONFIG_KEY_1=user.email GIT_CONFIG_VALUE_1=x@x HOME=/tmp\n"+text); err != nil {
					t.Errorf("%s: %v: %s", text, err, out)
				}
			}
		})
	}
}
