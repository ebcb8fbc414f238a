package offline

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// intentsText is the table: what people say, what is run, how the answer reads. Its head describes the format.
//
//go:embed intents.txt
var intentsText string

// table is intents.txt, parsed when the first prompt comes: its expressions take milliseconds to compile. What is wrong in
// it panics, as each test of this package would.
var table = sync.OnceValue(func() (list []*intent) {
	words := map[string]string{}
	group := intent{}
	current := &group
	for line := range strings.Lines(intentsText) {
		key, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case key == "", key[0] == '#':
		case key == "word":
			name, phrase, _ := strings.Cut(rest, " = ")
			words[name] = phrase
		case key == "group":
			group = intent{group: rest, no: "nothing was changed"}
			current = &group
		case key == "intent":
			name, hidden := strings.CutPrefix(rest, "-")
			current = &intent{group: group.group, name: name, hidden: hidden, no: group.no, lacks: group.lacks, shared: group.when}
			list = append(list, current)
		default:
			current.set(key, strings.ReplaceAll(rest, `\n`, "\n"), words)
		}
	}
	return list
})

// An intent is a row of the table.
type intent struct {
	group  string // the heading in help
	name   string // an example of what to say
	hidden bool   // not listed in help
	say    []*regexp.Regexp
	steps  []step
	rows   []*regexp.Regexp
	when   []condition
	shared []condition // those of its group, tried after its own
	none   string
	lacks  string // answer where no call could be made
	fail   string
	answer string
	no     string // what a refusal left undone
}

// A step is one tool call of an intent.
type step struct {
	tool    string
	text    string // the command, or the arguments as JSON, with placeholders
	purpose string // of a command, shown while the shell is lent
	after   string // "run": all before succeeded; "also": in any case
}

// A condition is an answer for output that matches.
type condition struct {
	pattern *regexp.Regexp
	says    string
}

// set adds one line of the table to an intent.
func (in *intent) set(key, rest string, words map[string]string) {
	switch key {
	case "say":
		for _, phrase := range alternatives(rest) {
			in.say = append(in.say, phrasePattern(phrase, words))
		}
	case "run", "also":
		command, purpose, _ := strings.Cut(rest, "  # ")
		in.steps = append(in.steps, step{tool: "bash", text: command, purpose: purpose, after: key})
	case "call":
		tool, arguments, _ := strings.Cut(rest, " ")
		in.steps = append(in.steps, step{tool: tool, text: arguments, after: "run"})
	case "rows":
		in.rows = append(in.rows, regexp.MustCompile(rest))
	case "when":
		pattern, says, _ := strings.Cut(rest, " -> ")
		in.when = append(in.when, condition{regexp.MustCompile(pattern), says})
	case "none":
		in.none = rest
	case "without":
		in.lacks = rest
	case "fail":
		in.fail = rest
	case "answer":
		in.answer = rest
	case "no":
		in.no = rest
	default:
		panic("intents.txt: unknown word " + key)
	}
}

// alternatives splits a line of phrases at each | outside of brackets.
func alternatives(line string) (list []string) {
	depth, start := 0, 0
	for i, r := range line {
		switch {
		case r == '(' || r == '[':
			depth++
		case r == ')' || r == ']':
			depth--
		case r == '|' && depth == 0:
			list = append(list, line[start:i])
			start = i + 1
		}
	}
	return append(list, line[start:])
}

const oneName = "\"[^\"]+\"|'[^']+'|`[^`]+`|[^\\s\"'`]\\S*"

// captures are the placeholders of phrases: the argument each is kept as, and what it matches.
var captures = map[string][2]string{
	"file": {"file", oneName}, "to": {"to", oneName}, "name": {"name", `[A-Za-z][\w./+-]*`},
	"path": {"file", "\"[^\"]+\"|'[^']+'|`[^`]+`|" + `[\w./~+*-]*\.\w{1,8}|[\w./~+-]*/[\w./~+-]*[\w+-]|makefile|dockerfile|readme|license|changelog`},
	"n":    {"n", `\d{1,7}`}, "text": {"text", `\S.*?`}, "quoted": {"text", "\"[^\"]+\"|'[^']+'|`[^`]+`"},
	"old": {"old", "\"[^\"]*\"|'[^']*'|`[^`]*`|\\S+"}, "new": {"new", "\"[^\"]*\"|'[^']*'|`[^`]*`|\\S+"},
	"role": {"role", `engineer|reviewer|explorer`}, "command": {"text", "`[^`]+`"},
	// A known program with any words, or any word: alone, or before what looks like an option, a path, a number or a redirection.
	"shell": {"text", `(?:\./|(?:go|npm|cargo|make|git|python3?|node|ls|cat|echo|grep|find|sort|head|tail|docker|kubectl|pytest|bash|sh|curl|date|df|du|ps|true|false|printf|uname|whoami|sleep)\b).*|[\w.-]+(?: [-/.~$%"'|<>&\d].*)?`},
	// A command as it is typed in a shell: a program that is no word of English, or one before what looks like an option or a path.
	"plain": {"text", `(?:echo|printf|seq|hostname|nproc|printenv|chmod|wc|tree|sudo|docker|kubectl|npm|pip3?|apt|apt-get|brew|systemctl|tar|unzip|sed|awk|jq)\b.*|\./.*|[a-z][\w-]* (?:-{1,2}[a-z]|[/~$]).*`},
}

// phrasePattern compiles a phrase of the table. Each word has the blank before it in its pattern, so that an optional part is left out
// with its blanks; the prompt is matched with a blank in front.
func phrasePattern(phrase string, words map[string]string) *regexp.Regexp {
	var b strings.Builder
	writePhrase(&b, phrase, words)
	return regexp.MustCompile("(?is)^" + b.String() + "$")
}

// phraseToken is a bracket, or a word.
var phraseToken = rx(`[()\[\]|]|[^()\[\]|\s]+`)

// writePhrase writes a phrase as a regular expression. words are the alternatives by the name that stands for them in <>. A ? after a
// word makes its last letter optional.
func writePhrase(b *strings.Builder, phrase string, words map[string]string) {
	for _, word := range phraseToken().FindAllString(phrase, -1) {
		inner := strings.Trim(word, "<>{}")
		switch {
		case word == "(", word == "[":
			b.WriteString("(?:")
		case word == "]":
			b.WriteString(")?")
		case word == ")", word == "|":
			b.WriteString(word)
		case word == "...":
			b.WriteString("(?: .*)?")
		case word[0] == '<':
			b.WriteString("(?:")
			writePhrase(b, words[inner], words)
			b.WriteString(")")
		case word[0] == '{':
			fmt.Fprintf(b, " (?P<%s>%s)", captures[inner][0], captures[inner][1])
		default:
			word, perhaps := strings.CutSuffix(word, "?")
			b.WriteString(" " + regexp.QuoteMeta(word))
			if perhaps {
				b.WriteString("?")
			}
		}
	}
}
