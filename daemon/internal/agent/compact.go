package agent

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"sublet/compaction"
	"sublet/daemon/config"
	"sublet/daemon/internal/provider"
	"sublet/wire"
)

const (
	maxTooLong     = 3    // compactions for one request that the provider reports as too long
	summaryTokens  = 4096 // of a model's summary, at most
	manualTail     = 4096 // tokens of the tail that a compaction on request keeps, at most
	summaryPending = "Older parts of this conversation are being folded into a summary."
)

// Statuses of CompactionComplete besides wire.StatusSuccess, StatusError and StatusCancelled.
const (
	CompactionPreview = "preview"
	CompactionUndone  = "undone"
	CompactionNothing = "nothing"
)

// Compaction is the input of Compact.
type Compaction struct {
	Conversation Conversation // of all the session's events
	Model        provider.Model
	Instructions string                        // the user's wishes for the summary
	Preview      bool                          // do not apply it; Summary is then the whole text that the model would get
	Waiting      func(text string)             // called before a wait for the provider, with "" after it, and with why there is no summary
	Started      func(*wire.CompactionStarted) // called once before the model is asked, if there is something to summarise
	Used         func(provider.Usage)          // called with the usage of each request
	Log          *slog.Logger
}

// Compact summarises the middle of a session's conversation and returns the event to store, without its ids; never nil. Its
// status is success, preview, nothing (too little to gain) or cancelled; only with the last is the error not nil.
// The compaction takes effect when the event is stored, through History.
func Compact(ctx context.Context, c Compaction) (*wire.CompactionComplete, error) {
	entries := c.Conversation.entries
	items := toItems(entries)
	win, before := c.Model.Info().ContextWindow, compaction.Tokens(items)
	tail := min(manualTail, win/8, before/4) // of a small window or a short conversation a small part, so that the rest can be summarised
	p := compaction.Make(items, compaction.Options{Target: win, Tail: tail, Fold: true})
	complete := folding(entries, p, before)
	if p.From == p.To {
		return complete, nil
	}
	c.Started(&wire.CompactionStarted{Events: complete.Events, TokensBefore: complete.TokensBefore})
	folded, err := fold(ctx, c.Log, items, p, summarizer(c.Model, c.Used, c.Waiting), c.Instructions, promptRoom(win), complete)
	if folded.Err != nil {
		c.Waiting(clean("no summary could be written: " + folded.Err.Error()))
	}
	if complete.Status == wire.StatusSuccess && c.Preview {
		complete.Status, complete.Summary = CompactionPreview, folded.Text()
	}
	return complete, err
}

// folding returns the event of a compaction that would replace entries[p.From:p.To], of a conversation of so many tokens, and has not yet.
// Its ledger has the newest of git's state and of running jobs in the conversation; the model gets both anew, as they are then.
func folding(entries []entry, p compaction.Plan, before int) *wire.CompactionComplete {
	m := &wire.CompactionComplete{
		Status: CompactionNothing, TokensBefore: int64(before), TokensAfter: int64(before), Ledger: wire.Ledger{}.WithLists(),
	}
	situation, _ := containedContext(entries)
	m.Ledger.Branch = strings.TrimPrefix(situation["Git"], "Git: ")
	if jobs, ok := strings.CutPrefix(situation["Jobs running"], "Jobs running: "); ok {
		m.Ledger.Jobs = append(m.Ledger.Jobs, jobs)
	}
	if m.FirstSeq, m.LastSeq = span(entries[p.From:p.To]); m.FirstSeq > 0 {
		m.Events = int(m.LastSeq - m.FirstSeq + 1)
	}
	return m
}

// fold replaces items[p.From:p.To] by a summary and records that in m, whose status becomes success, nothing or, with ctx's error, cancelled.
// m.TokensAfter counts the conversation alone. room bounds the request for a summary, in tokens.
func fold(
	ctx context.Context, log *slog.Logger, items []compaction.Item, p compaction.Plan, summarize compaction.Summarize, instructions string, room int,
	m *wire.CompactionComplete,
) (compaction.Folded, error) {
	f, ok, err := compaction.Fold(ctx, items, p, summarize, instructions, room)
	switch {
	case err != nil:
		m.Status = wire.StatusCancelled
	case ok:
		if f.Err != nil {
			log.Warn("a conversation is folded without a summary, because the model failed", "err", f.Err)
		}
		ledger := f.Ledger.WithLists()
		ledger.Branch, ledger.Jobs = m.Ledger.Branch, m.Ledger.Jobs
		m.Status, m.Summary, m.Ledger = wire.StatusSuccess, f.Summary, ledger
		m.TokensAfter = int64(p.After + compaction.EstimateTokens(f.Text()))
	}
	if m.Status != wire.StatusSuccess {
		m.FirstSeq, m.LastSeq = 0, 0
	}
	return f, err
}

// UndoCompaction returns the event that undoes the newest compaction in force, without its ids; its status is undone, or
// nothing if there is none.
func UndoCompaction(events []wire.EventMessage) *wire.CompactionComplete {
	out := &wire.CompactionComplete{Status: CompactionNothing, Ledger: wire.Ledger{}.WithLists()}
	stack := threadOf(events).compactions
	if len(stack) == 0 {
		return out
	}
	last := stack[len(stack)-1]
	out.Status, out.FirstSeq, out.LastSeq, out.Events = CompactionUndone, last.FirstSeq, last.LastSeq, last.Events
	out.TokensBefore, out.TokensAfter = last.TokensAfter, last.TokensBefore
	return out
}

// updateInForce returns the compactions in force after the next event m: a compaction is added, an undo removes the newest.
func updateInForce(stack []*wire.CompactionComplete, m *wire.CompactionComplete) []*wire.CompactionComplete {
	switch {
	case m.Status == wire.StatusSuccess && m.FirstSeq > 0 && m.LastSeq >= m.FirstSeq:
		return append(stack, m)
	case m.Status == CompactionUndone && len(stack) > 0:
		return stack[:len(stack)-1]
	}
	return stack
}

// outermost returns the compactions that overlap no later one, in the order of their events.
func outermost(all []*wire.CompactionComplete) []*wire.CompactionComplete {
	var out []*wire.CompactionComplete
	for _, m := range all {
		out = slices.DeleteFunc(out, func(old *wire.CompactionComplete) bool {
			return old.LastSeq >= m.FirstSeq && old.FirstSeq <= m.LastSeq
		})
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *wire.CompactionComplete) int { return int(a.FirstSeq - b.FirstSeq) })
	return out
}

// foldRanges replaces the entries of each range by its summary. It keeps an entry that is only partly in a range, and skips a
// range whose edge would separate a call from its result.
func foldRanges(entries []entry, ranges []*wire.CompactionComplete) []entry {
	for _, m := range ranges {
		from := slices.IndexFunc(entries, func(e entry) bool { return e.first >= m.FirstSeq })
		if from < 0 {
			continue
		}
		to := from
		for to < len(entries) && entries[to].last <= m.LastSeq {
			to++
		}
		if from == to || entries[from].kind == compaction.Results || to < len(entries) && entries[to].kind == compaction.Results {
			continue
		}
		ledger := compaction.Ledger{Ledger: m.Ledger}
		if to < len(entries) && entries[to].kind != compaction.Request { // the work on the range's last request goes on after it
			for _, e := range entries[from:to] {
				if e.kind == compaction.Request {
					ledger.Current = firstText(e.msg)
				}
			}
		}
		s := summaryEntry(m.Summary, ledger, m.FirstSeq, m.LastSeq)
		entries = slices.Concat(entries[:from], []entry{s}, entries[to:])
	}
	return entries
}

func summaryEntry(summary string, l compaction.Ledger, first, last int64) entry {
	return entry{
		kind: compaction.Summary, first: first, last: last, summary: compaction.Render(summary, l), ledger: &l,
	}
}

// size returns the estimated tokens of the whole request, before scaling by r.scale.
func (r *runner) size() int { return r.fixed() + compaction.Tokens(toItems(r.current())) }

// current returns the conversation as it is sent: without superseded results.
func (r *runner) current() []entry {
	return shortened(r.entries, compaction.Supersede(toItems(r.entries)))
}

// fixed returns the estimated tokens of the part of a request that compaction cannot shrink.
func (r *runner) fixed() int {
	n := compaction.EstimateTokens(r.system)
	for _, name := range r.order {
		s := r.allowed[name].Spec()
		n += 12 + compaction.EstimateTokens(s.Description) + compaction.EstimateTokens(string(s.Schema))
	}
	return n
}

// fit compacts the conversation if it is near the model's context window. Its error is that of ctx.
func (r *runner) fit(ctx context.Context) error {
	win := float64(r.t.Model.Info().ContextWindow)
	r.estimate = r.size()
	// Below futile, a compaction would free as little as the last one did.
	if float64(r.estimate)*r.scale <= r.t.Threshold*win || r.estimate <= r.futile {
		return nil
	}
	// Free half of the window, so that compaction is not needed again after a few steps; of the other half, half is kept word for word.
	// The window is in the provider's tokens, scale times ours.
	target := int(win / 2 / r.scale)
	err := r.compact(ctx, target, int(win/4/r.scale))
	r.estimate = r.size()
	return err
}

// shrink handles an error of the model about a conversation that is too long: it compacts and returns true if the request
// should be sent again. No tool has run since the request.
func (r *runner) shrink(ctx context.Context, err error) (again bool, _ error) {
	pe, ok := errors.AsType[*provider.Error](err)
	if !ok || pe.Kind != provider.ErrContextTooLong || r.tooLong >= maxTooLong {
		return false, err
	}
	r.tooLong++
	before := r.size()
	win := int(float64(r.t.Model.Info().ContextWindow) / r.scale)
	target := min(before, win) >> r.tooLong
	if cerr := r.compact(ctx, target, target/2); cerr != nil {
		return false, cerr
	}
	if r.size() >= before {
		return false, err
	}
	return true, nil
}

// compact shrinks the conversation to target and keeps tail unchanged, both in estimated tokens of the whole request.
func (r *runner) compact(ctx context.Context, target, tail int) error {
	size, fixed := r.size(), r.fixed()
	r.entries = r.current()
	// The cheapest step first: replace images of earlier requests by their names. The current request keeps its own.
	for i := range r.entries {
		e := &r.entries[i]
		if e.kind == compaction.Request && len(imagesOf(r.entries[i:i+1])) > 0 && slices.ContainsFunc(r.entries[i+1:], isRequest) && r.size() > target {
			*e = e.noted("left out to save room")
		}
	}
	items := toItems(r.entries)
	p := compaction.Make(items, compaction.Options{Target: max(target-fixed, 200), Tail: tail})
	entries, folded := r.entries, false
	if p.Shortened > 0 {
		entries = shortened(entries, p.Items)
	}
	if p.From < p.To {
		e, err := r.fold(ctx, items, p)
		if err != nil {
			return err
		}
		if e != nil {
			entries, folded = slices.Concat(entries[:p.From], []entry{*e}, entries[p.To:]), true
		}
	}
	r.entries = entries
	if folded && r.entries[len(r.entries)-1].kind != compaction.Answer {
		r.addContext(r.standingContext(ctx))
	}
	r.futile = 0
	if now := r.size(); now > size*9/10 { // little was gained: not again before the conversation has grown by a tenth
		r.futile = now * 11 / 10
	}
	return nil
}

func isRequest(e entry) bool { return e.kind == compaction.Request }

// fold replaces the plan's middle by a summary and emits the events. It returns nil if there was nothing to gain.
func (r *runner) fold(ctx context.Context, items []compaction.Item, p compaction.Plan) (*entry, error) {
	complete := folding(r.entries, p, int(float64(r.size())*r.scale))
	first, last := complete.FirstSeq, complete.LastSeq
	stored := !r.t.subAgent // a sub-agent's conversation is not derived from events
	if stored {
		r.emit(&wire.CompactionStarted{Events: complete.Events, TokensBefore: complete.TokensBefore})
	} else {
		r.thinking(wire.PhaseAnalyzing, summaryPending)
	}
	model := r.t.Model
	if r.t.Compactor != nil {
		model = r.t.Compactor
	}
	room := promptRoom(int(float64(r.t.Model.Info().ContextWindow) / r.scale))
	folded, err := fold(ctx, r.log, items, p, summarizer(model, r.spend, r.waiting), "", room, complete)
	done := complete.Status == wire.StatusSuccess
	if done {
		complete.TokensAfter = int64(float64(r.fixed()+int(complete.TokensAfter)) * r.scale)
	}
	if stored {
		r.emit(complete)
	}
	if !done {
		return nil, err
	}
	e := summaryEntry(folded.Summary, folded.Ledger, first, last)
	return &e, nil
}

// span returns the range of event numbers of entries.
func span(entries []entry) (first, last int64) {
	for _, e := range entries {
		if e.first > 0 && (first == 0 || e.first < first) {
			first = e.first
		}
		last = max(last, e.last)
	}
	return first, last
}

// shortened returns a copy of entries in which the tool results have the contents of items, which a plan may have shortened; items[i] was
// made of entries[i]. A result with Extra 0 has lost its images: its content gets a note of that.
func shortened(entries []entry, items []compaction.Item) []entry {
	entries = slices.Clone(entries)
	for i, it := range items {
		if it.Kind != compaction.Results {
			continue
		}
		parts := slices.Clone(entries[i].msg.Parts)
		for j, res := range it.Results {
			tr := *parts[j].ToolResult
			tr.Content = res.Content
			if res.Extra == 0 && tr.Images != nil {
				tr.Images = nil
				tr.Content += " [no longer shown]"
			}
			parts[j] = provider.Part{ToolResult: &tr}
		}
		entries[i].msg.Parts = parts
	}
	return entries
}

// toItems converts the conversation for package compaction, one item for each entry.
func toItems(entries []entry) []compaction.Item {
	items := make([]compaction.Item, 0, len(entries))
	for _, e := range entries {
		it := compaction.Item{Kind: e.kind, Text: e.summary, Ledger: e.ledger, Machine: e.kind == compaction.Request && strings.HasPrefix(firstText(e.msg), WakeHead)}
		switch e.kind {
		case compaction.Summary:
			it.Extra = compaction.EstimateTokens(e.ledger.Current)
		case compaction.Request:
			it.Text = firstText(e.msg)
			it.Extra = compaction.EstimateTokens(messageText(e.msg)) - compaction.EstimateTokens(it.Text)
		case compaction.Answer:
			it.Text = messageText(e.msg)
		case compaction.Results:
			for _, p := range e.msg.Parts {
				if prompt, ok := strings.CutPrefix(p.Text, steerHead); ok {
					it.Text += prompt + "\n"
				} else {
					it.Extra += compaction.EstimateTokens(p.Text)
				}
			}
		}
		for _, p := range e.msg.Parts {
			switch {
			case p.Image != nil:
				it.Extra += p.Image.Tokens()
				it.Images = append(it.Images, p.Image.String())
			case p.Reasoning != nil:
				it.Extra += compaction.EstimateTokens(p.Reasoning.Text) + len(p.Reasoning.Signature)/4
			case p.ToolCall != nil:
				it.Calls = append(it.Calls, compaction.Call{ID: p.ToolCall.ID, Tool: p.ToolCall.Name, Arguments: string(p.ToolCall.Arguments)})
			case p.ToolResult != nil:
				r := e.facts[p.ToolResult.CallID].Result
				r.CallID, r.Content, r.IsError = p.ToolResult.CallID, p.ToolResult.Content, p.ToolResult.IsError
				for _, i := range p.ToolResult.Images {
					r.Extra += i.Tokens()
				}
				it.Results = append(it.Results, r)
			}
		}
		items = append(items, it)
	}
	return items
}

// promptRoom returns how many tokens of the conversation fit in a request for a summary.
func promptRoom(win int) int { return max(win*3/4-summaryTokens/4, 500) }

// summarizer returns how m is asked for a summary; nil for the offline model, which cannot write one. An answer that was cut off at the
// limit is accepted.
func summarizer(m provider.Model, used func(provider.Usage), waiting func(text string)) compaction.Summarize {
	if m.Info().Kind == config.KindOffline {
		return nil
	}
	return func(ctx context.Context, system, prompt string) (string, error) {
		limit := min(summaryTokens, max(m.Info().ContextWindow/8, 256)) // of a small window an eighth, but enough for a paragraph
		resp, err := m.Stream(ctx, provider.Request{
			System: system, MaxTokens: &limit, Thinking: "off",
			Messages: []provider.Message{{Role: provider.User, Parts: []provider.Part{{Text: prompt}}}},
		}, func(d provider.Delta) {
			if d.Type == provider.DeltaWait {
				waiting(clean(d.Text))
			}
		})
		if err != nil {
			return "", err
		}
		used(resp.Usage)
		if resp.StopReason == provider.Refusal {
			return "", ErrRefused
		}
		return strings.TrimSpace(clean(messageText(resp.Message))), nil
	}
}
