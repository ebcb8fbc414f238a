// Package card draws a call of a tool: a header, the output while it runs, and a line for its end.
package card

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"sublet/client/internal/tui/cells"
	"sublet/client/internal/tui/style"
	"sublet/wire"
	"sublet/wire/visible"
)

const (
	liveHead  = 4  // further lines of a running command itself
	liveTail  = 5  // lines under it
	doneHead  = 12 // further lines of a finished one
	doneTail  = 6  // lines under it
	diffShown = 24 // lines of a diff
	headFrom  = 8  // least cells of a header's command, however long the names before it
	placeFrom = 60 // cells of a window in which a running command's header says that it is in the user's shell
)

// Interrupted is the status of a call whose result was never received.
const Interrupted = "interrupted"

// Card is one call of a tool.
type Card struct {
	Agent    string
	Tool     string
	Args     string // JSON, as far as it was received
	Command  string // shell text, for bash
	Leased   bool   // it runs in the user's shell
	Shell    string // that shell's name; "" = not known
	Reach    string // the reach to which the kernel confines it; "" = not confined
	Started  time.Time
	Waits    bool   // it has not begun
	Keyboard string // why the program wants the keyboard; "" = it does not
	Out      Tail

	// Set at the end.
	Status    string
	Exit      *int
	Signal    string
	Output    []byte // the kept part of the output, rendered
	Cut       int64  // bytes that are not in Output
	Spool     string
	Took      time.Duration
	Notes     []string
	Job       bool   // it goes on as a job of the shell
	Why       string // why it was refused
	UserEnded string // what the user did that cancelled it; "" = nothing
}

// IsMain reports whether an agent is the one that the user asked, which is shown without its name.
func IsMain(agent string) bool { return agent == "" || agent == "orchestrator" }

// arguments are the tools' arguments that a card shows.
type arguments struct {
	Background bool
	Todos      []struct{ Text, Status string }
}

func (c *Card) arguments() (a arguments) {
	_ = json.Unmarshal([]byte(c.Args), &a) // incomplete JSON, or a value of another type, is not shown
	return a
}

// Subject returns what the header shows after the tool's name.
func (c *Card) Subject() string {
	if c.Command != "" {
		return c.Command
	}
	return wire.CallSubject(c.Tool, c.Args)
}

// subjectLines returns Subject in lines that are safe to display.
func (c *Card) subjectLines() []string {
	return strings.Split(strings.TrimRight(visible.Text(c.Subject()), "\n"), "\n")
}

// Header returns the first line, without its mark, and below it at most as many lines of the command as further; the last may count
// those left out.
func (c *Card) Header(th *style.Theme, width, further int) []string {
	name := th.Bold.Render(visible.Line(cmp.Or(c.Shell, c.Tool)))
	if !IsMain(c.Agent) && c.Agent != "you" {
		name = th.Name(c.Agent) + " " + name
	}
	text := c.subjectLines()
	if text[0] != "" {
		name += "  "
	}
	out := []string{name + cells.Fit(text[0], max(headFrom, width-cells.Width(name)))}
	for i, l := range text[1:] {
		if i+1 == further && len(text) > further+1 {
			return append(out, th.Dim.Render("    … "+english.Plural(len(text)-further, "more line", "")))
		}
		out = append(out, "    "+cells.Fit(l, width-4))
	}
	return out
}

// Running draws a card that has not ended, in at most height lines.
func (c *Card) Running(th *style.Theme, width, height int, now time.Time) []string {
	suffix, mark := "", th.Spin(now)
	if c.Waits { // no spinner
		suffix, mark = " · waits", th.Dim.Render("○")
	} else if !c.Started.IsZero() {
		suffix = " · " + style.Ticking(now.Sub(c.Started))
	}
	if c.Reach != "" {
		suffix += " · " + visible.Line(c.Reach)
	}
	if c.Leased && width >= placeFrom {
		suffix += " · in your shell"
	}
	lines := c.Header(th, width-2-cells.Width(suffix), liveHead)
	lines[0] = mark + " " + lines[0] + th.Dim.Render(suffix)
	lines = append(lines, cells.Indent(c.Out.Last(min(liveTail, height-len(lines))), th.Dim.Render("  │ "))...)
	if c.Keyboard != "" && len(lines) < height {
		lines = append(lines, th.Warn.Render("  it waits for the keyboard"))
	}
	for i, l := range lines {
		lines[i] = cells.Fit(l, width)
	}
	return lines[:min(len(lines), height)]
}

// Finished draws the card of an ended call for the scrollback.
func (c *Card) Finished(th *style.Theme, width int) string {
	mark, parts := c.verdict(th)
	lines := c.Header(th, width-2, doneHead)
	lines[0] = mark + " " + lines[0]
	body, more := c.body(th, width-4)
	if more != "" {
		parts = append(parts, th.Dim.Render(more))
	}
	dot := th.Dim.Render(" · ")
	end := strings.Join(parts, dot)
	if len(body) == 0 && len(lines) == 1 && end != "" && cells.Width(lines[0])+3+cells.Width(end) <= width {
		lines[0] += dot + end
		end = ""
	}
	lines = append(lines, cells.Indent(body, th.Dim.Render("  │ "))...)
	if end != "" {
		lines = append(lines, cells.Hanging(th.Dim.Render("  └ "), cells.Wrap(end, width-4))...)
	}
	for _, n := range c.Notes {
		lines = append(lines, cells.Hanging("  "+th.Warn.Render("± "), cells.Wrap(th.Dim.Render(visible.Line(n)), width-4))...)
	}
	return strings.Join(lines, "\n")
}

// Whole draws the card with all output that was kept, for the scrollback.
func (c *Card) Whole(th *style.Theme) string {
	mark, parts := c.verdict(th)
	head := c.subjectLines()
	lines := []string{mark + " " + th.Bold.Render(visible.Line(cmp.Or(c.Shell, c.Tool))) + "  " + head[0]}
	lines = append(lines, cells.Indent(head[1:], "    ")...)
	text := c.text()
	switch {
	case text == "":
		lines = append(lines, th.Dim.Render("  (no output)"))
	case looksLikeDiff(text):
		lines = append(lines, Diff(th, text, 0)...)
	default:
		lines = append(lines, strings.Split(visible.Text(text), "\n")...)
	}
	return strings.Join(append(lines, th.Dim.Render("  └ ")+strings.Join(parts, th.Dim.Render(" · "))), "\n")
}

// verdict returns the mark before a finished card, and in parts how it ended.
func (c *Card) verdict(th *style.Theme) (mark string, parts []string) {
	ink, words := th.Good, ""
	mark = "✓"
	switch c.Status {
	case wire.StatusDenied:
		mark, ink, words = "⊘", th.Warn, "not run"
	case wire.StatusCancelled:
		mark, ink, words = "■", th.Warn, cmp.Or(c.UserEnded, "cancelled")
	case Interrupted:
		mark, ink, words = "■", th.Warn, "no result"
	case wire.StatusTimeout:
		mark, ink, words = "✗", th.Bad, "timed out"
	case wire.StatusError, wire.StatusRefused, wire.StatusShellExited:
		mark, ink = "✗", th.Bad
		if c.Exit == nil {
			words = map[string]string{wire.StatusError: "failed", wire.StatusRefused: "refused", wire.StatusShellExited: "the shell ended"}[c.Status]
		}
	}
	if words != "" {
		parts = append(parts, ink.Render(words))
	}
	if c.Status == wire.StatusDenied && c.Why != "" {
		parts = append(parts, visible.Line(c.Why))
	}
	cut := c.Status == wire.StatusCancelled || c.Status == wire.StatusTimeout // sublet itself caused the exit status and signal
	if c.Exit != nil && *c.Exit != 0 && !cut {
		parts = append(parts, th.Bad.Render("exit "+strconv.Itoa(*c.Exit)))
		mark, ink = "✗", th.Bad
	}
	if c.Signal != "" && !cut {
		parts = append(parts, th.Bad.Render(c.Signal))
	}
	dim := func(words string, when bool) {
		if when {
			parts = append(parts, th.Dim.Render(words))
		}
	}
	dim("exit 0", c.Exit != nil && *c.Exit == 0 && !cut)
	dim("goes on in the background: sublet job ls", c.goesOn())
	dim(visible.Line(c.Reach), c.Reach != "")
	dim(style.Elapsed(c.Took), c.Took >= 100*time.Millisecond && c.Status != wire.StatusDenied)
	dim(style.Count(c.Cut)+"B left out", c.Cut > 0)
	dim("all in "+visible.Line(c.Spool), c.Spool != "")
	return ink.Render(mark), parts
}

// goesOn reports whether the command was started as a background job, or became one: it continues after the end of its call.
func (c *Card) goesOn() bool {
	ok := c.Status == wire.StatusSuccess || c.Status == wire.StatusOK
	return c.Tool == "bash" && ok && c.Exit == nil && (c.Job || c.arguments().Background)
}

// text returns the output without the note for the model at its end ("[exit code 1]"), since the card's last line has that.
func (c *Card) text() string {
	text := strings.TrimRight(string(c.Output), "\n ")
	for c.Tool == "bash" && strings.HasSuffix(text, "]") {
		at := strings.LastIndexByte(text, '\n') + 1
		switch note := text[at:]; {
		case strings.HasPrefix(note, "[exit code ") && c.Exit != nil, note == "[no output]",
			strings.HasPrefix(note, "[ended: ") && (c.Status == wire.StatusCancelled || c.Status == wire.StatusTimeout),
			note == "[cancelled]" && c.Status == wire.StatusCancelled, note == "[ended by "+c.Signal+"]":
			text = strings.TrimRight(text[:at], "\n ")
			continue
		}
		break
	}
	return text
}

// body returns what a finished card shows of the output, and in more how much it leaves out.
func (c *Card) body(th *style.Theme, width int) (lines []string, more string) {
	text := c.text()
	done := c.Status == wire.StatusSuccess || c.Status == wire.StatusOK
	if c.Tool == "todo" && done {
		return c.todos(th, width), ""
	}
	if text == "" || c.Status == wire.StatusDenied {
		return nil, ""
	}
	hidden := func(n int) string {
		if n <= 0 {
			return ""
		}
		return english.Plural(n, "more line", "") + " (ctrl+o)"
	}
	changes := c.Tool == "edit" || c.Tool == "write"
	if changes && strings.Contains("\n"+text, "\n--- ") || looksLikeDiff(text) {
		if at := strings.Index("\n"+text, "\n@@"); at > 0 && changes {
			text = text[at:] // the header names the file
		}
		all := Diff(th, text, width)
		lines = all[:min(len(all), diffShown)]
		return lines, hidden(len(all) - len(lines))
	}
	if done {
		switch c.Tool {
		case "task":
			return nil, ""
		case "read", "grep", "glob", "fetch":
			last := text[strings.LastIndexByte(text, '\n')+1:]
			if size, _, _ := strings.Cut(last, ";"); c.Tool == "read" && strings.HasPrefix(last, "[") && last != text {
				return nil, visible.Line(strings.Trim(size, "[]")) // the tool has counted what it found
			}
			return nil, english.Plural(strings.Count(text, "\n")+1, "line", "")
		}
	}
	all := strings.Split(visible.Text(text), "\n")
	shown := cells.Last(all, doneTail)
	for _, l := range shown {
		if c.Tool != "bash" { // text of the tool, most often why it failed
			lines = append(lines, cells.Wrap(l, width)...)
			continue
		}
		lines = append(lines, cells.Fit(l, width))
	}
	return lines, hidden(len(all) - len(shown))
}

// todos returns the list that the tool todo was called with.
func (c *Card) todos(th *style.Theme, width int) (lines []string) {
	for _, one := range c.arguments().Todos {
		mark, text := th.Dim.Render("○ "), cells.Fit(visible.Line(one.Text), width-2)
		switch one.Status {
		case "done":
			mark, text = th.Good.Render("✓ "), th.Dim.Render(text)
		case "in_progress":
			mark = th.Accent.Render("▸ ")
		}
		lines = append(lines, mark+text)
	}
	return lines
}
