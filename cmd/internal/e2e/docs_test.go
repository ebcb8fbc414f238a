package e2e

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sublet/wire/citest"
)

// The example for node of each page that has one gets an answer from the real program.
func TestExamplesInDocs(t *testing.T) {
	node := citest.Program(t, "node")
	modules, err := filepath.Abs("../../../client")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?ms)^```js\n(.*?)^```$")
	paths, err := filepath.Glob("../../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := make(map[string][][]string)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if m := example.FindAllStringSubmatch(string(text), -1); m != nil {
			examples[strings.TrimSuffix(filepath.Base(path), ".md")] = m
		}
	}
	starts := map[string]func(w *world) (args []string, replace *strings.Replacer){
		"stdio": func(w *world) ([]string, *strings.Replacer) { return nil, strings.NewReplacer() },
		"jsonrpc": func(w *world) ([]string, *strings.Replacer) {
			_, out := w.spawn("jsonrpc", "--socket", w.path("rpc.sock"))
			if _, err := out.ReadString('\n'); err != nil { // it serves
				w.t.Fatal(err)
			}
			return []string{w.path("rpc.sock"), "what is in this folder?"}, strings.NewReplacer()
		},
		"operator": func(w *world) ([]string, *strings.Replacer) {
			addr, _ := w.operator()
			return nil, strings.NewReplacer("localhost:60100", addr)
		},
	}
	if got, want := slices.Sorted(maps.Keys(examples)), slices.Sorted(maps.Keys(starts)); !slices.Equal(got, want) {
		t.Errorf("pages with examples: %q, and those that are run: %q", got, want)
	}
	for page, start := range starts {
		t.Run(page, func(t *testing.T) {
			m := examples[page]
			if len(m) != 1 {
				t.Fatalf("%d examples", len(m))
			}
			w := newWorld(t, "", script{{Match: "", Steps: []step{{Text: "the answer"}}}})
			args, replace := start(w)
			w.write(w.path("try.mjs"), replace.Replace(m[0][1]))
			// As the page names them: the module in the repository, the runtime folder.
			if err := errors.Join(os.Symlink(modules, w.path("client")), os.Symlink("run", w.path("sublet"))); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), node, append([]string{w.path("try.mjs")}, args...)...)
			cmd.Dir = w.project
			cmd.Env = append(w.env, "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "XDG_RUNTIME_DIR="+w.root)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "the answer") {
				t.Errorf("node: %v\n%s", err, out)
			}
		})
	}
}
