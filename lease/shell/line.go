package shell

import (
	"bytes"
	"regexp"
)

// fixedLine is what is typed in place of a text that lies in a file. Its history entry is removed by g, its echo dropped.
// What is ours in it is silent under the user's set -x.
func fixedLine(c Command, pl plan) string {
	const (
		source = `\. "$__sublet_dir/c"`              // builtin before it would bring a set -e into a list (CMD_IGNORE_RETURN)
		end    = `{ \__sublet_e "$?"; } 2>/dev/null` // silent under set -x
		// In a list, for an ERR trap.
		last  = `{ \builtin eval "$__sublet_tr"; \__sublet_ret "$__sublet_st" && \builtin :; } 2>/dev/null`
		early = `{ \builtin eval "$__sublet_tr"; \__sublet_early "$__sublet_st" && \builtin :; } 2>/dev/null`
		quick = `{ \__sublet_y || \builtin eval "$__sublet_tz"; \__sublet_early "$__sublet_st" && \builtin :; } 2>/dev/null`
	)
	switch {
	case c.User:
		// Not source: see known in rc/arm.bash.
		return ` { \__sublet_g h; } 2>/dev/null; \. "${__sublet_dir}/c"; ` + end
	case pl.subshell != "":
		first, behind := ``, `; { \__sublet_ret "$__sublet_st" && \builtin :; } 2>/dev/null`
		if pl.errexit { // put back by z where an interrupt skips the rest
			first, behind = `\builtin set +e; __sublet_tr='\builtin set -e'; `, `; `+last+`; __sublet_tr=`
		}
		return ` { ` + first + `\__sublet_g; } 2>/dev/null; ( { \__sublet_b; } 2>/dev/null; ` + source +
			`; { \__sublet_k; } 2>/dev/null ); ` + end + behind
	case !pl.state:
		return ` ` + source + `; \__sublet_h q && [[ 1 ]]`
	}
	// What is open is listed, where hooks may open more, while no redirection of ours has bash keep the old ones as descriptors,
	// too; and by how much the history grew, behind the flags, before a prompt.
	first, guard, behind := ``, `\__sublet_guard `+pl.flags(), `[[ $__sublet_alone ]] || __sublet_fd=(/dev/fd/*); __sublet_f+=$((${HISTCMD:-0}-${__sublet_hc:-${__sublet_hq:-1}}+1)); `+early
	if pl.functions {
		first = `__sublet_at=("$@"); `
	} else {
		behind = quick
	}
	if pl.errexit {
		first, guard = `\builtin set +e; `+first, guard+` errexit`
	}
	// Redirected, so that an exec inside does not bend the shell's own descriptors, nor a program their flags; in a list,
	// so that a set -e that slipped in does not end it.
	return ` { ` + first + `\builtin trap -p >|"$__sublet_dir/t"; ` + guard + `; \__sublet_g; } 2>/dev/null; ` + source +
		` <"$__sublet_tty" >"$__sublet_tty" 2>"$__sublet_tty" && ` + end + ` || { \__sublet_e "$?" || \builtin :; } 2>/dev/null; ` + behind
}

// guarded tells whether what the text may bend in the shell is noted before it and put back behind it.
func (p plan) guarded(c Command) bool { return !p.typed && p.state && p.subshell == "" && !c.User }

// withoutSource takes off what set -x prints where a text is sourced: the first line, whatever PS4 is.
func withoutSource(path string, write func([]byte)) func([]byte) {
	var first []byte
	done := false
	return func(p []byte) {
		if done {
			write(p)
			return
		}
		first = append(first, p...)
		i := bytes.IndexByte(first, '\n')
		if i < 0 && len(first) < echoLimit {
			return
		}
		done = true
		if i >= 0 && bytes.HasSuffix(bytes.TrimRight(first[:i], "\r"), []byte(" . "+path)) {
			first = first[i+1:]
		}
		if len(first) > 0 {
			write(first)
		}
		first = nil
	}
}

// What is printed of ours before the end mark: under set -x what runs of the line's tail and of the hook until they switch
// it off, under set -v the text of the hook and of the subshell's trap.
var (
	traceOfOurs = regexp.MustCompile(`(?:(?:^|\n)\+*(?: \{)? ?__sublet_[^\n]*\r?(?:\n\+[^\n]*\r?)*)+\n?$`)
	hookOfOurs  = regexp.MustCompile(`(?:(?:^|\n)(?:\{ )?(?:\\__sublet_k|\$\{__sublet_w:\+"__sublet_h"\})(?:; \} 2>/dev/null)?\r?)+\n?$`)
	ourName     = []byte("__sublet_")
	markOfOurs  = regexp.MustCompile(`\x1b\]7701;[2E];[0-9a-f-]{1,64}\a`)
)

// cutTrace takes that off.
func cutTrace(p []byte) []byte {
	from := max(0, len(p)-1024)
	for _, ours := range []*regexp.Regexp{hookOfOurs, traceOfOurs} {
		if !bytes.Contains(p[from:], ourName) {
			return p
		}
		if loc := ours.FindIndex(p[from:]); loc != nil {
			end := from + loc[0]
			if end < len(p) && p[end] == '\n' {
				end++
			}
			p = p[:end]
			from = min(from, end)
		}
	}
	return p
}

// hookBegins is where a trailing line begins that is the text of the hook, as set -v prints it: the end mark is about to
// follow. len(p) where there is none.
func hookBegins(p []byte) int {
	if tail := p[max(0, len(p)-128):]; bytes.Contains(tail, ourName) {
		if loc := hookOfOurs.FindIndex(tail); loc != nil {
			return len(p) - len(tail) + loc[0]
		}
	}
	return len(p)
}

// withoutOursLocked takes lines of ours out of what is printed while no command runs: set -v prints the hook's text. The end
// of a line may come later: the terminal hands lines on in pieces.
func (s *stream) withoutOursLocked(p []byte) []byte {
	if s.cutting {
		i := bytes.IndexByte(p, '\n')
		if s.cutting = i < 0; s.cutting {
			return nil
		}
		p = p[i+1:]
	}
	if !bytes.Contains(p, ourName) {
		return p
	}
	last := p[bytes.LastIndexByte(p, '\n')+1:]
	s.cutting = bytes.Contains(last, ourName)
	var out []byte
	for line := range bytes.Lines(p) {
		if !bytes.Contains(line, ourName) {
			out = append(out, line...)
		}
	}
	return out
}
