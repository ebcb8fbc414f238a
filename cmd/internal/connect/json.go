package connect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// patch is one operation of RFC 6902, which hujson applies without changing comments and order.
type patch struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// pointer is a path as RFC 6901 has it.
func pointer(path []string) string {
	var b strings.Builder
	for _, name := range path {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	return b.String()
}

// document is a settings file in JSON, with comments or without.
type document struct {
	hujson.Value
	edited bool
}

func parse(text []byte) (document, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	v, err := hujson.Parse(text)
	if err != nil {
		return document{}, err
	}
	if _, ok := v.Value.(*hujson.Object); !ok {
		return document{}, fmt.Errorf("it is no JSON object")
	}
	return document{Value: v}, nil
}

// raw returns the value at a path as plain JSON, nil where there is none.
func (d *document) raw(path []string) json.RawMessage {
	v := d.Find(pointer(path))
	if v == nil {
		return nil
	}
	plain := v.Clone()
	plain.Standardize()
	plain.Minimize()
	return json.RawMessage(plain.Pack())
}

// do applies the operation add (which replaces a value that is there) or remove (which takes none).
func (d *document) do(op string, path []string, value any) error {
	p := patch{Op: op, Path: pointer(path)}
	if op != "remove" {
		raw, err := json.Marshal(value)
		if err != nil {
			return err
		}
		p.Value = raw
	}
	text, err := json.Marshal([]patch{p})
	if err != nil {
		return err
	}
	d.edited = true
	return d.Patch(text)
}

// set puts a value at a path, and makes the objects around it where they are missing.
func (d *document) set(path []string, value any) error {
	for i := 1; i < len(path); i++ {
		v := d.Find(pointer(path[:i]))
		if v == nil {
			if err := d.do("add", path[:i], map[string]any{}); err != nil {
				return err
			}
		} else if _, ok := v.Value.(*hujson.Object); !ok {
			return fmt.Errorf("%s is not an object", strings.Join(path[:i], "."))
		}
	}
	return d.do("add", path, value)
}

// list returns the list at a path, nil where there is none.
func (d *document) list(path []string) (list []any, err error) {
	if raw := d.raw(path); raw != nil {
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, fmt.Errorf("%s is not a list", strings.Join(path, "."))
		}
	}
	return list, nil
}

// done returns the text, with the indentation of the original where that was regular; the original where nothing was edited.
func (d *document) done(original []byte) []byte {
	if !d.edited {
		return original
	}
	text := d.Pack()
	if !d.IsStandard() {
		return text
	}
	if len(bytes.TrimSpace(original)) == 0 {
		original = []byte("{}")
	}
	for _, indent := range []string{"  ", "    ", "\t"} {
		var was, is bytes.Buffer
		if json.Indent(&was, original, "", indent) == nil && bytes.Equal(bytes.TrimSpace(was.Bytes()), bytes.TrimSpace(original)) && json.Indent(&is, text, "", indent) == nil {
			return append(bytes.TrimSpace(is.Bytes()), '\n')
		}
	}
	return text
}

func applyJSON(text []byte, edits []edit) ([]byte, error) {
	d, err := parse(text)
	if err != nil {
		return nil, err
	}
	for _, e := range members(edits) {
		if !e.add {
			if same(d.raw(e.path), e.value) {
				continue
			}
			if err := d.set(e.path, e.value); err != nil {
				return nil, err
			}
			continue
		}
		list, err := d.list(e.path)
		switch {
		case err != nil:
			return nil, err
		case slices.Contains(list, e.value):
		case list == nil:
			err = d.set(e.path, []any{e.value})
		default:
			err = d.do("add", append(slices.Clone(e.path), "-"), e.value)
		}
		if err != nil {
			return nil, err
		}
	}
	return d.done(text), nil
}

// takeBackJSON restores the value of each setting from old, or removes it.
func takeBackJSON(text, old []byte, edits []edit) ([]byte, error) {
	d, err := parse(text)
	if err != nil {
		return nil, err
	}
	was, err := parse(old)
	if err != nil {
		return nil, fmt.Errorf("its backup: %w", err)
	}
	for _, e := range takenBack(edits, func(path []string) bool { return was.raw(path) != nil }) {
		before, now := was.raw(e.path), d.raw(e.path)
		switch {
		case e.add:
			err = d.drop(e, &was)
		case now == nil || same(now, before):
		case before != nil:
			err = d.set(e.path, before)
		default:
			err = d.do("remove", e.path, nil)
		}
		if err != nil {
			return nil, err
		}
		for i := len(e.path) - 1; i > 0; i-- { // also remove objects that only contained it
			if raw := d.raw(e.path[:i]); (string(raw) == "{}" || string(raw) == "[]") && was.raw(e.path[:i]) == nil {
				if err := d.do("remove", e.path[:i], nil); err != nil {
					return nil, err
				}
			}
		}
	}
	return d.done(text), nil
}

// drop removes an added element from its list, unless it was there before.
func (d *document) drop(e edit, was *document) error {
	list, err := d.list(e.path)
	if err != nil {
		return err
	}
	before, err := was.list(e.path)
	if err != nil {
		return err
	}
	i := slices.Index(list, e.value)
	switch {
	case i < 0 || slices.Contains(before, e.value):
		return nil
	case len(list) == 1 && before == nil:
		return d.do("remove", e.path, nil)
	}
	return d.do("remove", append(slices.Clone(e.path), fmt.Sprint(i)), nil)
}
