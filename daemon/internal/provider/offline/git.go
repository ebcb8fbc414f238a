package offline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// gitIntents look at a repository; none changes it. Git is told each time to use no pager: it runs on a terminal.
var gitIntents = []intent{
	{
		name:    "conflicts",
		example: "are there merge conflicts",
		patterns: []string{
			`\b(?:merge )?conflicts?\b(?:.*\b(?:here|now|left|there|any|which|files?)\b)?`,
		},
		plan: steps(run("files with conflicts", "git --no-pager diff --name-only --diff-filter=U")),
		answer: func(j *job) string {
			r := j.last()
			if !r.ok() {
				return trouble(r)
			}
			files := r.lines()
			if len(files) == 0 {
				return "No file has a merge conflict."
			}
			for i, f := range files {
				files[i] = code(f)
			}
			return fmt.Sprintf("**%s** in conflict: %s. Open each, decide between the parts at `<<<<<<<` and `>>>>>>>`, `git add` it, then commit; `git merge --abort` gives the merge up.", count(len(files), "file"), list(files, 20))
		},
		no: "I did not look",
	},
	{
		name:    "diff",
		example: "show the diff",
		patterns: []string{
			`^{show} (?:the |my )?(?:full |whole |git )?(?:diff|patch)(?: (?:of|for|in) (?:the )?(?:file )?{file})?$`, `^(?:git )?diff(?: (?:of |for )?(?P<file>[\w./~+-]+))?$`, `^what (?:exactly )?(?:changed|did i change|was changed|is different|has changed) in (?:the file )?(?P<file>[\w./~+-]*[\w~+-]\.\w+|[\w./~+-]+/[\w./~+-]+)$`,
			`^{show} (?:my |the )?(?:changes|modifications) (?:in detail|line by line|(?:in|of|to) (?:the file )?(?P<file>\S+\.\w+))$`,
		},
		plan: steps(func(j *job) *call {
			if f := j.args["file"]; f != "" && !isHere.MatchString(f) {
				return bash("what was changed in "+f, "git --no-pager diff HEAD --", file(f))
			}
			return bash("what was changed", "git --no-pager diff HEAD")
		}),
		answer: diffAnswer, no: "I did not look",
	},
	{
		name:    "who changed",
		example: "who changed FILE",
		patterns: []string{
			`^who (?:has |last )?(?:last )?(?:changed|modified|edited|touched|wrote|committed|made|authored|works? on|worked on|created)(?: to| in)?(?: the)?(?: file| folder)? (?P<file>[\w./~+-]+|"[^"]+"|'[^']+')(?: last| lately| recently)?$`, `^(?:{show} )?(?:the )?(?:git )?(?:history|log|commits|changes|authors?) (?:of|for|to|in) (?:the )?(?:file |folder )?(?P<file>[\w./~+-]*[\w~+-]\.\w+|[\w./~+-]+/[\w./~+-]*)$`,
			`^(?:git )?blame (?P<file>[\w./~+-]+)$`, `^when was (?P<file>\S+) last (?:changed|modified|edited|committed|touched)$`,
		},
		plan: steps(func(j *job) *call {
			return bash("who changed "+j.args["file"], "git --no-pager log --follow -n 30 --date=short --format='%h|%ad|%an|%s' --", file(j.args["file"]))
		}),
		answer: whoChanged, no: "I did not look",
	},
	{
		name:     "blame line",
		example:  "who wrote line 12 of FILE",
		patterns: []string{`^who (?:wrote|changed|added|edited) line {n} (?:of|in) (?:the )?(?:file )?{file}$`, `^(?:git )?blame line {n} (?:of|in) {file}$`},
		plan: steps(func(j *job) *call {
			return bash("who wrote that line", "git --no-pager blame --date=short -L", j.args["n"]+","+j.args["n"], "--", file(j.args["file"]))
		}),
		answer: func(j *job) string {
			r := j.last()
			if !r.ok() {
				return trouble(r)
			}
			m := blameLine.FindStringSubmatch(r.text)
			if m == nil {
				return fence("", r.text, 5, true)
			}
			if strings.HasPrefix(m[1], "0000000") {
				return "That line is not committed yet:\n\n" + fence("", m[4], 3, true)
			}
			return fmt.Sprintf("**%s**, on %s, in commit %s:\n\n%s", strings.TrimSpace(m[2]), m[3], code(strings.TrimLeft(m[1], "^")), fence("", m[4], 3, true))
		},
		no: "I did not look",
	},
	{
		name:    "last commit",
		example: "what was the last commit",
		patterns: []string{
			`^{show} (?:the )?(?:last|latest|newest|previous|most recent) commit$`, `^(?:what(?:'s| is| was)|{show}) in the (?:last|latest) commit$`, `^(?:the )?(?:last|latest) commit$`, `^git show$`, `^what (?:did i|was) (?:last )?commit(?:ted)?(?: last)?$`,
		},
		plan: steps(run("the newest commit", "git --no-pager show --stat --date=iso --format='%h|%ad|%an|%s' HEAD")),
		answer: func(j *job) string {
			r := j.last()
			if !r.ok() {
				return gitTrouble(r)
			}
			lines := r.lines()
			if len(lines) == 0 {
				return "There is no commit yet."
			}
			f := strings.SplitN(lines[0], "|", 4)
			if len(f) < 4 {
				return fence("", r.text, 20, true)
			}
			s := fmt.Sprintf("Commit %s by **%s**, %s: %s", code(f[0]), visible(f[2]), strings.Join(strings.Fields(f[1])[:min(2, len(strings.Fields(f[1])))], " "), quoteText(f[3]))
			if len(lines) > 1 {
				s += "\n\n" + fence("", strings.Join(lines[1:], "\n"), 25, false)
			}
			return s
		},
		no: "I did not look",
	},
	{
		name:    "contributors",
		example: "who works on this project",
		patterns: []string{
			`^(?:who (?:works|worked|contributed|wrote|has (?:worked|contributed)|are the (?:authors|contributors))|{show} (?:the )?(?:authors|contributors|committers)|(?:authors|contributors|shortlog))\b`, `^how many commits\b`,
		},
		plan: steps(run("commits by author", "git --no-pager shortlog -sn HEAD")),
		answer: func(j *job) string {
			r := j.last()
			if !r.ok() {
				return gitTrouble(r)
			}
			var rows [][]string
			total := int64(0)
			for _, l := range r.lines() {
				n, name, ok := strings.Cut(strings.TrimSpace(l), "\t")
				if v, err := strconv.ParseInt(n, 10, 64); ok && err == nil {
					total += v
					rows = append(rows, []string{number(v), visible(name)})
				}
			}
			if len(rows) == 0 {
				return "There is no commit yet."
			}
			return fmt.Sprintf("**%s** by %s:\n\n", count(int(total), "commit"), count(len(rows), "author")) + mdTable([]string{"commits", "author"}, rows[:min(len(rows), 15)])
		},
		no: "I did not look",
	},
	{
		name:    "log",
		example: "recent commits",
		patterns: []string{
			`^(?:{show} )?(?:the |my )?(?:recent|last|latest|newest|git) (?:{n} )?(?:commits|log|history)\b`, `^(?:{show} )?(?:the )?(?:commit|git|project) (?:log|history|commits)$`, `^(?:log|commits|git log)$`, `^what (?:was|has been|were) (?:recently )?(?:committed|done)(?: recently| lately| here)?$`, `^what happened (?:here|in (?:git|the repo|this (?:repo|project)))(?: recently| lately)?$`, `^{show} (?:the )?(?:last )?{n} commits$`,
			`^what (?:changed|happened) (?:since )?(?P<since>today|yesterday|this week|last week)$`, `^what did (?:i|we) (?:do|commit) (?P<since>today|yesterday|this week|last week)$`,
		},
		plan: steps(func(j *job) *call {
			n, _ := strconv.Atoi(j.args["n"])
			if n <= 0 || n > 100 {
				n = 15
			}
			since := map[string]string{"today": " --since=midnight", "yesterday": " --since=yesterday.midnight", "this week": " --since='1 week ago'", "last week": " --since='2 weeks ago'"}[strings.ToLower(j.args["since"])]
			return bash("the newest commits", "git --no-pager log -n "+strconv.Itoa(n)+since+" --date=short --format='%h|%ad|%an|%s'")
		}),
		answer: func(j *job) string {
			r := j.last()
			if !r.ok() {
				return gitTrouble(r)
			}
			rows := commitRows(r.lines())
			if len(rows) == 0 {
				return "There is no commit in that time."
			}
			return fmt.Sprintf("The newest %s:\n\n", count(len(rows), "commit")) + mdTable([]string{"commit", "date", "author", "subject"}, rows)
		},
		no: "I did not look",
	},
	{
		name:    "branches",
		example: "show the branches",
		patterns: []string{
			`^{show} (?:the |my |git |local )?branch(?:es)?(?: are there| do (?:i|we) have| exist)?$`, `^(?:git )?branch(?:es)?$`, `^(?:what|which) branch(?:es)? (?:am i on|is this|are there|is (?:checked out|current)|do (?:i|we) have|exist)$`, `^(?:the )?current branch$`, `^(?:on )?which branch$`,
		},
		plan: steps(run("the branches", "git --no-pager branch --no-color --sort=-committerdate -vv")),
		answer: func(j *job) string {
			r := j.last()
			if !r.ok() {
				return gitTrouble(r)
			}
			var rows [][]string
			current := ""
			for _, l := range r.lines() {
				m := branchLine.FindStringSubmatch(l)
				if m == nil {
					continue
				}
				name := code(m[2])
				if m[1] == "*" {
					current = name
					name += " ←"
				}
				rows = append(rows, []string{name, code(m[3]), visible(cut(m[4], 80))})
			}
			if len(rows) == 0 {
				return "There is no branch yet: nothing was committed."
			}
			s := count(len(rows), "branch")
			if current != "" {
				s = "You are on " + current + "; " + s + " in all"
			}
			return s + ":\n\n" + mdTable([]string{"branch", "commit", "subject"}, rows[:min(len(rows), 25)])
		},
		no: "I did not look",
	},
	{
		name:     "remotes",
		example:  "show the remotes",
		patterns: []string{`^{show} (?:the |git )?(?:remotes?|remote url|origin)(?: url)?$`, `^(?:git )?remotes?(?: -v)?$`, `^where (?:does|is) (?:this|origin|the remote|it) (?:push(?:ed)?|come|hosted)\b`},
		plan:     steps(run("the remotes", "git --no-pager remote -v")),
		answer: func(j *job) string {
			r := j.last()
			if !r.ok() {
				return gitTrouble(r)
			}
			if len(r.lines()) == 0 {
				return "This repository has no remote."
			}
			return fence("", r.text, 20, true)
		},
		no: "I did not look",
	},
	{
		name:     "tags",
		example:  "show the tags",
		patterns: []string{`^{show} (?:the |git |latest |last )?(?:tags|releases|versions)$`, `^(?:git )?tags?$`, `^what(?:'s| is| was) the (?:latest|last|newest) (?:tag|release|version)$`},
		plan:     steps(run("the newest tags", "git --no-pager tag --list --sort=-creatordate --format='%(refname:short)|%(creatordate:short)' | head -n 15")),
		answer: func(j *job) string {
			r := j.last()
			if !r.ok() {
				return gitTrouble(r)
			}
			var rows [][]string
			for _, l := range r.lines() {
				if name, date, ok := strings.Cut(l, "|"); ok {
					rows = append(rows, []string{code(name), date})
				}
			}
			if len(rows) == 0 {
				return "There is no tag yet."
			}
			return "The newest tag is " + rows[0][0] + ".\n\n" + mdTable([]string{"tag", "date"}, rows)
		},
		no: "I did not look",
	},
	{
		name:    "review",
		example: "review my changes",
		patterns: []string{
			`^(?:review|check|inspect|look (?:at|over)|critique|proofread)(?: at| over)? (?:the |my |these |this |all )*(?:recent |latest |last |uncommitted |current |new |working )*(?:changes?|diff|code$|work|edits|modifications|project|repo|repository|patch|commit)(?:\b.*)?$`, `^(?:code )?review$`,
		},
		plan: steps(
			run("what was changed", "git --no-pager diff --stat HEAD"),
			run("blanks at line ends, conflict marks", "git --no-pager diff --check HEAD"),
			run("the changes themselves", "git --no-pager diff -U0 HEAD"),
			run("files git does not know", "git ls-files --others --exclude-standard"),
		),
		answer: review, no: "I did not look",
	},
	{
		name:    "status",
		example: "what changed",
		patterns: []string{
			`^what(?:'s| is| has| have| was| did i| did we| all)?(?: been)? (?:changed?|new|modified|different|edited)(?: {here})?$`, `^(?:git )?(?:status|st)$`, `^{show} (?:the |my |git |all |current |uncommitted |local )*(?:changes|status|modifications|state of the repo)(?: {here})?$`,
			`^what (?:did|have) (?:i|we) (?:change|changed|modify|modified|edit|edited)(?: {here})?$`, `^(?:are there |do i have |any )?(?:uncommitted|unstaged|unsaved|local|pending) changes$`, `^is (?:the )?(?:repo|repository|working tree|tree|everything|git|it) (?:clean|dirty|committed|pushed|up to date)$`, `^which files (?:are|have been|were|did i) (?:changed|modified|change)$`, `^(?:have|did) i (?:committed|commit) everything$`,
		},
		plan: steps(
			run("the state of the repository", "git status --short --branch"),
			func(j *job) *call {
				if j.failed() || len(j.last().lines()) < 2 {
					return nil
				}
				return bash("how much was changed", "git --no-pager diff --stat HEAD")
			},
		),
		answer: status, no: "I did not look",
	},
}

var (
	blameLine  = rx(`^(\^?[0-9a-f]{7,40})\s+(?:\S+\s+)?\((.+?)\s+(\d{4}-\d\d-\d\d)\s+\d+\) ?(.*)`)
	branchLine = rx(`^([* +]) (\(.+?\)|\S+)\s+([0-9a-f]{7,40}) (.*)$`)
)

// gitTrouble says in plain words what git says most often when it will not.
func gitTrouble(r result) string {
	switch {
	case strings.Contains(r.text, "not a git repository"):
		return "This folder is not in a git repository."
	case strings.Contains(r.text, "does not have any commits yet"), strings.Contains(r.text, "ambiguous argument 'HEAD'"), strings.Contains(r.text, "bad revision 'HEAD'"), strings.Contains(r.text, "unknown revision"):
		return "There is no commit yet."
	}
	return trouble(r)
}

func commitRows(lines []string) (rows [][]string) {
	for _, l := range lines {
		if f := strings.SplitN(l, "|", 4); len(f) == 4 {
			rows = append(rows, []string{code(f[0]), f[1], visible(f[2]), visible(cut(f[3], 90))})
		}
	}
	return rows
}

// change is a line of git status --short.
type change struct {
	staged, unstaged byte
	name             string
}

func parseStatus(text string) (branch string, list []change) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if b, ok := strings.CutPrefix(line, "## "); ok {
			branch = b
			continue
		}
		if len(line) > 3 && line[2] == ' ' {
			list = append(list, change{line[0], line[1], line[3:]})
		}
	}
	return branch, list
}

func (c change) says() string {
	switch {
	case c.staged == '?':
		return "new"
	case c.staged == 'U' || c.unstaged == 'U' || c.staged == 'A' && c.unstaged == 'A' || c.staged == 'D' && c.unstaged == 'D':
		return "in conflict"
	case c.staged == 'A':
		return "added"
	case c.staged == 'R':
		return "renamed"
	case c.staged == 'D' || c.unstaged == 'D':
		return "deleted"
	}
	return "modified"
}

func status(j *job) string {
	r := j.results[0]
	if !r.ok() {
		return gitTrouble(r)
	}
	branch, changes := parseStatus(r.text)
	var b strings.Builder
	name, track, _ := strings.Cut(branch, "...")
	name = strings.TrimPrefix(name, "No commits yet on ")
	fmt.Fprintf(&b, "On branch %s", code(name))
	if m := aheadBehind.FindStringSubmatch(track); m != nil {
		fmt.Fprintf(&b, " (%s of %s)", m[2], code(m[1]))
	}
	if len(changes) == 0 {
		b.WriteString(": nothing changed since the last commit.")
		return b.String()
	}
	kinds := map[string]int{}
	staged := 0
	var rows [][]string
	for _, c := range changes {
		kinds[c.says()]++
		note := ""
		if c.staged != ' ' && c.staged != '?' {
			staged++
			note = "staged"
		}
		rows = append(rows, []string{c.says(), code(c.name), note})
	}
	var parts []string
	for _, k := range []string{"in conflict", "modified", "added", "deleted", "renamed", "new"} {
		if n := kinds[k]; n > 0 {
			parts = append(parts, number(int64(n))+" "+k)
		}
	}
	fmt.Fprintf(&b, ": **%s** (%s", count(len(changes), "changed file"), strings.Join(parts, ", "))
	if staged > 0 {
		fmt.Fprintf(&b, "; %d staged", staged)
	}
	b.WriteString(")")
	if len(j.results) > 1 && j.results[1].ok() {
		if lines := j.results[1].lines(); len(lines) > 0 {
			if m := statTotals.FindStringSubmatch(lines[len(lines)-1]); m != nil {
				b.WriteString("," + m[1])
			}
		}
	}
	b.WriteString(".\n\n" + mdTable([]string{"what", "file", ""}, rows[:min(len(rows), 30)]))
	if n := len(rows) - 30; n > 0 {
		fmt.Fprintf(&b, "\n\nand %s more.", number(int64(n)))
	}
	return b.String()
}

var (
	aheadBehind = rx(`^(\S+) \[(.+)\]$`)
	statTotals  = rx(`files? changed,(.*)$`)
)

func diffAnswer(j *job) string {
	r := j.last()
	if !r.ok() {
		return gitTrouble(r)
	}
	files, added, removed := diffCounts(r.text)
	if files == 0 {
		if f := j.args["file"]; f != "" {
			return code(f) + " is as it was at the last commit."
		}
		return "Nothing changed since the last commit (files that git does not know yet are not in a diff)."
	}
	return fmt.Sprintf("**%s**, %s added, %s removed.\n\n", count(files, "file"), count(added, "line"), number(int64(removed))) + fence("diff", r.text, 150, true)
}

func diffCounts(text string) (files, added, removed int) {
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "diff --git "):
			files++
		case strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "):
		case strings.HasPrefix(line, "+"):
			added++
		case strings.HasPrefix(line, "-"):
			removed++
		}
	}
	return files, added, removed
}

func whoChanged(j *job) string {
	r := j.last()
	if !r.ok() {
		return gitTrouble(r)
	}
	rows := commitRows(r.lines())
	name := code(j.args["file"])
	if len(rows) == 0 {
		return "Git knows no commit that touched " + name + ": it is new, ignored, or named otherwise."
	}
	authors := map[string]int{}
	var order []string
	for _, row := range rows {
		if authors[row[2]]++; authors[row[2]] == 1 {
			order = append(order, row[2])
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return authors[b] - authors[a] })
	for i, a := range order {
		order[i] = fmt.Sprintf("%s (%d)", a, authors[a])
	}
	return fmt.Sprintf("%s was last changed by **%s** on %s, in %s. By author in the newest %s: %s.\n\n", name, rows[0][2], rows[0][1], rows[0][0], count(len(rows), "commit"), list(order, 8)) +
		mdTable([]string{"commit", "date", "author", "subject"}, rows[:min(len(rows), 12)])
}
