package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	completeBound = 500 * time.Millisecond
	completeMost  = 1000 // candidates returned
)

// Complete returns what can stand in place of line[from:cursor], in byte positions: bash's own programmable completion,
// commands, aliases, functions, variables and files, in that shell. It takes at most 500 ms; what is not there by then is
// given up, without an error. ErrBusy while a command runs.
func (s *Shell) Complete(ctx context.Context, line string, cursor int) (from int, cs []Completion, err error) {
	cursor = max(0, min(cursor, len(line)))
	w := splitLine(line[:cursor])
	if strings.ContainsRune(line, 0) {
		return cursor, nil, nil
	}
	if err := s.lockTurn(ctx, false); err != nil {
		return cursor, nil, err
	}
	defer func() { <-s.turn }()
	bound, cancel := context.WithTimeout(ctx, completeBound)
	defer cancel()
	quoted := make([]string, len(w.words))
	for i, word := range w.words {
		quoted[i] = quote(word)
	}
	s.mu.Lock()
	dir := s.snap.State.Dir
	s.mu.Unlock()
	lead, word := "''", quote(w.prefix)
	if m := variableLead.FindStringSubmatch(line[w.from:cursor]); m != nil {
		w.lead = m[1]
		lead = `"${` + m[2] + m[3] + `-}"`
		word = lead + quote(strings.TrimPrefix(w.prefix, w.lead))
	}
	script := fmt.Sprintf("\\builtin local -a __sublet__words; __sublet__words=(%s); \\builtin local __sublet__cword=%d __sublet__lead=%s __sublet__word=%s __sublet__line=%s __sublet__point=%d\n\\__sublet_complete \"$__sublet_id\"",
		strings.Join(quoted, " "), len(w.words)-1, lead, word, quote(line[w.start:cursor]), cursor-w.start)
	out, _, err := s.askShell(bound, inHook, script)
	if err != nil {
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			return cursor, nil, nil
		}
		return cursor, nil, err
	}
	return w.from, w.candidates(string(out), dir), nil
}

// wordAt is the word under completion and what stands before it in its command.
type wordAt struct {
	start  int      // where its command begins
	from   int      // where the part to be replaced begins
	words  []string // of the command, split as bash does for COMP_WORDS; the last is the word
	prefix string   // the word without its quotes
	quote  byte     // the quote it stands in, or 0
	lead   string   // the $NAME or ${NAME} it begins with, where a folder is meant
}

// variableLead is the variable at the beginning of a word that goes on behind a slash.
var variableLead = regexp.MustCompile(`^"?(\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\}))/`)

// splitLine finds the word at the end of a line. Quotes are kept in words, as readline does, and removed in prefix.
func splitLine(line string) wordAt {
	w := wordAt{}
	var cur strings.Builder // dequoted
	word := -1              // where the current word begins
	part := -1              // where the part after the last = or : begins
	var q byte
	end := func(i int) {
		if word >= 0 {
			w.words = append(w.words, line[word:i])
		}
		word, part = -1, -1
		cur.Reset()
	}
	begin := func(i int) {
		if word < 0 {
			word, part = i, i
		}
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		if q != 0 {
			switch {
			case c == q:
				q = 0
			case c == '\\' && q == '"' && i+1 < len(line):
				i++
				cur.WriteByte(line[i])
			default:
				cur.WriteByte(c)
			}
			continue
		}
		switch c {
		case ' ', '\t', '\n':
			end(i)
			if c == '\n' {
				w.words, w.start = nil, i+1
			}
		case ';', '|', '&', '(', '`', '{':
			if c == '{' && word >= 0 {
				cur.WriteByte(c)
				continue
			}
			end(i)
			w.words, w.start = nil, i+1
		case '>', '<':
			end(i)
			w.words = append(w.words, string(c))
		case '=', ':':
			end(i)
			w.words = append(w.words, string(c))
		case '\'', '"':
			begin(i)
			q = c
		case '\\':
			begin(i)
			if i+1 < len(line) {
				i++
				cur.WriteByte(line[i])
			}
		default:
			begin(i)
			cur.WriteByte(c)
		}
	}
	w.quote = q
	w.prefix = cur.String()
	if word < 0 {
		w.from = len(line)
		w.words = append(w.words, "")
	} else {
		w.from = part
		w.words = append(w.words, line[word:])
	}
	// NAME=value before a command is not the command.
	for len(w.words) > 3 && w.words[1] == "=" {
		w.words = w.words[3:]
	}
	return w
}

var kinds = map[string]string{
	"alias": "alias", "function": "function", "builtin": "command", "keyword": "command", "command": "command",
	"variable": "variable", "directory": "directory", "file": "file", "user": "directory", "word": "",
}

// candidates reads the answer: one per text, the first kind told wins.
func (w wordAt) candidates(out, dir string) []Completion {
	var cs []Completion
	seen := make(map[string]bool)
	files, noSpace, lead := false, false, ""
	for line := range strings.Lines(out) {
		if value, ok := strings.CutPrefix(line, "\x01x "); ok {
			lead = strings.TrimSuffix(value, "\n")
		}
		if opts, ok := strings.CutPrefix(line, "\x01o "); ok {
			files = strings.Contains(opts, "filenames")
			noSpace = strings.Contains(opts, "nospace")
		}
	}
	kind, desc := "", ""
	for line := range strings.Lines(out) {
		text := strings.TrimSuffix(line, "\n")
		if k, ok := strings.CutPrefix(text, "\x01"); ok {
			kind = k
			continue
		}
		var known bool
		if desc, known = kinds[kind]; !known || text == "" || seen[text] || strings.HasPrefix(strings.TrimPrefix(text, "$"), "__sublet") {
			continue
		}
		seen[text] = true
		plain := kind == "word" && !files
		if kind == "file" || kind == "directory" || kind == "word" && files {
			desc = "file"
			if isDir(dir, text) {
				desc = "directory"
				text = strings.TrimSuffix(text, "/") + "/"
			}
		} else if kind == "user" {
			text += "/"
		} else if strings.HasPrefix(text, "-") {
			desc = "option"
		}
		if !plain && kind != "variable" {
			text = w.rewrite(text, lead)
		} else if w.quote != 0 {
			text = string(w.quote) + text
		}
		if plain && !noSpace {
			text = strings.TrimRight(text, " ")
		}
		cs = append(cs, Completion{Text: text, Description: desc})
	}
	if len(cs) == 1 && w.quote != 0 && !noSpace && cs[0].Description != "directory" {
		cs[0].Text += string(w.quote) // as readline closes the quote of a word that is complete
	}
	slices.SortStableFunc(cs, func(a, b Completion) int { return strings.Compare(a.Text, b.Text) })
	return cs[:min(len(cs), completeMost)]
}

func isDir(dir, text string) bool {
	if rest, ok := strings.CutPrefix(text, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return false
		}
		text = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(text) {
		text = filepath.Join(dir, text)
	}
	st, err := os.Stat(text)
	return err == nil && st.IsDir()
}

// rewrite is requote behind the variable that the word begins with, which stays as it was typed.
func (w wordAt) rewrite(text, lead string) string {
	rest, ok := strings.CutPrefix(text, lead)
	if w.lead == "" || !ok {
		return w.requote(text)
	}
	if rest = w.requote(rest); w.quote != 0 {
		return rest[:1] + w.lead + rest[1:]
	}
	return w.lead + rest
}

// requote writes a file or command name so that the shell reads it back as that one word, in the quotes it began with.
func (w wordAt) requote(text string) string {
	switch w.quote {
	case '\'':
		return "'" + strings.ReplaceAll(text, "'", `'\''`)
	case '"':
		var b strings.Builder
		b.WriteByte('"')
		for i := range len(text) {
			if strings.IndexByte("$`\"\\", text[i]) >= 0 {
				b.WriteByte('\\')
			}
			b.WriteByte(text[i])
		}
		return b.String()
	}
	var b strings.Builder
	for i := range len(text) {
		if strings.IndexByte(" \t\n|&;()<>$`\\\"'*?[]#!{}", text[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
