package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sublet/compaction"
	"sublet/wire"
	"sublet/wire/visible"
)

const (
	maxRecalled = 12  // excerpts that are shown
	maxExcerpt  = 800 // bytes of one excerpt, around the first word
)

// passage is one searchable text: a message, a call or an output.
type passage struct {
	who, text string
	command   string // that printed text
	score     int
}

// Recall searches a session's events, also the compacted ones, for the words of query. It returns excerpts around the first
// word from the passages with the most words, the newest first. A word that only the prompt of a passage's turn has counts half.
func Recall(events []wire.EventMessage, query string) string {
	words := strings.Fields(strings.ToLower(query))
	var found []passage
	prompt := ""
	for _, e := range threadOf(events).entries {
		if e.kind == compaction.Request {
			prompt = strings.ToLower(firstText(e.msg))
		}
		for _, p := range passages(e) {
			text := strings.ToLower(p.command + "\n" + p.text)
			for _, w := range words {
				switch {
				case strings.Contains(text, w):
					p.score += 2
				case strings.Contains(prompt, w):
					p.score++
				}
			}
			if p.score > 0 {
				found = append(found, p)
			}
		}
	}
	slices.Reverse(found)
	slices.SortStableFunc(found, func(a, b passage) int { return b.score - a.score })
	if len(found) == 0 {
		return "Nothing in this conversation has any of these words."
	}
	var b strings.Builder
	for _, p := range found[:min(len(found), maxRecalled)] {
		fmt.Fprintf(&b, "── %s\n%s\n", p.who, excerpt(p.text, words))
	}
	if more := len(found) - maxRecalled; more > 0 {
		fmt.Fprintf(&b, "[%d more places have some of the words; ask for more of them at once]\n", more)
	}
	return b.String()
}

// passages returns the parts of an entry in order.
func passages(e entry) []passage {
	var out []passage
	for i, p := range e.msg.Parts {
		switch {
		case p.ToolCall != nil:
			if p.ToolCall.Name != "recall" { // skip the query itself
				out = append(out, passage{who: "you called " + p.ToolCall.Name, text: string(p.ToolCall.Arguments)})
			}
		case p.ToolResult != nil:
			if f := e.facts[p.ToolResult.CallID]; f.Tool != "recall" { // skip earlier results of recall; the original is found
				out = append(out, passage{who: clip("result of "+cmp.Or(f.Command, f.Tool), 200), text: p.ToolResult.Content, command: f.Command})
			}
		case p.Text == "":
		case e.kind == compaction.Answer:
			out = append(out, passage{who: "you said", text: p.Text})
		case e.kind == compaction.Request && i == 0:
			out = append(out, passage{who: "the user asked", text: p.Text})
		default:
			out = append(out, passage{who: "you were told", text: p.Text})
		}
	}
	return out
}

// excerpt returns the text around the first of words in text.
func excerpt(text string, words []string) string {
	low := strings.ToLower(text)
	at := len(low)
	for _, w := range words {
		if i := strings.Index(low, w); i >= 0 {
			at = min(at, i)
		}
	}
	if len(low) != len(text) || at == len(low) { // lower case changed the length, so the position is not valid in text
		at = 0
	}
	from := max(0, at-maxExcerpt/2)
	cut := visible.Cut(strings.ToValidUTF8(text[from:], ""), maxExcerpt)
	if from > 0 {
		cut = "… " + cut
	}
	if from+maxExcerpt < len(text) {
		cut += " …"
	}
	return strings.TrimSpace(cut)
}
