package offline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/provider/offline"
	"sublet/wire"
)

func TestLookingAtFiles(t *testing.T) {
	b := newBench(t)
	b.want("what is in here?", "empty")
	b.do(`printf 'x' >alone.txt`)
	b.want("biggest files", "only file with anything in it is `alone.txt`, with 1 B")
	b.do(`rm alone.txt`)
	b.do(`mkdir -p src 'a folder'; printf 'package main\n\n// main begins.\nfunc main() {}\nfunc help() {}\n' > src/main.go; printf 'one\ntwo TODO\nthree\n' > notes.txt; head -c 70000 /dev/zero > big.bin
		printf '# Title\n\nText\n\n## Part\n' > README.md; touch 'with blank.txt'; ln -s notes.txt link; printf '#!/bin/bash\n# Says hi.\necho hi\n' > run.sh
		printf 'x INFO\nx WARN low\nx ERROR boom\nx INFO\n' > app.log; printf 'one\n2\nthree\n' > notes2.txt; printf '[a]\nx = 1\n' > conf.toml`)
	b.want("what is in here?", `2 folders and 9 files \(68 KB\)`, "`a folder/`", "`with blank.txt`", "`link` → `notes.txt`", `!␦`)
	b.want("what is in src/", "1 file", "main.go")
	b.want("ls nowhere", "exit code 2", "does not exist|No such")
	b.want("biggest files", "`big.bin` with 68 KB", `with blank|notes.txt`)
	b.want("what takes up space here?", `holds \*\*\d+K\*\*`, "`src/`|`a folder/`")
	b.want("how much disk space is free", `\| free \| size`, `%`)
	b.want("recently changed files", "`src/main.go`", `seven days`)
	b.want("how many lines of code", `\*\*8 lines\*\*`, "main.go", "run.sh")
	b.want("how many lines of go", `\*\*5 lines of Go\*\*`)
	b.want("count lines in notes.txt", "`notes.txt` has \\*\\*3 lines")
	b.want("how many files are here", `\*\*9 files\*\*`, `3 folders`)
	b.want("how many go files are there", `\*\*1 Go file\*\*`)
	b.want(`find text "TODO"`, "is in 1 file, 1 line", "notes.txt:2: two TODO")
	b.want("find text nowhere-to-be-found", "Nothing")
	b.want("find file main", "Found one: `src/main.go`")
	b.want("find file README.md", "`README.md`")
	b.want("list markdown files", "`README.md`")
	b.want("find file zzz", "no file like")
	b.want("last 2 lines of notes.txt", "two TODO", "!one\n")
	b.want("tail the log app.log", "1 with errors, 1 with warnings", "ERROR boom")
	b.want("first 1 lines of notes.txt", "one", "!three")
	b.want("compare notes.txt and notes2.txt", "They differ", `\+2`)
	b.want("compare notes.txt and link", "are the same")
	b.want("checksum of conf.toml", `[0-9a-f]{64}`)
	b.want("permissions of notes.txt", "is a file of", "the owner may read and write")
	b.want("explain src/main.go", "Go file of 5 lines", "`main` and `help`")
	b.want("explain README.md", "Markdown", "Title", "`Part`")
	b.want("what does run.sh do?", "script for `bash`", "Says hi")
	b.want("explain big.bin", "no text")
	b.want("show notes.txt", "3 lines", "two TODO")
	b.want("show me the readme", "`README.md`, 5 lines", "# Title")
	b.want("show the changelog", "There is no `changelog`")
	b.want("explain what src/main.go does", "Go file of 5 lines")
	b.want("show hidden files", "2 folders")
	b.want("cat nothere.txt", "There is no `nothere.txt`")
	b.want("what's in conf.toml", "x = 1")
	b.want("find all todos", "notes.txt:2")
}

func TestChangingFiles(t *testing.T) {
	b := newBench(t)
	b.want("make a folder called docs", "Made the folder `docs`")
	b.want("mkdir docs", "there already")
	b.want(`create a file notes.txt with "hello foo, foo"`, "Created `notes.txt`")
	if got := b.read("notes.txt"); got != "hello foo, foo\n" {
		t.Errorf("got %q", got)
	}
	b.want("create a file notes.txt with other", "there already")
	b.want("touch empty.txt", "Created")
	b.want(`replace "foo" with "bar" in notes.txt`, "2 times")
	if got := b.read("notes.txt"); got != "hello bar, bar\n" {
		t.Errorf("got %q", got)
	}
	b.want(`replace "absent" with "x" in notes.txt`, "is not in")
	b.want("copy notes.txt to copy.txt", "Copied")
	b.want("copy empty.txt to copy.txt", "there already")
	b.want("back up notes.txt", "notes.txt.bak")
	b.want("rename copy.txt to 'it is; here.txt'", "is now")
	if !b.exists("it is; here.txt") || b.exists("copy.txt") {
		t.Error("not renamed")
	}
	b.want("rename empty.txt to notes.txt", "Not done")
	b.want("move notes.txt.bak into docs", "is now")
	b.want("zip docs", "into `docs.zip`, \\d+")
	b.want("compress docs", "into `docs.tar.gz`, \\d+")
	b.want("compress docs", "there already")
	b.want("delete the docs folder", "Deleted `docs`")
	b.want("extract docs.tar.gz", "Unpacked", "notes.txt.bak")
	b.want("unzip docs.zip into out", "into `out`")
	if !b.exists("docs/notes.txt.bak") || !b.exists("out/docs/notes.txt.bak") {
		t.Error("not unpacked")
	}
	b.want("delete 'it is; here.txt'", "Deleted")
	b.want("delete nothing.txt", "There is no")
	b.want("delete everything", "I do not delete")
	b.do(`printf '#!/bin/sh\necho ran\n' > r.sh`)
	b.want("make r.sh executable", "`./r.sh` runs it")
	b.want("execute the command ./r.sh", "ran", "exit code 0")
	b.want("create a file $(touch pwned).txt with x", "Created|not written|`")
	b.want("delete `$(touch pwned)`; touch pwned`", ".")
	if b.exists("pwned") {
		t.Error("a name was run as a command")
	}
}

func TestGit(t *testing.T) {
	b := newBench(t)
	b.want("what changed?", "not in a git repository")
	b.want("recent commits", "not in a git repository")
	b.want("make this a git repository", "is a git repository now")
	b.want("recent commits", "no commit yet")
	b.do("git switch -q -c main 2>/dev/null || git checkout -q -b main; printf 'one\\ntwo\\n' > a.txt; printf 'x\\n' > b.txt; mkdir d; touch d/c.txt")
	b.want("what changed?", `3 changed files`, "`a.txt`", "new")
	b.want("commit this", "Committed as `[0-9a-f]+` on `main`", "Add a.txt, b.txt and d")
	b.want("commit this", "nothing to commit")
	b.want("what changed?", "On branch `main`: nothing changed")
	b.do("printf 'one\\n2\\n' > a.txt; rm b.txt; printf 'fmt.Println(\"debug\")  \\n' > new.go; git add new.go")
	b.want("git status", `3 changed files`, `1 modified, 1 added, 1 deleted; 1 staged`, `insertion`)
	b.want("show the diff of a.txt", `\*\*1 file\*\*, 1 line added, 1 removed`, `\+2`)
	b.want("review my changes", "3 changed files", "`new.go`:1: a debugging aid", "trailing whitespace", "No test was changed")
	b.want("commit with message it's $HOME \"quoted\"", "Committed", `it's \$HOME "quoted"`)
	b.want("show the last commit", "by \\*\\*Ann\\*\\*", "a.txt")
	b.want("recent commits", "newest 2 commits", "Ann")
	b.want("what did I do today", "newest 2 commits")
	b.want("who changed a.txt", "last changed by \\*\\*Ann\\*\\*", `Ann \(2\)`)
	b.want("who wrote line 2 of a.txt", "\\*\\*Ann\\*\\*", "2")
	b.want("how many commits are there", "\\*\\*2 commits\\*\\* by 1 author")
	b.want("undo the last commit", "Undid commit", "still in your files")
	b.want("what changed?", "3 changed files", "3 staged")
	b.want("commit everything then what was the last commit", "Update a.txt, remove b.txt|Add new.go, update a.txt, remove b.txt")
	b.want("create a branch feature/x", "new branch `feature/x`")
	b.want("which branch am I on?", "You are on `feature/x`; 2 branches")
	b.want("create a branch feature/x", "exit code 128")
	b.want("switch to branch main", "You are on `main`")
	b.do("printf 'dirty\\n' >> a.txt")
	b.want("stash my changes", "put aside")
	b.want("what changed?", "nothing changed")
	b.want("unstash", "are back")
	b.want("discard my changes to a.txt", "as it was")
	if got := b.read("a.txt"); got != "one\n2\n" {
		t.Errorf("got %q", got)
	}
	b.want("discard my changes to a.txt", "nothing to discard")
	b.want("push", "no remote")
	b.want("pull", "follows no remote")
	b.want("show the remotes", "no remote")
	b.want("what is the latest tag", "no tag")
	b.do("git tag v1; git init -q --bare ../remote.git; git remote add origin ../remote.git")
	b.want("tags", "newest tag is `v1`")
	b.want("push", "Pushed")
	b.want("push", "Nothing to push")
	b.want("pull", "Nothing new")
	b.want("show the remotes", "remote.git")
	b.want("are there merge conflicts", "No file")
	b.do("git switch -q feature/x; printf 'theirs\\n' > a.txt; git commit -qam t; git switch -q main; printf 'ours\\n' > a.txt; git commit -qam o; git merge feature/x || true")
	b.want("are there merge conflicts", "\\*\\*1 file\\*\\* in conflict: `a.txt`")
	b.want("commit this", "Not committed")
	b.want("what changed?", "in conflict")
}

func TestProject(t *testing.T) {
	b := newBench(t)
	b.want("run the tests", "nothing here to run tests with")
	b.want("clean the build", "nothing here")
	b.do("printf 'module x\\n\\ngo 1.21\\n' > go.mod; printf 'package x\\n\\nfunc Two() int { return 2 }\\n' > x.go; printf 'package x\\n\\nimport \"testing\"\\n\\nfunc TestTwo(t *testing.T) {\\n\\tif Two() != 2 {\\n\\t\\tt.Error(\"not two\")\\n\\t}\\n}\\n' > x_test.go")
	b.want("run the tests", "The tests pass", "1 package ok", "`go test ./...`")
	b.want("build the project", "It builds", "go build")
	b.want("lint", "Nothing to complain of", "go vet")
	b.want("format the code", "Formatted")
	b.do("sed -i 's/return 2/return 3/' x.go; mkdir -p sub; git init -q")
	b.want("do the tests pass?", "The tests fail", "`TestTwo`", "not two")
	b.want("run the tests then commit this", "That failed, so I left out the rest")
	b.want("cd sub", "You are in `.*sub`")
	b.want("run the tests", "The tests fail", `\(cd -- `)
	b.want("go up", "You are in")
	b.do("printf 'func (' >> x.go")
	b.want("build", "failed with exit code 1", "x.go:")
	b.want("clean the build", "Cleaned")
	b.do("rm -f go.mod x.go x_test.go; printf '.PHONY: all\\nall:\\n\\techo built\\ntest: all\\n\\techo tested\\nbroken:\\n\\tfalse\\n' > Makefile")
	b.want("run the tests", "The tests pass", "make test")
	b.want("build", "It builds", "built")
	b.want("which make targets are there?", "3 targets: `all`, `test` and `broken`")
	b.want("lint", "no such command|failed")
	b.do("rm Makefile; printf '{\"name\": \"x\", \"scripts\": {\\n \"build\": \"echo made\"\\n}}\\n' > package.json")
	b.want("list npm scripts", "`build`")
	b.want("which tools are installed", "git \\| ", "bash \\| ")
	b.want("what version of git is installed", "\\*\\*git\\*\\* \\d")
	b.want("what version of nosuchthing is installed", "no program")
}

func TestMachine(t *testing.T) {
	b := newBench(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	b.want("who listens on port "+port, "taken by", "this machine only")
	b.want("open ports", port)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	unused := fmt.Sprint(free.Addr().(*net.TCPAddr).Port)
	free.Close()
	b.want("is port "+unused+" free", "it is free")
	b.want("kill whatever is on port "+unused, "it is free")
	b.want("what is using the cpu", `\| cpu \|`)
	b.want("what is using memory", `available|most is used`, `\| memory \|`)
	b.want("how many processes run", `processes run`)
	b.want("is nosuchprogram running", "No: nothing runs")
	sleeper := exec.Command("sleep", "98765")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- sleeper.Wait() }()
	b.want("show the sleep processes", "98765")
	b.want(fmt.Sprintf("kill process %d", sleeper.Process.Pid), "Asked process", "sleep 98765")
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("got %v, want it ended", err)
	}
	b.want("kill nosuchprogram", "There is no process")
	b.want("kill process 1", "belongs to the system")
	b.want("what is my ip address", "address|ifconfig|exit code 127")
	b.want("show my PATH", `1\. `+"`/")
	b.want("what is $GREETING", "`\\$GREETING` is `hello`")
	b.want("what is $NOT_SET_AT_ALL", "is not set")
	b.want("which environment variables are set", "`GREETING`", "!hello")
	b.want("show my aliases", "no aliases")
	b.want("where is bash installed", "bash")
	b.want("is nosuchprogram installed", "^No")
	b.want("where am I", regexp.QuoteMeta(b.dir))
	b.want("cd /", "You are in `/` now")
	if b.sh.Dir() != "/" {
		t.Errorf("got %s, want the shell itself to have moved", b.sh.Dir())
	}
	b.want("who am I", "You are \\*\\*")
	b.want("hostname", "is called")
	b.want("what system is this", "kernel", "processors")
	b.want("what does the command cd do", "cd")
	b.want("what does the command nosuch do", "knows no")
	b.want("what day is it", `It is \*\*\w+, \d+ \w+ 20\d\d`)
	b.want("what date is in 10 days", `\*\*\w+day, `)
	b.want("how many days until 2099-01-01", `\*\*[\d,]+ days\*\*`)
	b.want("what weekday is 2026-12-24", "Thursday")
	b.want("show the calendar", "Mo Tu We")
	b.want("what is 17 * 23", `\*\*391\*\*`)
	b.want("run `false`", "exit code 1")
	b.want("run `printf 'a\\nb\\n'`", "a\nb")
	b.want("which services failed", ".")
	b.want("docker ps", ".")
	b.want("ping localhost", "answers|does not|no `ping`")
}

func exit(n int) *int { return &n }

func TestWhy(t *testing.T) {
	b := newBench(t)
	b.want("why did it fail?", "not seen any command")
	for _, c := range []struct {
		command string
		exit    int
		output  string
		want    string
	}{
		{"gti status", 127, "bash: gti: command not found\n", "no program `gti`"},
		{"./x.sh", 126, "bash: ./x.sh: Permission denied\n", "could not be executed.*lack the permission"},
		{"cat nope", 1, "cat: nope: No such file or directory\n", "does not exist: `nope`"},
		{"npm start", 1, "Error: listen EADDRINUSE: address already in use :::3000\n", "already listens.*3000"},
		{"python3 a.py", 1, "Traceback (most recent call last):\nModuleNotFoundError: No module named 'requests'\n", "module `requests`"},
		{"git merge x", 1, "CONFLICT (content): Merge conflict in a.txt\n", "could not merge `a.txt`"},
		{"./big", 137, "Killed\n", "SIGKILL"},
		{"./crash", 139, "Segmentation fault\n", "SIGSEGV"},
		{"grep x y", 1, "", "nothing found"},
		{"git push", 1, "! [rejected] main -> main (fetch first)\n", "commits you do not have"},
		{"make foo", 2, "make: *** No rule to make target 'foo'.  Stop.\n", "no target `foo`"},
		{"frob", 42, "weird\n", "exit code 42.*weird"},
	} {
		answer := b.ask("why did the last command fail?", wire.RecentCommand{Command: wire.OSString(c.command), ExitCode: exit(c.exit), OutputTail: []byte(c.output)}, wire.RecentCommand{Command: "ls", ExitCode: exit(0)})
		if !regexp.MustCompile(`(?s)`+c.want).MatchString(answer) || !strings.Contains(answer, "1 command ago") {
			t.Errorf("%s: got\n%s\nwant %s", c.command, answer, c.want)
		}
	}
	if answer := b.ask("why did that fail", wire.RecentCommand{Command: "ls", ExitCode: exit(0)}); !strings.Contains(answer, "None of your last 1 command failed") {
		t.Errorf("got %s", answer)
	}
	if answer := b.ask("what did I run", wire.RecentCommand{Command: "ls | wc", ExitCode: exit(3)}); !strings.Contains(answer, "`ls \\| wc`") {
		t.Errorf("got %s", answer)
	}
	b.want("what does exit code 137 mean", "SIGKILL")
}

// Work for other agents goes through the task tool, and they do it with the same rules.
func TestDelegate(t *testing.T) {
	b := newBench(t)
	b.do("printf 'all:\\n\\techo built\\n' > Makefile; git init -q; git add -A; git commit -qm one; echo x >> Makefile")
	b.want("have an engineer count the files and a reviewer review my changes", "engineer", "reviewer", "1 file|files", "Looked at")
}

// A no is taken as a no: nothing else is tried, and the answer says what was left undone.
func TestDenied(t *testing.T) {
	b := newBench(t)
	b.do("touch keep.txt")
	for _, c := range []struct {
		decision agent.Decision
		want     string
	}{
		{agent.Decision{By: "client sublet 12"}, `^You said no, so nothing was deleted\.$`},
		{agent.Decision{By: "client sublet 12", Comment: "I need it."}, `You said no, so nothing was deleted\. You wrote: “I need it\.”`},
		{agent.Decision{By: "mode plan", Reason: "mode plan runs only what is low"}, `It was refused \(mode plan.*\), so nothing was deleted`},
	} {
		b.deny = func(q agent.Question) *agent.Decision {
			if strings.HasPrefix(q.Action.Command, "rm") {
				return &c.decision
			}
			return nil
		}
		b.want("delete keep.txt", c.want)
		if !b.exists("keep.txt") || slices.ContainsFunc(b.commands, func(s string) bool { return strings.HasPrefix(s, "rm") }) {
			t.Errorf("it ran: %q", b.commands)
		}
	}
	b.deny = func(agent.Question) *agent.Decision {
		return &agent.Decision{Reason: "high is asked in ask mode; it was not asked, because the request came from a client that cannot confirm"}
	}
	b.want("what is in here", "It was refused .*cannot confirm.*, so I did not look")
	b.deny = func(q agent.Question) *agent.Decision { return &agent.Decision{By: "client x"} }
	b.want("what is in here", "You said no, so I did not look")
	b.want("create a file x.txt with hi", "You said no, so nothing was changed")
}

func TestUnknown(t *testing.T) {
	b := newBench(t)
	b.want("write a poem about the sea", "offline", "ANTHROPIC_API_KEY", "model = ")
	b.want("prove the Riemann hypothesis", "offline", "help")
	b.want("download https://example.org/a'b.tgz", "fetch nothing", `curl -fLO`)
	if len(b.commands) > 0 {
		t.Errorf("ran %q", b.commands)
	}
	b.want("help", "run the tests", "commit this", "what is in here")
	b.want("hi there", "Hello")
}

// The model's own promise: an answer or calls, never neither; arguments are JSON objects; words come one by one.
func TestShape(t *testing.T) {
	m := offline.Open(provider.Config{})
	for _, prompt := range []string{"hello", "what changed?", "delete \x00\xff`'\"$(x)", strings.Repeat("long ", 5000), "", "?", "\n\n", "run `\x1b[31m`", "find text [(*", "replace \"\" with \"\" in x", "12 / 0", "kill process 99999999999999999999"} {
		req := provider.Request{Messages: []provider.Message{{Role: provider.User, Parts: []provider.Part{{Text: prompt}}}}}
		for _, name := range []string{"bash", "read", "write", "edit", "grep", "glob", "task"} {
			req.Tools = append(req.Tools, provider.ToolSpec{Name: name})
		}
		pieces := 0
		resp, err := m.Stream(t.Context(), req, func(provider.Delta) { pieces++ })
		if err != nil || len(resp.Message.Parts) == 0 || pieces == 0 {
			t.Errorf("%q: got %+v, %v", prompt, resp, err)
		}
		for _, p := range resp.Message.Parts {
			var object map[string]any
			if p.ToolCall != nil && json.Unmarshal(p.ToolCall.Arguments, &object) != nil {
				t.Errorf("%q: arguments %s", prompt, p.ToolCall.Arguments)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Stream(ctx, provider.Request{Messages: []provider.Message{{Role: provider.User, Parts: []provider.Part{{Text: "hello"}}}}}, func(provider.Delta) {}); err == nil {
		t.Error("got no error from a cancelled context")
	}
	resp, err := m.Stream(t.Context(), provider.Request{Messages: []provider.Message{{Role: provider.User, Parts: []provider.Part{{Text: "what changed?"}}}}}, func(provider.Delta) {})
	if err != nil || resp.StopReason != provider.EndTurn || !strings.Contains(resp.Message.Parts[0].Text, "the tool `bash`") {
		t.Errorf("without tools: got %+v, %v", resp, err)
	}
}
