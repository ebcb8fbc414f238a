package main

import (
	"os/exec"
	"path"
	"strings"
	"testing"
)

// ranks is the architecture: a package imports only packages of ours with a higher rank. The leaves share one, so none of
// them imports another; only what makes text safe to display is below them. NAME/* stands for the packages below NAME that are not
// listed.
var ranks = map[string]int{
	"sublet/cmd/sublet":         -1,
	"sublet/cmd/sublet-confine": -1,
	"sublet/cmd/internal/cli":   0,
	"sublet/cmd/internal/bench": 0,
	"sublet/cmd/internal/e2e":   0,
	"sublet/cmd/internal/pages": -1,

	"sublet/cmd/internal/connect": 2,

	"sublet/client": 2,
	"sublet/client/internal/gateway/gatewaytest": 0,
	"sublet/client/internal/gateway/*":           3,
	"sublet/client/internal/gateway":             4,
	"sublet/client/internal/launch":              4,
	"sublet/client/internal/tui":                 4,
	"sublet/client/internal/tui/markdown":        7,
	"sublet/client/internal/tui/paint":           7,
	"sublet/client/internal/tui/card":            6,
	"sublet/client/internal/tui/keys":            8,
	"sublet/client/internal/tui/line":            7,
	"sublet/client/internal/tui/question":        5,
	"sublet/client/internal/tui/style":           8,
	"sublet/client/internal/tui/screentest":      7,
	"sublet/client/internal/tui/cells":           8,
	"sublet/client/internal/lender":              5,
	"sublet/client/internal/remote":              6,
	"sublet/client/web":                          8,
	"sublet/client/marks":                        8,

	"sublet/daemon":                        1,
	"sublet/daemon/internal/server":        2,
	"sublet/daemon/internal/hub":           3,
	"sublet/daemon/internal/question":      5,
	"sublet/daemon/internal/eventlog":      6,
	"sublet/daemon/internal/judge":         4,
	"sublet/daemon/internal/hosted":        4,
	"sublet/daemon/internal/crew":          4,
	"sublet/daemon/internal/reach":         5,
	"sublet/daemon/internal/archive":       5,
	"sublet/daemon/internal/agent":         6,
	"sublet/daemon/internal/lend":          4,
	"sublet/daemon/internal/mcp":           6,
	"sublet/daemon/internal/child":         7,
	"sublet/daemon/internal/lsp":           7,
	"sublet/daemon/internal/proxy":         6,
	"sublet/daemon/internal/tool":          7,
	"sublet/daemon/internal/store":         8,
	"sublet/daemon/internal/job":           8,
	"sublet/daemon/internal/provider/open": 6,
	"sublet/daemon/internal/provider/*":    7,
	"sublet/daemon/internal/provider":      8,
	"sublet/daemon/internal/project":       9,
	"sublet/daemon/internal/policy":        9,
	"sublet/daemon/internal/risk/bashread": 12,
	"sublet/daemon/internal/risk/secret":   11,
	"sublet/daemon/internal/risk":          10,

	"sublet/wire/wiretest": 7,
	"sublet/wire/jsonview": 8,
	"sublet/wire/socket":   8,

	"sublet/lease/confine/confinetest": 10,

	"sublet/lease/shell":           9,
	"sublet/lease/shell/dialect/*": 10,
	"sublet/lease/shell/dialect":   11,
	"sublet/lease/shell/procs":     11,
	"sublet/lease/shell/term":      11,

	"sublet/lease/caller":  leaf - 1,
	"sublet/daemon/config": leaf - 1,
	"sublet/compaction":    leaf - 1,

	"sublet/wire/secretname": leaf + 1,
	"sublet/wire/visible":    leaf + 1,
	"sublet/wire/citest":     leaf + 1,
}

const leaf = 100

var leaves = []string{"sublet/wire", "sublet/lease", "sublet/lease/confine", "sublet/lease/procstat", "sublet/lease/footprint", "sublet/daemon/internal/mask", "sublet/daemon/internal/risk/programs", "sublet/daemon/internal/worktree", "sublet/daemon/internal/picture"}

func rank(t *testing.T, pkg string) int {
	for _, l := range leaves {
		if pkg == l {
			return leaf
		}
	}
	for _, name := range []string{pkg, path.Dir(pkg) + "/*"} {
		if r, ok := ranks[name]; ok {
			return r
		}
	}
	t.Errorf("%s stands nowhere in the import order: give it a rank", pkg)
	return -1
}

// Imports point down the list in docs/architecture.md only, leaves import nothing of ours, and client and daemon never
// meet but in cmd and in packages for tests.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, "sublet/...").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	packages := 0
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		from := fields[0]
		packages++
		for _, to := range fields[1:] {
			if !strings.HasPrefix(to, "sublet/") {
				continue
			}
			if rank(t, to) <= rank(t, from) {
				t.Errorf("%s imports %s, which does not stand below it", from, to)
			}
			if strings.HasPrefix(from, "sublet/client") && !strings.HasSuffix(from, "test") && strings.HasPrefix(to, "sublet/daemon") ||
				strings.HasPrefix(from, "sublet/daemon") && strings.HasPrefix(to, "sublet/client") {
				t.Errorf("%s imports %s: client and daemon meet only over the wire", from, to)
			}
		}
	}
	if packages < 10 {
		t.Errorf("saw %d packages: go list found nothing to check", packages)
	}
}
