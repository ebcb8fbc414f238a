package operator

import (
	"bytes"
	"encoding/json"
	"strings"

	"sublet/client/internal/gateway"
)

// maxMessage is the longest line that is sent, in bytes (N1). A conversation may be longer; fit then cuts it.
const maxMessage = 10 << 20

// line returns v, of one of this package's types, as one line of JSON that fits into a message.
func line(v any) []byte { return fit(gateway.Line(v), maxMessage) }

func mustJSON(v any) json.RawMessage { return bytes.TrimSuffix(gateway.Line(v), []byte("\n")) }

// fit returns a line that is within limit. In a longer one it sets "truncated", drops the older half of the turns while there is more than
// one, and cuts the middle out of texts that are longer than 1 MiB, then a quarter of that, and so on, until the line fits.
func fit(l []byte, limit int) []byte {
	if len(l) <= limit {
		return l
	}
	d := json.NewDecoder(bytes.NewReader(l))
	d.UseNumber()
	var message map[string]any
	if err := d.Decode(&message); err != nil {
		panic("operator: a line of ours is not JSON: " + err.Error())
	}
	holder := message // the object that has the turns
	if session, ok := message["session"].(map[string]any); ok {
		holder = session
	}
	holder["truncated"] = true
	for turns, _ := holder["turns"].([]any); len(l) > limit && len(turns) > 1; l = gateway.Line(message) {
		turns = turns[(len(turns)+1)/2:]
		holder["turns"] = turns
	}
	for most := 1 << 20; len(l) > limit && most >= 64; most /= 4 {
		l = gateway.Line(shortened(message, most))
	}
	return l
}

// shortened returns a decoded JSON value in which no text, and no input of a tool, is longer than most bytes.
func shortened(v any, most int) any {
	switch v := v.(type) {
	case string:
		return cut(v, most)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = shortened(e, most)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, e := range v {
			if name == "input" {
				if raw := mustJSON(e); len(raw) > most {
					e = map[string]any{"arguments": string(raw)}
				}
			}
			out[name] = shortened(e, most)
		}
		return out
	}
	return v
}

// cut returns a text, of one longer than most bytes only the beginning and the end, without a part of a character.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most/2], "") + "\n[…]\n" + strings.ToValidUTF8(s[len(s)-most/2:], "")
}
