package operator

import (
	"bytes"
	"encoding/json"
)

// line returns v as one line of JSON with its newline. It does not escape HTML, which is up to the program that displays it. v
// must be of this package's types, which always encode.
func line(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("operator: " + err.Error()) // a type of this package that JSON cannot encode
	}
	return b.Bytes()
}

func mustJSON(v any) json.RawMessage { return bytes.TrimSuffix(line(v), []byte("\n")) }
