package offline

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// entry is a line of ls -l.
type entry struct {
	mode, owner, group, date, name, target string
	bytes                                  int64
}

func (e entry) dir() bool { return strings.HasPrefix(e.mode, "d") }

// lsLine: mode, links, owner, group, size (or device numbers), three words of date, name.
var lsLine = rx(`^([-dlbcpsD][-rwxsStTlL]{9})[.+@]?\s+\d+\s+(\S+)\s+(\S+)\s+(\d+|\d+,\s*\d+)\s+(\S+\s+\S+\s+\S+) (.+)$`)

func parseLs(text string) (list []entry) {
	for _, line := range splitLines(text) {
		m := lsLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		e := entry{mode: m[1], owner: m[2], group: m[3], date: m[5], name: m[6]}
		e.bytes, _ = strconv.ParseInt(m[4], 10, 64) // a device has no size
		if e.mode[0] == 'l' {
			e.name, e.target, _ = strings.Cut(e.name, " -> ")
		}
		e.name, e.target = unquoted(e.name), unquoted(e.target)
		list = append(list, e)
	}
	return list
}

// unquoted takes off what ls puts round names on a terminal: quotes where the shell would want them, and a blank before
// the others to keep them in line.
func unquoted(name string) string {
	name = strings.TrimPrefix(name, " ")
	if n := len(name); n >= 2 && (name[0] == '\'' || name[0] == '"') && name[n-1] == name[0] {
		return strings.ReplaceAll(name[1:n-1], `'\''`, "'")
	}
	return name
}

// projectKinds tells what a folder is by the files in it.
var projectKinds = []struct{ file, says string }{
	{"go.mod", "a Go module"},
	{"Cargo.toml", "a Rust crate"},
	{"package.json", "a Node.js package"},
	{"pyproject.toml", "a Python project"},
	{"setup.py", "a Python project"},
	{"requirements.txt", "a Python project"},
	{"pom.xml", "a Maven project"},
	{"build.gradle", "a Gradle project"},
	{"build.gradle.kts", "a Gradle project"},
	{"Gemfile", "a Ruby project"},
	{"composer.json", "a PHP project"},
	{"mix.exs", "an Elixir project"},
	{"CMakeLists.txt", "a CMake project"},
	{"Dockerfile", "with a container image"},
	{"Makefile", "with a Makefile"},
	{".git", "a git repository"},
}

func listing(j *job) string {
	r := j.last()
	if !r.ok() {
		return trouble(r)
	}
	list := parseLs(r.text)
	if len(list) == 0 {
		if strings.TrimSpace(r.text) == "" || strings.HasPrefix(r.text, "total 0") {
			return "The folder is empty."
		}
		return fence("", r.text, 40, true)
	}
	dirs, files, total := 0, 0, int64(0)
	has := map[string]bool{}
	for _, e := range list {
		has[e.name] = true
		if e.dir() {
			dirs++
		} else {
			files++
			total += e.bytes
		}
	}
	if len(list) == 1 && !list[0].dir() && path.Clean(list[0].name) == path.Clean(j.args["file"]) {
		return permissions(j)
	}
	var b strings.Builder
	where := "Here"
	if f := j.args["file"]; f != "" && !isHere.MatchString(f) {
		where = "In " + code(f)
	}
	var parts []string
	if dirs > 0 {
		parts = append(parts, count(dirs, "folder"))
	}
	if files > 0 {
		parts = append(parts, count(files, "file")+" ("+size(total)+")")
	}
	fmt.Fprintf(&b, "%s: **%s**", where, strings.Join(parts, " and "))
	var kinds []string
	for _, k := range projectKinds {
		if has[k.file] && !slices.Contains(kinds, k.says) {
			kinds = append(kinds, k.says)
		}
	}
	if len(kinds) > 0 {
		b.WriteString("; " + strings.Join(kinds[:min(len(kinds), 4)], ", "))
	}
	b.WriteString(".\n\n")
	slices.SortStableFunc(list, func(a, c entry) int {
		switch {
		case a.dir() && !c.dir():
			return -1
		case !a.dir() && c.dir():
			return 1
		}
		return strings.Compare(strings.ToLower(a.name), strings.ToLower(c.name))
	})
	var rows [][]string
	for _, e := range list[:min(len(list), 30)] {
		name, bytes := e.name, size(e.bytes)
		if e.dir() {
			name, bytes = name+"/", ""
		}
		shown := code(name)
		if e.target != "" {
			shown += " → " + code(e.target)
			bytes = ""
		}
		rows = append(rows, []string{shown, bytes, e.date})
	}
	b.WriteString(mdTable([]string{"name", "size", "changed"}, rows))
	if n := len(list) - len(rows); n > 0 {
		fmt.Fprintf(&b, "\n\nand %s more.", number(int64(n)))
	}
	return b.String()
}

// found is a line of find -ls: inode, blocks, mode, links, owner, group, size, three words of date, path.
var found = rx(`^\s*\d+\s+\d+\s+\S{10}\S?\s+\d+\s+\S+\s+\S+\s+(\d+)\s+\S+\s+\S+\s+\S+\s+(.+)$`)

func biggestFiles(j *job) string {
	r := j.last()
	if !r.ok() {
		return trouble(r)
	}
	var rows [][]string
	var total int64
	for _, line := range r.lines() {
		m := found.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		n, _ := strconv.ParseInt(m[1], 10, 64) // digits by the pattern
		total += n
		rows = append(rows, []string{size(n), code(strings.ReplaceAll(strings.TrimPrefix(m[2], "./"), `\ `, " "))})
	}
	if len(rows) == 0 {
		return "There are no files with anything in them below this folder."
	}
	if len(rows) == 1 {
		return fmt.Sprintf("The only file with anything in it is %s, with %s.", rows[0][1], rows[0][0])
	}
	return fmt.Sprintf("The biggest is %s with %s; the %s below hold %s together.\n\n", rows[0][1], rows[0][0], count(len(rows), "file"), size(total)) +
		mdTable([]string{"size", "file"}, rows)
}

func diskUse(j *job) string {
	r := j.last()
	if !r.ok() {
		return trouble(r)
	}
	total := ""
	var rows [][]string
	for _, line := range r.lines() {
		amount, name, ok := strings.Cut(line, "\t")
		if !ok {
			continue
		}
		amount = strings.TrimSpace(amount)
		if name == "." {
			total = amount
			continue
		}
		rows = append(rows, []string{amount, code(strings.TrimPrefix(name, "./") + "/")})
	}
	if total == "" && len(rows) == 0 {
		return fence("", r.text, 20, true)
	}
	s := "This folder holds **" + total + "** in all"
	if len(rows) == 0 {
		return s + ", and has no folders in it."
	}
	return s + "; the most is in " + rows[0][1] + ".\n\n" + mdTable([]string{"size", "folder"}, rows[:min(len(rows), 15)])
}

// dfLine: device, size, used, available, percent, mount point.
var dfLine = rx(`^(\S.*?)\s+(\S+)\s+(\S+)\s+(\S+)\s+(\d+)%\s+(/.*)$`)

func diskFree(j *job) string {
	r := j.last()
	if len(r.lines()) < 2 {
		return trouble(r)
	}
	var rows [][]string
	var full []string
	seen := map[string]bool{}
	for _, line := range r.lines() {
		m := dfLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		device, mount := m[1], m[6]
		switch {
		case strings.HasPrefix(mount, "/proc"), strings.HasPrefix(mount, "/sys"), strings.HasPrefix(mount, "/dev"), strings.HasPrefix(mount, "/run"), strings.HasPrefix(mount, "/snap"):
			continue
		case m[2] == "0", seen[device] && strings.HasPrefix(device, "/"):
			continue // the same disk under another name
		}
		seen[device] = true
		if p, _ := strconv.Atoi(m[5]); p >= 90 {
			full = append(full, code(mount)+" ("+m[5]+" %)")
		}
		rows = append(rows, []string{m[4], m[2], m[5] + " %", code(mount)})
	}
	if len(rows) == 0 {
		return fence("", r.text, 20, true)
	}
	s := "No disk is short of space."
	if len(full) > 0 {
		s = "**Nearly full:** " + list(full, 5) + ". Ask “biggest files” or “disk use” there."
	}
	return s + "\n\n" + mdTable([]string{"free", "size", "used", "at"}, rows)
}

func recentFiles(j *job) string {
	r := j.last()
	if !r.ok() {
		return trouble(r)
	}
	var rows [][]string
	for _, line := range r.lines() {
		if at, name, ok := strings.Cut(line, "  "); ok && strings.HasPrefix(name, "./") {
			rows = append(rows, []string{at, code(strings.TrimPrefix(name, "./"))})
		}
	}
	if len(rows) == 0 {
		if ls := parseLs(r.text); len(ls) > 0 {
			for _, e := range ls {
				rows = append(rows, []string{e.date, code(e.name)})
			}
		} else {
			return "No file below this folder was changed in the last seven days."
		}
	}
	return fmt.Sprintf("Changed last: %s, %s. The newest of the last seven days:\n\n", rows[0][1], rows[0][0]) + mdTable([]string{"changed", "file"}, rows)
}

var wcLine = rx(`^\s*(\d+) (.+)$`)

func countLines(j *job) string {
	r := j.last()
	if !r.ok() {
		return trouble(r)
	}
	var rows [][]string
	total, sum := int64(0), int64(0)
	for _, line := range r.lines() {
		m := wcLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		n, _ := strconv.ParseInt(m[1], 10, 64) // digits by the pattern
		if m[2] == "total" {
			total += n // xargs may run wc several times
			continue
		}
		sum += n
		rows = append(rows, []string{number(n), code(strings.TrimPrefix(m[2], "./"))})
	}
	total = max(total, sum)
	what := count(int(total), "line")
	if i := languageOf(j.args["lang"]); i >= 0 {
		what += " of " + languages[i].title
	}
	switch {
	case j.args["file"] != "" && len(rows) == 1:
		return fmt.Sprintf("%s has **%s**.", rows[0][1], what)
	case len(rows) == 0 || total == 0:
		return "There is no such file below this folder, so no lines."
	}
	return fmt.Sprintf("**%s** below this folder. The longest files:\n\n", what) + mdTable([]string{"lines", "file"}, rows[:min(len(rows), 15)])
}

// hit is a line of the grep tool: path:line:text.
var hit = rx(`^(.+?):(\d+):(.*)$`)

func foundText(j *job) string {
	r := j.last()
	if r.isError {
		return trouble(r)
	}
	if strings.HasPrefix(r.text, "no match in ") {
		return "Nothing: " + code(j.args["text"]) + " is in none of the files here. (What git ignores and hidden files are left out.)"
	}
	byFile := map[string]int{}
	var order []string
	var shown []string
	hits, more := 0, false
	for _, line := range r.lines() {
		m := hit.FindStringSubmatch(line)
		if m == nil {
			more = more || strings.HasPrefix(line, "[")
			continue
		}
		hits++
		if byFile[m[1]]++; byFile[m[1]] == 1 {
			order = append(order, m[1])
		}
		if len(shown) < 25 {
			shown = append(shown, m[1]+":"+m[2]+": "+strings.TrimSpace(cut(m[3], 160)))
		}
	}
	if hits == 0 {
		return fence("", r.text, 30, true)
	}
	s := fmt.Sprintf("%s is in %s, %s", code(j.args["text"]), count(len(order), "file"), count(hits, "line"))
	if more {
		s = "At least: " + s
	}
	s += ".\n\n" + fence("", strings.Join(shown, "\n"), 25, true)
	if hits > len(shown) {
		s += fmt.Sprintf("\n%s more; the most in %s.", count(hits-len(shown), "line"), code(slices.MaxFunc(order, func(a, b string) int { return byFile[a] - byFile[b] })))
	}
	return s
}

func foundFiles(j *job) string {
	r := j.last()
	if r.isError {
		return trouble(r)
	}
	if strings.HasPrefix(r.text, "no file matches") {
		return "There is no file like " + code(j.args["file"]) + " below this folder. (What git ignores and hidden files are left out.)"
	}
	var names []string
	note := ""
	for _, line := range r.lines() {
		if strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") {
			note = " " + strings.Trim(line, "[]") + "."
			continue
		}
		names = append(names, line)
	}
	if len(names) == 1 {
		return "Found one: " + code(names[0]) + "."
	}
	s := "Found " + count(len(names), "file") + ", the newest first:" + note + "\n"
	for _, n := range names[:min(len(names), 30)] {
		s += "\n- " + code(n)
	}
	if n := len(names) - 30; n > 0 {
		s += fmt.Sprintf("\n\nand %s more.", number(int64(n)))
	}
	return s
}

func tail(j *job) string {
	r := j.last()
	if !r.ok() {
		return trouble(r)
	}
	if strings.TrimSpace(r.text) == "" {
		return code(j.args["file"]) + " is empty."
	}
	var bad []string
	warnings := 0
	for _, l := range r.lines() {
		switch low := strings.ToLower(l); {
		case strings.Contains(low, "error"), strings.Contains(low, "fatal"), strings.Contains(low, "panic"), strings.Contains(low, "fail"):
			bad = append(bad, l)
		case strings.Contains(low, "warn"):
			warnings++
		}
	}
	s := fmt.Sprintf("The end of %s, %s", code(j.args["file"]), count(len(r.lines()), "line"))
	switch {
	case len(bad) > 0:
		s += fmt.Sprintf(": %s with errors", number(int64(len(bad))))
		if warnings > 0 {
			s += fmt.Sprintf(", %s with warnings", number(int64(warnings)))
		}
		s += ". The last error:\n\n" + fence("", bad[len(bad)-1], 1, true) + "\n\nAll of it:"
	case warnings > 0:
		s += fmt.Sprintf(", no errors, %s.", count(warnings, "warning"))
	default:
		s += ", no errors in sight."
	}
	return s + "\n\n" + fence("", r.text, 50, false)
}

// numbered takes the read tool's line numbers off. more is set where the file goes on.
func numbered(text string) (lines []string, more bool) {
	for _, l := range strings.Split(text, "\n") {
		n, rest, ok := strings.Cut(l, "\t")
		if _, err := strconv.Atoi(strings.TrimSpace(n)); ok && err == nil {
			lines = append(lines, strings.TrimSuffix(rest, "\r"))
		} else if strings.HasPrefix(l, "[lines ") && strings.Contains(l, "more follows") {
			more = true
		}
	}
	return lines, more
}

// shown is a file as it is, up to max lines.
func shown(j *job, most int) string {
	r := j.last()
	if r.isError {
		return readTrouble(j, r)
	}
	lines, more := numbered(r.text)
	if len(lines) == 0 {
		return code(j.args["file"]) + " is empty."
	}
	s := code(j.args["file"]) + ", " + count(len(lines), "line")
	if more {
		s = code(j.args["file"]) + ", the first " + count(len(lines), "line")
	}
	return s + ":\n\n" + fence(fenceLanguage(j.args["file"]), strings.Join(lines, "\n"), most, true)
}

func readTrouble(j *job, r result) string {
	name := code(j.args["file"])
	switch {
	case strings.Contains(r.text, "no such file"), strings.Contains(r.text, "does not exist"):
		return "There is no " + name + " here. Ask “find file " + j.args["file"] + "” to look for it below this folder."
	case strings.Contains(r.text, "is a directory"), strings.Contains(r.text, "not a regular file"):
		return name + " is a folder or something else that is no plain file. Ask “what is in " + j.args["file"] + "”."
	}
	return "I could not read " + name + ": " + visible(firstLine(r.text)) + "."
}

var fenceNames = map[string]string{
	".go": "go", ".py": "python", ".js": "javascript", ".ts": "typescript", ".rs": "rust", ".c": "c", ".h": "c", ".cpp": "cpp", ".java": "java", ".rb": "ruby",
	".sh": "sh", ".bash": "sh", ".md": "markdown", ".json": "json", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".html": "html", ".css": "css", ".sql": "sql", ".diff": "diff", ".xml": "xml",
}

func fenceLanguage(name string) string {
	if base := strings.ToLower(path.Base(name)); base == "makefile" || base == "dockerfile" {
		return base
	}
	return fenceNames[strings.ToLower(path.Ext(name))]
}

func compared(j *job) string {
	r := j.last()
	a, b := code(j.args["file"]), code(j.args["to"])
	switch {
	case r.exit == 0 && !r.isError:
		return a + " and " + b + " are the same."
	case r.exit != 1:
		return trouble(r)
	}
	added, removed := 0, 0
	for _, l := range r.lines() {
		switch {
		case strings.HasPrefix(l, "+++"), strings.HasPrefix(l, "---"):
		case strings.HasPrefix(l, "+"):
			added++
		case strings.HasPrefix(l, "-"):
			removed++
		}
	}
	return fmt.Sprintf("They differ: %s has %s that %s lacks, and lacks %s.\n\n", b, count(added, "line"), a, number(int64(removed))) + fence("diff", r.text, 60, true)
}
