package gateway

import (
	"encoding/json"
	"strings"

	"sublet/wire"
	"sublet/wire/visible"
)

// Void returns the text for a void chunk in a protocol that cannot withdraw text.
func Void(why string) string {
	return "\n\n[The answer above is void, it is asked for again: " + why + "]\n\n"
}

// Answer returns what an event adds to a turn's answer, in a protocol that cannot withdraw text; "" for most events. Text of an agent that
// works for another one is none, since that agent's result has it.
func Answer(e wire.Message) string {
	m, ok := e.(*wire.AgentStreamChunk)
	switch {
	case !ok || wire.IsDelegate(m.Agent):
	case m.Chunk.Type == wire.ChunkText:
		return m.Chunk.Text
	case m.Chunk.Type == wire.ChunkVoid:
		return Void(m.Chunk.Text)
	}
	return ""
}

// Clip cuts a text of a client to 100 bytes, for an answer or the log.
func Clip(s string) string { return visible.Clip(s, 100) }

// OneLine returns a text on one line of at most 200 bytes.
func OneLine(s string) string { return visible.Clip(strings.Join(strings.Fields(s), " "), 200) }

// Arguments returns the arguments of a tool call, which a model wrote, as the fields of an object: none for "". What is no JSON
// object becomes the field "text".
func Arguments(arguments string) map[string]any {
	var fields map[string]any
	d := json.NewDecoder(strings.NewReader(arguments))
	d.UseNumber() // a number stays as it was written
	switch {
	case arguments == "":
		return map[string]any{}
	case !json.Valid([]byte(arguments)) || d.Decode(&fields) != nil || fields == nil:
		return map[string]any{"text": arguments}
	}
	return fields
}

// Reasons returns the texts of a verdict's reasons; never nil.
func Reasons(v *wire.Verdict) []string {
	list := make([]string, 0, len(v.Reasons))
	for _, r := range v.Reasons {
		list = append(list, r.Text)
	}
	return list
}
