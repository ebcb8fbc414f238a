package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sublet/daemon/config"
)

// Every tool of package tool is one that agents may have.
func TestEveryToolIsListed(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "tool", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var made []string
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func ([A-Z]\w*)\(.*\) Tool \{`).FindAllStringSubmatch(string(text), -1) {
			made = append(made, m[1])
		}
	}
	if got := len(Tools(config.Default(), nil)); got != len(made) {
		t.Errorf("Tools has %d tools, package tool makes %d: %v", got, len(made), made)
	}
}

// PROTOCOL.md has a row for each tool, which names each of its arguments, says which may be left out, and names no other.
func TestProtocolHasTheTools(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "wire", "PROTOCOL.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n### Tools\n")
	section, _, _ = strings.Cut(section, "\n### ")
	rows := map[string]string{}
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) > 3 && strings.HasPrefix(cells[1], " `") {
			rows[strings.Trim(cells[1], " `")] = cells[2]
		}
	}
	argument := regexp.MustCompile("`(\\w+)` (?:string|integer|boolean|array)(\\??)")
	type object struct {
		Properties map[string]struct {
			Items *object
		}
		Required []string
	}
	for _, tool := range Tools(config.Default(), nil) {
		spec := tool.Spec()
		row, ok := rows[spec.Name]
		delete(rows, spec.Name)
		if !ok {
			t.Errorf("no row for the tool %s", spec.Name)
			continue
		}
		optional := map[string]bool{}
		for part := range strings.SplitSeq(row, ";") {
			in := ""
			for _, m := range argument.FindAllStringSubmatch(part, -1) {
				optional[in+m[1]] = m[2] == "?"
				if strings.Contains(m[0], " array") {
					in = m[1] + "." // what its items hold follows
				}
			}
		}
		var compare func(in string, o object)
		compare = func(in string, o object) {
			for name, p := range o.Properties {
				left, named := optional[in+name]
				required := false
				for _, r := range o.Required {
					required = required || r == name
				}
				if !named || left == required {
					t.Errorf("%s: %s is named %v, as one that may be left out %v; it is required %v", spec.Name, in+name, named, left, required)
				}
				delete(optional, in+name)
				if p.Items != nil {
					compare(name+".", *p.Items)
				}
			}
		}
		var schema object
		if err := json.Unmarshal(spec.Schema, &schema); err != nil {
			t.Fatal(err)
		}
		compare("", schema)
		for name := range optional {
			t.Errorf("%s has no argument %s", spec.Name, name)
		}
	}
	for name := range rows {
		t.Errorf("there is no tool %s", name)
	}
}
