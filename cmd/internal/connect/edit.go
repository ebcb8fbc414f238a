package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// document is the settings of a file. Changing them keeps comments, order and all other settings.
type document interface {
	// get returns the value at a path, nil where there is none.
	get(path []string) any
	// set gives the setting at a path a value, and makes the objects around it where they are missing. "-" as the last name appends the
	// value to a list; only in JSON.
	set(path []string, value any) error
	// remove removes what is at a path: a setting or an object. In JSON the last name may be the index of an element of a list.
	remove(path []string) error
	// text returns the file.
	text() ([]byte, error)
}

// errByHand reports a file in a form that this program does not change.
var errByHand = errors.New("it is written in a way that sublet does not change")

func (f File) parse(text []byte) (document, error) {
	switch filepath.Ext(f.Path) {
	case ".toml":
		return parseTOML(text)
	case ".yaml":
		return parseYAML(text)
	}
	return parseJSON(text)
}

// same reports whether two values are the same in JSON.
func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// apply makes the settings in a text. If all are made already, it returns the text as it is.
func (f File) apply(text []byte) ([]byte, error) {
	d, err := f.parse(text)
	if err != nil {
		return nil, err
	}
	changed := false
	for _, e := range members(f.edits) {
		is, path, value := d.get(e.path), e.path, e.value
		list, isList := is.([]any)
		switch {
		case !e.add && (same(is, value) || e.missing && is != nil), e.add && slices.Contains(list, value):
			continue
		case e.add && isList:
			path = append(slices.Clone(path), "-")
		case e.add && is != nil:
			return nil, fmt.Errorf("%s is not a list", strings.Join(path, "."))
		case e.add:
			value = []any{value}
		}
		if err := d.set(path, value); err != nil {
			return nil, err
		}
		changed = true
	}
	if !changed {
		return text, nil
	}
	return d.text()
}

// takeBack gives each setting the value that it has in old, or removes it: our object as a whole if there was none before, else its
// members, since some agents do not start if only a part of a server is left. If only our settings were made since, it returns old.
func (f File) takeBack(text, old []byte) ([]byte, error) {
	if made, err := f.apply(old); err == nil && bytes.Equal(made, text) && len(bytes.TrimSpace(old)) > 0 {
		return old, nil
	}
	d, err := f.parse(text)
	if err != nil {
		return nil, err
	}
	was, err := f.parse(old)
	if err != nil {
		return nil, fmt.Errorf("its backup: %w", err)
	}
	changed := false
	for _, e := range f.edits {
		single := []edit{e}
		if was.get(e.path) != nil {
			single = members(single)
		}
		for _, e := range single {
			path, before, now := e.path, was.get(e.path), d.get(e.path)
			if e.add { // the element is the setting
				list, _ := now.([]any)
				kept, _ := before.([]any)
				i := slices.Index(list, e.value)
				if i < 0 || slices.Contains(kept, e.value) {
					continue
				}
				path, before = append(slices.Clone(path), strconv.Itoa(i)), nil
			}
			switch {
			case now == nil || same(now, before):
				continue
			case before != nil:
				err = d.set(path, before)
			default:
				err = d.remove(path)
			}
			for i := len(path) - 1; err == nil && i > 0 && was.get(path[:i]) == nil && empty(d.get(path[:i])); i-- {
				err = d.remove(path[:i]) // what only contained it
			}
			if err != nil {
				return nil, err
			}
			changed = true
		}
	}
	if !changed {
		return text, nil
	}
	return d.text()
}

// empty reports whether a value is an object or a list without elements.
func empty(v any) bool {
	object, isObject := v.(map[string]any)
	list, isList := v.([]any)
	return isObject && len(object) == 0 || isList && len(list) == 0
}
