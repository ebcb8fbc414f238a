package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"sublet/daemon/config"
)

// pages are what users read, by their paths.
func pages(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("../../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, path := range append(paths, "../../../README.md", "../../../CONTRIBUTING.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(path)] = string(text)
	}
	return texts
}

var block = regexp.MustCompile("(?ms)^```(.*?)\n(.*?)^```$")

// Every example of settings is one that the program reads.
func TestSettingsInDocs(t *testing.T) {
	found := 0
	for name, text := range pages(t) {
		for _, m := range block.FindAllStringSubmatch(text, -1) {
			if m[1] != "toml" {
				continue
			}
			found++
			file, read := "config.toml", func(dir string) error {
				_, err := config.Load(filepath.Join(dir, "config.toml"))
				return err
			}
			if strings.HasPrefix(m[2], "# .sublet.toml\n") {
				file, read = ".sublet.toml", func(dir string) error {
					p, err := config.LoadProject(dir)
					if err == nil && p.Path == "" {
						err = os.ErrNotExist
					}
					return err
				}
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, file), []byte(m[2]), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := read(dir); err != nil {
				t.Errorf("%s: %v\n%s", name, err, m[2])
			}
		}
	}
	if found < 5 {
		t.Errorf("found %d examples", found)
	}
}

// Every block of code is in a language that a test reads: TestSettingsInDocs reads toml, and TestExamplesInDocs of package e2e runs js.
func TestBlocksInDocs(t *testing.T) {
	found := 0
	for name, text := range pages(t) {
		for _, m := range block.FindAllStringSubmatch(text, -1) {
			found++
			var err error
			switch language := m[1]; language {
			case "toml", "js":
			case "json":
				err = json.Unmarshal([]byte(m[2]), new(any))
			case "sh":
				_, err = syntax.NewParser().Parse(strings.NewReader(m[2]), "")
			default:
				err = fmt.Errorf("no test reads the language %q", language)
			}
			if err != nil {
				t.Errorf("%s: %v\n%s", name, err, m[2])
			}
		}
		if fences := strings.Count(text, "```"); fences != 2*len(block.FindAllString(text, -1)) {
			t.Errorf("%s: %d lines that begin or end a block, and %d blocks", name, fences, len(block.FindAllString(text, -1)))
		}
	}
	if found < 15 {
		t.Errorf("found %d blocks", found)
	}
}

var (
	indented = regexp.MustCompile(`(?m)^(?:    ).*$`)
	ticked   = regexp.MustCompile("`(sublet [^`]+)`")
)

// Every command line of sublet's in the documentation names a command that exists, with flags that it has.
func TestCommandsInDocs(t *testing.T) {
	found := 0
	for name, text := range pages(t) {
		var lines []string
		for _, m := range ticked.FindAllStringSubmatch(text, -1) {
			lines = append(lines, m[1])
		}
		lines = append(lines, indented.FindAllString(text, -1)...)
		for _, line := range lines {
			file, err := syntax.NewParser().Parse(strings.NewReader(line), "")
			if err != nil {
				continue // a picture, or prose
			}
			syntax.Walk(file, func(n syntax.Node) bool {
				call, ok := n.(*syntax.CallExpr)
				if !ok || len(call.Args) < 2 || call.Args[0].Lit() != "sublet" {
					return true
				}
				args := make([]string, 0, len(call.Args)-1)
				for _, w := range call.Args[1:] {
					args = append(args, wordText(line, w))
				}
				found++
				checkCommand(t, name+": "+strings.TrimSpace(line), args)
				return true
			})
		}
	}
	if found < 50 {
		t.Errorf("found %d command lines", found)
	}
}

// Every message that a page shows on one line is JSON. In one with … the reader is to think of the rest.
func TestMessagesInDocs(t *testing.T) {
	found := 0
	for name, text := range pages(t) {
		for _, line := range indented.FindAllString(text, -1) {
			line = strings.TrimSpace(line)
			if !strings.HasPrefix(line, `{"`) && !strings.HasPrefix(line, `{ "`) || strings.Contains(line, "…") {
				continue
			}
			found++
			if !json.Valid([]byte(line)) {
				t.Errorf("%s: not JSON: %s", name, line)
			}
		}
	}
	if found < 3 {
		t.Errorf("found %d messages", found)
	}
}

// Every foreign protocol has a page, which says how it is served.
func TestProtocolsHavePages(t *testing.T) {
	texts := pages(t)
	for _, c := range (&app{}).serve().Commands() {
		if !strings.Contains(texts[c.Name()+".md"], "sublet serve "+c.Name()) {
			t.Errorf("docs/%s.md does not name `sublet serve %s`", c.Name(), c.Name())
		}
	}
}

// wordText is a word as it is written, without the quotes around it.
func wordText(line string, w *syntax.Word) string {
	return strings.Trim(line[w.Pos().Offset():w.End().Offset()], `'"`)
}

func checkCommand(t *testing.T, where string, args []string) {
	t.Helper()
	if strings.Contains(args[len(args)-1], "…") { // the rest is left to the reader
		args = args[:len(args)-1]
	}
	a := &app{stdout: io.Discard, stderr: io.Discard, env: func(string) string { return "" }}
	root := a.root()
	root.InitDefaultHelpCmd()
	c, rest, err := root.Find(args)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	if err := c.ParseFlags(rest); err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	operands := c.Flags().Args()
	if c.HasSubCommands() && len(operands) > 0 && c.Args != nil && c.Args(c, operands) != nil {
		t.Errorf("%s: %s has no command %s", where, c.CommandPath(), operands[0])
	}
}
