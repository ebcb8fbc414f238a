package compaction

import (
	"slices"
	"strings"
)

// Unknown replaces what the model made up in a summary.
const Unknown = "[…]"

// facts matches what a summary must not make up: paths with a root, a dot or two slashes, file names, identifiers of several
// words, long options, and numbers of two digits and more. A small number may be a count of the model's own, and is not checked.
var facts = lazy(`(?:~|\.{1,2})?(?:/[\w.@~+-]+){2,}|[\w.@~+-]+(?:/[\w.@~+-]+){2,}|[\w@~+-]*/?[\w@+-]{2,}\.[a-z][a-z0-9]{0,4}\b|\b[A-Za-z]+(?:_[A-Za-z0-9]+)+\b|\b[A-Za-z][a-z0-9]+[A-Z]\w*|\b[A-Z]{2,}[a-z]{2,}\w*|\B--[a-z][a-z0-9-]+|\d[\d.,]*\d`)

// checked returns a model's summary with Unknown in place of each path, name and number that occurs nowhere in source. Case does not
// matter, nor do commas in a number.
func checked(summary, source string) string {
	source = strings.ToLower(source)
	return facts().ReplaceAllStringFunc(summary, func(fact string) string {
		word := strings.TrimRight(fact, ".,")
		rest := fact[len(word):]
		word = strings.ToLower(word)
		occurs := func(s string) bool { return contains(source, s) }
		switch {
		case occurs(word), occurs(strings.ReplaceAll(word, ",", "")):
			return fact
		case strings.Contains(word, "/") && !slices.ContainsFunc(strings.Split(word, "/"), func(part string) bool { return !occurs(part) }):
			return fact // a path of folders and names that occur, put together
		}
		return Unknown + rest
	})
}

// contains reports whether word occurs in source; a number inside a longer number does not count.
func contains(source, word string) bool {
	digit := func(at int) bool { return at >= 0 && at < len(source) && source[at] >= '0' && source[at] <= '9' }
	for from := 0; ; {
		at := strings.Index(source[from:], word)
		if at < 0 {
			return false
		}
		at += from
		end := at + len(word)
		if !(digit(at) && digit(at-1)) && !(digit(end-1) && digit(end)) {
			return true
		}
		from = at + 1
	}
}
