package archive

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sublet/wire"
	"sublet/wire/jsonview"
	"sublet/wire/visible"
)

// JSON returns a session as one object, with events as `session show --json` prints them.
func JSON(info wire.SessionInfo, events []wire.EventMessage) (string, error) {
	var reply struct {
		Session json.RawMessage `json:"session"`
	}
	if err := json.Unmarshal(jsonview.Of(&wire.SessionReply{Session: info}), &reply); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "{\"session\": %s,\n\"events\": [", reply.Session)
	for i, m := range events {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n")
		b.Write(jsonview.Of(m))
	}
	b.WriteString("\n]}\n")
	return b.String(), nil
}

// Markdown returns a session as a text for people, without control sequences: anybody may have written a file that was loaded.
func Markdown(info wire.SessionInfo, events []wire.EventMessage) string {
	var b strings.Builder
	title := info.Name
	if title == "" {
		title = info.Title
	}
	fmt.Fprintf(&b, "# %s\n\n", visible.Exact(title))
	fmt.Fprintf(&b, "%s, in `%s`\n", time.UnixMilli(info.CreatedAtMS).Format(time.DateTime), visible.Exact(string(info.Cwd)))
	speaking := ""           // whose text comes in pieces just now
	var text strings.Builder // that text
	turnTo := func(agent string) {
		b.WriteString(closed(text.String()))
		text.Reset()
		speaking = agent
	}
	subjects := map[wire.ExecutionID]string{}
	for _, m := range wire.WithoutVoid(events) {
		if c, ok := m.(*wire.AgentStreamChunk); ok {
			if c.Chunk.Type == wire.ChunkToolCall {
				subjects[c.Chunk.ExecutionID] = wire.CallSubject(c.Chunk.Tool, c.Chunk.Arguments)
			}
			if c.Chunk.Type != wire.ChunkText {
				continue
			}
			if speaking != c.Agent {
				turnTo(c.Agent)
				fmt.Fprintf(&b, "\n**%s:**\n\n", visible.Exact(c.Agent))
			}
			text.WriteString(visible.Clean(c.Chunk.Text))
			continue
		}
		turnTo("")
		switch m := m.(type) {
		case *wire.TurnStarted:
			fmt.Fprintf(&b, "\n\n## %s\n", closed(visible.Exact(m.Prompt)))
		case *wire.TurnSteered:
			fmt.Fprintf(&b, "\n\n> %s\n", strings.ReplaceAll(visible.Exact(m.Prompt), "\n", "\n> "))
		case *wire.CommandResult:
			what := string(m.Command)
			if what == "" {
				what = strings.TrimSpace(m.Tool + " " + subjects[m.ExecutionID])
			}
			out := m.Output
			if m.Tool == "" { // a command that the user ran: only the end of its output is known
				out = m.OutputTail
			}
			fmt.Fprintf(&b, "\n\n%s\n", visible.Fenced("console", "$ "+visible.Exact(what)+"\n"+strings.TrimRight(visible.Exact(string(out)), "\n")))
			if m.ExitCode != nil && *m.ExitCode != 0 {
				fmt.Fprintf(&b, "\n*exit status %d*\n", *m.ExitCode)
			} else if m.Tool != "" && m.Status != wire.StatusSuccess && m.Status != wire.StatusOK {
				fmt.Fprintf(&b, "\n*%s*\n", visible.Exact(m.Status))
			}
		case *wire.ConfirmationResolved:
			fmt.Fprintf(&b, "\n*%s by %s*\n", visible.Exact(m.Decision), visible.Exact(m.By))
		case *wire.CompactionComplete:
			fmt.Fprintf(&b, "\n*compaction: %s*\n", visible.Exact(m.Status))
		case *wire.Error:
			fmt.Fprintf(&b, "\n*error: %s*\n", visible.Exact(m.Message))
		case *wire.AgentComplete:
			if m.Status != wire.StatusSuccess {
				fmt.Fprintf(&b, "\n*the turn ended: %s*\n", visible.Exact(m.Status))
			}
		}
	}
	turnTo("")
	return b.String()
}

// closed returns Markdown with an end for the code block that it leaves open.
func closed(text string) string {
	open := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		rest := strings.TrimLeft(line, "`")
		fence := line[:len(line)-len(rest)]
		switch {
		case len(fence) < 3:
		case open == "" && !strings.Contains(rest, "`"):
			open = fence
		case open != "" && len(fence) >= len(open) && rest == "":
			open = ""
		}
	}
	if open == "" {
		return text
	}
	return strings.TrimSuffix(text, "\n") + "\n" + open
}
