package jsonrpc

import (
	"fmt"
	"slices"
	"strings"

	"sublet/client/internal/gateway"
)

// history is the client's own commands as it reported them, oldest first.
type history []recentCommand

// maxHistory bounds the commands remembered of one connection.
const maxHistory = 500

// merge adds the commands that were not reported before, up to maxHistory, and reports whether the newest command is new.
func (h *history) merge(list []recentCommand) bool {
	fresh := false
	for _, r := range list {
		if strings.TrimSpace(r.Command) == "" {
			continue
		}
		fresh = !slices.ContainsFunc(*h, func(o recentCommand) bool {
			return o.Command == r.Command && o.Timestamp == r.Timestamp && (o.ExitCode == nil) == (r.ExitCode == nil) // a command that has ended meanwhile is new
		})
		if fresh {
			*h = append(*h, r)
		}
	}
	slices.SortStableFunc(*h, func(a, b recentCommand) int {
		switch {
		case a.Timestamp < b.Timestamp:
			return -1
		case a.Timestamp > b.Timestamp:
			return 1
		}
		return 0
	})
	if n := len(*h) - maxHistory; n > 0 {
		*h = slices.Delete(*h, 0, n)
	}
	return fresh
}

type suggestion struct {
	Suggestion string  `json:"suggestion"`
	Confidence float64 `json:"confidence"` // 0 to 1
	Source     string  `json:"source"`
	Context    string  `json:"context"`
}

// suggest records the client's commands and, if the newest one failed, proposes the next (F17).
func (c *conn) suggest(recent []recentCommand) {
	if len(recent) == 0 {
		return
	}
	c.mu.Lock()
	fresh := c.history.merge(recent)
	s := c.history.next()
	c.mu.Unlock()
	if fresh && s != nil {
		c.notify("suggestion.inline", s)
	}
}

// next proposes a command after the newest failed: what helped the user before, else a known command with a similar name; nil
// if there is nothing to propose.
func (h history) next() *suggestion {
	if len(h) == 0 {
		return nil
	}
	last := h[len(h)-1]
	if last.ExitCode == nil || *last.ExitCode == 0 {
		return nil
	}
	if s := h.helped(last); s != nil {
		return s
	}
	return h.meant(last)
}

// helped returns the command that most often succeeded next when last's command had failed before. Its confidence is how often it did
// among all failures, the last one included, which nothing has followed yet.
func (h history) helped(last recentCommand) *suggestion {
	counts, total, best := map[string]int{}, 0, ""
	for i := range len(h) - 2 { // without the last one
		was, then := h[i], h[i+1]
		if was.ExitCode == nil || *was.ExitCode == 0 || was.Command != last.Command {
			continue
		}
		total++
		if then.ExitCode == nil || *then.ExitCode != 0 || then.Command == last.Command {
			continue
		}
		counts[then.Command]++
		if counts[then.Command] >= counts[best] {
			best = then.Command // the newer one among equals
		}
	}
	if best == "" {
		return nil
	}
	return &suggestion{
		Suggestion: best, Confidence: float64(counts[best]) / float64(total+1), Source: "command_history",
		Context: fmt.Sprintf("after `%s` failed before, this succeeded", gateway.OneLine(last.Command)),
	}
}

// notFound is the exit status for an unknown command.
const notFound = 127

// meant returns a program that the user ran before and whose name differs by one typing error.
func (h history) meant(last recentCommand) *suggestion {
	name, rest, _ := strings.Cut(last.Command, " ")
	if *last.ExitCode != notFound || len(name) < 2 {
		return nil
	}
	for i := len(h) - 2; i >= 0; i-- {
		known, _, _ := strings.Cut(h[i].Command, " ")
		if h[i].ExitCode == nil || *h[i].ExitCode == notFound || known == name || !slip(name, known) {
			continue
		}
		return &suggestion{
			Suggestion: strings.TrimSpace(known + " " + rest), Confidence: 0.8, Source: "last_failed_command",
			Context: fmt.Sprintf("`%s` was not found; you have used `%s`", gateway.OneLine(name), gateway.OneLine(known)),
		}
	}
	return nil
}

// slip reports whether a becomes b by inserting, deleting or replacing one letter, or exchanging two adjacent ones.
func slip(a, b string) bool {
	x, y := []rune(a), []rune(b)
	if len(x) > len(y) {
		x, y = y, x
	}
	if len(y)-len(x) > 1 {
		return false
	}
	i := 0
	for i < len(x) && x[i] == y[i] {
		i++
	}
	if len(x) < len(y) {
		return slices.Equal(x[i:], y[i+1:])
	}
	if i == len(x) {
		return false
	}
	if slices.Equal(x[i+1:], y[i+1:]) {
		return true
	}
	return i+1 < len(x) && x[i] == y[i+1] && x[i+1] == y[i] && slices.Equal(x[i+2:], y[i+2:])
}
