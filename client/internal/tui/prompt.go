package tui

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"sublet/lease/shell"
)

// promptWait is how long the screen waits for the user's prompt: a slow prompt theme must not hide that the command is done.
// promptMost is how long the shell is left to expand it, unless somebody wants the shell.
const (
	promptWait = 500 * time.Millisecond
	promptMost = 10 * time.Second
)

type (
	// promptRead is the prompt, where the shell told it.
	promptRead struct {
		no     int64
		told   bool
		prompt shell.Prompt
	}
	// promptOverdue says that an expansion takes longer than promptWait.
	promptOverdue struct{ no int64 }
)

// expansions asks the shell for the user's prompt, beside the event loop.
type expansions struct {
	shell Shell
	run   *tasks
	inbox *inbox
	last  atomic.Int64 // each has a number: the newest one that was told is shown
}

func (e *expansions) read(ctx context.Context, no int64) promptRead {
	ctx, cancel := context.WithTimeout(ctx, promptMost)
	defer cancel()
	p, err := e.shell.Prompt(ctx) // an error: it is in use, or that takes too long
	return promptRead{no, err == nil, p}
}

// soon returns the prompt. One that takes longer than promptWait is told once it is there.
func (e *expansions) soon(ctx context.Context) promptRead {
	no := e.last.Add(1)
	told, late := make(chan promptRead), make(chan struct{})
	e.run.start(func(ctx context.Context) {
		p := e.read(ctx, no)
		select {
		case told <- p:
		case <-late:
			e.inbox.push(p)
		case <-ctx.Done():
		}
	})
	timer := time.NewTimer(promptWait)
	defer timer.Stop()
	select {
	case p := <-told:
		return p
	case <-timer.C:
	case <-ctx.Done():
	}
	close(late)
	return promptRead{no: no}
}

// readPrompt has the prompt read anew.
func (m *model) readPrompt() {
	e, no := m.expansions, m.expansions.last.Add(1)
	m.task(func(ctx context.Context) tea.Msg { return e.read(ctx, no) })
	m.after(promptWait, promptOverdue{no})
}

// onPrompt takes the user's prompt in.
func (m *model) onPrompt(r promptRead) {
	if r.no <= m.promptNo {
		return
	}
	if !r.told {
		m.onPromptOverdue(promptOverdue{r.no})
		return
	}
	m.promptNo = r.no
	m.ed.setVi(r.prompt.Editing == "vi" || r.prompt.Editing == "" && m.opt.Vi)
	m.prompt, m.promptDir = r.prompt.Text, m.shell.Dir()
}

// onPromptOverdue has a plain prompt stand in for one that is not there yet, where the last one may tell a wrong folder.
func (m *model) onPromptOverdue(o promptOverdue) {
	dir := m.shell.Dir()
	if o.no <= m.promptNo || m.userRun != nil || dir == m.promptDir {
		return
	}
	m.prompt, m.promptDir = visibleLine(shell.ShortDir(dir, lookup(m.opt.Env)("HOME")))+"$ ", dir
}

// shellPrompt is the user's own prompt between its marks. Nothing in it may move the cursor, which would spoil what
// stands above; colours, titles and the like are as in bash.
func (m *model) shellPrompt() string {
	if m.prompt == "" {
		return "" // or not known yet: nothing is better than a prompt that changes
	}
	if m.cleanOf != m.prompt {
		m.cleanOf, m.clean = m.prompt, markPrompt+cleanPrompt(m.prompt)+markLine
	}
	return m.clean
}

// cleanPrompt leaves of an expanded prompt the text, its lines, colours, and strings for the terminal (titles, marks,
// links).
func cleanPrompt(s string) string {
	var b strings.Builder
	s = strings.ReplaceAll(s, "\r\n", "\n")
	for len(s) > 0 {
		seq, width, n, _ := ansi.DecodeSequence(s, ansi.NormalState, nil)
		if n == 0 {
			break
		}
		s = s[n:]
		switch {
		case width > 0, seq == "\n":
			b.WriteString(seq)
		case seq == "\t":
			b.WriteString("    ")
		case len(seq) < 2 || seq[0] != 0x1b:
		case seq[1] == '[' && seq[len(seq)-1] == 'm', seq[1] == ']', seq[1] == '(':
			b.WriteString(seq)
		}
	}
	return b.String()
}
