package offline

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// fileIntents look at files and folders; none changes anything.
var fileIntents = []intent{
	{
		name:    "disk free",
		example: "how much disk space is free",
		patterns: []string{
			`\b(?:free|available|remaining) (?:disk ?)?space\b`, `\b(?:disk ?)?space (?:is |do i have )?(?:left|free|available|remaining)\b`, `^(?:disk free|df(?: -h)?|disk ?space|free disk)$`,
			`\bhow full (?:is|are) (?:my|the) (?:disks?|drives?)`, `\b(?:is|are) (?:my |the )?disks? full\b`, `^(?:check |{show} )?(?:my |the )?(?:disk space|disks|drives|file ?systems)$`,
		},
		plan: steps(run("free space on the disks", "df -hP")), answer: diskFree, no: "I did not look",
	},
	{
		name:    "biggest files",
		example: "biggest files",
		patterns: []string{
			`\b(?:biggest|largest|heaviest|big|large|huge) files?\b`, `\bfiles? (?:by|sorted by) size\b`, `^(?:which|what) files? (?:is|are) (?:the )?(?:biggest|largest|big|taking)`,
			`\bwhich files? (?:take|takes|use|uses|eat|eats)\b.*\b(?:space|room|disk)`,
		},
		plan:   steps(run("the biggest files below this folder", "find . -xdev -type f -size +0 -ls 2>/dev/null | sort -rnk7 | head -n 15")),
		answer: biggestFiles, no: "I did not look",
	},
	{
		name:    "disk use",
		example: "what takes up space here",
		patterns: []string{
			`\b(?:disk )?(?:usage|use) (?:{here}|of (?:each|the) (?:folder|director))`, `^(?:disk ?(?:usage|use)|du(?: -s?h)?)(?: {here})?$`, `\bwhat(?:'s| is)? (?:takes?|taking|using|uses|eating|eats|filling)\b.*\b(?:space|room|disk)`,
			`\bhow (?:big|large) (?:is|are) (?:{here}|this|it|everything|the folders?)`, `\b(?:size|sizes) of (?:{here}|the (?:sub)?(?:folders|directories)|this|each folder|folders|directories)`, `\b(?:biggest|largest) (?:sub)?(?:folders?|directories|directory|dirs?)\b`,
			`^how much (?:disk )?space (?:does|do|is) (?:this|it|{here})\b`, `^{show} (?:disk usage|(?:folder|directory) sizes?)`,
		},
		plan:   steps(run("how much each folder holds", "du -hd1 . 2>/dev/null | sort -rh | head -n 20")),
		answer: diskUse, no: "I did not look",
	},
	{
		name:    "recent files",
		example: "recently changed files",
		patterns: []string{
			`\b(?:recent|recently|newest|latest|last) (?:changed |modified |edited |touched |created |used )?files?\b`, `\bfiles? (?:i |we |that (?:were|was|i|have) )?(?:recently )?(?:changed|modified|edited|touched|created)\b.*\b(?:recently|lately|today|yesterday|last|this|in the)\b`,
			`^(?:which|what) files? (?:did i|have i|were|was|have) (?:recently )?(?:changed?|modified|edit(?:ed)?|touch(?:ed)?|been)`, `\bwhat (?:did i|have i) (?:been )?(?:work(?:ed|ing)? on|edit(?:ed)?)\b`,
		},
		plan: steps(
			run("the files changed in the last week", `find . -type f -not -path '*/.git/*' -not -path '*/node_modules/*' -mtime -7 -printf '%TY-%Tm-%Td %TH:%TM  %p\n' | sort -r | head -n 20`),
			func(j *job) *call { // find without -printf: BSD
				if j.last().ok() || !strings.Contains(j.last().text, "-printf") {
					return nil
				}
				return bash("the newest files of this folder", "command ls -lt | head -n 20")
			},
		),
		answer: recentFiles, no: "I did not look",
	},
	{
		name:    "count lines",
		example: "how many lines of code",
		patterns: []string{
			`\bhow many lines\b(?: of (?P<lang>[a-z+#]+))?(?:.*\bin (?P<file>[\w./-]+\.\w+))?`, `^(?:count|number of|total) (?:the )?lines(?: of (?P<lang>[a-z+#]+))?(?:.*\bin (?P<file>[\w./-]+\.\w+))?`, `^(?:loc|sloc|cloc|wc -l|line count|lines of (?P<lang>code|[a-z+#]+))$`,
			`^how (?:long|big) is (?P<file>[\w./-]+\.\w+)$`,
		},
		plan: steps(func(j *job) *call {
			if f := j.args["file"]; f != "" {
				return bash("count the lines of "+f, "wc -l --", file(f))
			}
			return bash("count lines by file", "find . -type f", sourceNames(j.args["lang"]), "-not -path '*/.git/*' -not -path '*/node_modules/*' -not -path '*/vendor/*' -not -path '*/target/*' -print0 | xargs -0 wc -l | sort -rn | head -n 16")
		}),
		answer: countLines, no: "I did not count",
	},
	{
		name:    "count files",
		example: "how many files are here",
		patterns: []string{
			`\bhow many (?P<lang>[a-z+#]+ )?files\b`, `^(?:count|number of|total) (?:the |all )?(?P<lang>[a-z+#]+ )?files\b`, `^how many (?:folders|directories|sub ?folders)\b`, `^file count\b`,
		},
		plan: steps(
			func(j *job) *call {
				return bash("count the files", "find . -type f", sourceNames(strings.TrimSpace(j.args["lang"])), "-not -path '*/.git/*' | wc -l")
			},
			run("count the folders", "find . -mindepth 1 -type d -not -path '*/.git' -not -path '*/.git/*' | wc -l"),
		),
		answer: func(j *job) string {
			if j.failed() || len(j.results) < 2 {
				return trouble(j.last())
			}
			files, _ := strconv.Atoi(strings.TrimSpace(j.results[0].text))
			folders, _ := strconv.Atoi(strings.TrimSpace(j.results[1].text))
			kind := "file"
			if l := strings.TrimSpace(j.args["lang"]); l != "" && sourceNames(l) != "" && l != "code" {
				kind = languageTitle(l) + " file"
			}
			return fmt.Sprintf("**%s** below this folder, in %s. `.git` is not counted.", count(files, kind), count(folders+1, "folder"))
		},
		no: "I did not count",
	},
	{
		name:    "find text",
		example: "find text \"TODO\"",
		patterns: []string{
			`^(?:find|search(?: for)?|grep(?: for)?|look for|where is|locate)(?: all| every)? (?:the )?(?:text|string|word|phrase|pattern|occurrences? of|uses? of|references? to|usages? of|mentions? of) (?P<text>"[^"]+"|'[^']+'|` + "`[^`]+`" + `|.+?)(?: in (?:all |the )?(?P<in>\*\.\w+|\w+ files|[\w./-]+))?$`,
			`^(?:find|search(?: for)?|grep(?: for)?|look for|where (?:is|are|do (?:i|we)|does)) (?P<text>"[^"]+"|'[^']+'|` + "`[^`]+`" + `)(?: (?:used|defined|mentioned|called))?(?: in (?:all |the )?(?P<in>\*\.\w+|\w+ files|[\w./-]+))?$`,
			`^(?:search|grep|look)(?: (?:for|through))? (?P<text>[^\s].*?)(?: in (?:all |the )?(?P<in>\*\.\w+|\w+ files|files|code|[\w./-]+))?$`,
			`^(?:which|what) files? (?:contain|contains|mention|mentions|use|uses|have|include) (?:the )?(?:text|word|string )?(?P<text>.+)$`,
			`^where (?:is|are) (?:the )?(?:function|method|type|class|struct|variable|const(?:ant)?|symbol)? ?(?P<text>[\w.]+(?:\(\))?) (?:used|defined|mentioned|called|declared|implemented)(?: in (?P<in>[\w./*-]+))?$`,
			`^(?:find|list|{show}) (?:the |all )*(?P<text>todos?|fixmes?)(?: comments)?$`,
		},
		plan: steps(func(j *job) *call {
			args := map[string]any{"pattern": regexp.QuoteMeta(j.args["text"])}
			switch in := j.args["in"]; {
			case strings.HasPrefix(in, "*."):
				args["include"] = in
			case strings.HasSuffix(in, " files"):
				if ext := extensionOf(strings.TrimSuffix(in, " files")); ext != "" {
					args["include"] = "*" + ext
				}
			case in == "", in == "files", in == "code", in == "here", in == "this":
			default:
				args["path"] = in
			}
			if t := strings.ToLower(j.args["text"]); t == "todo" || t == "todos" || t == "fixme" || t == "fixmes" {
				args["pattern"] = "TODO|FIXME"
			} else if t == j.args["text"] {
				args["ignore_case"] = true // lower case asks for any case
			}
			args["pattern"] = strings.TrimSuffix(args["pattern"].(string), `\(\)`)
			return &call{tool: "grep", args: args}
		}),
		answer: foundText, no: "I did not search",
	},
	{
		name:    "find file",
		example: "find file config.toml",
		patterns: []string{
			`^(?:find|locate|search for|look for|where is|where's|where are)(?: all| every)?(?: the| a| my)? (?:files?|folders?) (?:called |named |with (?:the )?name |matching |like |ending (?:in|with) )?{file}$`,
			`^(?:find|locate|where is|where's)(?: the| a| my)? (?P<file>[\w.*?-]*[\w*]\.[\w*]{1,8}|\*\S+|makefile|dockerfile|readme|license)(?: file)?$`,
			`^(?:find|list|{show})(?: all| every)?(?: the)? (?P<file>\*?\.\w+|go|golang|python|py|javascript|js|typescript|ts|rust|c|c\+\+|cpp|java|kotlin|ruby|php|shell|bash|sh|markdown|md|html|css|json|yaml|yml|toml|text|txt|log|test) files$`, `^find (?:all|every) (?P<file>\*\.\w+)$`,
		},
		plan: steps(func(j *job) *call {
			return &call{tool: "glob", args: map[string]any{"pattern": namePattern(j.args["file"])}}
		}),
		answer: foundFiles, no: "I did not search",
	},
	{
		name:    "tail",
		example: "last 20 lines of FILE",
		patterns: []string{
			`^{show} (?:last|final) (?:{n} )?lines (?:of|from|in) (?:the )?(?:file |log )?{file}$`, `^(?:the )?last (?:{n} )?lines (?:of|from|in) (?:the )?(?:file |log )?{file}$`, `^tail(?: -n ?{n}| -{n})?(?: -f)? (?:the )?(?:log )?(?:file )?{file}$`,
			`^{show} (?:the )?end of {file}$`, `^(?:check|look at|errors in|what's in|{show}) (?:the )?log(?:file| file)? {file}$`, `^{show} (?P<file>\S+\.log)$`, `^(?:are there |{show} |any )?errors in (?:the )?{file}$`,
		},
		plan: steps(func(j *job) *call {
			n := j.args["n"]
			if n == "" || len(n) > 4 {
				n = "50"
			}
			return bash("the end of "+j.args["file"], "tail -n", n, "--", file(j.args["file"]))
		}),
		answer: tail, no: "I did not look",
	},
	{
		name:     "head",
		example:  "first 20 lines of FILE",
		patterns: []string{`^(?:{show} )?(?:the )?first (?:{n} )?lines (?:of|from|in) (?:the )?(?:file )?{file}$`, `^head(?: -n ?{n}| -{n})? {file}$`, `^{show} (?:the )?(?:top|start|beginning) of {file}$`},
		plan: steps(func(j *job) *call {
			n, _ := strconv.Atoi(j.args["n"])
			if n <= 0 || n > 500 {
				n = 20
			}
			return &call{tool: "read", args: map[string]any{"path": j.args["file"], "limit": n}}
		}),
		answer: func(j *job) string { return shown(j, 60) }, no: "I did not look",
	},
	{
		name:    "compare",
		example: "compare A and B",
		patterns: []string{
			`^(?:compare|diff)(?: the)?(?: files?)? {file} (?:and|with|to|against) {to}$`, `^(?:what(?:'s| is)|{show}) (?:the )?differences? between {file} and {to}$`, `^diff {file} {to}$`, `^are {file} and {to} (?:the same|equal|identical|different)$`,
		},
		plan: steps(func(j *job) *call {
			return bash("compare two files", "diff -u --", file(j.args["file"]), file(j.args["to"]))
		}),
		answer: compared, no: "I did not compare them",
	},
	{
		name:     "checksum",
		example:  "checksum of FILE",
		patterns: []string{`^(?:{show} )?(?:the )?(?:sha-?256|checksum|check sum|hash|sha)(?: sum)?(?: of| for)? {file}$`, `^(?:hash|checksum) {file}$`},
		plan:     steps(func(j *job) *call { return bash("checksum", "sha256sum --", file(j.args["file"])) }),
		answer: func(j *job) string {
			if j.failed() {
				return trouble(j.last())
			}
			return "SHA-256 of " + code(j.args["file"]) + ":\n\n" + fence("", firstWord(j.last().text), 2, true)
		},
		no: "I did not look",
	},
	{
		name:     "permissions",
		example:  "who owns FILE",
		patterns: []string{`^who owns {file}$`, `^(?:{show} )?(?:the )?(?:permissions?|rights|owner|mode|details|size|stats?) (?:of|for|on) {file}$`, `^how big is {file}$`, `^when was {file} (?:changed|modified|created|edited)$`, `^stat {file}$`},
		plan: steps(func(j *job) *call {
			return bash("who owns it, how large it is", "command ls -ld --", file(j.args["file"]))
		}),
		answer: permissions, no: "I did not look",
	},
	{
		name:    "explain file",
		example: "explain FILE",
		patterns: []string{
			`^(?:explain|summari[sz]e|describe|outline|analy[sz]e)(?: me)?(?: the)?(?: file| script| code in| code of)? (?P<file>"[^"]+"|'[^']+'|` + "`[^`]+`" + `|[\w~][\w./~+-]*\.\w+|[\w./~+-]*/[\w./+-]+|makefile|dockerfile|readme|license)$`,
			`^what (?:is|does|kind of file is|sort of file is|type of file is|'s in)(?: the)?(?: file| script)? (?P<file>[\w~][\w./~+-]*\.\w+|[\w./~+-]+/[\w.+-]+|makefile|dockerfile)(?: do| about| for| contain)?$`,
			`^(?:explain|describe|tell)(?: me)? what(?: the)?(?: file| script)? (?P<file>[\w~][\w./~+-]*\.\w+|[\w./~+-]+/[\w.+-]+|makefile|dockerfile) (?:does|is|is for|is about|contains)$`,
			`^what(?:'s| is) (?P<file>[\w~][\w./~+-]*\.[a-z]\w*|[\w./~+-]+/[\w.+-]+|makefile|dockerfile)(?: for| about)?$`, `^what (?:kind|type|sort) of file is {file}$`,
		},
		plan: steps(func(j *job) *call {
			return &call{tool: "read", args: map[string]any{"path": j.args["file"]}}
		}),
		answer: explainFile, no: "I did not look",
	},
	{
		name:    "show file",
		example: "show FILE",
		patterns: []string{
			`^(?:cat|less|more|bat|type|read|open|view|dump) (?:the )?(?:file )?(?:contents? of )?(?:the )?{file}$`,
			`^{show} (?:the )?(?:contents? (?:of|in)|file|text of) (?:the )?(?:file )?{file}$`, `^what(?:'s| is) in (?:the )?(?:file )?(?P<file>"[^"]+"|'[^']+'|` + "`[^`]+`" + `|[\w./~+-]*\.\w+)$`,
			`^(?:{show}|open) (?:the )?(?P<file>[\w./~+-]*[\w+-]\.\w{1,8}|makefile|dockerfile|readme|license|changelog)(?: file)?$`,
		},
		plan: func(j *job) []call {
			if m := byFirstWord.FindString(j.args["file"]); m != "" {
				if len(j.results) == 0 {
					return []call{*bash("how it is spelled here", "find . -maxdepth 1 -type f -iname", quote(m+"*"), "| sort")}
				}
				if l := j.results[0].lines(); j.results[0].ok() && len(l) > 0 {
					j.args["file"] = strings.TrimPrefix(l[0], "./")
				}
				if len(j.results) > 1 {
					return nil
				}
			} else if len(j.results) > 0 {
				return nil
			}
			return []call{{tool: "read", args: map[string]any{"path": j.args["file"]}}}
		},
		answer: func(j *job) string { return shown(j, 120) }, no: "I did not look",
	},
	{
		name:    "list",
		example: "what is in here",
		patterns: []string{
			`^(?:ls|ll|dir|l)(?: -\w+)*(?: {file})?$`, `^what(?:'s| is| files are| do we have| is there)?(?: there)? {here}$`, `^what(?:'s| is) (?:in|inside|under) (?P<file>[\w./~+-]+/?|"[^"]+"|'[^']+')$`, `^{show} (?:files|folders|contents?|everything|directory listing|files and folders|what(?:'s| is))(?: {here})?$`,
			`^{show} (?:the )?(?:files|contents?) (?:in|of|inside|under) (?:the )?(?:folder |directory )?{file}$`, `^{show} (?:the )?hidden files(?: {here})?$`, `^(?:which|what) files (?:are|do (?:i|we) have|exist)(?: there)?(?: {here})?$`, `^(?:describe|explain|summari[sz]e|explore|overview(?: of)?|look around|what about)(?: {here}| this)?$`,
			`^what (?:kind|sort|type) of project is (?:this|it)`, `^(?:{show} )?(?:directory |file |folder )?(?:listing|tree)(?: {here})?$`, `^list$`, `^look around(?: here)?$`, `^what (?:is|does) this (?:project|repo|repository|code)(?: do| about)?$`,
		},
		plan: steps(func(j *job) *call {
			if f := j.args["file"]; f != "" && !isHere.MatchString(f) {
				return bash("what is in "+f, "command ls -lA --", file(f))
			}
			return bash("what is in this folder", "command ls -lA")
		}),
		answer: listing, no: "I did not look",
	},
}

var isHere = rx(`(?i)^(?:here|there|this|\.|files|it|all|everything)$`)

// languages by the words people use, with the names their files have.
var languages = []struct {
	words string // between blanks
	title string
	globs []string
}{
	{" go golang ", "Go", []string{"*.go"}},
	{" python py ", "Python", []string{"*.py"}},
	{" javascript js ", "JavaScript", []string{"*.js", "*.jsx", "*.mjs", "*.cjs"}},
	{" typescript ts ", "TypeScript", []string{"*.ts", "*.tsx"}},
	{" rust rs ", "Rust", []string{"*.rs"}},
	{" c ", "C", []string{"*.c", "*.h"}},
	{" c++ cpp ", "C++", []string{"*.cpp", "*.cc", "*.cxx", "*.hpp", "*.h"}},
	{" java ", "Java", []string{"*.java"}},
	{" kotlin kt ", "Kotlin", []string{"*.kt"}},
	{" ruby rb ", "Ruby", []string{"*.rb"}},
	{" php ", "PHP", []string{"*.php"}},
	{" shell bash sh ", "shell", []string{"*.sh", "*.bash"}},
	{" markdown md ", "Markdown", []string{"*.md"}},
	{" html ", "HTML", []string{"*.html"}},
	{" css ", "CSS", []string{"*.css"}},
	{" json ", "JSON", []string{"*.json"}},
	{" yaml yml ", "YAML", []string{"*.yaml", "*.yml"}},
	{" toml ", "TOML", []string{"*.toml"}},
	{" text txt ", "text", []string{"*.txt"}},
	{" log ", "log", []string{"*.log"}},
	{" test ", "test", []string{"*_test.*", "test_*", "*.test.*"}},
}

func languageOf(word string) int {
	word = " " + strings.ToLower(strings.TrimPrefix(word, ".")) + " "
	return slices.IndexFunc(languages, func(l struct {
		words string
		title string
		globs []string
	},
	) bool {
		return strings.Contains(l.words, word)
	})
}

func languageTitle(word string) string {
	if i := languageOf(word); i >= 0 {
		return languages[i].title
	}
	return word
}

func extensionOf(word string) string {
	if i := languageOf(word); i >= 0 {
		return strings.TrimPrefix(languages[i].globs[0], "*")
	}
	return ""
}

// sourceNames is find's expression for the files of a language; "code" is all of them that are code.
func sourceNames(word string) string {
	var globs []string
	switch i := languageOf(word); {
	case word == "code":
		for _, l := range languages[:12] {
			globs = append(globs, l.globs...)
		}
		slices.Sort(globs)
		globs = slices.Compact(globs)
	case i >= 0:
		globs = languages[i].globs
	default:
		return ""
	}
	if len(globs) == 1 {
		return "-name '" + globs[0] + "'"
	}
	return `\( -name '` + strings.Join(globs, "' -o -name '") + `' \)`
}

// namePattern is a glob for the name somebody asks for: as it is where it is a pattern, by language, else as a part.
func namePattern(name string) string {
	if strings.ContainsAny(name, "*?[{") {
		return name
	}
	if ext := extensionOf(name); ext != "" && !strings.Contains(name, "/") && (!strings.Contains(name, ".") || strings.HasPrefix(name, ".")) {
		return "*" + ext
	}
	if strings.HasPrefix(name, ".") && !strings.Contains(name[1:], ".") && len(name) <= 6 {
		return "*" + name
	}
	dir, base := path.Split(strings.TrimPrefix(name, "./"))
	if strings.Contains(base, ".") {
		return dir + base
	}
	var b strings.Builder // any case
	for _, r := range base {
		if l, u := strings.ToLower(string(r)), strings.ToUpper(string(r)); l != u {
			b.WriteString("[" + l + u + "]")
		} else {
			b.WriteRune(r)
		}
	}
	return dir + "*" + b.String() + "*"
}

// byFirstWord are files that people call by the first word of their name, whatever the case and the ending.
var byFirstWord = rx(`(?i)^(?:readme|license|changelog)$`)
