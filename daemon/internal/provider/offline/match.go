package offline

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// intent is something the model can do.
type intent struct {
	name     string
	example  string   // for the help; "" = not listed there
	patterns []string // what people say; see expand for the words in braces. Case does not count.
	// plan returns the next calls for the results so far, nil when there is enough to answer. A nil plan needs none.
	plan   func(j *job) []call
	answer func(j *job) string
	no     string // what a refusal left undone; "" = "nothing was changed"
}

func (in *intent) next(j *job) []call {
	if in.plan == nil {
		return nil
	}
	return in.plan(j)
}

// refusal is the answer to a no.
func (in *intent) refusal(_ *job, r result) string {
	undone := in.no
	if undone == "" {
		undone = "nothing was changed"
	}
	switch {
	case r.stopped == "cancelled":
		return "It was cancelled, so I stopped there: " + code(firstLine(r.command)) + " was ended. What had been done by then is done."
	case r.stopped == "interrupted":
		return "That was interrupted before it gave a result, so I cannot say what came of it. Ask again to try once more."
	case r.comment != "":
		return "You said no, so " + undone + ". You wrote: " + quoteText(r.comment) + " I work by fixed rules and cannot take that into account; ask in other words, or run the command yourself."
	case byUser.MatchString(r.why):
		return "You said no, so " + undone + "."
	}
	return "It was refused (" + visible(strings.TrimSpace(r.why)) + "), so " + undone + "."
}

// byUser tells a person's no ("refused by client NAME PID") from that of a rule, a mode, or nobody there to ask.
var byUser = rx(`^refused by (?:client|the user)\b`)

// clause is a part of a prompt that one intent takes.
type clause struct {
	intent *intent
	said   string
	args   map[string]string
}

// table is every intent with its compiled patterns, in the order they are tried: what is said more exactly first.
var table = sync.OnceValue(func() []compiled {
	var list []compiled
	for _, in := range slices.Concat(chatIntents, whyIntents, delegateIntents, gitWriteIntents, gitIntents, projectIntents, fileOpIntents, clockIntents, processIntents, systemIntents, fileIntents, lateIntents) {
		c := compiled{intent: &in}
		for _, p := range in.patterns {
			c.patterns = append(c.patterns, regexp.MustCompile(`(?is)`+expand(p)))
		}
		list = append(list, c)
	}
	return list
})

type compiled struct {
	intent   *intent
	patterns []*regexp.Regexp
}

// expand writes out the words in braces: {file} and {to} are a name, quoted or one word; {rest} is everything else;
// {here} is the folder one is in; {show} is a way to ask for something.
func expand(p string) string {
	name := func(group string) string {
		return `(?P<` + group + `>"[^"]+"|'[^']+'|` + "`[^`]+`" + `|[^\s"'` + "`" + `]\S*)`
	}
	return strings.NewReplacer(
		"{file}", name("file"), "{to}", name("to"), "{name}", name("name"),
		"{rest}", `(?P<rest>.+)`,
		"{n}", `(?P<n>\d+)`,
		"{here}", `(?:in |of |on |inside |under )?(?:here|this (?:folder|directory|dir|project|repo|repository|place)|the (?:current )?(?:folder|directory|dir|project|repo|repository|tree))`,
		"{show}", `(?:show|list|print|display|give|get|see|view|tell|what(?:'s| is| are| was| were|s)?|which)(?: me)?(?: all)?(?: of)?(?: the| my| our)?`,
	).Replace(p)
}

var (
	politeBefore = rx(`(?i)^(?:(?:hey|hi|hello)(?: there| sublet| all)?[,!]\s+|(?:ok|okay|so|well|now|and|please|pls|kindly|just|quickly)[,!]?\s+|(?:sublet|agent|bot)[,:]\s*|(?:can|could|would|will) (?:you|u)(?: please)?\s+|i(?:'d| would) like (?:you )?to (?:know |see )?|i (?:want|need) (?:you )?to (?:know |see )?|(?:let's|lets|let us)\s+|help me(?: to)?\s+|do you know\s+|tell me,?\s+(?:please\s+)?)`)
	politeAfter  = rx(`(?i)(?:[\s,]+(?:please|pls|for me|thanks|thank you|thx|right now|now|again please))+$`)
	thenWord     = rx(`(?i)\s*(?:,\s*(?:and\s+)?then|;\s*(?:and\s+)?(?:then)?|\s+and\s+then|\s+and\s+afterwards|\.\s+then|\s+then)\s+`)
	spaces       = rx(`[ \t]+`)
)

// maxPrompt is the longest prompt that is looked at whole, in bytes; of a longer one only the first sentence.
const maxPrompt = 600

// tidy takes courtesies and end marks off, so that patterns need not know them.
func tidy(s string) string {
	s = strings.TrimSpace(strings.NewReplacer("’", "'", "‘", "'", "“", `"`, "”", `"`, "\u00a0", " ").Replace(s))
	if len(s) > maxPrompt {
		cut := strings.IndexAny(s, "\n")
		if i := strings.Index(s, ". "); i >= 0 && (cut < 0 || i < cut) {
			cut = i
		}
		if cut <= 0 || cut > maxPrompt {
			for cut = maxPrompt; !utf8.RuneStart(s[cut]); {
				cut--
			}
		}
		s = s[:cut]
	}
	s = spaces.ReplaceAllString(s, " ")
	for range 6 {
		before := s
		s = politeBefore.ReplaceAllString(s, "")
		s = politeAfter.ReplaceAllString(s, "")
		s = strings.TrimRight(s, " \n?!")
		if t := strings.TrimSuffix(s, "."); !strings.HasSuffix(t, " .") && t != "" && !strings.HasSuffix(t, " ") && !strings.HasSuffix(t, ".") {
			s = t
		}
		if s == before {
			break
		}
	}
	return s
}

// match finds who takes the prompt: one clause, or several joined by "then" if each is understood; nil if nobody does.
func match(j *job) []clause {
	said := tidy(j.said)
	if again.MatchString(said) && len(j.earlier) > 0 {
		said = tidy(j.earlier[len(j.earlier)-1])
	}
	if parts := thenWord.Split(said, 5); len(parts) > 1 {
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

var again = rx(`(?i)^(?:(?:do (?:it|that) )?(?:once )?again|repeat(?: that| it)?|once more|(?:try|same) again|retry)$`)

// beyond is work that no rule can do, whatever else the prompt speaks of: “write a program that lists the biggest files”.
var beyond = rx(`(?i)^(?:(?:write|generate|create|make|develop|build|code|draft|compose|add|give)(?: me| us)? (?:an?|some|the|another|more) (?:[\w-]+ ){0,3}(?:program|function|class|method|story|poem|song|joke|email|essay|letter|article|app|application|website|web server|library|component|feature|unit tests?|tests?|error handling|documentation|regex)\b(?:.*\b(?:that|which|to|for|in|about)\b|$)|(?:implement|refactor|translate|rewrite|optimi[sz]e|design|invent|fix|debug|improve|port|convert|document)\b)`)

// named is making something that has a name, which may be a word of beyond: a branch called feature.
var named = rx(`(?i)^(?:create|make|add|start|open)(?: me)?(?: an?| the)?(?: new)?(?: git)? (?:branch|file|folder|directory|dir|tag)(?: called| named)? \S+$`)

func matchOne(said string) (clause, bool) {
	if beyond.MatchString(said) && !named.MatchString(said) {
		return clause{}, false
	}
	for _, c := range table() {
		for _, re := range c.patterns {
			m := re.FindStringSubmatch(said)
			if m == nil {
				continue
			}
			args := map[string]string{}
			for i, name := range re.SubexpNames() {
				if name != "" && m[i] != "" {
					args[name] = word(m[i], name)
				}
			}
			return clause{intent: c.intent, said: said, args: args}, true
		}
	}
	return clause{}, false
}

// word takes quotes and the end marks of a sentence off what was caught.
func word(s, group string) string {
	s = strings.TrimSpace(s)
	if n := len(s); n >= 2 && strings.IndexByte("\"'`", s[0]) >= 0 && s[n-1] == s[0] {
		return s[1 : n-1]
	}
	if group == "rest" {
		return s
	}
	if t := strings.TrimRight(s, ",;:?!"); t != "" {
		s = t
	}
	return s
}
