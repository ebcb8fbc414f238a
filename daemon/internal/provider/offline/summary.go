package offline

import (
	"strings"
)

// Compaction asks a model to fold a conversation, with the transcript between these marks (package compaction). The
// offline model answers with what can be taken out of it by rule.
const (
	foldMark   = "You fold the middle of a conversation"
	openMark   = "<conversation>\n"
	closeMark  = "\n</conversation>"
	maxFolded  = 40  // lines of a summary
	maxExtract = 200 // bytes of one
)

// summarise answers compaction's question; ok is false for any other prompt.
func summarise(system, prompt string) (string, bool) {
	if !strings.HasPrefix(system, foldMark) {
		return "", false
	}
	_, text, ok := strings.Cut(prompt, openMark)
	if !ok {
		return "", false
	}
	if i := strings.LastIndex(text, closeMark); i >= 0 {
		text = text[:i]
	}
	var out []string
	add := func(label, s string) {
		if s = firstLine(s); s != "" && s != "…" {
			out = append(out, "- "+label+": "+cut(s, maxExtract))
		}
	}
	for _, e := range entries(text) {
		switch e.label {
		case "USER", "AGENT", "EARLIER SUMMARY":
			add(strings.ToLower(e.label), e.text)
		case "CALL":
			add("called", e.text)
		case "RESULT":
			// The last line says how it went, the first what it was about.
			lines := splitLines(e.text)
			if len(lines) > 0 {
				s := lines[0]
				if last := lines[len(lines)-1]; len(lines) > 1 && (strings.HasPrefix(last, "[") || strings.Contains(strings.ToLower(last), "error")) {
					s += " … " + last
				}
				add("got", s)
			}
		}
	}
	if len(out) == 0 {
		return "Nothing was said that needs keeping.", true
	}
	if len(out) > maxFolded { // the beginning says what it is about, the end where it stands
		head := maxFolded / 4
		out = append(append(out[:head:head], "- …"), out[len(out)-(maxFolded-head):]...)
	}
	return "Taken from the conversation by rule, line by line:\n" + strings.Join(out, "\n"), true
}

type transcriptEntry struct{ label, text string }

// entries splits a transcript at the lines that begin with one of compaction's labels.
func entries(text string) (list []transcriptEntry) {
	for line := range strings.Lines(text) {
		label := ""
		for _, l := range []string{"USER:", "AGENT:", "EARLIER SUMMARY:", "CALL ", "RESULT "} {
			if rest, ok := strings.CutPrefix(line, l); ok {
				label, line = strings.TrimRight(l, ": "), strings.TrimLeft(rest, " ")
				break
			}
		}
		if label != "" || len(list) == 0 {
			list = append(list, transcriptEntry{label, line})
			continue
		}
		list[len(list)-1].text += line
	}
	return list
}
