package offline

import (
	"fmt"
	"path"
	"strings"
)

// fileOpIntents change files and folders. Each is asked about by its risk; none overwrites what is there.
var fileOpIntents = []intent{
	{
		name:     "make folder",
		example:  "make a folder NAME",
		patterns: []string{`^(?:make|create|add|new)(?: a| the)?(?: new)? (?:folder|directory|dir)(?: called| named)? {file}$`, `^mkdir(?: -p)? {file}$`},
		plan:     steps(func(j *job) *call { return bash("make a folder", "mkdir -pv --", file(j.args["file"])) }),
		answer: func(j *job) string {
			switch r := j.last(); {
			case !r.ok():
				return trouble(r)
			case strings.TrimSpace(r.text) == "":
				return code(j.args["file"]) + " was there already."
			}
			return "Made the folder " + code(j.args["file"]) + "."
		},
	},
	{
		name:    "create file",
		example: "create a file notes.txt with \"hello\"",
		patterns: []string{
			`^(?:create|make|write|add|new)(?: an?| the)?(?: new)?(?: empty)? (?:file|text file|script)(?: called| named)? {file}(?:,? (?:with|containing|that (?:says|contains)|saying)(?: the)?(?: (?:text|content|contents|line|words))?:? (?P<rest>.+))?$`,
			`^(?:write|put|save|store) (?P<rest>"[^"]*"|'[^']*'|` + "`[^`]*`" + `|.+) (?:in|into|to)(?: a| the)?(?: new)? file(?: called| named)? {file}$`,
			`^(?:write|put|save) (?P<rest>"[^"]*"|'[^']*'|` + "`[^`]*`" + `) (?:in|into|to) {file}$`, `^touch {file}$`,
		},
		plan: steps(
			func(j *job) *call {
				return bash("see whether it is there already", "command ls -ld --", file(j.args["file"]))
			},
			func(j *job) *call {
				if j.last().ok() || strings.HasPrefix(j.args["file"], "~") {
					return nil
				}
				content := word(j.args["rest"], "rest")
				if content != "" && !strings.HasSuffix(content, "\n") {
					content = strings.ReplaceAll(content, `\n`, "\n") + "\n"
				}
				return &call{tool: "write", args: map[string]any{"path": j.args["file"], "content": content}}
			},
		),
		answer: func(j *job) string {
			name := code(j.args["file"])
			switch {
			case strings.HasPrefix(j.args["file"], "~"):
				return "Name the file by its whole path, not with `~`; nothing was written."
			case len(j.results) < 2 && j.last().ok():
				return name + " is there already, so I left it alone. To change a part of it: “replace \"a\" with \"b\" in " + j.args["file"] + "”."
			case j.failed():
				return trouble(j.last())
			}
			return "Created " + name + "."
		},
	},
	{
		name:    "replace text",
		example: "replace \"a\" with \"b\" in FILE",
		patterns: []string{
			`^(?:replace|change|substitute|rename|swap)(?: the)?(?: (?:text|word|string))?(?: all| every)? (?P<old>"[^"]+"|'[^']+'|` + "`[^`]+`" + `|\S+) (?:with|by|to|into|for) (?P<new>"[^"]*"|'[^']*'|` + "`[^`]*`" + `|\S+) (?:in|inside|within)(?: the)?(?: file)? {file}$`,
			`^in {file},? (?:replace|change) (?P<old>"[^"]+"|'[^']+'|` + "`[^`]+`" + `|\S+) (?:with|by|to) (?P<new>"[^"]*"|'[^']*'|` + "`[^`]*`" + `|\S+)$`,
		},
		plan: steps(
			func(j *job) *call { return &call{tool: "read", args: map[string]any{"path": j.args["file"]}} },
			func(j *job) *call {
				lines, more := numbered(j.last().text)
				if j.failed() || j.args["old"] == j.args["new"] || !more && !strings.Contains(strings.Join(lines, "\n"), j.args["old"]) {
					return nil
				}
				return &call{tool: "edit", args: map[string]any{"path": j.args["file"], "old": j.args["old"], "new": j.args["new"], "replace_all": true}}
			},
		),
		answer: func(j *job) string {
			r := j.last()
			switch {
			case j.args["old"] == j.args["new"]:
				return "Both texts are the same, so there is nothing to replace."
			case len(j.results) < 2 && r.isError:
				return readTrouble(j, r)
			case len(j.results) < 2:
				return code(j.args["old"]) + " is not in " + code(j.args["file"]) + ", so nothing was changed."
			case r.isError:
				return "The file was not changed: " + visible(firstLine(r.text)) + "."
			}
			times := "once"
			if m := replacedTimes.FindStringSubmatch(r.text); m != nil {
				times = m[1] + " times"
			}
			return fmt.Sprintf("Replaced %s with %s in %s, %s.", code(j.args["old"]), code(j.args["new"]), code(j.args["file"]), times)
		},
	},
	{
		name:    "rename",
		example: "rename A to B",
		patterns: []string{
			`^(?:rename|move|mv)(?: the)?(?: (?:file|folder|directory))? {file} (?:to|into|as|in) (?:the )?(?:folder |directory )?{to}$`, `^(?:mv|rename) {file} {to}$`,
		},
		plan: steps(func(j *job) *call {
			return bash("rename, without overwriting", "mv -nv --", file(j.args["file"]), file(j.args["to"]))
		}),
		answer: func(j *job) string {
			switch r := j.last(); {
			case !r.ok():
				return trouble(r)
			case strings.TrimSpace(r.text) == "":
				return "Not done: " + code(j.args["to"]) + " is there already, and I do not overwrite."
			}
			return code(j.args["file"]) + " is now " + code(j.args["to"]) + "."
		},
	},
	{
		name:    "copy",
		example: "copy A to B",
		patterns: []string{
			`^(?:copy|duplicate|cp(?: -\w+)?|back ?up)(?: the)?(?: (?:file|folder|directory))? {file} (?:to|into|as|in) (?:the )?(?:folder |directory )?{to}$`, `^cp(?: -\w+)? {file} {to}$`, `^(?:back ?up|duplicate)(?: the)?(?: file)? {file}$`,
		},
		plan: steps(
			func(j *job) *call {
				return bash("see whether it is there already", "command ls -ld --", file(copyTarget(j)))
			},
			func(j *job) *call {
				if l := parseLs(j.last().text); j.last().ok() && !(len(l) == 1 && l[0].dir()) {
					return nil // a file is there: it stays
				}
				return bash("copy, without overwriting", "cp -rnv --", file(j.args["file"]), file(copyTarget(j)))
			},
		),
		answer: func(j *job) string {
			switch r := j.last(); {
			case len(j.results) < 2:
				return "Not done: " + code(copyTarget(j)) + " is there already, and I do not overwrite."
			case !r.ok():
				return trouble(r)
			default:
				return fmt.Sprintf("Copied %s to %s (%s).", code(j.args["file"]), code(copyTarget(j)), count(max(1, len(r.lines())), "item"))
			}
		},
	},
	{
		name:    "delete",
		example: "delete FILE",
		patterns: []string{
			`^(?:delete|remove|rm|erase|trash|get rid of)(?: -[rf]+)?(?: the)?(?: (?:file|folder|directory|dir))?(?: called| named)? {file}$`,
			`^(?:delete|remove|erase|trash|get rid of)(?: the| my)? {file} (?:file|folder|directory|dir)$`,
		},
		plan: steps(
			func(j *job) *call { // what would go
				return bash("look at what would be deleted", "command ls -ld --", file(strings.TrimRight(j.args["file"], "/")))
			},
			func(j *job) *call {
				l := parseLs(j.last().text)
				if j.failed() || len(l) != 1 || nowhere[path.Clean(j.args["file"])] {
					return nil
				}
				name := file(strings.TrimRight(j.args["file"], "/"))
				if l[0].dir() {
					return bash("delete the folder and all that is in it", "rm -r --", name)
				}
				return bash("delete the file", "rm --", name)
			},
			func(j *job) *call { return nil },
		),
		answer: func(j *job) string {
			name := code(j.args["file"])
			switch {
			case nowhere[path.Clean(j.args["file"])]:
				return "I do not delete " + name + ". If you mean it, do it by hand."
			case len(j.results) < 2 && strings.Contains(j.last().text, "No such file"):
				return "There is no " + name + " here, so nothing was deleted."
			case j.failed():
				return trouble(j.last())
			case len(j.results) < 2:
				return "Name one file or folder by its exact name; nothing was deleted."
			}
			return "Deleted " + name + "."
		},
		no: "nothing was deleted",
	},
	{
		name:     "executable",
		example:  "make FILE executable",
		patterns: []string{`^make(?: the)?(?: (?:file|script))? {file} executable$`, `^chmod \+x {file}$`, `^(?:allow|let) (?:me )?(?:to )?(?:run|execute|running) {file}$`},
		plan: steps(
			func(j *job) *call { return bash("make it executable", "chmod +x --", file(j.args["file"])) },
			func(j *job) *call {
				if j.failed() {
					return nil
				}
				return bash("see how it is now", "command ls -ld --", file(j.args["file"]))
			},
		),
		answer: func(j *job) string {
			if j.failed() {
				return trouble(j.last())
			}
			run := j.args["file"]
			if !strings.Contains(run, "/") {
				run = "./" + run
			}
			return code(j.args["file"]) + " is executable now: " + code(quote(run)) + " runs it."
		},
	},
	{
		name:    "compress",
		example: "compress FOLDER",
		patterns: []string{
			`^(?:compress|archive|pack|tar|zip(?: up)?|gzip|bundle)(?: the)?(?: (?:file|folder|directory))? {file}(?: (?:to|into|as) {to})?$`, `^(?:compress|archive|pack|tar|zip(?: up)?|gzip|bundle)(?: the| my)? {file} (?:file|folder|directory|dir)(?: (?:to|into|as) {to})?$`,
			`^(?:make|create) (?:an? )?(?:archive|tarball|zip|zip file|tar file|tar)(?: file)? (?:of|from) (?:the )?(?:folder |directory )?{file}(?: (?:called|named|as|to|in) {to})?$`,
		},
		plan: steps(
			func(j *job) *call {
				return bash("see whether the archive is there already", "command ls -ld --", file(archiveName(j)))
			},
			func(j *job) *call {
				if j.last().ok() {
					return nil
				}
				name, target := strings.TrimRight(j.args["file"], "/"), archiveName(j)
				if strings.HasSuffix(target, ".zip") {
					return bash("pack it", "zip -qr", file(target), file(name))
				}
				return bash("pack it", "tar -caf", file(target), "--", quote(name))
			},
			func(j *job) *call {
				if j.failed() {
					return nil
				}
				return bash("see how large it is", "command ls -ld --", file(archiveName(j)))
			},
		),
		answer: func(j *job) string {
			switch l := parseLs(j.last().text); {
			case len(j.results) == 1:
				return "Not done: " + code(archiveName(j)) + " is there already, and I do not overwrite."
			case j.failed():
				return trouble(j.last())
			case len(l) == 1:
				return fmt.Sprintf("Packed %s into %s, %s.", code(j.args["file"]), code(archiveName(j)), size(l[0].bytes))
			}
			return "Packed " + code(j.args["file"]) + " into " + code(archiveName(j)) + "."
		},
	},
	{
		name:    "extract",
		example: "extract FILE.tar.gz",
		patterns: []string{
			`^(?:extract|unpack|unzip|untar|decompress|uncompress|expand|gunzip)(?: the)?(?: (?:file|archive))? {file}(?: (?:to|into|in) (?:the )?(?:folder |directory )?{to})?$`,
		},
		plan: steps(func(j *job) *call {
			name, to := j.args["file"], j.args["to"]
			low := strings.ToLower(name)
			into := ""
			switch {
			case strings.HasSuffix(low, ".zip"), strings.HasSuffix(low, ".jar"):
				if to != "" {
					into = " -d " + file(to)
				}
				return bash("unpack, without overwriting", "unzip -n "+file(name)+into)
			case tarName.MatchString(low):
				command := "tar -xvkf " + file(name)
				if to != "" {
					command = "mkdir -p -- " + file(to) + " && " + command + " -C " + file(to)
				}
				return bash("unpack, without overwriting", command)
			case strings.HasSuffix(low, ".gz"):
				return bash("unpack, keeping the original", "gunzip -kv --", file(name))
			case strings.HasSuffix(low, ".xz"):
				return bash("unpack, keeping the original", "xz -dkv --", file(name))
			case strings.HasSuffix(low, ".bz2"):
				return bash("unpack, keeping the original", "bunzip2 -kv --", file(name))
			case strings.HasSuffix(low, ".zst"):
				return bash("unpack, keeping the original", "zstd -dk --", file(name))
			}
			return nil
		}),
		answer: func(j *job) string {
			r := j.last()
			switch {
			case len(j.results) == 0:
				return "I know no archive of that name's kind. I can unpack .tar, .tar.gz, .tgz, .tar.xz, .tar.bz2, .tar.zst, .zip, .gz, .xz, .bz2 and .zst."
			case strings.Contains(r.text, "Cannot open: File exists"), strings.Contains(r.text, "already exists"):
				return "Unpacked " + code(j.args["file"]) + ", but some files were there already and stayed as they were:\n\n" + fence("", r.text, 15, false)
			case !r.ok():
				return trouble(r)
			}
			into := "here"
			if to := j.args["to"]; to != "" {
				into = "into " + code(to)
			}
			s := "Unpacked " + code(j.args["file"]) + " " + into
			if n := len(r.lines()); n > 0 {
				s += ", " + count(n, "entry") + ":\n\n" + fence("", r.text, 15, true)
			} else {
				s += "."
			}
			return s
		},
	},
}

var (
	replacedTimes = rx(`replaced (\d+) times`)
	tarName       = rx(`\.(?:tar(?:\.\w+)?|tgz|tbz2?|txz)$`)
)

// nowhere are names whose loss nobody means.
var nowhere = map[string]bool{"/": true, ".": true, "..": true, "~": true, "*": true, "everything": true, "all": true, "it": true, "this": true, "that": true, "them": true}

func copyTarget(j *job) string {
	if to := j.args["to"]; to != "" {
		return to
	}
	return strings.TrimRight(j.args["file"], "/") + ".bak"
}

func archiveName(j *job) string {
	to := j.args["to"]
	if to == "" {
		to = path.Base(strings.TrimRight(j.args["file"], "/"))
		if to == "." || to == "/" || to == ".." || to == "~" {
			to = "archive"
		}
	}
	if tarName.MatchString(to) || strings.HasSuffix(to, ".zip") {
		return to
	}
	if strings.HasPrefix(strings.ToLower(j.said), "zip") || strings.Contains(strings.ToLower(j.said), " zip ") {
		return to + ".zip"
	}
	return to + ".tar.gz"
}
