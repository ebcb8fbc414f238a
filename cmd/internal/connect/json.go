package connect

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tailscale/hujson"
)

// jsonFile is a settings file in JSON, with comments or without. hujson keeps them, and the order.
type jsonFile struct {
	hujson.Value
	original []byte
}

func parseJSON(text []byte) (document, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	v, err := hujson.Parse(text)
	return &jsonFile{v, text}, err
}

// pointer returns a path as a JSON Pointer (RFC 6901).
func pointer(path []string) string {
	var b strings.Builder
	for _, name := range path {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	return b.String()
}

func (f *jsonFile) get(path []string) (value any) {
	v := f.Find(pointer(path))
	if v == nil {
		return nil
	}
	plain := v.Clone()
	plain.Standardize()
	_ = json.Unmarshal(plain.Pack(), &value) // cannot fail: it was parsed
	return value
}

// patch does one operation of RFC 6902.
func (f *jsonFile) patch(op string, path []string, value any) error {
	text, err := json.Marshal([]any{map[string]any{"op": op, "path": pointer(path), "value": value}})
	if err != nil {
		return err
	}
	return f.Patch(text)
}

// set implements document.
func (f *jsonFile) set(path []string, value any) error {
	for i := 1; i < len(path); i++ {
		if f.get(path[:i]) == nil { // missing, or null
			if err := f.patch("add", path[:i], map[string]any{}); err != nil {
				return err
			}
		}
	}
	return f.patch("add", path, value)
}

func (f *jsonFile) remove(path []string) error { return f.patch("remove", path, nil) }

// text returns the file, with the indentation of the original if that was regular and had no comments.
func (f *jsonFile) text() ([]byte, error) {
	text := f.Pack()
	for _, indent := range []string{"  ", "    ", "\t"} {
		var was, is bytes.Buffer
		if json.Indent(&was, f.original, "", indent) == nil && bytes.Equal(bytes.TrimSpace(was.Bytes()), bytes.TrimSpace(f.original)) && json.Indent(&is, text, "", indent) == nil {
			return append(bytes.TrimSpace(is.Bytes()), '\n'), nil
		}
	}
	return text, nil
}
