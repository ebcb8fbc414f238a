package jsonrpc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sublet/client/internal/gateway"
)

// history is the client's own commands as it reported them, oldest first.
type history []recentCommand

// maxHistory bounds the commands remembered of one connection.
const maxHistory = 500

// merge adds the commands that were not reported before, up to maxHistory, and reports whether the last of list is new.
func (h *history) merge(list []recentCommand) bool {
	fresh := false
	for _, r := range list {
		if strings.TrimSpace(r.Command) == "" {
			continue
		}
		fresh = !slices.ContainsFunc(*h, func(o recentCommand) bool {
			return o.Command == r.Command && o.Timestamp == r.Timestamp && (o.ExitCode == nil) == (r.ExitCode == nil) // a command counts again when it has ended
		})
		if fresh {
			*h = append(*h, r)
		}
	}
	slices.SortStableFunc(*h, func(a, b recentCommand) int { return cmp.Compare(a.Timestamp, b.Timestamp) })
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
	if s := h.whatHelped(last); s != nil {
		return s
	}
	return h.fixTypo(last)
}

// whatHelped returns the command that most often succeeded right after last's command had failed. Its confidence is the share of the
// failures that it followed; last itself counts as one that it did not.
func (h history) whatHelped(last recentCommand) *suggestion {
	counts, total, best := map[string]int{}, 0, ""
	for i := range len(h) - 1 { // last is not followed yet
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

// exitNotFound is a shell's exit status for an unknown command.
const exitNotFound = 127

// fixTypo returns last with the name of a program that the user ran before, if last's program was not found and one typing error
// makes one name the other.
func (h history) fixTypo(last recentCommand) *suggestion {
	name, rest, _ := strings.Cut(last.Command, " ")
	if *last.ExitCode != exitNotFound || len(name) < 2 {
		return nil
	}
	for i := len(h) - 2; i >= 0; i-- {
		known, _, _ := strings.Cut(h[i].Command, " ")
		if h[i].ExitCode == nil || *h[i].ExitCode == exitNotFound || known == name || !oneTypo(name, known) {
			continue
		}
		return &suggestion{
			Suggestion: strings.TrimSpace(known + " " + rest), Confidence: 0.8, Source: "last_failed_command",
			Context: fmt.Sprintf("`%s` was not found; you have used `%s`", gateway.OneLine(name), gateway.OneLine(known)),
		}
	}
	return nil
}

// oneTypo reports whether a becomes b by inserting, deleting or replacing one letter, or exchanging two adjacent ones.
func oneTypo(a, b string) bool {
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
