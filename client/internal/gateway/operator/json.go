package operator

import (
	"bytes"
	"encoding/json"
)

// line is v as one line of JSON with its newline. HTML stays as it is: what makes text safe to show is up to who shows it,
// and \u003c would only hide it. v is made of our own types, which always encode.
func line(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("operator: " + err.Error()) // a type of ours that JSON cannot hold
	}
	return b.Bytes()
}

func mustJSON(v any) json.RawMessage { return bytes.TrimSuffix(line(v), []byte("\n")) }
