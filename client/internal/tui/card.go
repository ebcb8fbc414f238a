package tui

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"sublet/client/internal/tui/style"

	"charm.land/lipgloss/v2"
	"github.com/dustin/go-humanize/english"

	"sublet/client/internal/tui/cells"
	"sublet/wire"
	"sublet/wire/visible"
)

const (
	liveTail  = 5  // lines under a running command
	doneTail  = 6  // lines under a finished one
	diffShown = 24 // lines of a change
)

// card is one call of a tool: a header, what it prints while it runs, and one line for its end.
type card struct {
	id      wire.ExecutionID
	agent   string
	tool    string
	args    string // JSON, as far as it came
	command string // shell text, for bash
	leased  bool   // runs in the user's shell
	shell   string // that shell's name; "" = not known
	reach   string // what the kernel holds it to; "" = nothing
	turn    wire.TurnID
	started time.Time
	out     tail

	// The end.
	status    string
	exit      *int
	signal    string
	output    []byte // what was kept of the output, rendered
	cut       int64  // bytes left out of it
	spool     string
	files     []string
	took      time.Duration
	done      bool
	printed   bool
	place     *entry // its place in the scrollback, while the shell's word is waited for
	notes     []string
	why       string // why it was refused
	keyboard  string // why the program has the keyboard
	asked     bool   // it asked for the keyboard at any time
	taken     bool   // the user took the shell back from it
	handed    int    // lines of out when it last gave the keyboard back
	shellSaid bool   // LeasedEnded came
	waits     bool   // has not begun
}

// subject is what the header says behind the tool's name.
func (c *card) subject() string {
	if c.command != "" {
		return c.command
	}
	var a map[string]any
	if json.Unmarshal([]byte(c.args), &a) != nil {
		return ""
	}
	text := func(name string) string { s, _ := a[name].(string); return s }
	switch c.tool {
	case "bash":
		return text("command")
	case "grep":
		pattern := text("pattern")
		if pattern != "" {
			pattern = strconv.Quote(pattern)
		}
		return strings.TrimSpace(pattern + " " + text("path"))
	case "glob":
		return strings.TrimSpace(text("pattern") + " " + text("path"))
	case "task":
		var t struct {
			Tasks []struct{ Role, Title, Prompt string }
		}
		if json.Unmarshal([]byte(c.args), &t) != nil {
			return ""
		}
		var lines []string
		for _, one := range t.Tasks {
			lines = append(lines, strings.TrimSpace(one.Role+": "+cmp.Or(one.Title, visible.FirstLine(one.Prompt))))
		}
		return strings.Join(lines, "\n")
	case "todo":
		return ""
	}
	return cmp.Or(text("path"), text("file"), text("file_path"), text("url"), text("pattern"), text("name"))
}

// header is the first line, without the mark before it; further lines of the command follow, at most lines of them.
func (c *card) header(th *style.Theme, width, lines int) []string {
	name := th.Bold.Render(visible.Line(cmp.Or(c.shell, c.tool)))
	if c.agent != "" && c.agent != "orchestrator" && c.agent != "you" {
		name = th.Agent.Render(visible.Line(c.agent)) + " " + name
	}
	text := strings.Split(strings.TrimRight(visible.Text(c.subject()), "\n"), "\n")
	if text[0] != "" {
		name += "  "
	}
	out := []string{name + cells.Fit(text[0], max(8, width-cells.Width(name)))}
	for i, l := range text[1:] {
		if i+1 == lines && len(text) > lines+1 {
			out = append(out, th.Dim.Render("    … "+english.Plural(len(text)-lines, "more line", "")))
			break
		}
		out = append(out, "    "+cells.Fit(l, width-4))
	}
	return out
}

// Render draws a running card.
func (c *card) Render(th *style.Theme, width, height int, now time.Time) []string {
	if height <= 0 {
		return nil
	}
	suffix, mark := "", th.Spin(now)
	if c.waits { // nothing that looks like work
		suffix, mark = " · waits", th.Dim.Render("○")
	} else if !c.started.IsZero() {
		suffix = " · " + style.Ticking(now.Sub(c.started))
	}
	if c.reach != "" {
		suffix += " · " + visible.Line(c.reach)
	}
	if c.leased && width >= 60 {
		suffix += " · in your shell"
	}
	head := c.header(th, width-2-cells.Width(suffix), 4)
	head[0] = mark + " " + head[0] + th.Dim.Render(suffix)
	bar := th.Dim.Render("  │ ")
	for _, l := range c.out.last(min(liveTail, height-len(head))) {
		head = append(head, bar+cells.Fit(l, width-4))
	}
	for i, l := range head {
		head[i] = cells.Fit(l, width)
	}
	return head[:min(len(head), height)]
}

// Finished draws the card for the scrollback.
func (c *card) Finished(th *style.Theme, width int) string {
	mark, parts := c.verdict(th)
	head := c.header(th, width-2, 12)
	head[0] = mark + " " + head[0]
	body, more := c.body(th, width)
	if more != "" {
		parts = append(parts, th.Dim.Render(more))
	}
	if c.cut > 0 {
		parts = append(parts, th.Dim.Render(style.Count(c.cut)+"B left out"))
		if c.spool != "" {
			parts = append(parts, th.Dim.Render("all in "+visible.Line(c.spool)))
		}
	}
	dot := th.Dim.Render(" · ")
	end := strings.Join(parts, dot)
	lines := head
	if len(body) == 0 && len(head) == 1 && end != "" && cells.Width(head[0])+3+cells.Width(end) <= width {
		lines[0] += dot + end
		end = ""
	}
	lines = append(lines, cells.Indent(body, th.Dim.Render("  │ "))...)
	if end != "" {
		lines = append(lines, cells.Hanging(th.Dim.Render("  └ "), cells.Wrap(end, width-4))...)
	}
	for _, n := range c.notes {
		lead := "  " + th.Warn.Render("± ")
		lines = append(lines, cells.Hanging(lead, cells.Wrap(th.Dim.Render(visible.Line(n)), width-4))...)
	}
	return strings.Join(lines, "\n")
}

// verdict is the mark before a finished card, and how it ended.
func (c *card) verdict(th *style.Theme) (mark string, parts []string) {
	add := func(style lipgloss.Style, words string) { parts = append(parts, style.Render(words)) }
	stopped, failed := th.Warn.Render("■"), th.Bad.Render("✗")
	mark = th.Good.Render("✓")
	switch c.status {
	case wire.StatusDenied:
		mark = th.Warn.Render("⊘")
		add(th.Warn, "not run")
		if c.why != "" {
			parts = append(parts, visible.Line(c.why))
		}
	case wire.StatusCancelled:
		mark = stopped
		if c.taken {
			add(th.Warn, "you took your shell back")
		} else {
			add(th.Warn, "cancelled")
		}
	case wire.StatusTimeout:
		mark = failed
		add(th.Bad, "timed out")
	case wire.StatusError, wire.StatusRefused, wire.StatusShellExited:
		mark = failed
		if c.exit == nil {
			add(th.Bad, map[string]string{
				wire.StatusError: "failed", wire.StatusRefused: "refused", wire.StatusShellExited: "the shell ended",
			}[c.status])
		}
	case "interrupted":
		mark = stopped
		add(th.Warn, "no result")
	}
	switch {
	case c.exit == nil:
	case *c.exit == 0:
		add(th.Dim, "exit 0")
	default:
		add(th.Bad, "exit "+strconv.Itoa(*c.exit))
		if c.status != wire.StatusCancelled {
			mark = failed
		}
	}
	if c.signal != "" {
		add(th.Bad, c.signal)
	}
	if c.isJob() {
		add(th.Dim, "goes on in the background: sublet job ls")
	}
	if c.reach != "" {
		add(th.Dim, visible.Line(c.reach))
	}
	if c.took >= 100*time.Millisecond && c.status != wire.StatusDenied {
		add(th.Dim, style.Elapsed(c.took))
	}
	return mark, parts
}

// isJob reports whether the command was started as a background job, which goes on behind the end of its call.
func (c *card) isJob() bool {
	var a struct{ Background bool }
	return c.tool == "bash" && c.status == wire.StatusSuccess && c.exit == nil && json.Unmarshal([]byte(c.args), &a) == nil && a.Background
}

// text is the output without what a shell's result says to the model at its end ("[exit code 1]") and the last line says
// to the user.
func (c *card) text() string {
	text := strings.TrimRight(string(c.output), "\n ")
	for c.tool == "bash" && strings.HasSuffix(text, "]") {
		at := strings.LastIndexByte(text, '\n') + 1
		switch note := text[at:]; {
		case strings.HasPrefix(note, "[exit code ") && c.exit != nil, note == "[no output]",
			strings.HasPrefix(note, "[ended: ") && (c.status == wire.StatusCancelled || c.status == wire.StatusTimeout),
			note == "[cancelled]" && c.status == wire.StatusCancelled, note == "[ended by "+c.signal+"]":
			text = strings.TrimRight(text[:at], "\n ")
			continue
		}
		break
	}
	return text
}

// body is what a finished card shows of the output, and a word on what it does not show.
func (c *card) body(th *style.Theme, width int) (lines []string, more string) {
	text := c.text()
	if c.tool == "todo" || c.tool == wire.ToolPlan {
		return c.todos(th, width-4), ""
	}
	if text == "" || c.status == wire.StatusDenied {
		return nil, ""
	}
	hidden := func(n int) string {
		if n <= 0 {
			return ""
		}
		return english.Plural(n, "more line", "") + " (ctrl+o)"
	}
	width -= 4
	if at := strings.Index("\n"+text, "\n--- "); at >= 0 && (c.tool == "edit" || c.tool == "write") || looksLikeDiff(text) {
		if at := strings.Index("\n"+text, "\n@@"); at > 0 && (c.tool == "edit" || c.tool == "write") {
			text = text[at:] // the header names the file
		}
		diff := strings.Split(text, "\n")
		return renderDiff(th, text, width, diffShown), hidden(len(diff) - diffShown + 1)
	}
	switch c.tool {
	case "read", "grep", "glob", "fetch", "task":
		if c.status == wire.StatusSuccess || c.status == wire.StatusOK {
			if c.tool == "task" {
				return nil, ""
			}
			last := text[strings.LastIndexByte(text, '\n')+1:]
			if size, _, _ := strings.Cut(last, ";"); c.tool == "read" && strings.HasPrefix(last, "[") && last != text {
				return nil, visible.Line(strings.Trim(size, "[]")) // the tool's own count
			}
			return nil, english.Plural(strings.Count(text, "\n")+1, "line", "")
		}
	}
	all := strings.Split(visible.Text(text), "\n")
	shown := cells.Last(all, doneTail)
	if len(all) == doneTail+1 { // one line hidden costs the line that says so
		shown = all
	}
	for _, l := range shown {
		if c.tool != "bash" { // a tool's own words, most often why it failed
			lines = append(lines, cells.Wrap(l, width)...)
			continue
		}
		lines = append(lines, cells.Fit(l, width))
	}
	return lines, hidden(len(all) - len(shown))
}

// todos is the list that the todo or the plan tool was given, or the one that the user made of it.
func (c *card) todos(th *style.Theme, width int) (lines []string) {
	type step struct{ Text, Status string }
	var t struct {
		Todos []step
		Items []string
	}
	if json.Unmarshal([]byte(c.args), &t) != nil {
		return nil
	}
	for line := range strings.Lines(c.text()) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "[ ] "); ok && c.tool == wire.ToolPlan {
			t.Todos, t.Items = append(t.Todos, step{Text: text}), nil
		}
	}
	for _, text := range t.Items {
		t.Todos = append(t.Todos, step{Text: text})
	}
	for _, one := range t.Todos {
		mark, text := th.Dim.Render("○ "), cells.Fit(visible.Line(one.Text), width-2)
		switch one.Status {
		case "done", "completed":
			mark, text = th.Good.Render("✓ "), th.Dim.Render(text)
		case "doing", "in_progress", "active":
			mark = th.Accent.Render("▸ ")
		}
		lines = append(lines, mark+text)
	}
	return lines
}

// Whole is everything that was kept, for the scrollback.
func (c *card) Whole(th *style.Theme, width int) string {
	mark, parts := c.verdict(th)
	head := strings.Split(strings.TrimRight(visible.Text(c.subject()), "\n"), "\n")
	lines := []string{mark + " " + th.Bold.Render(visible.Line(cmp.Or(c.shell, c.tool))) + "  " + head[0]}
	lines = append(lines, cells.Indent(head[1:], "    ")...)
	text := c.text()
	switch {
	case text == "":
		lines = append(lines, th.Dim.Render("  (no output)"))
	case looksLikeDiff(text):
		lines = append(lines, renderDiff(th, text, 0, 0)...)
	default:
		lines = append(lines, strings.Split(visible.Text(text), "\n")...)
	}
	if c.cut > 0 {
		parts = append(parts, th.Dim.Render(style.Count(c.cut)+"B left out of the middle"))
	}
	end := strings.Join(parts, th.Dim.Render(" · "))
	return strings.Join(append(lines, th.Dim.Render("  └ ")+end), "\n")
}
