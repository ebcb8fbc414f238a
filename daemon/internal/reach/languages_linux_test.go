package reach

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/wire/citest"

	"sublet/daemon/config"
	"sublet/daemon/internal/lsp"
	"sublet/daemon/internal/tool"
	"sublet/lease/confine"
	"sublet/lease/confine/confinetest"
)

// The real gopls, held to reading: it finds what go vet would, across files that others changed, and writes nothing.
func TestGopls(t *testing.T) {
	out, err := exec.Command("go", "env", "GOPATH").Output() // make shells installs it there
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", os.Getenv("PATH")+":"+filepath.Join(strings.TrimSpace(string(out)), "bin"))
	if _, err := exec.LookPath("gopls"); err != nil {
		citest.Skip(t, "gopls is not installed: `make shells` does it")
	}
	launcher := confinetest.Need(t)
	dir, err := os.MkdirTemp("/var/tmp", "sublet-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("go.mod", "module x\n\ngo 1.26\n")
	put("b.go", "package x\n\nvar Other = 1\n")
	checker := Checker{
		Confiner: Confiner{Launcher: launcher, Support: confine.Probe(launcher)}, Env: os.Environ(), Home: Home(), Runtime: t.TempDir(),
		Spec: func(dir string) confine.Spec { return Confinement(config.Default().Policy, "", confine.Read, dir) },
	}
	servers := &lsp.Servers{}
	t.Cleanup(servers.Close)
	env := tool.Env{Cwd: dir, Held: checker.Run, Languages: checker.Languages(servers), CheckTime: 2 * time.Minute, Files: &tool.FileLog{}}
	write := func(name, text string) string {
		t.Helper()
		args, err := json.Marshal(map[string]string{"path": name, "content": text})
		if err != nil {
			t.Fatal(err)
		}
		action, err := tool.Write().Plan(t.Context(), env, args)
		if err != nil {
			t.Fatal(err)
		}
		r, err := tool.Write().Run(t.Context(), env, args, action, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, report, _ := strings.Cut(r.Content, "\n")
		return report
	}
	for _, step := range []struct{ name, text, want string }{
		{"a.go", "package x\n\nvar A = Other + missing\n", "[gopls reports of a.go:\na.go:3:17: undefined: missing]"},
		{"a.go", "package x\n\nvar A = Other + missing + absent\n", "[gopls reports of a.go:\na.go:3:27: undefined: absent\n1 as before]"},
		{"a.go", "package x\n\nvar A = Other\n", ""},
		{"a.go", "package x\n\nimport \"fmt\"\n\nfunc a() { fmt.Printf(\"%d\", Other, Other) }\n", "[gopls reports of a.go:\na.go:5:12: fmt.Printf call needs 1 arg but has 2 args]"},
		{"a.go", "package x\n\nvar A = Another\n", "[gopls reports of a.go:\na.go:3:9: undefined: Another]"},
	} {
		if got := write(step.name, step.text); got != step.want {
			t.Errorf("%s: got %q, want %q", step.name, got, step.want)
		}
	}
	put("b.go", "package x\n\nvar Another = 1\nvar Other = 2\nvar Old = gone\n")
	if got := write("a.go", "package x\n\nvar A = Another + Other\n"); got != "" {
		t.Errorf("after a command changed b.go: got %q", got)
	}
	if got := write("b.go", "package x\n\nvar Another = 1\nvar Other = 2\n\nvar Old = gone\n"); got != "[gopls reports of b.go:\n1 as before]" {
		t.Errorf("what was wrong before the first change: got %q", got)
	}
}
