package offline

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// A clause is a part of a prompt that one intent takes.
type clause struct {
	intent *intent
	said   string
	args   map[string]string
}

var (
	politeBefore = rx(`(?i)^(?:(?:hey|hi|hello)(?: there| sublet| all)?[,!]\s+|(?:ok|okay|so|well|now|and|please|pls|kindly|just|quickly)[,!]?\s+|(?:sublet|agent|bot)[,:]\s*|(?:can|could|would|will) (?:you|u)(?: please)?\s+|i(?:'d| would) like (?:you )?to (?:know |see )?|i (?:want|need) (?:you )?to (?:know |see )?|(?:let's|lets|let us)\s+|help me(?: to)?\s+|do you know\s+|tell me,?\s+(?:please\s+)?)`)
	politeAfter  = rx(`(?i)(?:[\s,]+(?:please|pls|for me|thanks|thank you|thx|right now|now|again please))+$`)
	thenWord     = rx(`(?i)\s*(?:,\s*(?:and\s+)?then|;\s*(?:and\s+)?(?:then)?|\s+and\s+then|\s+and\s+afterwards|\.\s+then|\s+then)\s+`)
	again        = rx(`(?i)^(?:(?:do (?:it|that) )?(?:once )?again|repeat(?: that| it)?|once more|(?:try|same) again|retry)$`)
	spaces       = rx(`[ \t]+`)
	pauses       = rx(`[,:](\s|$)`)
)

// maxPrompt is the longest prompt that is looked at whole, in bytes; of a longer one only the beginning.
const maxPrompt = 600

// tidy takes courtesies and end marks off, so that phrases need not know them.
func tidy(s string) string {
	s = strings.TrimSpace(strings.NewReplacer("’", "'", "‘", "'", "“", `"`, "”", `"`, "\u00a0", " ").Replace(s))
	if cut := maxPrompt; len(s) > cut {
		for !utf8.RuneStart(s[cut]) {
			cut--
		}
		s, _, _ = strings.Cut(s[:cut], "\n")
	}
	s = spaces().ReplaceAllString(s, " ")
	for before := ""; s != before; {
		before = s
		s = politeBefore().ReplaceAllString(s, "")
		s = politeAfter().ReplaceAllString(s, "")
		s = strings.TrimRight(s, " \n?!")
		if t := strings.TrimSuffix(s, "."); t != "" && !strings.HasSuffix(t, " ") && !strings.HasSuffix(t, ".") {
			s = t
		}
	}
	return s
}

// match finds who takes the prompt: one clause, or several joined by "then" if each is understood; nil if nobody does.
func match(j *job) []clause {
	said := tidy(j.said)
	if again().MatchString(said) && len(j.earlier) > 0 {
		said = tidy(j.earlier[len(j.earlier)-1])
	}
	if parts := thenWord().Split(said, 5); len(parts) > 1 {
		var list []clause
		for _, p := range parts {
			if c, ok := matchOne(tidy(p)); ok {
				list = append(list, c)
			}
		}
		if len(list) == len(parts) {
			return list
		}
	}
	if c, ok := matchOne(said); ok {
		return []clause{c}
	}
	return nil
}

// matchOne tries the table from its beginning, also without the commas and colons between words.
func matchOne(said string) (clause, bool) {
	for _, text := range []string{said, pauses().ReplaceAllString(said, "$1")} {
		for _, in := range table() {
			for _, re := range in.say {
				if m := re.FindStringSubmatch(" " + text); m != nil {
					return clause{intent: in, said: said, args: arguments(re, m)}, true
				}
			}
		}
	}
	return clause{}, false
}

// arguments are what the groups of an expression caught, without quotes and, but for a free text, the end marks of a sentence.
func arguments(re *regexp.Regexp, m []string) map[string]string {
	args := map[string]string{}
	for i, name := range re.SubexpNames() {
		s := strings.TrimSpace(m[i])
		if name == "" || s == "" {
			continue
		}
		n := len(s)
		if n >= 2 && strings.IndexByte("\"'`", s[0]) >= 0 && s[n-1] == s[0] {
			s = s[1 : n-1]
		} else if t := strings.TrimRight(s, ",;:?!"); t != "" && name != "text" {
			s = t
		}
		args[name] = s
	}
	return args
}
