package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sublet/wire/citest"

	"github.com/rogpeppe/go-internal/txtar"

	"sublet/lease/confine/confinetest"
)

var update = flag.Bool("update", false, "rewrite testdata/tasks/golden")

// A task is one file of testdata/tasks: what the user asks, what the model answers, and what the project is before and after.
// The comment is the prompt. Its files are
//
//	have/PATH       the project, committed before the task begins
//	want/PATH       files that differ at the end; any other file that git does not ignore must be as it was
//	gone            paths that are removed, one a line
//	script [MATCH]  the model's answers to the prompt, or to another agent's prompt that the regular expression MATCH matches
//	setup, check    run by bash in the project before and after the task; both have to succeed
//	flags, status   of `sublet ask`: further flags, one a line, instead of --mode auto; its exit status where that is not 0
//
// A script has a line for each call or word of the model:
//
//	TOOL JSON       calls a tool; & TOOL JSON is one more call of the same answer. JSON that is none is sent as it stands
//	> TEXT          says something, after which the turn ends
//	= REGEX         the result of the call above has to match
//	! REGEX         the result of the call above must not match
type task struct {
	name, prompt string
	files        map[string]string
	tries        []try

	requests, tokens int64 // how often a model was asked, and what of all requests and answers
	git              bool  // the model was given the state of git
	results          []string
}

// A try is one call of the model in the turn's own agent, with what its result is held to.
type try struct {
	line       string
	want, deny []*regexp.Regexp
}

// TestTasks plays each task with a model that makes the mistakes models make, in real projects with real compilers and git. What a
// task costs is in testdata/tasks/golden, within a quarter per cent, since paths and host names differ. -update writes it.
func TestTasks(t *testing.T) {
	confinetest.Need(t)
	if out, err := exec.Command("which", "gcc", "make", "node", "python3").Output(); err != nil {
		citest.Skip(t, "of gcc, make, node and python3 there are only", string(out))
	}
	files, err := filepath.Glob("testdata/tasks/*.txtar")
	if err != nil || len(files) < 30 {
		t.Fatalf("got %d tasks, %v; want at least 30", len(files), err)
	}
	// Below /tmp a language server sees the project through an overlay, and so now and then the content of before an edit.
	w := newWorldBelow(t, "/var/tmp", "", nil, "[limits]", `check_time = "45s"`) // of which a loaded machine needs more than the usual 3 s
	w.write(filepath.Join(w.home, ".gitconfig"), "[user]\nname = Tester\nemail = tester@example.com\n[init]\ndefaultBranch = main\n[advice]\ndetachedHead = false\n")
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "GOCACHE="+strings.TrimSpace(string(cache)), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOTOOLCHAIN=local")
	var tasks []*task
	var all script
	for _, file := range files {
		k, scenes := readTask(t, file)
		tasks, all = append(tasks, k), append(all, scenes...)
	}
	w.script(all)

	t.Run("play", func(t *testing.T) {
		for _, k := range tasks {
			t.Run(k.name, func(t *testing.T) {
				t.Parallel()
				k.play(t, w)
			})
		}
	})
	compareCosts(t, tasks)
}

func readTask(t *testing.T, file string) (*task, script) {
	t.Helper()
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	k := &task{name: strings.TrimSuffix(filepath.Base(file), ".txtar"), prompt: strings.TrimSpace(string(a.Comment)), files: map[string]string{}}
	var scenes script
	for _, f := range a.Files {
		kind, match, _ := strings.Cut(f.Name, " ")
		if kind != "script" {
			k.files[f.Name] = string(f.Data)
			continue
		}
		steps, tries, err := readScript(string(f.Data))
		if err != nil {
			t.Fatalf("%s: %s: %v", file, f.Name, err)
		}
		if match == "" {
			match, k.tries = "^"+regexp.QuoteMeta(k.prompt), tries
		}
		scenes = append(scenes, scene{Match: match, Steps: steps})
	}
	return k, scenes
}

func readScript(text string) (steps []step, tries []try, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		more, isMore := strings.CutPrefix(line, "& ")
		word, rest, _ := strings.Cut(more, " ")
		switch {
		case word == "":
		case word == ">":
			steps = append(steps, step{Text: rest})
		case word == "=" || word == "!":
			re, err := regexp.Compile("(?s)" + rest)
			if err != nil || len(tries) == 0 {
				return nil, nil, fmt.Errorf("%q: %w", line, err)
			}
			last := &tries[len(tries)-1]
			if word == "=" {
				last.want = append(last.want, re)
			} else {
				last.deny = append(last.deny, re)
			}
		default:
			var args any = json.RawMessage(rest)
			if !json.Valid([]byte(rest)) {
				args = rest
			}
			if !isMore {
				steps = append(steps, step{})
			}
			last := &steps[len(steps)-1]
			last.ToolCalls = append(last.ToolCalls, call{word, args})
			tries = append(tries, try{line: more})
		}
	}
	return steps, tries, nil
}

// play makes the project, asks, and compares exit status, results and files with those that the task names.
func (k *task) play(t *testing.T, w *world) {
	dir := filepath.Join(w.home, "tasks", k.name)
	for name, text := range k.files {
		if path, ok := strings.CutPrefix(name, "have/"); ok {
			w.write(filepath.Join(dir, path), text)
		}
	}
	k.bash(t, w, w.home, "git init -q "+dir)
	k.bash(t, w, dir, "git add -A; git commit -q --allow-empty -m 'the beginning'\n"+k.files["setup"])
	want := k.tree(t, w, dir)
	for name, text := range k.files {
		if path, ok := strings.CutPrefix(name, "want/"); ok {
			want[path] = text
		}
	}
	for _, path := range strings.Fields(k.files["gone"]) {
		delete(want, path)
	}

	flags := []string{"ask", "--json", "--mode", "auto"}
	if f, ok := k.files["flags"]; ok {
		flags = append(flags[:2], strings.Split(strings.TrimSpace(f), "\n")...)
	}
	cmd := w.command(append(flags, k.prompt)...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	}
	if got, want := strconv.Itoa(cmd.ProcessState.ExitCode()), cmp.Or(strings.TrimSpace(k.files["status"]), "0"); got != want {
		t.Errorf("exit status: got %s, want %s\n%s", got, want, stderr.String())
	}
	results := k.readEvents(t, out)
	k.results = results
	if len(results) != len(k.tries) {
		t.Errorf("got %d results of %d calls", len(results), len(k.tries))
	}
	for i, try := range k.tries[:min(len(results), len(k.tries))] {
		bad := slices.ContainsFunc(try.want, func(re *regexp.Regexp) bool { return !re.MatchString(results[i]) }) ||
			slices.ContainsFunc(try.deny, func(re *regexp.Regexp) bool { return re.MatchString(results[i]) })
		if bad {
			t.Errorf("%s\nwants %v and not %v, and gives\n%s", try.line, try.want, try.deny, results[i][:min(len(results[i]), 3000)])
		}
	}
	got := k.tree(t, w, dir)
	all := maps.Clone(want)
	maps.Copy(all, got)
	for path := range all {
		if got[path] != want[path] {
			t.Errorf("%s is\n%s\nwant\n%s", path, got[path], want[path])
		}
	}
	k.bash(t, w, dir, k.files["check"])
}

func (k *task) bash(t *testing.T, w *world, dir, text string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-euc", text)
	cmd.Dir, cmd.Env = dir, w.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s\n%s", err, text, out)
	}
	return string(out)
}

// tree returns the files of a project that git does not ignore.
func (k *task) tree(t *testing.T, w *world, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for path := range strings.Lines(k.bash(t, w, dir, "git ls-files -co --exclude-standard")) {
		path = strings.TrimSuffix(path, "\n")
		text, err := os.ReadFile(filepath.Join(dir, path))
		if err == nil {
			files[path] = string(text)
		} else if !errors.Is(err, fs.ErrNotExist) { // removed, and not staged
			t.Fatal(err)
		}
	}
	return files
}

// readEvents returns the results of the calls of the turn's own agent, in the order of these, and notes what the turn cost.
func (k *task) readEvents(t *testing.T, events []byte) (results []string) {
	t.Helper()
	var calls []string
	byCall := map[string]string{}
	for line := range bytes.Lines(events) {
		var e struct {
			Kind, Agent, Phase, Output string
			ExecutionID                string `json:"execution_id"`
			Chunk                      struct {
				Type, Text  string
				ExecutionID string `json:"execution_id"`
			}
			Usage struct{ Total int64 }
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		switch {
		case e.Kind == "AgentThinking" && (e.Phase == "analyzing" || e.Phase == "planning"):
			k.requests++
		case e.Kind == "AgentStreamChunk" && e.Chunk.Type == "tool_call" && e.Agent == "orchestrator":
			calls = append(calls, e.Chunk.ExecutionID)
		case e.Kind == "AgentStreamChunk" && e.Chunk.Type == "context":
			k.git = k.git || strings.Contains(e.Chunk.Text, "\nGit: ")
		case e.Kind == "CommandResult":
			byCall[e.ExecutionID] = e.Output
		case e.Kind == "AgentComplete":
			k.tokens = e.Usage.Total
		}
	}
	for _, id := range calls {
		results = append(results, byCall[id])
	}
	return results
}

// gitLine is the tokens of "Git: branch main, clean, no upstream", which each request of a task has.
const gitLine = 10

// compareCosts compares what the tasks cost with the table, or with -update writes the table.
func compareCosts(t *testing.T, tasks []*task) {
	const file = "testdata/tasks/golden"
	golden, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all, table := &task{name: "together"}, ""
	for _, k := range append(tasks, all) {
		var requests, tokens int64
		if _, row, ok := strings.Cut("\n"+string(golden), "\n"+k.name+" "); ok {
			if _, err := fmt.Sscan(row, &requests, &tokens); err != nil {
				t.Fatal(err)
			}
		}
		if k != all && !k.git { // git took longer than half a second, as it does on a loaded machine
			k.tokens += k.requests * gitLine
		}
		if off := k.tokens - tokens; k != all && k.requests == requests && max(off, -off) <= tokens/400 {
			k.tokens = tokens
		} else if k != all && !*update {
			t.Errorf("%s: %d requests and %d tokens, want %d and %d (-update, if that is meant); results:\n%s",
				k.name, k.requests, k.tokens, requests, tokens, strings.Join(k.results, "\n---\n"))
		}
		table += fmt.Sprintf("%-24s %4d %8d\n", k.name, k.requests, k.tokens)
		if k != all {
			all.requests, all.tokens = all.requests+k.requests, all.tokens+k.tokens
		}
	}
	t.Attr("tokens", strconv.FormatInt(all.tokens, 10))
	if *update && !t.Failed() {
		if err := os.WriteFile(file, []byte(table), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
