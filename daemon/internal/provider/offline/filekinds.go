package offline

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

func permissions(j *job) string {
	r := j.last()
	if !r.ok() {
		return trouble(r)
	}
	list := parseLs(r.text)
	if len(list) != 1 {
		return fence("", r.text, 10, true)
	}
	e := list[0]
	kind := map[byte]string{'d': "a folder", 'l': "a link", '-': "a file", 's': "a socket", 'p': "a pipe", 'b': "a device", 'c': "a device"}[e.mode[0]]
	who := func(bits string) string {
		var can []string
		for i, w := range []string{"read", "write", "run"} {
			if bits[i] != '-' && bits[i] != 'S' && bits[i] != 'T' {
				if w == "run" && e.dir() {
					w = "enter"
				}
				can = append(can, w)
			}
		}
		if len(can) == 0 {
			return "nothing"
		}
		return join(can)
	}
	s := fmt.Sprintf("%s is %s of **%s** (group %s)", code(e.name), kind, e.owner, e.group)
	if !e.dir() && e.target == "" {
		s += ", " + size(e.bytes)
	}
	if e.target != "" {
		s += " to " + code(e.target)
	}
	return s + fmt.Sprintf(", changed %s.\n\n- the owner may %s\n- the group may %s\n- others may %s", e.date, who(e.mode[1:4]), who(e.mode[4:7]), who(e.mode[7:10]))
}

// outlines are the lines of a file that say what is in it, by extension.
var outlines = map[string]*pattern{
	".go": rx(`^(?:func|type) (?:\([^)]*\) )?(\w+)`), ".py": rx(`^\s*(?:def|class) (\w+)`), ".rs": rx(`^\s*(?:pub(?:\([^)]*\))? )?(?:fn|struct|enum|trait) (\w+)`),
	".js": rx(`^\s*(?:export )?(?:default )?(?:async )?(?:function|class) (\w+)`), ".ts": rx(`^\s*(?:export )?(?:default )?(?:async )?(?:function|class|interface|type) (\w+)`),
	".java": rx(`^\s*(?:public|private|protected).*(?:class|interface|enum) (\w+)`), ".rb": rx(`^\s*(?:def|class|module) (\S+)`), ".c": rx(`^\w[\w\s*]+?\b(\w+)\([^;]*$`),
	".sh": rx(`^(?:function )?(\w[\w-]*) ?\(\)`), ".md": rx(`^#+ (.+)$`), ".toml": rx(`^\[+([^\]]+)\]`), ".ini": rx(`^\[([^\]]+)\]`),
	".yaml": rx(`^([\w-]+):`), ".yml": rx(`^([\w-]+):`), ".json": rx(`^(?:  |\t)"([^"]+)":`), ".sql": rx(`(?i)^\s*create (?:table|view|index)\s+(?:if not exists )?(\S+)`), ".css": rx(`^([.#\w][^{]*)\{`),
}

func explainFile(j *job) string {
	r := j.last()
	name := j.args["file"]
	if r.isError {
		if m := rx(`is (.+), not text$`).FindStringSubmatch(r.text); m != nil {
			return code(name) + " is no text: it is " + m[1] + "."
		}
		return readTrouble(j, r)
	}
	lines, more := numbered(r.text)
	if len(lines) == 0 {
		return code(name) + " is empty."
	}
	ext := strings.ToLower(path.Ext(name))
	kind := "a text file"
	if l := languageOf(ext); l >= 0 && ext != "" {
		kind = "a " + languages[l].title + " file"
	}
	for _, k := range projectKinds {
		if path.Base(name) == k.file {
			kind = "the file that makes this " + strings.TrimPrefix(k.says, "with ")
		}
	}
	if strings.EqualFold(path.Base(name), "makefile") {
		kind, ext = "a Makefile", ".make"
	}
	if m := shebang.FindStringSubmatch(lines[0]); m != nil {
		kind = "a script for " + code(m[1])
		if ext == "" {
			ext = map[string]string{"bash": ".sh", "sh": ".sh", "python3": ".py", "python": ".py", "node": ".js", "ruby": ".rb"}[m[1]]
		}
	}
	blank, comments := 0, 0
	for _, l := range lines {
		switch t := strings.TrimSpace(l); {
		case t == "":
			blank++
		case strings.HasPrefix(t, "//"), strings.HasPrefix(t, "#") && ext != ".md", strings.HasPrefix(t, "--"), strings.HasPrefix(t, "/*"), strings.HasPrefix(t, "* "):
			comments++
		}
	}
	qualifier := ""
	if more {
		qualifier = "at least "
	}
	s := fmt.Sprintf("%s is %s of %s%s (%d blank, %d comments).", code(name), kind, qualifier, count(len(lines), "line"), blank, comments)
	if c := firstComment(lines, ext); c != "" {
		s += " It says of itself: " + quoteText(c)
	}
	if re := outlines[ext]; re != nil || ext == ".make" {
		if ext == ".make" {
			re = makeTarget
		}
		var names []string
		for _, l := range lines {
			if m := re.FindStringSubmatch(l); m != nil && !slices.Contains(names, m[1]) {
				names = append(names, strings.TrimSpace(m[1]))
			}
		}
		if len(names) > 0 {
			for i := range names {
				names[i] = code(names[i])
			}
			s += fmt.Sprintf("\n\nIn it, %s: %s.", count(len(names), "name"), list(names, 25))
		}
	}
	return s + "\n\n" + fence(fenceLanguage(name), strings.Join(lines, "\n"), 20, true) + "\n\nThis is what can be counted; what it means takes a real model."
}

var (
	shebang    = rx(`^#!\s*(?:/usr/bin/env (?:-S )?|\S*/)([\w.-]+)`)
	makeTarget = rx(`^([\w.-]+):(?:[^=]|$)`)
)

// firstComment is the comment a file begins with, at most two lines of it.
func firstComment(lines []string, ext string) string {
	var words []string
	for _, l := range lines[:min(len(lines), 15)] {
		t := strings.TrimSpace(l)
		if strings.HasPrefix(t, "#!") || t == "" && len(words) == 0 || strings.HasPrefix(t, "//go:") {
			continue
		}
		text := strings.TrimSpace(strings.TrimLeft(t, "/#*-;\"'"))
		if ext == ".md" && strings.HasPrefix(t, "#") || ext != ".md" && (strings.HasPrefix(t, "//") || strings.HasPrefix(t, "#") || strings.HasPrefix(t, "/*") || strings.HasPrefix(t, `"""`)) {
			if text != "" {
				words = append(words, strings.TrimSpace(strings.TrimSuffix(strings.TrimSuffix(text, "*/"), `"""`)))
			}
			if len(words) == 2 || ext == ".md" {
				break
			}
			continue
		}
		if t != "" {
			break
		}
	}
	return cut(strings.Join(words, " "), 240)
}
