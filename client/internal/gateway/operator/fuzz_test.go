package operator

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"sublet/client/internal/gateway"
	"sublet/wire"
	"sublet/wire/wiretest"
)

// Whatever a client sends, parse returns a request with an id and a prompt in UTF-8, or a problem that can be sent.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"id":"req-1","type":"dispatch","agentID":"architect","sessionID":"s","content":"x","files":["a"],"metadata":{"token":"t","compression":"gzip"},"version":"1.0"}`,
		`{"type":"query","sessionID":"s","messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"file","path":"p","size":1},{"type":"image","url":"u","mimeType":"m"}]}]}`,
		`{"type":"send_context_request","context":{"project":{"name":"p","path":"/p"},"tools":["bash"],"userMessage":"m"}}`,
		`{"type":"stream","sessionID":"s","lastTurnID":"t"}`, `{"type":"confirm","id":"1","sessionID":"s","confirmationID":"c","decision":"allow","grant":{"scope":"session"}}`,
		`{"type":"cancel","id":"1","turnID":"t"}`, `{`, `[]`, "\xff", `{"type":"dispatch","content":null,"messages":[]}`,
	} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, raw []byte, s4 bool) {
		r, p := parse(raw, s4)
		if r == nil {
			t.Fatal("no request")
		}
		var l []byte
		if p != nil {
			if p.message == "" || p.s3 == "" || p.s4 == "" {
				t.Fatalf("a problem without words: %+v", p)
			}
			if r.s4 {
				l = gateway.Line(s4Refusal(r.ID, r.Session, r.Agent, p))
			} else {
				l = gateway.Line(s3Refusal(r.ID, "", p, 1))
			}
			if !json.Valid(l) || bytes.Count(l, []byte("\n")) != 1 {
				t.Fatalf("the answer is no line of JSON: %q", l)
			}
			return
		}
		if !utf8.ValidString(r.prompt) || !r.s4 && r.ID == "" {
			t.Fatalf("let through: %+v", r)
		}
	})
}

// Markdown of any shape becomes blocks that hold all of its text, and nothing else.
func FuzzMarkdownBlocks(f *testing.F) {
	for _, s := range []string{
		"a\n```go\nx\n```\nb", "```svg\n<svg width=\"1\">\n```", "~~~\n```\n~~~", "![a](https://b)\n", "```", "   ```x\n", "````\n```\n````\nend", "\r\n```\r\n", "<svg width='9e9'",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var got strings.Builder
		for _, b := range markdownBlocks(text) {
			holds := map[any]string{"text": "text", "code": "source", "svg": "content", "image": "url"}[b["type"]]
			if holds == "" {
				t.Fatalf("block of type %q", b["type"])
			}
			got.WriteString(b[holds].(string))
		}
		if got.Len() > len(text) {
			t.Fatalf("%d bytes of %d", got.Len(), len(text))
		}
		for word := range strings.FieldsSeq(text) {
			if strings.ContainsAny(word, "`~![]()") || strings.Contains(got.String(), word) {
				continue
			}
			if !strings.Contains(text, "```") && !strings.Contains(text, "~~~") { // a fence's info is not text
				t.Fatalf("%q was lost of %q", word, text)
			}
		}
	})
}

// Any order of any native events becomes lines of the documents' types, and at most one end.
func FuzzTranslate(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, true)
	f.Add([]byte{0, 3, 9, 3, 3, 8, 0}, false)
	var events []wire.EventMessage
	for _, m := range wiretest.All() {
		if e, ok := m.(wire.EventMessage); ok && wire.Directions(wire.KindOf(m))&wire.ToClient != 0 {
			events = append(events, e)
		}
	}
	f.Fuzz(func(t *testing.T, order []byte, all bool) {
		s := &s3Turn{id: "1", agent: "architect", options: s3Options{batch: all, gzip: all, extended: all}}
		h := &history{}
		ends := 0
		for _, i := range order[:min(len(order), 64)] {
			e := events[int(i)%len(events)]
			for _, l := range s.translate(e) {
				var m msg
				if err := json.Unmarshal(l, &m); err != nil || l[len(l)-1] != '\n' || m["type"] == nil || m["timestamp"] == nil || typed(m) != nil {
					t.Fatalf("%v, %v: %q", err, typed(m), l)
				}
				if m["type"] == "turn-completed" || m["type"] == "error" && m["turnID"] == nil {
					ends++
				}
			}
			h.apply(e)
		}
		if ends > 1 {
			t.Fatalf("%d ends", ends)
		}
		var m msg
		l := gateway.Line(snapshot("", "s", "", h.turns))
		if err := json.Unmarshal(l, &m); err != nil || typed(m) != nil {
			t.Fatalf("%v, %v: %q", err, typed(m), l)
		}
	})
}
