package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sublet/lease/confine"
)

var (
	profileRule   = regexp.MustCompile(`^\((allow|deny) ([a-z*\- ]+?)((?: \(.*\))?)\)$`)
	profileFilter = regexp.MustCompile(`\((literal|subpath|regex) ("(?:[^"\\]|\\.)*")\)`)
)

// decide returns whether a profile allows an operation on a path, as Seatbelt does: by the last rule that matches. It knows
// rules that name paths alone.
func decide(t *testing.T, profile, operation, path string) (allowed bool) {
	t.Helper()
	for line := range strings.Lines(profile) {
		m := profileRule.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil || strings.Contains(m[3], "require-all") {
			continue
		}
		named := false
		for op := range strings.FieldsSeq(m[2]) {
			prefix, all := strings.CutSuffix(op, "*")
			named = named || op == operation || all && strings.HasPrefix(operation, prefix)
		}
		if named && matches(t, m[3], path) {
			allowed = m[1] == "allow"
		}
	}
	return allowed
}

func matches(t *testing.T, filters, path string) bool {
	t.Helper()
	if filters == "" {
		return true
	}
	for _, f := range profileFilter.FindAllStringSubmatch(filters, -1) {
		value, err := strconv.Unquote(f[2])
		if err != nil {
			t.Fatalf("%s: %v", f[2], err)
		}
		switch f[1] {
		case "literal":
			if path == value {
				return true
			}
		case "subpath":
			if confine.Within(path, value) {
				return true
			}
		case "regex":
			if regexp.MustCompile(value).MatchString(path) {
				return true
			}
		}
	}
	return false
}

// TestSeatbelt judges operations by the text of the profiles of both reaches.
func TestSeatbelt(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	project, temp := filepath.Join(home, `pro(j"`), "/private/tmp/x"
	for _, dir := range []string{`pro(j"/.git/hooks`, `pro(j"/ci`, "cache", "out"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{`pro(j"/.github`: "ci", "link": "out"} {
		if err := os.Symlink(to, filepath.Join(home, from)); err != nil {
			t.Fatal(err)
		}
	}
	spec := confine.Spec{
		Reach: confine.Project, Project: project, Caches: []string{home + "/cache", home + "/none"},
		Hidden: []string{home + "/.ssh", project + "/conf/key", home + "/link"}, Kept: []string{project + "/venv/bin"},
	}
	inProject := seatbeltOf(spec, temp).profile()
	spec.Reach = confine.Read
	inRead := seatbeltOf(spec, temp).profile()
	for _, row := range []struct {
		operation, path string
		read, project   bool
	}{
		{"file-read-data", "/etc/passwd", true, true},
		{"file-read-data", home + "/.ssh/id", false, false},
		{"file-read-data", home + "/.SſH/id", false, false},
		{"file-read-metadata", home + "/.ssh/id", true, true},
		{"file-read-data", home + "/.sshd", true, true},
		{"file-read-data", home + "/out/x", false, false},
		{"file-read-data", project + "/conf/KEY", false, false},
		{"file-write-create", temp + "/x", true, true},
		{"file-write-setugid", temp + "/x", false, false},
		{"file-write-unlink", temp, false, false},
		{"file-write-create", project + "/x", false, true},
		{"file-write-data", home + "/cache/x", false, true},
		{"file-write-create", home + "/none", false, false},
		{"file-write-data", home + "/x", false, false},
		{"file-write-data", "/dev/null", true, true},
		{"file-write-data", "/dev/ttys001", false, false},
		{"file-write-create", project + "/.vscode", false, false},
		{"file-write-create", project + "/.VSCode/x", false, false},
		{"file-write-create", project + "/.vscodes", false, true},
		{"file-write-data", project + "/.git/hooks/x", false, false},
		{"file-write-unlink", project + "/.git", false, false},
		{"file-write-create", project + "/.Git", false, false},
		{"file-write-create", project + "/.git/index.lock", false, true},
		{"file-write-data", project + "/.git/info/attributes", false, false},
		{"file-write-unlink", project + "/.git/info", false, false},
		{"file-write-create", project + "/.git/commondir", false, false},
		{"file-write-unlink", project + "/.github", false, false},
		{"file-write-create", project + "/ci/x", false, false},
		{"file-write-create", project + "/venv/bin/ls", false, false},
		{"file-write-unlink", project + "/venv", false, false},
		{"file-write-create", project + "/venv/lib", false, true},
		{"file-write-unlink", project + "/conf", false, false},
		{"network-outbound", "", false, false},
		{"mach-lookup", "", false, false},
		{"appleevent-send", "", false, false},
	} {
		if got := decide(t, inRead, row.operation, row.path); got != row.read {
			t.Errorf("read: %s %s: allowed %t", row.operation, row.path, got)
		}
		if got := decide(t, inProject, row.operation, row.path); got != row.project {
			t.Errorf("project: %s %s: allowed %t", row.operation, row.path, got)
		}
	}
	if p := (seatbelt{network: true}).profile(); !strings.Contains(p, "\n(allow network-outbound ") {
		t.Errorf("no network: %s", p)
	}
}
