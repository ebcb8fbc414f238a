package offline

import (
	"fmt"
	"path"
	"strings"
)

// gitWriteIntents change a repository. Each is asked about by its risk.
var gitWriteIntents = []intent{
	{
		name:    "commit",
		example: "commit this",
		patterns: []string{
			`^(?:git )?commit(?: (?:this|it|that|all|everything|my (?:changes|work)|the changes|these changes|these|changes|all (?:my |the )?changes))?(?:,? (?:with|using|as)(?: the)?(?: (?:message|msg|text|comment))?:? (?P<rest>.+)| -(?:a?m|m) (?P<rest2>.+))?$`,
			`^(?:save|check in|record|stage and commit) (?:this|my (?:work|changes)|everything|all(?: changes)?|the changes)(?: (?:in|to|with) git)?$`, `^make a commit(?: with(?: the)?(?: message)? (?P<rest>.+))?$`, `^(?:git )?add (?:all|everything) and commit(?: with(?: the)?(?: message)? (?P<rest>.+))?$`,
		},
		plan: steps(
			run("what would be committed", "git status --short --branch"),
			func(j *job) *call {
				if _, changes := parseStatus(j.last().text); j.failed() || len(changes) == 0 || conflicted(changes) {
					return nil
				}
				return bash("commit everything", "git add -A && git commit -m", quote(commitMessage(j)))
			},
		),
		answer: func(j *job) string {
			first := j.results[0]
			_, changes := parseStatus(first.text)
			switch {
			case !first.ok():
				return gitTrouble(first)
			case len(changes) == 0:
				return "There is nothing to commit: no change since the last one."
			case conflicted(changes):
				return "Not committed: some files are in conflict. Ask “are there merge conflicts”."
			case len(j.results) < 2:
				return "Nothing was committed."
			}
			r := j.last()
			if !r.ok() {
				if strings.Contains(r.text, "tell me who you are") {
					return "Git does not know your name yet, so nothing was committed:\n\n" + fence("sh", "git config user.name \"Your Name\"\ngit config user.email you@example.org", 3, true)
				}
				return trouble(r)
			}
			m := committed.FindStringSubmatch(r.text)
			if m == nil {
				return fence("", r.text, 15, false)
			}
			s := fmt.Sprintf("Committed as %s on %s: %s", code(m[2]), code(m[1]), quoteText(m[3]))
			if t := statTotals.FindString(r.text); t != "" {
				s += " " + count(len(changes), "file") + "," + strings.TrimPrefix(t[strings.Index(t, ","):], ",") + "."
			}
			return s + " To take it back: “undo the last commit”."
		},
		no: "nothing was committed",
	},
	{
		name:    "undo commit",
		example: "undo the last commit",
		patterns: []string{
			`^(?:undo|revert|take back|uncommit|reverse|cancel|roll ?back)(?: (?:the|my|that))?(?: (?:last|latest|previous))? commit$`, `^uncommit$`, `^(?:git )?reset (?:--soft )?HEAD[~^]1?$`,
		},
		plan: steps(
			run("the newest commit", "git --no-pager log -n 2 --format='%h|%s'"),
			func(j *job) *call {
				if j.failed() || len(j.last().lines()) < 2 {
					return nil
				}
				return bash("undo the commit, keep the changes", "git reset --soft HEAD~1")
			},
		),
		answer: func(j *job) string {
			r := j.results[0]
			switch {
			case !r.ok():
				return gitTrouble(r)
			case len(r.lines()) < 2:
				return "There is only one commit, or none: the first cannot be undone this way."
			case j.failed():
				return trouble(j.last())
			}
			hash, subject, _ := strings.Cut(r.lines()[0], "|")
			return fmt.Sprintf("Undid commit %s, %s Its changes are still in your files, staged. `git commit -C %s` would make it again.", code(hash), quoteText(subject), visible(hash))
		},
	},
	{
		name:    "create branch",
		example: "create a branch NAME",
		patterns: []string{
			`^(?:create|make|start|open|new|add)(?: (?:a|the|me))*(?: new)?(?: git)? branch(?: called| named| for)? {name}$`, `^git (?:checkout -b|switch -c) {name}$`, `^branch off (?:as |to |into )?{name}$`,
		},
		plan: steps(func(j *job) *call {
			return bash("make a branch and go to it", "git switch -c", quote(branchName(j.args["name"])))
		}),
		answer: func(j *job) string {
			if j.failed() {
				return gitTrouble(j.last())
			}
			return "You are on the new branch " + code(branchName(j.args["name"])) + "."
		},
	},
	{
		name:     "switch branch",
		example:  "switch to branch NAME",
		patterns: []string{`^(?:switch|change|go|check ?out|move)(?: (?:back|over))?(?: to)?(?: the)? (?:git )?branch {name}$`, `^(?:switch|go|move)(?: back)? to(?: the)? {name} branch$`, `^(?:git )?(?:checkout|switch)(?: to)? (?P<name>main|master|develop|dev|[\w.-]+/[\w./-]+)$`},
		plan:     steps(func(j *job) *call { return bash("go to the branch", "git switch", quote(j.args["name"])) }),
		answer: func(j *job) string {
			if j.failed() {
				return gitTrouble(j.last())
			}
			return "You are on " + code(j.args["name"]) + " now."
		},
	},
	{
		name:     "push",
		example:  "push",
		patterns: []string{`^(?:git )?push(?: (?:it|this|that|my (?:changes|work|commits?|branch)|the (?:changes|commits?|branch)|changes|everything|to (?:origin|the remote|github|gitlab|the server|upstream)))*$`, `^(?:upload|publish) (?:my |the |this )?(?:commits?|branch|changes)$`},
		plan: steps(
			run("push this branch", "git push"),
			func(j *job) *call {
				if j.last().ok() || !strings.Contains(j.last().text, "has no upstream branch") {
					return nil
				}
				return bash("push, and remember where to", "git push -u origin HEAD")
			},
		),
		answer: func(j *job) string {
			r := j.last()
			switch {
			case strings.Contains(r.text, "No configured push destination"):
				return "This repository has no remote to push to."
			case !r.ok():
				return gitTrouble(r)
			case strings.Contains(r.text, "up-to-date"):
				return "Nothing to push: the remote has it all."
			}
			return "Pushed.\n\n" + fence("", r.text, 10, false)
		},
		no: "nothing was pushed",
	},
	{
		name:     "pull",
		example:  "pull",
		patterns: []string{`^(?:git )?pull(?: (?:the )?(?:latest|newest)?(?: changes)?)?(?: from (?:origin|the remote|upstream|main|master))?$`, `^(?:get|fetch) (?:the )?(?:latest|newest) (?:changes|commits|version)$`, `^update (?:the |this |my )?(?:repo|repository|branch|checkout)$`},
		plan:     steps(run("get what is new, only if it fits without a merge", "git pull --ff-only")),
		answer: func(j *job) string {
			r := j.last()
			switch {
			case strings.Contains(r.text, "no tracking information"):
				return "This branch follows no remote branch, so there is nothing to pull from."
			case strings.Contains(r.text, "Not possible to fast-forward"):
				return "Both sides have new commits, so a plain pull does not fit. `git pull --rebase` puts yours on top; `git pull --no-rebase` merges. That is yours to choose."
			case !r.ok():
				return gitTrouble(r)
			case strings.Contains(r.text, "up to date"):
				return "Nothing new: you have it all."
			}
			return "Pulled.\n\n" + fence("", r.text, 15, false)
		},
	},
	{
		name:     "stash",
		example:  "stash my changes",
		patterns: []string{`^(?:git )?stash(?: (?:it|this|my (?:changes|work)|the changes|everything|push))?$`, `^(?:put|set) (?:my |the )?changes aside$`},
		plan:     steps(run("put the changes aside", "git stash push -u")),
		answer: func(j *job) string {
			switch r := j.last(); {
			case !r.ok():
				return gitTrouble(r)
			case strings.Contains(r.text, "No local changes"):
				return "There are no changes to stash."
			}
			return "Your changes are put aside; “unstash” brings them back."
		},
	},
	{
		name:     "unstash",
		example:  "unstash",
		patterns: []string{`^(?:unstash|(?:git )?stash (?:pop|apply)|(?:bring|get) (?:my |the )?(?:stashed )?(?:changes|stash) back|restore (?:my |the )?stash|pop (?:the )?stash)$`},
		plan:     steps(run("bring the stashed changes back", "git stash pop")),
		answer: func(j *job) string {
			switch r := j.last(); {
			case strings.Contains(r.text, "No stash entries"):
				return "Nothing is stashed."
			case !r.ok():
				return gitTrouble(r)
			}
			return "Your stashed changes are back."
		},
	},
	{
		name:    "discard",
		example: "discard my changes to FILE",
		patterns: []string{
			`^(?:discard|revert|undo|throw away|drop|reset|restore)(?: all)?(?: (?:the|my|these))?(?: (?:changes|edits|modifications))?(?: (?:to|in|of|on))?(?: the)?(?: file)? (?P<file>[\w./~+-]*[\w~+-]\.\w+|[\w./~+-]+/[\w./~+-]+|"[^"]+"|'[^']+'|` + "`[^`]+`" + `)$`,
		},
		plan: steps(
			func(j *job) *call {
				return bash("what would be lost", "git --no-pager diff --stat HEAD --", file(j.args["file"]))
			},
			func(j *job) *call {
				if j.failed() || strings.TrimSpace(j.last().text) == "" {
					return nil
				}
				return bash("put the file back as it was at the last commit", "git restore --staged --worktree --", file(j.args["file"]))
			},
		),
		answer: func(j *job) string {
			switch {
			case j.failed():
				return gitTrouble(j.last())
			case len(j.results) < 2:
				return code(j.args["file"]) + " has no changes that git knows of, so there is nothing to discard."
			}
			return code(j.args["file"]) + " is as it was at the last commit."
		},
	},
	{
		name:     "init",
		example:  "make this a git repository",
		patterns: []string{`^(?:git init|init(?:iali[sz]e)?(?: a| the)?(?: new)?(?: git)? repo(?:sitory)?(?: here)?|(?:make|create|start|turn)(?: this(?: folder)?)?(?: into)?(?: a| the)?(?: new)? git repo(?:sitory)?(?: here)?)$`},
		plan:     steps(run("make a repository here", "git init")),
		answer: func(j *job) string {
			switch r := j.last(); {
			case !r.ok():
				return trouble(r)
			case strings.Contains(r.text, "Reinitialized"):
				return "This is a git repository already; nothing was lost."
			}
			return "This folder is a git repository now. “commit this” makes the first commit."
		},
	},
}

// committed is git's line about a new commit: branch (with "(root-commit)" for the first), hash, subject.
var committed = rx(`(?m)^\[(\S+|detached HEAD)(?: \(root-commit\))? ([0-9a-f]{7,40})\] (.*)$`)

func conflicted(changes []change) bool {
	for _, c := range changes {
		if c.says() == "in conflict" {
			return true
		}
	}
	return false
}

// commitMessage is the user's, or says what changed: "Update a.go and b.go", "Add docs/x.md", "Change 7 files in wire".
func commitMessage(j *job) string {
	if m := word(j.args["rest"]+j.args["rest2"], "rest"); m != "" {
		return m
	}
	_, changes := parseStatus(j.results[0].text)
	by := map[string][]string{}
	var all []string
	for _, c := range changes {
		verb := map[string]string{"new": "Add", "added": "Add", "deleted": "Remove", "renamed": "Rename"}[c.says()]
		if verb == "" {
			verb = "Update"
		}
		name := c.name
		if _, to, ok := strings.Cut(name, " -> "); ok {
			name = to
		}
		name = strings.Trim(name, `"`)
		by[verb] = append(by[verb], name)
		all = append(all, name)
	}
	if len(all) <= 4 {
		var parts []string
		for _, verb := range []string{"Add", "Update", "Remove", "Rename"} {
			if names := by[verb]; len(names) > 0 {
				for i, n := range names {
					names[i] = path.Base(strings.TrimRight(n, "/"))
				}
				if len(parts) > 0 {
					verb = strings.ToLower(verb)
				}
				parts = append(parts, verb+" "+join(names))
			}
		}
		return strings.Join(parts, ", ")
	}
	verb := "Change"
	if len(by) == 1 {
		for v := range by {
			verb = v
		}
	}
	m := fmt.Sprintf("%s %d files", verb, len(all))
	if dir := commonFolder(all); dir != "" {
		m += " in " + dir
	}
	return m
}

func commonFolder(names []string) string {
	dir := path.Dir(strings.TrimRight(names[0], "/"))
	for _, n := range names[1:] {
		for dir != "." && !strings.HasPrefix(n, dir+"/") {
			dir = path.Dir(dir)
		}
	}
	if dir == "." || dir == "/" {
		return ""
	}
	return dir
}

// branchName makes a name git takes: blanks become dashes.
func branchName(s string) string {
	return strings.Trim(strings.Join(strings.Fields(s), "-"), "-")
}
