// Package compaction decides which part of a conversation to give up when it no longer fits its model: old tool output
// that newer output stands for goes, then the rest of it is cut, then dropped, then the middle is folded into a summary beside a ledger of what must not be lost. It is pure:
// items in, a plan out; the one who asks for a plan asks the model, stores the outcome and tells the user.
package compaction

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Kind of an Item.
type Kind int

const (
	Request Kind = iota + 1 // what the user asked
	Answer                  // what the model said, with its calls
	Results                 // the results of the calls of the Answer right before it
	Summary                 // of an earlier compaction
)

// Item is one message. Items are never changed in place.
type Item struct {
	Kind    Kind
	Text    string
	Calls   []Call   // Answer
	Results []Result // Results
	Extra   int      // tokens beyond the text: reasoning, attachments
	Images  []string // Request: the names of those that came with it; a summary keeps them, and no pixels
	Ledger  *Ledger  // Summary: what it carried
	Machine bool     // Request: no person wrote it, so that it sets no limit and is no word of the user's
}

// Call is a tool call of an Answer.
type Call struct {
	ID        string
	Tool      string
	Arguments string // JSON
}

// Result is what came of a Call. Tool, Command, ExitCode, Files, Cwd and Decision serve the ledger.
type Result struct {
	CallID   string
	Content  string
	IsError  bool
	Tool     string
	Command  string
	ExitCode *int
	Files    []string // changed
	Cwd      string   // afterwards; "" = as it was
	Decision string   // what the user said when asked about it
	Extra    int      // tokens beyond Content: images, which Content names; 0 in what a plan shortened
}

// Tokens estimates an item's size.
func (it Item) Tokens() int {
	n := 4 + it.Extra + EstimateTokens(it.Text)
	for _, c := range it.Calls {
		n += 12 + EstimateTokens(c.Tool) + EstimateTokens(c.Arguments)
	}
	for _, r := range it.Results {
		n += 12 + r.Extra + EstimateTokens(r.Content)
	}
	return n
}

// Tokens estimates the size of several items.
func Tokens(items []Item) int {
	n := 0
	for _, it := range items {
		n += it.Tokens()
	}
	return n
}

// EstimateTokens guesses how many tokens a text is: about 3.5 bytes of ASCII each (prose has more, code fewer), and one
// for every other character. It never shrinks when text is added.
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
	Tail   int // newest part that stays word for word, at least one exchange
	// Fold folds the middle even where cutting old tool output would do: the user asked for it.
	Fold bool
}

// Plan says what to do. Items has the same length and order as the input, with old tool output shortened; Items[From:To]
// are to be replaced by one Summary, nothing where From == To.
type Plan struct {
	Items     []Item
	Shortened int // results that were shortened
	From, To  int
	Before    int // tokens of the input
	After     int // tokens of Items without those to be folded; the summary comes on top
	// Quote is the user's request that is being worked on, where it would be folded; it must stay word for word (T4b).
	Quote string
}

// Sizes of what is left of old tool output, in bytes.
const (
	cutOutput  = 1200 // first: head and tail
	cutOldest  = 160  // then: little more than what it was
	fitMinimum = 400  // of the tail's outputs, where nothing else helps
)

// Make plans a compaction of items, which begin with a Request or a Summary, and in which every Results item follows the
// Answer whose calls it answers. The first request, the tail and the pairing of calls and results are kept (T4c), and
// the items never grow.
func Make(items []Item, o Options) Plan {
	p := Plan{Items: slices.Clone(items), Before: Tokens(items)}
	start := firstKept(items)
	end := tailStart(items, start, o.Tail)
	if !o.Fold {
		if Tokens(p.Items) > o.Target {
			for i, it := range supersede(items, 0, max(1, p.Before))[start:end] {
				if it.Tokens() < items[start+i].Tokens() {
					p.Items[start+i] = it
					p.Shortened++
				}
			}
		}
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
	// Where even the tail is too long, its tool output goes too, the oldest first; what the user said never does.
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

// firstKept is the index after the first request.
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

// tailStart is where the part begins that stays word for word: the newest items of up to tail tokens, at least the last
// exchange, never between a call and its results, and at a request where one is near.
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
	i = max(i, start)
	for i > start && i < len(items) && items[i].Kind == Results {
		i-- // together with the answer that called
	}
	for j := i; j < len(items); j++ {
		if items[j].Kind == Request && 2*Tokens(items[j:]) >= min(n, tail) {
			return j
		}
	}
	return i
}

// quote returns the newest request in items[from:to] if what follows still belongs to it.
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

// shorten cuts the tool output of Items[from:to] to about size bytes each, oldest first, until everything fits target.
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
	head, tail := cutHead(r.Content, size*2/3), cutTail(r.Content, size/3)
	return fmt.Sprintf("%s\n[… %d bytes of old output cut …]\n%s", head, len(r.Content)-len(head)-len(tail), tail)
}

// cutHead returns the longest start of s of at most n bytes that ends between characters (T4d).
func cutHead(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n = max(n, 0)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// cutTail returns the longest end of s of at most n bytes that begins between characters.
func cutTail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	i := len(s) - max(n, 0)
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return s[i:]
}

// Paired says whether every call of items has exactly one result, in the Results item right after its Answer, and every
// result a call.
func Paired(items []Item) bool {
	for i, it := range items {
		switch it.Kind {
		case Answer:
			if len(it.Calls) == 0 {
				continue
			}
			if i+1 >= len(items) || items[i+1].Kind != Results {
				return false
			}
			var want, got []string
			for _, c := range it.Calls {
				want = append(want, c.ID)
			}
			for _, r := range items[i+1].Results {
				got = append(got, r.CallID)
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(want, got) {
				return false
			}
		case Results:
			if i == 0 || items[i-1].Kind != Answer || len(items[i-1].Calls) == 0 {
				return false
			}
		}
	}
	return true
}

// line makes one line of s, of at most n bytes.
func line(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= n {
		return s
	}
	return cutHead(s, n) + "…"
}
