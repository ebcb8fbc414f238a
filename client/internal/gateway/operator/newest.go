package operator

import (
	"bytes"
	"encoding/json"
	"slices"

	"sublet/client/internal/gateway"
)

// turnsMost bounds the turns in a message, in bytes of JSON.
const turnsMost = 5 << 20

// newest returns the newest of turns that have at most most bytes together, at least one, as JSON; truncated reports whether there are
// more.
func newest(turns []*turn, as func(*turn) body, most int) (list []json.RawMessage, truncated bool) {
	list = []json.RawMessage{}
	for _, t := range slices.Backward(turns) {
		raw := mustJSON(as(t))
		if most -= len(raw); most < 0 && len(list) > 0 {
			truncated = true
			break
		}
		list = append(list, raw)
	}
	slices.Reverse(list)
	return list, truncated
}

func mustJSON(v any) json.RawMessage { return bytes.TrimSuffix(gateway.Line(v), []byte("\n")) }
