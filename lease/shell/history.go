package shell

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var historyEvent = regexp.MustCompile(`![^\s:;&|"'()]+`)

// refuseHistory asks bash whether history expansion fails for a line: then it would never become a command, and no
// prompt hook would tell (T1c). The line is not run, as in a terminal.
func (s *Shell) refuseHistory(ctx context.Context, c Command) (Result, bool, error) {
	out, status, err := s.askShell(ctx, inHook, `\__sublet_expands `+quote(c.Text))
	if err != nil {
		return Result{}, false, err
	}
	if status == 0 {
		if res, verified := s.verifyHistory(c); verified {
			return res, true, s.awaitIdle(ctx)
		}
		return Result{}, false, s.awaitIdle(ctx)
	}
	text := string(out)
	if strings.Contains(text, "history expansion failed") || text == "" {
		event := c.Text
		if m := historyEvent.FindString(c.Text); m != "" {
			event = m
		}
		why := ": event not found\n" // as the prompt says it
		if strings.HasPrefix(c.Text, "^") {
			event, why = ":s"+strings.TrimSuffix(c.Text, "\n"), ": substitution failed\n"
		}
		text = "bash: " + event + why
	} else if i := strings.LastIndex(text, "history: "); i >= 0 {
		text = "bash: " + text[i+len("history: "):]
	}
	raw := strings.ReplaceAll(text, "\n", "\r\n")
	if c.Started != nil {
		c.Started()
	}
	if c.Output != nil && raw != "" {
		c.Output([]byte(raw))
	}
	one := 1
	return Result{Status: "ok", ExitCode: &one, Dir: s.Dir(), Output: []byte(text)}, true, nil
}

// verifyHistory does under the user's histverify what a line editor would: what history expansion made of a line is not run,
// but theirs to look at. Bash, which has no editor here, drops such a line without a word. What keys cannot type is shown.
// So is what is only a part of a command, without that option too: of one with several lines, a history file without times
// has each by itself, and bash would wait for the rest of it in vain.
func (s *Shell) verifyHistory(c Command) (Result, bool) {
	s.mu.Lock()
	options := s.snap.State.Options
	s.mu.Unlock()
	for _, o := range []string{"histexpand", "history"} {
		if !slices.Contains(options, o) {
			return Result{}, false
		}
	}
	raw, err := os.ReadFile(filepath.Join(s.folder, "h"))
	text := strings.TrimSuffix(string(raw), "\n")
	if err != nil || text == strings.TrimSuffix(c.Text, "\n") || strings.Contains(c.Text, ":p") { // that bash shows itself
		return Result{}, false
	}
	quoting := (len(text) - len(strings.TrimRight(text, `\`))) % 2 // the line end
	if _, unfinished := parse(text + "\n"); !unfinished && quoting == 0 && !slices.Contains(options, "histverify") {
		return Result{}, false
	}
	if c.Started != nil {
		c.Started()
	}
	res := Result{Status: "ok", Dir: s.Dir()}
	if typable(text) {
		res.Unread = []byte(text)
		return res, true
	}
	if c.Output != nil {
		c.Output([]byte(strings.ReplaceAll(text, "\n", "\r\n") + "\r\n"))
	}
	res.Output = []byte(text + "\n")
	return res, true
}
