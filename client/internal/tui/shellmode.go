package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"mvdan.cc/sh/v3/syntax"

	"sublet/client/internal/lender"
	"sublet/lease/shell"
	"sublet/wire"
)

const (
	// maxRecent commands go along with a question, each with at most maxTail bytes of its output.
	maxRecent = 10
	maxTail   = 4 << 10
	// OSC 133 marks for the terminal around us: prompt, command line, output, end.
	markPrompt = "\x1b]133;A\a"
	markLine   = "\x1b]133;B\a"
	markOutput = "\x1b]133;C\a"
)

// userRun is a command of the user's that has the terminal.
type userRun struct {
	text    string
	started time.Time
	back    bool        // taken back from an agent
	waits   bool        // for the end of the agent's command, which has the shell still
	edit    *visualEdit // no command of theirs, but their editor
	line    string      // what stood in the line, then
}

// terminalFree asks for the terminal for a command of the user's that waited for the end of another: what is to be told of that
// one was sent before. The screen answers with when the terminal is its own.
type terminalFree struct {
	run  *userRun
	held chan<- (<-chan struct{})
}

// runDone is its end.
type runDone struct {
	run    *userRun
	res    shell.Result
	err    error
	prompt promptRead
	raw    []byte // the last of what it printed
	alt    bool   // it took the whole screen: its output is no text
}

// enter uses the line.
func (m *model) enter() {
	text := m.ed.text
	if m.ai {
		m.submit(text)
		return
	}
	if strings.TrimSpace(text) == "" && !m.offer {
		m.emit(kindShell, m.promptLine(""))
		m.ed.reset()
		m.readPrompt()
		return
	}
	if q, ok := strings.CutPrefix(text, "?"); ok && q != "" {
		m.ed.reset()
		m.lines.add(text)
		if strings.TrimSpace(q) != "" {
			m.ask(strings.TrimSpace(q))
		}
		return
	}
	if text == "?" {
		m.ed.reset()
		m.ai = true
		return
	}
	if slashInShell(text) {
		m.lines.add(text)
		m.ed.reset()
		m.slash(strings.TrimSpace(text))
		return
	}
	if unfinished(text, m.ed.pos) {
		m.ed.insert("\n")
		return
	}
	m.runShell(text, m.offer)
}

// submit uses the line of AI mode: a question, `!command`, or a `/` command.
func (m *model) submit(text string) {
	text = strings.TrimSpace(text)
	if text == "" {
		return
	}
	if cmd, ok := strings.CutPrefix(text, "!"); ok {
		if cmd = strings.TrimSpace(cmd); cmd != "" {
			m.asks.add(text)
			m.runShell(cmd, m.offer)
		}
		return
	}
	if strings.HasPrefix(text, "/") && m.slash(text) {
		m.asks.add(text)
		m.ed.reset()
		return
	}
	if m.hint != nil { // an unknown / command: said below the line, which stays
		return
	}
	m.asks.add(text)
	m.ed.reset()
	m.ask(text)
}

// unfinished tells that bash would ask for another line: an open quote, here-document or compound command. Of the last, four
// empty lines end it whatever it is, so that what the parser takes for unfinished and bash does not can be run. It is only asked
// about texts that it can read quickly (pitfall 8).
func unfinished(text string, pos int) bool {
	const maxText = 64 << 10
	if pos != len(text) || len(text) > maxText || nested(text) {
		return false
	}
	if rest := strings.TrimRight(text, `\`); (len(text)-len(rest))%2 == 1 {
		return true
	}
	text = strings.ToValidUTF8(text, "?") // bash takes others, too
	_, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text+"\n"), "")
	if e, ok := errors.AsType[syntax.ParseError](err); ok && strings.HasPrefix(e.Text, "unclosed here-document") {
		return true // the parser takes one with a quoted word for a mistake
	}
	return err != nil && syntax.IsIncomplete(err) && (strings.Contains(err.Error(), "closing quote") || !strings.HasSuffix(text, "\n\n\n\n"))
}

// nested tells that a text may be nested so deep that the parser would take long.
func nested(text string) bool {
	const maxDepth, maxOpen = 60, 2000
	depth, deepest, open := 0, 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{', '[':
			open++
			depth++
			deepest = max(deepest, depth)
		case ')', '}', ']':
			depth = max(0, depth-1)
		}
	}
	return deepest > maxDepth || open > maxOpen
}

// promptLine is the prompt with a line behind it, for the scrollback: long lines are left to the terminal to wrap, so
// that they are whole when they are copied.
func (m *model) promptLine(text string) string {
	lines := strings.Split(visible(text), "\n")
	s := m.shellPrompt() + strings.Join(lines, "\n"+m.th.dim.Render("> "))
	return s
}

// runShell gives the terminal to a command of the user's. If an agent's command runs in the shell, the line stays and
// the user is told; takeBack then ends the agent's command first.
func (m *model) runShell(text string, takeBack bool) {
	if m.userRun != nil {
		return
	}
	lend := m.shell.Lending() // rather than what was told last: a borrower may have begun since
	if !takeBack && lent(lend) {
		m.offerTakeBack(lend)
		return
	}
	m.offer = false
	m.hint, m.comp = nil, nil
	if m.ed.text == text || m.ai || m.ed.empty() {
		m.ed.reset()
	}
	if !m.ai && strings.TrimSpace(text) != "" && !strings.HasPrefix(text, " ") {
		m.lines.add(text)
	}
	m.giveTerminal(&userRun{text: text, started: m.now(), back: takeBack, waits: takeBack})
}

// giveTerminal runs a command of the user's: keyboard and screen are its own until it ends; the screen, where the shell was
// taken back for it, from its beginning on.
func (m *model) giveTerminal(run *userRun) {
	m.userRun = run
	// From here on every key is the command's, also those that were read together with this one.
	m.keys.route(true)
	held := make(chan (<-chan struct{}), 1)
	if !run.waits {
		held <- m.holdFor(run)
	}
	sh, paint, keys, inbox, prompts := m.shell, m.paint, m.keys, m.inbox, m.expansions
	m.task(func(ctx context.Context) tea.Msg {
		done := runDone{run: run}
		var kept tail
		own := sync.OnceFunc(func() { // with ctx all of this ends
			if run.back {
				inbox.push(terminalFree{run, held})
			}
			select {
			case drawn := <-held:
				select {
				case <-drawn:
				case <-ctx.Done():
				}
			case <-ctx.Done():
			}
		})
		if !run.back {
			own()
		}
		if ctx.Err() != nil {
			return nil
		}
		done.res, done.err = sh.Run(ctx, run.text, run.back, func(p []byte) {
			own()
			keys.begin()
			paint.raw(p)
			kept.keepRaw(p)
			done.alt = done.alt || kept.tookScreen(p)
		})
		own() // what did not begin has its line too
		keys.park(done.res.Unread)
		if run.edit == nil {
			code := ""
			if done.res.ExitCode != nil {
				code = ";" + itoa(*done.res.ExitCode)
			}
			paint.mark("\x1b]133;D" + code + "\a")
		}
		// A shell that is lent has no prompt to tell until its borrowers rest, and until then no key would be the editor's.
		if _, lent := errors.AsType[*lender.LentError](done.err); !lent {
			done.prompt = prompts.soon(ctx)
		}
		select {
		case <-paint.release():
		case <-ctx.Done():
		}
		done.raw = kept.raw
		return done
	})
}

// holdFor leaves the terminal to a command of the user's, below its line. The channel closes when that is done.
func (m *model) holdFor(run *userRun) <-chan struct{} {
	run.waits = false
	m.flushOut()
	commit := ""
	if run.edit == nil {
		commit = strings.ReplaceAll(m.promptLine(run.text), "\n", "\r\n") + "\x1b[m\r\n" + markOutput
		if gap(m.lastKind, kindShell) {
			commit = "\r\n" + commit
		}
		m.lastKind = kindShell
	}
	return m.paint.hold(commit)
}

// offerTakeBack says who has the shell; the line stays.
func (m *model) offerTakeBack(l lender.Lending) {
	m.offer = true
	if !m.ai {
		m.entered = m.ed.text
	}
	m.hintLines(m.lentLine(l), m.th.dim.Render("enter again takes it back (ends that command) · esc waits"))
}

// lentLine says who has the shell, since when and for what.
func (m *model) lentLine(l lender.Lending) string {
	held := ""
	if !l.Since.IsZero() {
		held = ", for " + ticking(m.now().Sub(l.Since))
	}
	what := firstLine(firstOf(l.Command, l.Purpose))
	return fit(m.th.warn.Render(visibleLine(l.Holder)+" has your shell")+m.th.dim.Render(held+": ")+visibleLine(what), m.w)
}

// lent tells that a borrower's command runs.
func lent(l lender.Lending) bool { return l.Command != "" && l.Holder != "" && l.Holder != "user" }

// onRunDone takes the terminal back after a command of the user's.
func (m *model) onRunDone(d runDone) {
	if m.userRun != d.run {
		return
	}
	m.userRun = nil
	m.unshow()
	if d.run.edit != nil {
		m.keys.unpark(d.err == nil)
		m.onEdited(d)
		return
	}
	defer func() { m.keys.unpark(d.err == nil) }() // a command that did not run takes what was typed behind it along
	m.onPrompt(d.prompt)
	var lent *lender.LentError
	switch {
	case errors.As(d.err, &lent):
		m.ed.set(d.run.text)
		m.ai = false
		m.offerTakeBack(lent.Lending)
		return
	case errors.Is(d.err, lender.ErrClosed), d.err != nil && m.isExited():
		return // the shell ended; shellExited follows
	case d.err != nil:
		m.fail(d.err.Error(), "")
		return
	}
	m.remember(d)
	m.tryHand()
}

func (m *model) isExited() bool {
	select {
	case <-m.shell.Exited():
		return true
	default:
		return false
	}
}

// remember keeps a command for the next question and reports it.
func (m *model) remember(d runDone) {
	out := d.res.Output
	if out == nil && !d.alt {
		out = shell.Render(d.raw, max(m.w, 20))
	}
	if d.alt {
		out = nil
	}
	if len(out) > maxTail {
		out = out[len(out)-maxTail:]
		for len(out) > 0 && out[0]&0xc0 == 0x80 { // not through a character (T4d)
			out = out[1:]
		}
	}
	rc := wire.RecentCommand{
		Command: wire.OSString(d.run.text), ExitCode: d.res.ExitCode, StartedAtMS: d.run.started.UnixMilli(), OutputTail: out,
	}
	m.recent = append(m.recent, rc)
	if len(m.recent) > maxRecent {
		m.recent = append(m.recent[:0:0], m.recent[len(m.recent)-maxRecent:]...)
	}
	daemon := m.daemon
	report := &wire.CommandResult{
		Command: rc.Command, Status: d.res.Status, OutputTail: out, ExitCode: d.res.ExitCode,
		Cwd: wire.OSString(firstOf(d.res.Dir, m.shell.Dir())), StartedAtMS: rc.StartedAtMS, DurationMS: d.res.Duration.Milliseconds(),
	}
	m.task(func(ctx context.Context) tea.Msg {
		if daemon.Connected() {
			_ = daemon.UserCommand(ctx, report) // without a daemon nobody needs it; questions carry the commands again
		}
		return nil
	})
	m.envChanged()
}

type envSent struct{}

// envChanged tells the daemon where the shell and how large the terminal is; one message is on its way at a time.
func (m *model) envChanged() {
	if m.envBusy {
		m.envMore = true
		return
	}
	m.envBusy = true
	daemon, sh, size := m.daemon, m.shell, m.opt.size
	m.task(func(ctx context.Context) tea.Msg {
		if s, ok := size(); ok {
			_ = sh.Resize(s) // a shell that is gone needs no size
		}
		if daemon.Connected() {
			_ = daemon.EnvChanged(ctx) // the next handshake says it again
		}
		return envSent{}
	})
}

func (m *model) onEnvSent() {
	m.envBusy, m.dirty = false, false
	if m.envMore {
		m.envMore = false
		m.envChanged()
	}
}

// onUnowned prints what belongs to no command: job notices and what background jobs print.
func (m *model) onUnowned(data []byte) {
	if text := strings.TrimRight(string(shell.Render(data, max(m.w, 20))), "\n "); text != "" {
		m.emit(kindShell, visible(text))
	}
}

// describeExit says how a command of the user's ended, for the replay of a session.
func describeExit(th *theme, code *int, took time.Duration) string {
	var parts []string
	if code != nil && *code != 0 {
		parts = append(parts, th.bad.Render(fmt.Sprintf("exit %d", *code)))
	}
	if took >= time.Second {
		parts = append(parts, th.dim.Render(elapsed(took)))
	}
	return strings.Join(parts, th.dim.Render(" · "))
}
