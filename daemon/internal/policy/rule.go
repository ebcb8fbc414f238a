package policy

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/risk/programs"
	"sublet/wire"

	"github.com/bmatcuk/doublestar/v4"
)

// A parsedRule is a pattern ready to match.
type parsedRule struct {
	kind    string      // bash, write, read, fetch, tool, effect, reach
	level   risk.Level  // 0: any
	dir     string      // "": any
	free    bool        // also, to forbid only, for a command that nothing holds although its text needs no more than a held one
	alts    [][]pattern // bash: alternatives, each a list of words
	globs   []string    // write, read: path globs; fetch: host globs; tool: names
	effects []risk.Effect
	rule    *wire.Rule
}

// pattern is one word: a literal one, or an expression for one with any `*`.
type pattern struct {
	literal string
	wild    *regexp.Regexp
}

// anyText is the expression of a word that is a `*`.
const anyText = "^(?s:.*)$"

func (p pattern) match(s string) bool {
	return p.wild == nil && s == p.literal || p.wild != nil && p.wild.MatchString(s)
}

// ParseRule checks a rule's pattern. A pattern is a kind, a colon and what it matches:
//
//	bash: git push origin *     words of one simple command; ` ; ` separates alternatives
//	write: src/**               a file that a tool writes; edit: means the same. Relative to the project, ~/ or absolute
//	read: ~/notes/*             a file that a tool reads
//	fetch: *.example.com        a host that is asked
//	tool: mcp__db__query        a tool by its name
//	effect: network delete      any of these effects; to allow, the command must have no other
//	reach: project              edits and builds that are confined to the project; to allow, of one session or project only
//
// In words of bash, * stands for any text and as the last word for any further words; quotes and \ make it literal. A
// rule that allows needs the program's name in full, covers no critical command, no command with words that are not
// known and, when it holds a *, no wrapper or interpreter. A rule that denies or asks also matches the command behind a
// path (/bin/rm), a wrapper (env rm) and global options, its options in any order and spelling (-r -f, -fr, --force).
//
// A kind may be narrowed in brackets by a level and a folder: `bash[high, in /srv/app]: git push`. A rule that allows
// then covers what is at most of that level, one that denies or asks what is at least of it. A rule of bash that allows
// without a level covers what is no worse than its own words are in a project: `git push *` high, `go test *` medium.
//
// A rule of bash or effect that allows a command which can be held does so for it being held; `bash[free]: npm test` also if the
// agent asked that nothing holds it.
func ParseRule(pattern string) error {
	_, err := parseRule(pattern)
	return err
}

func parseRule(text string) (*parsedRule, error) {
	m := ruleForm().FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return nil, fmt.Errorf("rule %q has no kind: write `bash: git push *`, `write: src/**`, `read: …`, `fetch: HOST`, `tool: NAME`, `effect: …` or `reach: project`", text)
	}
	r, body := &parsedRule{kind: m[1]}, strings.TrimSpace(m[3])
	if body == "" {
		return nil, fmt.Errorf("rule %q matches nothing: something has to follow the colon", text)
	}
	if err := r.narrow(m[2]); err != nil {
		return nil, fmt.Errorf("rule %q: %w", text, err)
	}
	var err error
	switch r.kind {
	case "bash":
		r.alts, err = parseWords(body)
	case "write", "edit", "read":
		if r.kind == "edit" {
			r.kind = "write"
		}
		r.globs = []string{body}
		err = CheckGlob(body)
	case "fetch", "tool":
		r.globs = []string{body}
		if strings.ContainsAny(body, " \t/") || CheckGlob(body) != nil {
			err = errors.New("it takes one name, in which * stands for any text")
		}
	case "effect":
		for _, f := range strings.Fields(strings.ReplaceAll(body, ",", " ")) {
			if !slices.Contains(programs.Effects(), risk.Effect(f)) {
				return nil, fmt.Errorf("rule %q: %q is not an effect; the effects are %v", text, f, programs.Effects())
			}
			r.effects = append(r.effects, risk.Effect(f))
		}
	case "reach":
		if body != string(risk.ReachProject) {
			err = fmt.Errorf("%q is not a reach that a rule can name; only project is", body)
		}
	default:
		err = fmt.Errorf("%q is not a kind of rule; the kinds are bash, write, edit, read, fetch, tool, effect and reach", r.kind)
	}
	if err != nil {
		return nil, fmt.Errorf("rule %q: %w", text, err)
	}
	return r, nil
}

// maxBraces and maxCommas bound the alternatives in a glob: the time to match a path grows with the power of the former.
const maxBraces, maxCommas = 4, 16

// CheckGlob returns why a glob is not used: it is not valid, or takes too long to match.
func CheckGlob(glob string) error {
	if !doublestar.ValidatePattern(glob) {
		return errors.New("not a valid glob")
	}
	glob = strings.ReplaceAll(glob, `\\`, "") // a backslash by itself, which quotes no brace
	braces := strings.Count(glob, "{") - strings.Count(glob, `\{`)
	if braces > maxBraces || braces > 0 && strings.Count(glob, ",") > maxCommas {
		return fmt.Errorf("more alternatives than %d times {} with %d commas in all", maxBraces, maxCommas)
	}
	return nil
}

// ruleForm has the kind, what narrows it, which may hold a folder with colons, and the rest.
var ruleForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([^:\[]+)(?:\[(.*?)\])?:(?s:(.*))$`) })

// narrow reads what stands in brackets: a level, then a folder, whose name may hold commas.
func (r *parsedRule) narrow(s string) error {
	for s != "" {
		s = strings.TrimSpace(s)
		if dir, ok := strings.CutPrefix(s, "in "); ok {
			if !path.IsAbs(dir) {
				return fmt.Errorf("folder %q is not absolute", dir)
			}
			r.dir = path.Clean(dir)
			return nil
		}
		var part string
		if part, s, _ = strings.Cut(s, ","); strings.TrimSpace(part) == string(risk.ReachFree) && (r.kind == "bash" || r.kind == "effect") {
			r.free = true
			continue
		}
		l, err := programs.ParseLevel(strings.TrimSpace(part))
		if err != nil {
			return err
		}
		r.level = l
	}
	return nil
}

// parseWords splits a bash pattern into alternatives of words, with the shell's own quotes.
func parseWords(s string) ([][]pattern, error) {
	if !utf8.ValidString(s) {
		return nil, errors.New("it is not UTF-8")
	}
	var alts [][]pattern
	var words []pattern
	var literal, expr strings.Builder
	inWord, stars := false, false
	add := func(text string) {
		inWord = true
		literal.WriteString(text)
		expr.WriteString(regexp.QuoteMeta(text))
	}
	endWord := func() {
		if p := (pattern{literal: literal.String()}); inWord {
			if stars {
				p.wild = regexp.MustCompile("^" + expr.String() + "$")
			}
			words = append(words, p)
		}
		inWord, stars = false, false
		literal.Reset()
		expr.Reset()
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case ' ', '\t':
			endWord()
		case ';':
			if inWord || (i+1 < len(s) && s[i+1] != ' ') {
				return nil, errors.New("a ; separates alternatives and stands between blanks; quote it to match it")
			}
			if len(words) == 0 {
				return nil, errors.New("there is nothing before a ;")
			}
			alts, words = append(alts, words), nil
		case '\\':
			if i++; i == len(s) {
				return nil, errors.New("it ends in a backslash")
			}
			add(s[i : i+1])
		case '\'', '"':
			end := strings.IndexByte(s[i+1:], c)
			if end < 0 {
				return nil, fmt.Errorf("a %c is not closed", c)
			}
			add(s[i+1 : i+1+end])
			i += end + 1
		case '*':
			inWord, stars = true, true
			expr.WriteString("(?s:.*)")
		case '|', '&', '<', '>', '(', ')', '`', '$', '\n', '\r':
			return nil, fmt.Errorf("a rule names the words of one command, and %q is not part of a word; quote it to match it", c)
		default:
			add(s[i : i+1])
		}
	}
	endWord()
	if len(words) == 0 {
		return nil, errors.New("there is nothing after a ;")
	}
	return append(alts, words), nil
}

// wild reports whether words hold any *.
func wild(words []pattern) bool {
	return slices.ContainsFunc(words, func(p pattern) bool { return p.wild != nil })
}

// ownLevel is what the words of a rule mean by themselves, without what its * stand for, in a project: a rule that
// allows `cargo build *` is about building, not about what options can make of it.
func ownLevel(words []pattern) risk.Level {
	var argv []string
	for _, p := range words {
		if p.wild == nil {
			argv = append(argv, p.literal)
		}
	}
	return risk.Analyze(quoteWords(argv), risk.Context{Cwd: "/home/user/project", Home: "/home/user", ProjectRoot: "/home/user/project"}).Level
}

// matchWords compares pattern words and argv one by one; a last * takes all that is left.
func matchWords(words []pattern, argv []string) bool {
	for i, p := range words {
		if i == len(words)-1 && p.wild != nil && p.wild.String() == anyText {
			return true
		}
		if i >= len(argv) || !p.match(argv[i]) {
			return false
		}
	}
	return len(words) == len(argv)
}

// coversCommand reports whether a rule lets one command through.
func (r *parsedRule) coversCommand(c *risk.Command) bool {
	if c.Level >= risk.Critical || c.Opaque || len(c.Argv) == 0 || r.level != 0 && c.Level > r.level || r.dir != "" && c.Cwd != r.dir {
		return false
	}
	switch r.kind {
	case "bash":
		return slices.ContainsFunc(r.alts, func(words []pattern) bool {
			named := words[0].wild == nil && !(wild(words) && c.Runs) && matchWords(words, c.Argv)
			return named && (r.level != 0 || c.Level <= ownLevel(words))
		})
	case "effect":
		other := func(e risk.Effect) bool { return e == risk.Unknown || e != risk.Read && !slices.Contains(r.effects, e) }
		return !c.Runs && len(c.Effects) > 0 && !slices.ContainsFunc(c.Effects, other)
	}
	return false
}

// coversFiles reports whether a rule lets a whole file action through.
func (r *parsedRule) coversFiles(v risk.Verdict, a Action) bool {
	if r.level != 0 && v.Level > r.level || r.dir != "" {
		return false
	}
	other := func(p string) bool { return !r.matchPath(p, a) }
	switch r.kind {
	case "tool":
		ok, _ := doublestar.Match(r.globs[0], a.Tool)
		named := a.Server == "" || strings.HasPrefix(a.Tool, "mcp__") // else a hosted agent's call, which may be anything
		return ok && named && a.Tool != "" && !strings.ContainsAny(r.globs[0][:1], "*?[{")
	case "write":
		return len(a.Writes) > 0 && a.Network == "" && !slices.ContainsFunc(a.Writes, other)
	case "read":
		return len(a.Reads) > 0 && len(a.Writes) == 0 && a.Network == "" && !slices.ContainsFunc(a.Reads, other)
	case "fetch":
		return a.Network != "" && len(a.Reads)+len(a.Writes) == 0 && matchHost(r.globs[0], a.Network)
	}
	return false
}

func (r *parsedRule) matchPath(p string, a Action) bool {
	ok, err := doublestar.Match(r.absolute(a), path.Clean(p))
	return ok && err == nil
}

// absolute returns the rule's glob from the root on; "" if the folder that it is relative to is not known.
func (r *parsedRule) absolute(a Action) string {
	glob, root := r.globs[0], cmp.Or(a.Project, a.Cwd)
	switch rest, inHome := strings.CutPrefix(glob, "~/"); {
	case strings.HasPrefix(glob, "/"):
		return glob
	case inHome:
		glob, root = rest, a.Home
	}
	if root == "" {
		return ""
	}
	return QuoteGlob(strings.TrimSuffix(root, "/")) + "/" + strings.TrimPrefix(glob, "./")
}

// matchHost compares hosts without their case; a port in the host has to be in the glob too.
func matchHost(glob, host string) bool {
	ok, err := doublestar.Match(strings.ToLower(glob), strings.ToLower(host))
	return ok && err == nil
}

// quoteWords writes argv so that parseWords reads exactly these words.
func quoteWords(argv []string) string {
	out := make([]string, len(argv))
	for i, s := range argv {
		out[i] = risk.ShellWord(s)
	}
	return strings.Join(out, " ")
}

var globQuoter = strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`, `\`, `\\`)

// QuoteGlob returns the glob that matches s alone.
func QuoteGlob(s string) string { return globQuoter.Replace(s) }
