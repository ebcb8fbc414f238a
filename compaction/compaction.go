// Package compaction decides what to remove from a conversation that no longer fits its model's context window. It first
// shortens results that a newer result supersedes, then cuts other old tool output, then drops that output, and last
// replaces the middle by a summary and a ledger of facts that must not be lost. It is pure: it takes items and returns a
// plan. The caller sends the prompt to the model, stores the result and informs the user.
package compaction

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"sublet/wire"
	"sublet/wire/visible"
)

// Kind of an Item.
type Kind int

const (
	Request Kind = iota + 1 // what the user asked
	Answer                  // the model's text, with its calls
	Results                 // the results of the calls of the Answer right before it
	Summary                 // of an earlier compaction
)

// Item is one message. Items are never changed in place.
type Item struct {
	Kind    Kind
	Text    string   // of the user in a Request, and in Results if it came while the turn ran; of the model in an Answer
	Calls   []Call   // Answer
	Results []Result // Results
	Extra   int      // tokens beyond the text: reasoning, attachments
	Images  []string // Request: names of the attached images; a summary keeps the names only
	Ledger  *Ledger  // Summary: its ledger
	Machine bool     // Request: written by the program, so it sets no limits and is not a prompt of the user's
}

// Call is a tool call of an Answer.
type Call struct {
	ID        string
	Tool      string
	Arguments string // JSON
}

// Result is the result of a Call. All but CallID, Content, IsError and Extra are for the ledger.
type Result struct {
	CallID   string
	Content  string
	IsError  bool
	Tool     string
	Command  string
	ExitCode *int
	Files    []wire.OSString // changed
	Cwd      string          // afterwards; "" = as it was
	Decision string          // the user's comment on a question about it
	Answer   string          // the user's answer to a question about it: allowed, refused; "" = there was none
	Extra    int             // tokens beyond Content, of images; 0 once a plan has shortened it
}

// Estimated tokens of what a provider's format puts around texts.
const (
	itemTokens = 4  // the role of a message
	callTokens = 12 // the id, type and braces of a call, and of its result
)

// Tokens returns the estimated size of an item in tokens.
func (it Item) Tokens() int {
	n := itemTokens + it.Extra + EstimateTokens(it.Text)
	for _, c := range it.Calls {
		n += callTokens + EstimateTokens(c.Tool) + EstimateTokens(c.Arguments)
	}
	for _, r := range it.Results {
		n += callTokens + r.Extra + EstimateTokens(r.Content)
	}
	return n
}

// Tokens returns the estimated size of several items in tokens.
func Tokens(items []Item) int {
	n := 0
	for _, it := range items {
		n += it.Tokens()
	}
	return n
}

// EstimateTokens estimates the tokens of a text: 2 for 7 bytes of ASCII (prose needs fewer, code more), and one for every other
// character. It is a rule of thumb, for the caller to scale by what a provider counted. More characters never lower it.
func EstimateTokens(s string) int {
	ascii, other := 0, 0
	for _, r := range s {
		if r < utf8.RuneSelf {
			ascii++
		} else {
			other++
		}
	}
	return (ascii*2+6)/7 + other
}

// Options of a plan. All sizes are in estimated tokens.
type Options struct {
	Target int // what the items should fit into afterwards
	Tail   int // size of the newest part that stays word for word; at least one exchange stays
	// Fold makes a summary even if cutting old tool output would be enough: the user asked for a compaction.
	Fold bool
}

// Plan is the outcome of Make. Items has the length and order of the input, with old tool output shortened. Items[From:To]
// are to be replaced by one Summary, none if From == To.
type Plan struct {
	Items     []Item
	Shortened int // results that were shortened
	From, To  int
	Before    int // tokens of the input
	After     int // tokens of Items without Items[From:To]; those of the summary are not included
	// Quote is the user's current request if it is in Items[From:To]; the summary must contain it word for word.
	Quote string
}

// Sizes in bytes to which shorten cuts old tool output.
const (
	cutOutput  = 1200 // first step: keep head and tail
	cutOldest  = 160  // second step: a note with the exit code only
	fitMinimum = 400  // of output in the tail, if nothing else is enough
)

// Make plans a compaction of items. The first item must be a Request or a Summary, and every Results must follow the Answer
// whose calls it answers. The first request and the tail are kept, calls keep their results, and no item grows.
func Make(items []Item, o Options) Plan {
	p := Plan{Items: slices.Clone(items), Before: Tokens(items)}
	start := firstKept(items)
	end := tailStart(items, start, o.Tail)
	if !o.Fold {
		for _, size := range []int{cutOutput, cutOldest} {
			if Tokens(p.Items) <= o.Target {
				break
			}
			p.shorten(start, end, size, o.Target)
		}
	}
	if end > start && (o.Fold || Tokens(p.Items) > o.Target) {
		p.From, p.To = start, end
		p.Quote = quote(items, start, end)
	}
	rest := func() int {
		return Tokens(p.Items[:p.From]) + Tokens(p.Items[p.To:]) + EstimateTokens(p.Quote)
	}
	// The tail alone is too long: cut its tool output too, the oldest first. The user's text is never cut.
	if rest() > o.Target {
		for _, size := range []int{8 * cutOutput, cutOutput, fitMinimum} {
			for i := max(end, p.To); i < len(p.Items) && rest() > o.Target; i++ {
				p.shorten(i, i+1, size, 0)
			}
		}
	}
	p.After = rest()
	return p
}

// firstKept returns the index after the first request, 0 if there is none, or if anything but summaries precedes it.
func firstKept(items []Item) int {
	for i, it := range items {
		if it.Kind == Request {
			return i + 1
		}
		if it.Kind != Summary {
			break
		}
	}
	return 0
}

// tailStart returns the index at which the tail begins: the newest items of at most tail tokens, but at least the last
// exchange. It never separates calls from their results, and begins at a later request if at least half of the tail is left
// from there.
func tailStart(items []Item, start, tail int) int {
	i, n := len(items), 0
	for i > start {
		size := items[i-1].Tokens()
		if n > 0 && n+size > tail {
			break
		}
		n += size
		i--
	}
	for i > start && i < len(items) && items[i].Kind == Results {
		i-- // keep the answer with the calls
	}
	for j := i; j < len(items); j++ {
		if items[j].Kind == Request && 2*Tokens(items[j:]) >= min(n, tail) {
			return j
		}
	}
	return i
}

// quote returns the newest request in items[from:to] if the items from to on still belong to it.
func quote(items []Item, from, to int) string {
	if to >= len(items) || items[to].Kind == Request {
		return ""
	}
	for i := to - 1; i >= from; i-- {
		switch items[i].Kind {
		case Request:
			return items[i].Text
		case Summary:
			if items[i].Ledger != nil && items[i].Ledger.Current != "" {
				return items[i].Ledger.Current
			}
		}
	}
	return ""
}

// shorten cuts the tool output of Items[from:to] to about size bytes each, oldest first, until all items have at most target
// tokens; with target 0 all of it is cut.
func (p *Plan) shorten(from, to, size, target int) {
	total := Tokens(p.Items)
	for i := from; i < to; i++ {
		if p.Items[i].Kind != Results {
			continue
		}
		was := p.Items[i].Tokens()
		results := slices.Clone(p.Items[i].Results)
		for j, r := range results {
			short := shortOutput(r, size)
			if r.Extra > 0 || EstimateTokens(short) < EstimateTokens(r.Content) {
				results[j].Content, results[j].Extra = short, 0
				p.Shortened++
			}
		}
		p.Items[i].Results = results
		total += p.Items[i].Tokens() - was
		if target > 0 && total <= target {
			return
		}
	}
}

// shortOutput returns the two ends of a result, size bytes together, or a note alone for a size of cutOldest or less.
func shortOutput(r Result, size int) string {
	if len(r.Content) <= size {
		return r.Content
	}
	if size <= cutOldest {
		s := "[old output dropped"
		if r.ExitCode != nil {
			s += fmt.Sprintf("; exit code %d", *r.ExitCode)
		}
		return s + "; call the tool again if you need it]"
	}
	head, tail := visible.Cut(r.Content, size*2/3), visible.CutTail(r.Content, size/3)
	return fmt.Sprintf("%s\n[… %d bytes of old output cut …]\n%s", head, len(r.Content)-len(head)-len(tail), tail)
}

// line puts s on one line of at most n bytes, with an ellipsis after them if it was cut.
func line(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= n {
		return s
	}
	return visible.Cut(s, n) + "…"
}
