package compaction

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"sublet/wire"
	"sublet/wire/visible"
)

// Ledger is what a compaction must not lose. It is built by rules, not by a model, and accompanies the summary.
type Ledger struct {
	wire.Ledger
	Current string // the newest request, word for word
}

// Bounds of a ledger. Beyond them the oldest entries are dropped, but the newest limits: a long paste must not drop an earlier one.
const (
	maxLimits    = 200
	maxLimitText = 600 // bytes; a longer sentence is taken for pasted text, not for a limit
	maxDecisions = 120
	maxFiles     = 100
	maxCommands  = 240
	maxAnswers   = 120
	maxAnswer    = 200 // bytes
	maxCommand   = 77  // bytes
	maxOutcome   = 84  // bytes of what a command printed
	maxOpen      = 30
	maxReads     = 240
	maxErrors    = 3
	maxState     = 20       // shell changes, and questions
	maxChanged   = 120      // bytes of what a command changed in the shell
	maxAsked     = 30       // bytes of what a question was about: commands that ran are listed, too
	maxError     = 220      // bytes of an error's message, from its end
	maxPrompts   = 24 << 10 // bytes of the user's prompts that are kept word for word, the newest
	maxOldPrompt = 300      // bytes of each one before them
	maxLine      = 300      // bytes of a goal, decision, command or task
	maxScan      = 16384    // bytes from each end of a prompt that are searched for limits
	ledgerShare  = 10       // a ledger over a tenth of what is folded has fewer answers, commands and reads
	fewest       = 20       // of each of those, however little is folded
)

// lazy returns a regular expression that is compiled when it is first used.
func lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// standing matches sentences in which a user sets a limit for the rest of the conversation.
var standing = lazy(`(?i)\b(never|always|do not|don['’]?t|does not|must(?: not|n['’]?t)?|may not|only|cannot|can['’]?t|shall not|avoid|without asking|ask (?:me )?(?:first|before)|unless|no (?:new|more)|keep|stop|from now on|remember|prefer|leave .* alone|nicht|nie|niemals|immer|nur|kein(?:e|en|er)?|jamais|toujours|nunca|siempre)\b`)

// sentenceEnd matches the end of a sentence: punctuation before white space, or a newline. It does not match full stops
// inside words, numbers and paths ("main.go", "v1.2").
var sentenceEnd = lazy(`[.!?;](?:["')\]]*)(?:\s+|$)|\n+|。|！|？`)

// Limits returns the sentences of a user's prompt that set a limit, word for word, in order.
func Limits(prompt string) []string {
	if len(prompt) > 2*maxScan {
		prompt = visible.Cut(prompt, maxScan) + "\n" + visible.CutTail(prompt, maxScan)
	}
	var out []string
	for _, s := range sentences(prompt) {
		if len(s) <= maxLimitText && standing().MatchString(s) && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func sentences(text string) []string {
	var out []string
	from := 0
	for _, m := range append(sentenceEnd().FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
		if s := strings.TrimSpace(text[from:m[1]]); s != "" {
			out = append(out, s)
		}
		from = m[1]
	}
	return out
}

// Build makes the ledger of items that are to be summarised. first is the conversation's first request, which names the
// goal. Ledgers of earlier summaries among items are merged into it.
func Build(first string, items []Item) Ledger {
	l := Ledger{Ledger: wire.Ledger{Goal: line(first, maxLine)}}
	tools := map[string]Call{}
	for _, it := range items {
		switch it.Kind {
		case Summary:
			if it.Ledger != nil {
				l.merge(*it.Ledger)
			}
		case Request:
			l.Current = it.Text
			if !it.Machine {
				l.prompt(it)
			}
		case Answer:
			for _, m := range decision().FindAllStringSubmatch(it.Text, -1) {
				l.Decisions = addNewest(l.Decisions, line(m[1], maxLine))
			}
			if text := line(decision().ReplaceAllString(it.Text, ""), maxAnswer); text != "" && len(it.Calls) == 0 {
				l.Answers = append(l.Answers, text)
			}
			for _, c := range it.Calls {
				tools[c.ID] = c
			}
		case Results:
			for _, r := range it.Results {
				l.result(r, tools[r.CallID])
			}
			l.prompt(it)
		}
	}
	l.bound()
	return l
}

// shellChanged matches the note in a command's result about what it changed in the shell, other than the directory.
var shellChanged = lazy(`(?m)^\[changed in the shell: (.*?)(?:, look at .*)?\]$`)

// decision matches the lines in which an agent states a decision.
var decision = lazy(`(?im)^\W*decision:\W*(.+)$`)

func (l *Ledger) prompt(it Item) {
	for _, s := range Limits(it.Text) {
		l.Limits = addNew(l.Limits, s)
	}
	if text := strings.TrimSpace(it.Text); text != "" {
		l.Prompts = append(l.Prompts, withImages(text, it))
	}
}

// result adds the result r of call c.
func (l *Ledger) result(r Result, c Call) {
	switch {
	case r.IsError || r.ExitCode != nil && *r.ExitCode != 0:
		name := cmp.Or(r.Tool, "a call")
		if r.Command != "" {
			name = "`" + commandText(r.Command) + "`"
		}
		if text := plain(r.Content); text != "" {
			l.Errors = append(l.Errors, name+": "+strings.TrimSpace(visible.CutTail(text, maxError)))
		}
	case c.Tool == "read":
		if path, lines := readOf(c.Arguments); path != "" {
			l.Reads = addRead(l.Reads, path, lines)
		}
	case c.Tool == "todo", c.Tool == "plan":
		l.OpenTasks = openSteps(r.Content)
	}
	for _, f := range r.Files {
		l.Files = addNewest(l.Files, f)
	}
	if r.Command != "" {
		l.command(commandText(r.Command), outcome(r.Content), r.ExitCode)
	}
	if r.Cwd != "" {
		l.ShellState = workingDirectory + r.Cwd
	}
	switch {
	case r.Decision != "":
		l.Decisions = addNewest(l.Decisions, line(r.Decision, maxLine))
	case r.Answer != "":
		path, _ := readOf(c.Arguments)
		l.Questions = addNewest(l.Questions, r.Answer+" `"+line(cmp.Or(r.Command, strings.TrimSpace(r.Tool+" "+path)), maxAsked)+"`")
	}
	if m := shellChanged().FindAllStringSubmatch(r.Content, -1); m != nil && r.ExitCode != nil { // the last: output may have such a line, too
		l.Changes = addNewest(l.Changes, line(m[len(m)-1][1], maxChanged))
	}
}

// command adds a command. It replaces an equal one before it, of which only the outcomes stay, before the new one.
func (l *Ledger) command(text, printed string, exit *int) {
	for i, old := range l.Commands {
		if before, _, _ := strings.Cut(string(old.Command), " # "); before != text {
			continue
		}
		l.Commands = slices.Delete(l.Commands, i, i+1)
		outcomes := strings.Split(strings.TrimPrefix(strings.TrimPrefix(withExit(old), text), " # "), then)
		if last := len(outcomes) - 1; outcomes[last] == withExit(wire.LedgerCommand{Command: wire.OSString(printed), ExitCode: exit}) {
			outcomes = outcomes[:last]
		}
		outcomes = slices.DeleteFunc(outcomes, func(o string) bool { return o == "" })
		earlier := strings.TrimSpace(strings.Join(outcomes, then))
		if len(earlier) > 2*maxOutcome {
			earlier = "…" + visible.CutTail(earlier, 2*maxOutcome)
		}
		if earlier != "" {
			printed = earlier + then + printed
		}
		break
	}
	if printed != "" {
		text += " # " + printed
	}
	l.Commands = append(l.Commands, wire.LedgerCommand{Command: wire.OSString(text), ExitCode: exit})
}

// then stands between the outcomes of a command that ran several times.
const then = " → "

// commandText returns a command in short, without what only cuts its output.
func commandText(command string) string {
	return line(cutsOutput().ReplaceAllString(command, ""), maxCommand)
}

// cutsOutput matches the parts of a command that merge or cut its output.
var cutsOutput = lazy(`\s*2>(?:&1|/dev/null)|\s*\|\s*(?:tail|head)\s+-(?:n\s*)?\d+\b`)

// plain returns an output on one line, without the rules that it draws.
func plain(content string) string {
	return strings.Join(strings.Fields(rule().ReplaceAllString(content, "")), " ")
}

var rule = lazy(`[-=_*#~^]{4,}`)

// withExit returns a command and how it ended.
func withExit(c wire.LedgerCommand) string {
	switch {
	case c.ExitCode == nil:
		return string(c.Command) + " (no exit code)"
	case *c.ExitCode != 0:
		return fmt.Sprintf("%s (exit code %d)", c.Command, *c.ExitCode)
	}
	return string(c.Command)
}

// outcome returns in one line what a command printed: all of it where that is short, else the lines that report what failed, the address
// in it, at which what it started may still listen, or its last line.
func outcome(content string) string {
	content = shellChanged().ReplaceAllString(content, "")
	content, _, _ = strings.Cut(content, "\n[exit code ") // is kept next to it
	content = strings.TrimPrefix(strings.TrimSpace(content), "[no output]")
	if all := plain(content); len(all) <= maxOutcome {
		return all
	}
	if failed := failure().FindAllString(content, 6); failed != nil {
		return line(strings.Join(failed, "; "), maxOutcome)
	}
	if at := address().FindString(content); at != "" {
		return at
	}
	return "… " + line(content[strings.LastIndexByte(content, '\n')+1:], maxOutcome)
}

// failure matches the lines in which compilers, tests and interpreters report what is wrong.
var failure = lazy(`(?m)^.*(?:\bFAIL(?:ED)?\b|\bnot ok\b|\b[Ee]rror\b|[A-Za-z](?:Error|Exception|Warning)(?::|\s*$)|\bfatal\b|\bpanic\b|\bgot .*\bwant\b).*$`)

// address matches the address or port that a server prints when it begins to listen.
var address = lazy(`(?i)\bhttps?://[\w.\-\[\]:]+:\d+|\b(?:localhost|(?:\d{1,3}\.){3}\d{1,3}):\d+\b|\bport:?\s+\d{2,5}\b`)

// merge puts the entries of an earlier summary's ledger before those of l. A summary is the first of the items that are compacted, so
// nothing newer is overwritten.
func (l *Ledger) merge(old Ledger) {
	l.Goal, l.Current, l.ShellState = cmp.Or(old.Goal, l.Goal), cmp.Or(old.Current, l.Current), cmp.Or(old.ShellState, l.ShellState)
	l.Limits = slices.Concat(old.Limits, l.Limits)
	l.Prompts = slices.Concat(old.Prompts, l.Prompts)
	l.Answers = slices.Concat(old.Answers, l.Answers)
	l.Decisions = slices.Concat(old.Decisions, l.Decisions)
	l.Files = slices.Concat(old.Files, l.Files)
	l.Reads = slices.Concat(old.Reads, l.Reads)
	l.Commands = slices.Concat(old.Commands, l.Commands)
	l.Errors = slices.Concat(old.Errors, l.Errors)
	l.OpenTasks = slices.Clone(old.OpenTasks)
	l.Changes = slices.Concat(old.Changes, l.Changes)
	l.Questions = slices.Concat(old.Questions, l.Questions)
}

// bound drops the oldest entries of each list beyond the list's limit, and shortens the oldest prompts. Of the limits that the user set the
// first are kept.
func (l *Ledger) bound() {
	l.Limits = l.Limits[:min(len(l.Limits), maxLimits)]
	l.Answers = newest(l.Answers, maxAnswers)
	l.Decisions = newest(l.Decisions, maxDecisions)
	l.Files = newest(l.Files, maxFiles)
	l.Commands = newest(l.Commands, maxCommands)
	l.OpenTasks = newest(l.OpenTasks, maxOpen)
	l.Reads = newest(l.Reads, maxReads)
	l.Errors = newest(l.Errors, maxErrors)
	l.Changes = newest(l.Changes, maxState)
	l.Questions = newest(l.Questions, maxState)
	l.Prompts = shortenedPrompts(l.Prompts, maxPrompts)
}

// narrow drops the oldest answers, commands and reads, but the newest fewest of each, until the ledger fits.
func (l *Ledger) narrow(fewest int, fits func() bool) {
	for max(len(l.Answers), len(l.Commands), len(l.Reads)) > fewest && !fits() {
		l.Answers = newest(l.Answers, max(len(l.Answers)*9/10, fewest))
		l.Commands = newest(l.Commands, max(len(l.Commands)*9/10, fewest))
		l.Reads = newest(l.Reads, max(len(l.Reads)*9/10, fewest))
	}
}

// shortenedPrompts returns a copy of prompts in which the newest, up to room bytes, are whole and the others are cut to
// maxOldPrompt bytes.
func shortenedPrompts(prompts []string, room int) []string {
	out := slices.Clone(prompts)
	for i, p := range slices.Backward(out) {
		if room -= len(p); room < 0 && len(p) > maxOldPrompt {
			out[i] = visible.Cut(p, maxOldPrompt) + " […]"
		}
	}
	return out
}

func newest[T any](list []T, n int) []T { return list[max(0, len(list)-n):] }

// addNew appends s unless list contains it.
func addNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// addNewest appends s and removes an equal entry before it.
func addNewest[T comparable](list []T, s T) []T {
	if i := slices.Index(list, s); i >= 0 {
		list = slices.Delete(slices.Clone(list), i, i+1)
	}
	return append(list, s)
}

// workingDirectory begins the state of a shell.
const workingDirectory = "working directory "

// Text returns the ledger as text for the model, without Current: the caller sends that as a message of the user. Nothing stands in it
// twice: a limit is left out that is in a prompt, a read of a file that was changed, and what a command printed that is in an error.
func (l Ledger) Text() string {
	var b strings.Builder
	section := func(title string, list []string) {
		if len(list) == 0 {
			return
		}
		fmt.Fprintf(&b, "%s:\n", title)
		for _, s := range list {
			fmt.Fprintf(&b, "- %s\n", s)
		}
	}
	if l.Goal != "" {
		fmt.Fprintf(&b, "Goal: %s\n", l.Goal)
	}
	section("Limits the user set, in their words; they still hold", slices.DeleteFunc(slices.Clone(l.Limits), func(limit string) bool {
		return slices.ContainsFunc(l.Prompts, func(p string) bool { return strings.Contains(p, limit) })
	}))
	section("The user's words; limits in them still hold", l.Prompts)
	section("Your answers", l.Answers)
	section("Decisions", l.Decisions)
	answered := func(answer string) (questions []string) {
		for _, q := range l.Questions {
			if about, ok := strings.CutPrefix(q, answer); ok {
				questions = append(questions, about)
			}
		}
		return questions
	}
	for _, row := range [][2]string{
		{"The user allowed", strings.Join(answered("allowed "), "; ")},
		{"The user refused", strings.Join(answered("refused "), "; ")},
		{"Shell", l.ShellState},
		{"Changed in the shell", strings.Join(l.Changes, "; ")},
	} {
		if row[1] != "" {
			fmt.Fprintf(&b, "%s: %s\n", row[0], row[1])
		}
	}
	cwd, known := strings.CutPrefix(l.ShellState, workingDirectory)
	var changed []string // relative to cwd where they are below it
	for _, f := range l.Files {
		path := string(f)
		if below, ok := strings.CutPrefix(path, cwd+"/"); ok && known {
			path = below
		}
		changed = append(changed, path)
	}
	section("Files changed", changed)
	section("Other files read", slices.DeleteFunc(slices.Clone(l.Reads), func(f string) bool {
		return slices.Contains(changed, f) || slices.Contains(l.Files, wire.OSString(f))
	}))
	var commands []string
	for _, c := range l.Commands {
		text, printed, _ := strings.Cut(string(c.Command), " # ")
		if slices.ContainsFunc(l.Errors, func(e string) bool {
			return strings.HasPrefix(e, "`"+text+"`") && strings.Contains(e, strings.TrimPrefix(printed, "… "))
		}) {
			c.Command = wire.OSString(text)
		}
		commands = append(commands, withExit(c))
	}
	section("Commands (exit code 0 unless another is given)", commands)
	section("Newest errors", l.Errors)
	section("Open tasks", l.OpenTasks)
	return strings.TrimRight(b.String(), "\n")
}
