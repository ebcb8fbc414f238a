package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/pelletier/go-toml/v2"

	"sublet/lease/confine"
)

// ProjectFile is the name of a project's own settings file. Since the author of a cloned repository may have written it, it
// can only restrict: none of its keys permits anything.
const ProjectFile = ".sublet.toml"

// maxProjectFile bounds the size of the file in bytes.
const maxProjectFile = 64 << 10

// onlyTightens is the error for every other key.
const onlyTightens = "a project's file can only tighten: it may hold [policy] mode, deny, ask, and rules that deny or ask"

// Project is the content of a project's file. The zero value restricts nothing.
type Project struct {
	Path string // of the file; "" = there is none
	Mode string // plan, ask or auto; "" = none. Whoever applies it takes the stricter of this and the user's
	// Rules have a valid decision, deny or ask; nothing else of them is checked here. Those of the lists come first and have
	// no examples.
	Rules []Rule

	text []byte
}

// LoadProject reads the ProjectFile in dir; if there is none it returns the zero Project. For a file that is invalid, or that
// would permit something, it returns an *Error with the position; the caller must then ask about everything.
func LoadProject(dir string) (Project, error) {
	path := filepath.Join(dir, ProjectFile)
	text, err := read(path, maxProjectFile, func(info fs.FileInfo) error {
		if !info.Mode().IsRegular() {
			return errors.New("it is not a regular file")
		}
		return nil
	})
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), err != nil && isPlaceholder(path):
		return Project{}, nil
	case err != nil:
		return Project{}, &Error{Path: path, Message: err.Error()}
	}
	var f struct {
		Policy struct {
			Mode *string  `toml:"mode"`
			Deny []string `toml:"deny"`
			Ask  []string `toml:"ask"`

			Rules []Rule `toml:"rules"`
		} `toml:"policy"`
	}
	if err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&f); err != nil {
		bad := located(path, err)
		if unknown, ok := errors.AsType[*toml.StrictMissingError](err); ok && len(unknown.Errors) > 0 {
			bad.Message = strings.Join(unknown.Errors[0].Key(), ".") + ": " + onlyTightens
		}
		return Project{}, bad
	}
	p := Project{Path: path, text: text}
	for _, list := range []struct {
		decision string
		patterns []string
	}{{"deny", f.Policy.Deny}, {"ask", f.Policy.Ask}} {
		for _, pattern := range list.patterns {
			p.Rules = append(p.Rules, Rule{Decision: list.decision, Pattern: pattern})
		}
	}
	for i, r := range f.Policy.Rules {
		var err error
		switch key := fmt.Sprintf("policy.rules[%d]", i); {
		case r.Decision == "allow":
			err = errors.New(key + ".decision: " + onlyTightens)
		case r.Pattern == "":
			err = errors.New(key + ".pattern: is missing")
		default:
			err = oneOf(key+".decision", r.Decision, "deny", "ask")
		}
		if err != nil {
			return Project{}, p.Fault(r.Pattern, err)
		}
		p.Rules = append(p.Rules, r)
	}
	if f.Policy.Mode != nil {
		p.Mode = *f.Policy.Mode
		if err := oneOf("policy.mode", p.Mode, "plan", "ask", "auto"); err != nil {
			return Project{}, &Error{Path: path, Row: rowOf(text, "policy.mode"), Column: 1, Message: err.Error()}
		}
	}
	return p, nil
}

// Fault returns the *Error for an invalid rule, which only the caller can check.
func (p Project) Fault(rule string, err error) error {
	e := &Error{Path: p.Path, Message: err.Error()}
	if before, _, found := bytes.Cut(p.text, []byte(rule)); found && rule != "" {
		e.Row, e.Column = bytes.Count(before, []byte("\n"))+1, len(before)-bytes.LastIndexByte(before, '\n')
	}
	return e
}

// isPlaceholder reports whether path, which could not be read, is not a file but the place that is kept for one while a confined
// command runs, or was that until now.
func isPlaceholder(path string) bool {
	info, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && confine.IsPlaceholder(info)
}
