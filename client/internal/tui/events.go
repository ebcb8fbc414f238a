package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"sublet/client/internal/tui/card"
	"sublet/client/internal/tui/cells"
	"sublet/client/internal/tui/markdown"
	"sublet/client/internal/tui/question"
	"sublet/client/internal/tui/style"
	"sublet/wire"
	"sublet/wire/visible"
)

// turn is the turn that is being shown.
type turn struct {
	id       wire.TurnID
	started  time.Time
	agents   []*speaker
	spoke    bool // words that answer the user were printed
	calls    int  // tools that were called
	failed   bool // an Error event was received
	cancel   bool // the user has cancelled it
	toolOnly bool // the run of one tool for the user, such as /undo: only its card is printed
}

// speaker is one agent in a turn.
type speaker struct {
	name      string
	phase     string
	message   string
	since     time.Time
	text      markdown.Stream
	reasoning string
}

// maxReasoning bounds the kept end of an agent's reasoning, in bytes. It is shown while the agent reasons.
const maxReasoning = 2 << 10

// speaker returns the state of the agent of that name in the turn, which it makes if there is none yet.
func (t *turn) speaker(name string, now time.Time) *speaker {
	for _, s := range t.agents {
		if s.name == name {
			return s
		}
	}
	s := &speaker{name: name, since: now}
	t.agents = append(t.agents, s)
	return s
}

// onWire handles a message from the daemon.
func (m *model) onWire(msg wire.Message) {
	if e, ok := msg.(wire.EventMessage); ok {
		meta := e.Meta()
		if meta.SessionID != "" && m.SessionInfo.ID != "" && meta.SessionID != m.SessionInfo.ID {
			m.onForeign(msg)
			return
		}
	}
	switch e := msg.(type) {
	case *wire.Ready:
		m.onReady(e)
	case *wire.SessionReply:
		m.onMoved(e)
	case *wire.TurnStarted:
		m.onTurn(e)
	case *wire.TurnSteered:
		m.onSteered(e)
	case *wire.AgentStreamChunk:
		m.onChunk(e)
	case *wire.AgentThinking:
		t := m.turnOf(e.Meta())
		s := t.speaker(e.Agent, m.now())
		if s.phase != e.Phase || s.message != e.Message {
			s.since = m.now()
		}
		s.phase, s.message = e.Phase, e.Message
	case *wire.CommandResult:
		m.onResult(e)
	case *wire.AgentComplete:
		m.onComplete(e)
	case *wire.ConfirmationRequest:
		m.onQuestion(e)
	case *wire.ConfirmationResolved:
		m.onResolved(e)
	case *wire.TurnQueueChanged:
		if e.SessionID == m.SessionInfo.ID {
			m.queued = e.Waiting
		}
	case *wire.ShellQueueChanged:
		m.queue = *e
	case *wire.CompactionStarted:
		m.flushText("")
		m.note("compacting " + english.Plural(e.Events, "event", "") + " of the conversation (" + style.Count(e.TokensBefore) + " tokens)…")
	case *wire.CompactionComplete:
		m.onCompaction(e)
	case *wire.Notice:
		m.onNotice(e)
	case *wire.Error:
		m.onError(e)
	default:
		m.Log.Debug("nothing is shown of a message", "kind", wire.KindOf(msg))
	}
}

// conversation is the session that the window shows, and the options of its next question.
type conversation struct {
	wire.SessionInfo
	policy                string // the policy mode in force
	settingsModel         string // the model of the settings
	answered              string // the model of the last turn, if it began after the user's last choice
	chosenAgent           string // by /agent; "" = the orchestrator
	chosenModel, thinking string // by /model and /thinking; "" = the settings'
	greeted               bool
	use                   wire.ContextUse
	queued                []wire.QueuedTurn // the prompts that wait, whichever window asked, as the daemon reported them last
}

// answering returns the model, or else the agent, that will answer the next question; "" if that is not known.
func (c *conversation) answering() string {
	return cmp.Or(c.answered, c.chosenModel, c.chosenAgent, c.settingsModel)
}

// onReady takes over the session and the model that the daemon reports on each new connection. If the session is another one than
// before, it forgets the old one, but keeps the questions that wait. It prints the model's name once.
func (m *model) onReady(r *wire.Ready) {
	if m.SessionInfo.ID != "" && m.SessionInfo.ID != r.Session.ID { // else what was sent before the first Ready is in its session
		waiting := m.waiting // the question that started the daemon again must stay
		m.forget()
		m.waiting = waiting
	}
	m.SessionInfo = r.Session
	m.policy, m.answered = r.Mode, ""
	if r.Mode == "" {
		m.readMode()
	}
	if len(r.Models) == 0 {
		return
	}
	use := r.Models[0]
	m.settingsModel = use.Name
	if m.greeted {
		return
	}
	m.greeted = true
	if use.ProviderKind == "offline" {
		m.noteInAI("agents use the built-in offline model: everyday jobs by rules, no network. " +
			`A real one: set model = "anthropic/NAME" with sublet config edit, and ANTHROPIC_API_KEY`)
	} else {
		m.noteInAI("agents use " + visible.Line(use.Name))
	}
}

// noteInAI prints a note now if AI mode is on, else when it begins: the note does not justify taking the screen from the shell.
func (m *model) noteInAI(text string) {
	if m.own.ai() {
		m.note(text)
	} else {
		m.notesForAI = append(m.notesForAI, text)
	}
}

// turnOf returns the turn of an event. It begins one if the window was attached after the turn's start.
func (m *model) turnOf(meta *wire.Event) *turn {
	if m.turn != nil && (meta.TurnID == "" || m.turn.id == meta.TurnID) {
		return m.turn
	}
	if m.turn != nil {
		m.endTurn()
	}
	m.turn = &turn{id: meta.TurnID, started: time.UnixMilli(meta.AtMS)}
	return m.turn
}

// takeWaiting removes the question of a request from the waiting ones and returns it; nil if another client asked it.
func (m *model) takeWaiting(id wire.RequestID) *asked {
	i := slices.IndexFunc(m.waiting, func(a *asked) bool { return a.RequestID == id && id != "" })
	if i < 0 {
		return nil
	}
	a := m.waiting[i]
	m.waiting = slices.Delete(m.waiting, i, i+1)
	return a
}

// onSteered shows a message of the user's at the point at which the running turn took it in.
func (m *model) onSteered(e *wire.TurnSteered) {
	if a := m.takeWaiting(e.RequestID); a == nil || !a.echoed {
		m.flushText("")
		m.echo(e.Prompt)
	}
}

func (m *model) onTurn(e *wire.TurnStarted) {
	t := m.turnOf(e.Meta())
	t.toolOnly = strings.TrimSpace(e.Prompt) == ""
	m.answered = cmp.Or(e.Model, m.answered)
	a := m.takeWaiting(e.RequestID)
	t.cancel = t.cancel || a != nil && a.cancel
	if (a == nil || !a.echoed) && !t.toolOnly {
		m.asks.Add(e.Prompt)
		m.echo(e.Prompt)
	}
	if t.cancel {
		m.cancelTurn("stopped by the user")
	}
}

// echo prints a question.
func (m *model) echo(prompt string) {
	lines := strings.Split(strings.TrimRight(visible.Text(prompt), "\n"), "\n")
	for i, l := range lines {
		lines[i] = m.th.Bold.Render(l)
	}
	m.emit(kindEcho, strings.Join(cells.Hanging(m.th.Accent.Render("> "), lines), "\n"))
}

// onChunk handles a piece of an answer: it prints whole blocks of text, and makes or updates the card of a tool call.
func (m *model) onChunk(e *wire.AgentStreamChunk) {
	t := m.turnOf(e.Meta())
	s := t.speaker(e.Agent, m.now())
	switch c := e.Chunk; c.Type {
	case wire.ChunkText:
		s.reasoning = ""
		for _, b := range s.text.Add(c.Text) {
			m.say(s, b)
		}
	case wire.ChunkReasoning:
		s.reasoning += c.Text
		if len(s.reasoning) > maxReasoning {
			s.reasoning = strings.ToValidUTF8(s.reasoning[len(s.reasoning)-maxReasoning/2:], "")
		}
	case wire.ChunkToolCallDelta:
		m.flushText(e.Agent)
		s.message = "writing a call of " + c.Tool
	case wire.ChunkToolCall:
		m.flushText(e.Agent)
		s.reasoning = ""
		k := m.card(c.ExecutionID, e.Agent, c.Tool)
		k.Args = c.Arguments
		k.Agent, k.Tool = e.Agent, c.Tool
		if c.Tool == "bash" && k.Command == "" {
			k.Command = k.Subject()
		}
		if k.Started.IsZero() {
			k.Started = time.UnixMilli(e.AtMS)
		}
		m.show(k)
	case wire.ChunkToolOutput: // that of a leased command comes from the shell, and so does its end
		if k := m.cards[c.ExecutionID]; k != nil && !k.Leased && !k.printed {
			k.Out.Write(c.Data)
		}
	case wire.ChunkNotice:
		m.flushText(e.Agent)
		m.notice(s, visible.Text(c.Text))
	case wire.ChunkVoid:
		s.text.Finish() // discards what is not printed yet
		s.reasoning = ""
		m.fail("the answer above is void: "+visible.Text(c.Text), "")
	}
}

// notice prints a notice. That of a sub-agent gets its name, and ends its phase if it is the last of its task.
func (m *model) notice(s *speaker, text string) {
	if !card.IsMain(s.name) {
		if strings.HasPrefix(text, "ended") { // so begins the last notice of a sub-agent's task
			s.phase = ""
		}
		if name := visible.Line(s.name) + " "; !strings.HasPrefix(text, name) {
			text = name + text
		}
	}
	m.note(text)
}

// say prints a block of an agent's words. They answer the user if they are the main agent's, or of the only agent.
func (m *model) say(s *speaker, block string) {
	if m.turn != nil && (card.IsMain(s.name) || len(m.turn.agents) == 1) {
		m.turn.spoke = true
	}
	m.emitMarkdown(s.name, block)
}

// flushText prints the text of an agent ("" = of all agents) so far, complete or not, because something else is printed next.
func (m *model) flushText(agent string) {
	if m.turn == nil {
		return
	}
	for _, s := range m.turn.agents {
		if agent == "" || agent == s.name {
			if rest := s.text.Finish(); rest != "" {
				m.say(s, rest)
			}
		}
	}
}

// onResult handles the end of a tool's execution and prints its card, unless the shell's report (LeasedEnded) has printed it.
func (m *model) onResult(e *wire.CommandResult) {
	if e.Tool == "" { // a command that the user typed
		m.onUserCommand(e)
		return
	}
	m.flushText(e.Agent)
	if m.turn != nil && m.turn.id == e.TurnID {
		m.turn.calls++
	}
	k := m.card(e.ExecutionID, e.Agent, e.Tool)
	if k.shellReported {
		if k.Job && e.Status == wire.StatusTimeout { // the card calls it a job, but the daemon could not keep it and ended it
			for line := range strings.Lines(string(e.Output)) {
				if strings.HasPrefix(line, "[it could not go on as a job") { // the daemon's note about that, to the model
					m.emit(kindCard, "    "+m.th.Warn.Render(cells.Fit(visible.Line(strings.Trim(line, "[]\n")), m.w-4)))
				}
			}
		}
		delete(m.cards, e.ExecutionID)
		return
	}
	k.Tool = e.Tool
	if e.Command != "" {
		k.Command = string(e.Command)
	}
	k.Status, k.Reach, k.Output = e.Status, e.Reach, e.Output
	if e.Tool == "bash" && card.IsMain(e.Agent) && (e.Status == wire.StatusDenied || e.Status == wire.StatusRefused) {
		k.Shell = m.Name // the card of a command that was not run names the shell that it was for
	}
	if e.ExitCode != nil {
		k.Exit = e.ExitCode
	}
	if e.DurationMS > 0 {
		k.Took = time.Duration(e.DurationMS) * time.Millisecond
	}
	if e.Truncated != nil {
		k.Cut, k.Spool = e.Truncated.Bytes, string(e.Truncated.SpoolPath)
	}
	m.finish(k)
	if !k.Leased { // else the shell's report follows
		delete(m.cards, e.ExecutionID)
	}
}

// onUserCommand shows a command that the user ran in another window of the session, or before it was resumed. A command of this
// window is on the screen already.
func (m *model) onUserCommand(e *wire.CommandResult) {
	if m.reported[e.ExecutionID] {
		delete(m.reported, e.ExecutionID)
		return
	}
	line := m.th.Dim.Render("$ ") + visible.Line(string(e.Command))
	if e.ExitCode != nil && *e.ExitCode != 0 {
		line += m.th.Dim.Render("  · ") + m.th.Bad.Render(fmt.Sprintf("exit %d", *e.ExitCode))
	}
	if took := time.Duration(e.DurationMS) * time.Millisecond; took >= time.Second {
		line += m.th.Dim.Render("  · " + style.Elapsed(took))
	}
	m.emit(kindShell, cells.Fit(line, m.w))
}

// endTurn prints the rest of the turn's text and removes the turn.
func (m *model) endTurn() {
	m.flushText("")
	for _, k := range slices.Clone(m.running) {
		if k.Leased && k.turn != m.turn.id {
			continue // it still runs, for a script that borrowed the shell or for another session
		}
		if k.Status == "" {
			k.Status = card.Interrupted
		}
		m.finish(k)
	}
	m.turn = nil
}

// onComplete prints the end of the window's turn: what is left of its text, or its summary if it printed nothing, and the line about the
// result. The end of a turn that the window did not see begin is printed too, unless another turn runs.
func (m *model) onComplete(e *wire.AgentComplete) {
	m.takeWaiting(e.RequestID)
	if m.turn != nil && m.turn.id != e.TurnID { // the end of another turn
		return
	}
	t := m.turnOf(e.Meta())
	m.flushText("")
	if !t.spoke && t.calls == 0 && e.Status == wire.StatusSuccess && strings.TrimSpace(e.Summary) != "" {
		m.emitMarkdown("", e.Summary)
	}
	m.endTurn()
	if e.Context.Window > 0 {
		m.use = e.Context
	}
	m.dropQuestions(func(q *question.Question) bool { return q.TurnID == e.TurnID && e.TurnID != "" })
	if !t.toolOnly || t.calls == 0 {
		if line := m.endLine(e, t); line != "" {
			m.emit(kindEnd, line)
		}
	}
	m.tryHandOver() // the question that hindered it may be gone
}

// endLine returns the last line of a turn: its status, duration and usage; "" if it would only repeat the line of an Error: no agent
// ran, or the turn's daemon died, and the next one ended the turn without usage.
func (m *model) endLine(e *wire.AgentComplete, t *turn) string {
	parts := m.spent(e)
	mark, word, ink := m.th.Bad.Render("✗"), "failed", m.th.Bad
	switch e.Status {
	case wire.StatusSuccess:
		mark, ink = m.th.Dim.Render("·"), m.th.Warn
		word = map[string]string{"max_tokens": "cut off: the answer reached its length limit", "refusal": "the model declined"}[e.StopReason]
	case wire.StatusCancelled:
		mark, word, ink = m.th.Warn.Render("■"), "stopped", m.th.Warn
	case wire.StatusTimeout:
		word = "out of time"
	default:
		if t.failed && (t.toolOnly || len(parts) == 0) {
			return ""
		}
	}
	for i, part := range parts {
		parts[i] = m.th.Dim.Render(part)
	}
	if word != "" {
		word = ink.Render(word)
		if e.Status == wire.StatusError && !t.failed && e.Summary != "" {
			word += m.th.Dim.Render(": " + visible.FirstLine(e.Summary))
		}
		parts = slices.Insert(parts, 0, word)
	}
	return strings.TrimRight(m.marked(mark, strings.Join(parts, m.th.Dim.Render(" · ")), false), " ")
}

// spent returns the duration and the usage of a turn, for people.
func (m *model) spent(e *wire.AgentComplete) (parts []string) {
	add := func(s string) { parts = append(parts, s) }
	if e.DurationMS > 0 {
		add(style.Elapsed(time.Duration(e.DurationMS) * time.Millisecond))
	}
	u := e.Usage
	if in := u.Input + u.CacheRead + u.CacheWrite; in+u.Output > 0 {
		cached := ""
		if u.CacheRead > 0 {
			cached = " (" + style.Count(u.CacheRead) + " cached)"
		}
		add(style.Count(in) + " in" + cached)
		add(style.Count(u.Output) + " out")
	}
	if share := percent(e.Context); share != "" {
		add(share)
	}
	switch c := u.CostUSD; {
	case c == nil || *c <= 0:
	case *c >= 0.01:
		add(fmt.Sprintf("$%.2f", *c))
	case *c >= 0.0001:
		add(fmt.Sprintf("$%.4f", *c))
	default:
		add("below $0.0001")
	}
	if n := len(e.Refused); n > 0 {
		add(english.Plural(n, "call", "") + " not allowed")
	}
	return parts
}

// percent returns how full the model's context is, rounded up; "" if that is not known.
func percent(c wire.ContextUse) string {
	if c.Window <= 0 || c.Used <= 0 {
		return ""
	}
	return fmt.Sprintf("context %d%%", (100*c.Used+c.Window-1)/c.Window)
}
