package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// errByHand reports a TOML or YAML file in a form that this program does not change.
var errByHand = errors.New("it is written in a way that sublet does not change; --print shows the settings to add by hand")

// lines is the text of a TOML or YAML file. No library writes these with comments, order and layout kept, so they are changed line
// by line, and a parser checks that the result is the old settings and ours.
type lines []string

func split(text []byte) lines {
	if len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

func (l lines) text() []byte {
	if len(l) == 0 {
		return []byte{}
	}
	return []byte(strings.Join(l, "\n") + "\n")
}

// blank reports whether a line holds neither a setting nor a comment.
func blank(line string) bool { return strings.TrimSpace(line) == "" }

// comment reports whether a line is only a comment.
func comment(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "#") }

// syntax is a language of settings files that are changed line by line.
type syntax struct {
	parse func(text []byte, into any) error
	// set gives the setting at a path a value, written as in JSON; remove takes the setting, or an object of them, away.
	set    func(l lines, path []string, value string) (lines, error)
	remove func(l lines, path []string) (lines, error)
}

func (s syntax) settings(text []byte) (map[string]any, error) {
	m := map[string]any{}
	return m, s.parse(text, &m)
}

// inline writes a value on one line. For these values, TOML and YAML take what JSON has.
func inline(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return strings.ReplaceAll(strings.TrimSpace(b.String()), `","`, `", "`), nil
}

// at returns the value at a path, nil where there is none.
func at(m map[string]any, path []string) any {
	for i, name := range path {
		v, ok := m[name]
		if !ok {
			return nil
		}
		if i == len(path)-1 {
			return v
		}
		if m, ok = v.(map[string]any); !ok {
			return nil
		}
	}
	return nil
}

// put sets the value at a path in m, with the objects around it, or removes it (nil).
func put(m map[string]any, path []string, value any) {
	last := len(path) - 1
	for _, name := range path[:last] {
		next, ok := m[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			m[name] = next
		}
		m = next
	}
	if value == nil {
		delete(m, path[last])
		return
	}
	m[path[last]] = value
}

// apply sets each value, or removes it (nil), and checks that nothing else became different. If nothing has to change, it returns
// text.
func (s syntax) apply(text []byte, edits []edit) ([]byte, error) {
	want, err := s.settings(text)
	if err != nil {
		return nil, err
	}
	edits = slices.DeleteFunc(members(edits), func(e edit) bool {
		is := at(want, e.path)
		return same(is, e.value) || e.missing && is != nil
	})
	if len(edits) == 0 {
		return text, nil
	}
	l := split(text)
	for _, e := range edits {
		put(want, e.path, e.value)
		if e.value == nil {
			l, err = s.remove(l, e.path)
		} else {
			var value string
			if value, err = inline(e.value); err == nil {
				l, err = s.set(l, e.path, value)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	got, err := s.settings(l.text())
	if err != nil || !same(got, want) {
		return nil, errByHand
	}
	return l.text(), nil
}

// takeBack gives each setting the value that it has in old, or removes it.
func (s syntax) takeBack(text, old []byte, edits []edit) ([]byte, error) {
	was, err := s.settings(old)
	if err != nil {
		return nil, fmt.Errorf("its backup: %w", err)
	}
	var back []edit
	for _, e := range takenBack(edits, func(path []string) bool { return at(was, path) != nil }) {
		back = append(back, edit{path: e.path, value: at(was, e.path)})
	}
	return s.apply(text, back)
}
