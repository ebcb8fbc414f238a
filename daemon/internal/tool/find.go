package tool

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
)

const (
	maxLineList   = 10      // line numbers in one message
	maxNearest    = 2 << 10 // bytes of a difference in one message
	minSimilarity = 0.5     // from which lines count as near
)

// place is the range of bytes that a replacement replaces.
type place struct {
	from, to int
	repl     string
}

// find returns the places where e applies in text. If the file has CRLF line ends, LF in old and new matches CRLF. If old
// is not in the text but exactly one run of lines differs from it in white space only, that is the place, and note says so.
// The error for an old that is missing or ambiguous names the lines to look at.
func (e edit) find(text string) (found []place, note string, err error) {
	old, repl := *e.Old, *e.New
	crlf := strings.Contains(text, "\r\n")
	withCRLF := func(s string) string {
		if !crlf || strings.Contains(s, "\r\n") {
			return s
		}
		return strings.ReplaceAll(s, "\n", "\r\n")
	}
	if w := withCRLF(old); !strings.Contains(text, old) || w == old { // a file may have both line ends
		if crlf && !strings.Contains(old, "\r\n") {
			repl = withCRLF(repl)
		}
		old = w
	}
	for at := 0; ; {
		i := strings.Index(text[at:], old)
		if i < 0 {
			break
		}
		found = append(found, place{at + i, at + i + len(old), repl})
		at += i + len(old)
	}
	switch {
	case len(found) == 0 && strings.ContainsRune(old, utf8.RuneError) && !utf8.ValidString(text):
		return nil, "", fmt.Errorf("old %w", errNotUTF8)
	case len(found) == 0:
		p, lines, err := matchWithoutSpacing(text, *e.Old, withCRLF(*e.New))
		if err != nil {
			return nil, "", err
		}
		return []place{p}, fmt.Sprintf("old differed from %s in white space only, and was applied there", lines), nil
	case len(found) > 1 && !e.ReplaceAll:
		at := []int{lineAt(text, found[0].from)}
		for i, p := range found[1:] {
			at = append(at, at[i]+strings.Count(text[found[i].from:p.from], "\n"))
		}
		return nil, "", fmt.Errorf("old occurs in the file %d times, in %s; give more of its surroundings, or set replace_all", len(found), lineList(at))
	}
	return found, "", nil
}

// lineAt returns the number of the line, from 1, that contains byte at.
func lineAt(text string, at int) int { return strings.Count(text[:at], "\n") + 1 }

// lineList returns the numbers of lines, which are in order, as text: "line 3", "lines 3 and 7". It lists at most maxLineList, and then
// how many more there are.
func lineList(at []int) string {
	at = slices.Compact(at)
	names := make([]string, 0, maxLineList+1)
	for _, n := range at[:min(len(at), maxLineList)] {
		names = append(names, fmt.Sprint(n))
	}
	if more := len(at) - maxLineList; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	if len(names) == 1 {
		return "line " + names[0]
	}
	return "lines " + strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// matchWithoutSpacing returns the only run of whole lines that differs from old in white space only, with repl indented as the file is, and
// names these lines. The error shows where to look.
func matchWithoutSpacing(text, old, repl string) (place, string, error) {
	have, want := strings.SplitAfter(text, "\n"), strings.Split(strings.TrimSuffix(old, "\n"), "\n")
	if have[len(have)-1] == "" {
		have = have[:len(have)-1]
	}
	keys, wanted := make([]string, len(have)), make([]string, len(want))
	for i, l := range have {
		keys[i] = squeeze(l)
	}
	for i, l := range want {
		wanted[i] = squeeze(l)
	}
	var starts []int
	if strings.TrimSpace(old) != "" {
		// Both begin and end with a newline, so that only whole lines match.
		all, sought := "\n"+strings.Join(keys, "\n")+"\n", "\n"+strings.Join(wanted, "\n")+"\n"
		for at, line := 0, 0; len(starts) <= maxLineList; {
			i := strings.Index(all[at:], sought)
			if i < 0 {
				break
			}
			line += strings.Count(all[at:at+i], "\n")
			starts = append(starts, line)
			at, line = at+i+1, line+1
		}
	}
	switch {
	case len(starts) > 1:
		for i := range starts {
			starts[i]++
		}
		return place{}, "", fmt.Errorf("old does not occur in the file; %s begin texts that differ from it in white space only; copy one exactly, with more of its surroundings", lineList(starts))
	case len(starts) == 0:
		return place{}, "", nearest(have, want, keys, wanted)
	}
	i := starts[0]
	run := have[i : i+len(want)]
	repl, ok := indentedAs(repl, want, run)
	if !ok {
		return place{}, "", errors.New("old does not occur in the file; " + difference(run, want, i))
	}
	from := len(strings.Join(have[:i], ""))
	to := from + len(strings.Join(run, ""))
	switch last := run[len(run)-1]; {
	case !strings.HasSuffix(old, "\n"): // keep the file's line end
		to -= len(last) - len(strings.TrimRight(last, "\r\n"))
	case !strings.HasSuffix(last, "\n"): // a missing one stays missing
		repl = strings.TrimSuffix(strings.TrimSuffix(repl, "\n"), "\r")
	}
	return place{from, to, repl}, linesFrom(i, len(run)), nil
}

func squeeze(line string) string { return strings.Join(strings.Fields(line), " ") }

func indent(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " \t"))] }

// indentedAs changes the indentation of repl by mapping indentations in old to those of the same lines in file. ok is false
// if one indentation would map to two.
func indentedAs(repl string, old, file []string) (_ string, ok bool) {
	becomes := map[string]string{}
	for i, l := range old {
		if squeeze(l) == "" {
			continue
		}
		was, is := indent(l), indent(file[i])
		if before, ok := becomes[was]; ok && before != is {
			return "", false
		}
		becomes[was] = is
	}
	lines := strings.SplitAfter(repl, "\n")
	for i, l := range lines {
		if squeeze(l) == "" {
			continue
		}
		best, found := "", false
		for was := range becomes {
			if strings.HasPrefix(indent(l), was) && (!found || len(was) > len(best)) {
				best, found = was, true
			}
		}
		if !found {
			return "", false
		}
		lines[i] = becomes[best] + l[len(best):]
	}
	return strings.Join(lines, ""), true
}

// nearest returns the error for a text that is not in the file: it shows the most similar lines and the difference.
func nearest(have, want, keys, wanted []string) error {
	votes := map[int]int{} // by the index of a run's first line: how many lines of want agree
	at := map[string][]int{}
	for j, k := range keys {
		if k != "" {
			at[k] = append(at[k], j)
		}
	}
	for i, k := range wanted {
		if places := at[k]; len(places) <= maxLineList { // a line that occurs often is not significant
			for _, j := range places {
				votes[j-i]++
			}
		}
	}
	start, best := 0, 0
	for s, n := range votes {
		if n > best || n == best && s < start {
			start, best = s, n
		}
	}
	if best == 0 {
		i := 0
		for k := range wanted {
			if len(wanted[k]) > len(wanted[i]) {
				i = k
			}
		}
		score := 0.0
		for j, k := range keys {
			if s := similarity(wanted[i], k); s > score {
				start, score = j-i, s
			}
		}
		if score < minSimilarity {
			return errors.New("old does not occur in the file, nor anything like it; read it again and copy the text exactly")
		}
	}
	from, to := max(start, 0), min(max(start+len(want), 1), len(have))
	return errors.New("old does not occur in the file; " + difference(have[from:to], want, from))
}

// difference shows how old would have to be changed to match the lines from index at on.
func difference(run, old []string, at int) string {
	text := string(diff.Diff("old", []byte(strings.Join(old, "\n")+"\n"), "file", []byte(strings.TrimRight(strings.Join(run, ""), "\r\n")+"\n")))
	var lines strings.Builder
	for i, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if i > 2 && !strings.HasPrefix(l, "@@") { // the first three are the header
			lines.WriteString("\n" + l)
		}
	}
	shown, _ := Bound(lines.String(), maxNearest)
	return fmt.Sprintf("the nearest is %s (- is old, + is the file):%s", linesFrom(at, len(run)), shown)
}

func linesFrom(at, n int) string {
	if n == 1 {
		return fmt.Sprintf("line %d", at+1)
	}
	return fmt.Sprintf("lines %d-%d", at+1, at+n)
}

// similarity returns how much of two lines is the same at their beginnings and at their ends, from 0 to 1.
func similarity(a, b string) float64 {
	same, shorter := 0, min(len(a), len(b))
	for same < shorter && a[same] == b[same] {
		same++
	}
	for i := 1; same < shorter && a[len(a)-i] == b[len(b)-i]; i++ {
		same++
	}
	return 2 * float64(same) / float64(max(len(a)+len(b), 1))
}
