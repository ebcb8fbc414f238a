package offline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/provider/offline"
	"sublet/daemon/internal/tool"
	"sublet/wire"
)

func TestLookingAtFiles(t *testing.T) {
	b := newBench(t)
	b.want("what is in here?", "empty")
	b.do(`mkdir -p src 'a folder'; printf 'package main\n\n// main begins.\nfunc main() {}\nfunc help() {}\n' > src/main.go; printf 'one\ntwo TODO\nthree\n' > notes.txt; head -c 70000 /dev/zero > big.bin
		printf '# Title\n\nText\n\n## Part\n' > README.md; touch 'with blank.txt'; ln -s notes.txt link; printf '#!/bin/bash\n# Says hi.\necho hi\n' > run.sh
		printf 'one\n2\nthree\n' > notes2.txt; printf '[a]\nx = 1\n' > conf.toml`)
	b.want("what is in here?", "10 entries", "a folder'?/", "with blank.txt", "link -> notes.txt", "69K", `!␦`)
	b.want("what is in src/", "1 entry", "`main.go`")
	b.want("ls nowhere", "exit code 2", "does not exist|No such")
	b.want("what does this project do?", "README begins", "> # Title\n> \n> Text$")
	b.want("biggest files", "`big.bin`, with \\d+ KiB", `with blank|notes.txt`)
	b.want("what takes up space here?", `holds \*\*\d+K\*\*`, "`src`|`a folder`")
	b.want("how full is the disk?", `\d% full`, `free`)
	b.want("recently changed files", "`src/main.go`", `seven days`)
	b.want("how many lines of code", `\*\*8 lines\*\*`, "main.go", "run.sh")
	b.want("count lines in notes.txt", "`notes.txt` has \\*\\*3 lines")
	b.want(`find text "TODO"`, "`TODO` is in 1 line", "notes.txt:2:two TODO")
	b.want("find text nowhere-to-be-found", "Nothing")
	b.want("find all todos", "notes.txt:2")
	b.want("find file main", "src/main.go")
	b.want("find file README.md", "README.md")
	b.want("find file zzz", "no file like")
	b.want("last 2 lines of notes.txt", "two TODO", "!one\n")
	b.want("first 1 lines of notes.txt", "one", "!three")
	b.want("explain src/main.go", "`src/main.go` begins:", "// main begins")
	b.want("explain big.bin", "not text")
	b.want("show notes.txt", "3 lines", "two TODO")
	b.want("show me the readme", "5 lines", "# Title")
	b.want("show the changelog", "cannot show it: .*changelog: no such file")
	b.want("what's in conf.toml", "x = 1")
}

// In plan mode the next step that it refuses is shown, and done once the user has accepted it.
func TestPlanMode(t *testing.T) {
	b := newBench(t)
	var steps []string
	accept := true
	b.plan = func(_ context.Context, p tool.Proposed) (tool.Proposal, error) {
		steps = p.Steps
		return tool.Proposal{Accepted: accept, Steps: p.Steps, Mode: "ask", Comment: "not so"}, nil
	}
	for _, tc := range []struct{ prompt, step, done, refused string }{
		{`write "x" to x.txt`, "write x.txt", "Created `x.txt`", "not accept the plan"},
		{"make a folder called docs", "run `mkdir", "`docs` is there", "not accept the plan"},
	} {
		for _, accept = range []bool{false, true} {
			steps = nil
			b.deny = func(q agent.Question) *agent.Decision {
				if steps != nil || q.Tool == "plan" || strings.HasPrefix(q.Action.Command, "test ") {
					return nil
				}
				return &agent.Decision{Reason: "plan mode runs nothing above low, and this is medium"}
			}
			if accept {
				b.want(tc.prompt, tc.done)
			} else {
				b.want(tc.prompt, tc.refused)
			}
			if len(steps) != 1 || !strings.HasPrefix(steps[0], tc.step) {
				t.Errorf("%q: the plan is %q", tc.prompt, steps)
			}
		}
	}
}

func TestChangingFiles(t *testing.T) {
	b := newBench(t)
	b.want("make a folder called docs", "`docs` is there")
	b.want(`create a file notes.txt with "hello foo, foo"`, "Created `notes.txt`")
	if got := b.read("notes.txt"); got != "hello foo, foo\n" {
		t.Errorf("got %q", got)
	}
	b.want("create a file notes.txt with other", "there already")
	b.want(`write "x" to x.txt`, "Created `x.txt`")
	b.want("touch empty.txt", "Created")
	b.want(`replace "foo" with "bar" in notes.txt`, "2 times")
	if got := b.read("notes.txt"); got != "hello bar, bar\n" {
		t.Errorf("got %q", got)
	}
	b.want(`replace "hello" with "bye" in notes.txt`, "once")
	b.want(`replace "absent" with "x" in notes.txt`, "Nothing was changed")
	b.want(`replace "absent" with "x" in nothere.txt`, "Nothing was changed: `.*nothere.txt")
	b.want("copy notes.txt to copy.txt", "Copied")
	b.want("copy empty.txt to copy.txt", "Not done")
	b.want("rename copy.txt to 'it is; here.txt'", "is now")
	if !b.exists("it is; here.txt") || b.exists("copy.txt") {
		t.Error("not renamed")
	}
	b.want("rename empty.txt to notes.txt", "Not done")
	b.want("move notes.txt into docs/", "is now")
	b.want("delete the docs folder", "Deleted `docs`")
	b.want("delete 'it is; here.txt'", "Deleted")
	b.want("delete nothing.txt", "There is no")
	b.want("delete everything", "nothing was deleted|There is no")
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
	b.want("review my changes", "no commit yet")
	b.do("git switch -q -c main 2>/dev/null || git checkout -q -b main; printf 'one\\ntwo\\n' > a.txt; printf 'x\\n' > b.txt; mkdir d; touch d/c.txt")
	b.want("what changed?", `3 changed files`, `\?\? a.txt`)
	b.want("commit this", "Committed as `[0-9a-f]+` on `main`", "Update a.txt, b.txt and d")
	b.want("commit this", "nothing to commit")
	b.want("undo the last commit", "only one commit")
	b.want("what changed?", "On branch `main`: nothing changed")
	b.want("show the diff", "Nothing changed")
	b.do("printf 'one\\n2\\n' > a.txt; rm b.txt; printf 'fmt.Println(\"debug\")  \\n' > new.go; git add new.go")
	b.want("git status", `3 changed files`, ` M a.txt`, `AM? +new.go`)
	b.want("show the diff of a.txt", `a.txt \| 2`, `\+2`, "!new.go")
	b.want("review my changes", "3 files changed", "`new.go`:1: trailing whitespace", "No test was changed")
	b.want("commit with message it's $HOME \"quoted\"", "Committed", `it's \$HOME "quoted"`)
	b.want("show the last commit", "by \\*\\*Ann\\*\\*", "a.txt")
	b.want("recent commits", "newest 2 commits", "Ann")
	b.want("who changed a.txt", "last changed by \\*\\*Ann\\*\\*")
	b.want("undo the last commit", "Undid commit", "still in your files")
	b.want("what changed?", "3 changed files", "M  a.txt")
	b.want("commit everything then what was the last commit", "Update a.txt, b.txt and new.go")
	b.want("create a branch feature/x", "new branch `feature/x`")
	b.want("which branch am I on?", "You are on `feature/x`", "main")
	b.want("create a branch feature/x", "There is a branch `feature/x` already")
	b.want("switch to branch main", "You are on `main`")
	b.want("push", "no remote")
	b.want("pull", "follows no remote")
	b.do("git init -q --bare ../remote.git; git remote add origin ../remote.git; git push -q -u origin main")
	b.want("push", "Nothing to push")
	b.want("pull", "Nothing new")
	b.want("are there merge conflicts", "No file")
	b.do("git switch -q feature/x; printf 'theirs\\n' > a.txt; git commit -qam t; git switch -q main; printf 'ours\\n' > a.txt; git commit -qam o; git merge feature/x || true")
	b.want("are there merge conflicts", "\\*\\*1 file\\*\\* in conflict", "`a.txt`")
	b.want("commit this", "Not committed")
	b.want("what changed?", "UU a.txt")
}

func TestProject(t *testing.T) {
	b := newBench(t)
	b.want("run the tests", "nothing here to do that with")
	b.do("printf 'module x\\n\\ngo 1.21\\n' > go.mod; printf 'package x\\n\\nfunc Two() int { return 2 }\\n' > x.go; printf 'package x\\n\\nimport \"testing\"\\n\\nfunc TestTwo(t *testing.T) {\\n\\tif Two() != 2 {\\n\\t\\tt.Error(\"not two\")\\n\\t}\\n}\\n' > x_test.go")
	b.want("run the tests", "The tests pass", "`go test ./...`", `ok\s+x`)
	b.want("build the project", "Done", "go build")
	b.want("lint", "Done", "go vet")
	b.do("sed -i 's/return 2/return 3/' x.go; mkdir -p sub; git init -q")
	b.want("do the tests pass?", "The tests fail", "exit code 1", "TestTwo", "not two")
	b.want("run the tests then commit this", "That failed, so I left out the rest")
	b.want("cd sub", "You are in `.*sub`")
	b.want("run the tests", "The tests fail", `\(cd -- `)
	b.want("cd ..", "You are in")
	b.do("printf 'func (' >> x.go")
	b.want("build", "That failed: `go build ./...` ended with exit code 1", "x.go:")
	b.do("rm -f go.mod x.go x_test.go; printf '.PHONY: all\\nall:\\n\\techo built\\ntest: all\\n\\techo tested\\n' > Makefile")
	b.want("run the tests", "The tests pass", "make test")
	b.want("build", "Done", "built")
	b.want("lint", "no such command")
	b.want("what does this project do?", "make all, test")
}

func TestMachine(t *testing.T) {
	b := newBench(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	b.want("what listens on "+port+"?", "taken by", "127.0.0.1", "offline.test")
	b.want("which ports are open?", port)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	unused := fmt.Sprint(free.Addr().(*net.TCPAddr).Port)
	free.Close()
	b.want("is port "+unused+" free", "it is free")
	b.want("where is bash installed", "bash")
	b.want("is nosuchprogram installed", "^No")
	b.want("which version of bash do I have", `^.GNU bash`)
	b.want("who am I?", "^You are `\\w+`")
	b.want("install jq", "^I install nothing")
	b.want("what time is it?", `^It is .*\d\d:\d\d`)
	b.want("what system is this?", "Linux|Darwin")
	b.want("what is using memory?", "(?s)^Most memory is used by `.*\\| *process")
	b.want("how many files are here?", `^Files.*\*\*\d+\*\*`)
	b.want("where am I", regexp.QuoteMeta(b.dir))
	b.want("cd /", "You are in `/` now")
	if b.sh.Dir() != "/" {
		t.Errorf("got %s, want the shell itself to have moved", b.sh.Dir())
	}
	b.want("what jobs do I have?", "no jobs")
	b.want("run `sleep 60 &`", "ran")
	b.want("what jobs do I have?", "sleep 60")
	b.want("run `jobs() { echo 'jobs: There are no jobs'; return 1; }`", "ran") // as fish has it
	b.want("what jobs do I have?", "^Your shell has no jobs")
	b.want("run `false`", "exit code 1")
	b.want("run `printf 'a\\nb\\n'`", "a\nb")
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
		{"npm start", 1, "Error: listen EADDRINUSE: address already in use :::3000\n", "already listens on port .3000"},
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
}

// Work for other agents goes through the task tool, and they do it with the same rules.
func TestDelegate(t *testing.T) {
	b := newBench(t)
	b.do("printf 'all:\\n\\techo built\\n' > Makefile; git init -q; git add -A; git commit -qm one; echo x >> Makefile")
	b.want("have an engineer count the lines of code and a reviewer review my changes", "engineer", "reviewer", "no lines", "Looked at")
}

// A no is taken as a no: nothing else is tried, and the answer says what was left undone.
func TestDenied(t *testing.T) {
	b := newBench(t)
	b.do("touch keep.txt")
	no := func(comment string) agent.Decision {
		d, err := agent.Answered(&wire.ConfirmationRequest{}, &wire.ConfirmationResponse{Decision: wire.DecisionDeny, Comment: comment})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, c := range []struct {
		decision agent.Decision
		want     string
	}{
		{no(""), `^You said no, so nothing was deleted\.$`},
		{no("I need it."), `You said no, so nothing was deleted\. You wrote: “I need it\.”`},
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
	b.deny = func(agent.Question) *agent.Decision { d := no(""); return &d }
	b.want("what is in here", "You said no, so I did not look")
	b.want("create a file x.txt with hi", "You said no, so nothing was changed")
}

func TestUnknown(t *testing.T) {
	b := newBench(t)
	b.want("write a poem about the sea", "offline", "ANTHROPIC_API_KEY", "model = ")
	b.want("prove the Riemann hypothesis", "offline", "help")
	b.want("download https://example.org/a'b.tgz", "fetch nothing")
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
