package agent

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sublet/daemon/config"
	"sublet/daemon/internal/tool"
	"sublet/wire/visible"
)

// Names of the built-in roles.
const (
	Orchestrator = "orchestrator" // borrows the user's shell, delegates
	Engineer     = "engineer"     // private shell, edits, builds
	Reviewer     = "reviewer"     // private shell, only reads
	Explorer     = "explorer"     // private shell, only reads, uses the small model
)

// Role is a kind of agent.
type Role struct {
	Name        string
	Description string   // one line, for the model that delegates
	System      string   // the role's part of the system prompt
	Model       string   // "provider/name"; "" = the turn's
	Tools       []string // allow-list, in which mcp__NAME__* matches a server's tools; nil = all, see Offers
	Private     bool     // works in a private shell
	ReadOnly    bool     // what is not low is refused without a question

	MaxTurns  int           // model calls of one turn; 0 = as usual
	MaxTokens int           // of one answer; 0 = the request's, or the model's own bound
	MaxCost   float64       // US dollars of one turn of this agent alone; 0 = no bound of its own
	Timeout   time.Duration // of one turn; 0 = none
	Mode      string        // the stricter of this and the turn's counts; "" = the turn's
	Worktree  bool          // as a sub-agent it works in a git working tree of its own

	Hosted *config.Agent // the program that is this agent; nil: it is one of ours
}

// roleOf returns the role that the settings or a file describe.
func roleOf(name string, a config.Agent) Role {
	return Role{Name: name, Description: a.Description, System: a.Prompt, Model: a.Model, Tools: a.Tools, Private: name != Orchestrator}.bound(a)
}

// bound gives the role the limits of its settings.
func (r Role) bound(a config.Agent) Role {
	r.MaxTurns, r.MaxTokens, r.MaxCost, r.Timeout, r.Mode = a.MaxTurns, a.MaxTokens, a.MaxCost, a.Timeout.Duration, a.Mode
	r.Worktree = a.Worktree
	return r
}

const maxRoleFile = 64 << 10 // bytes of one .sublet/agents/*.md

var roleName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`) })

// Roles returns all roles: the built-in ones, the user's of the settings, and those in the project's .sublet/agents/*.md. A
// project's file can only add roles, which use private shells; it replaces none. project may be "".
// A file that is not valid is left out, and faults has the reason, with its line.
func Roles(cfg config.Config, project string) (roles map[string]Role, faults []error) {
	roles = map[string]Role{}
	if project != "" {
		roles, faults = projectRoles(&cfg, filepath.Join(project, ".sublet", "agents"))
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Agents)) {
		a := cfg.Agents[name]
		r := roleOf(name, a)
		if len(a.Command) > 0 {
			r.Hosted, r.Model = &a, "acp/"+name
			r.Private = a.Reach != "" && a.Reach != "free" // a program that the kernel confines does not borrow the user's shell
			r.Description = cmp.Or(a.Description, a.Command[0]+", a program of its own with its own model")
		}
		roles[name] = r
	}
	for _, r := range builtin() {
		if r.Name == Explorer {
			r.Model = cfg.Models.Small
		}
		if own, ok := cfg.Agents[r.Name]; ok { // the user may change the prompt of a built-in role, but not its permissions
			r = r.bound(own)
			r.Model = cmp.Or(own.Model, r.Model)
			r.System, r.Description = cmp.Or(own.Prompt, r.System), cmp.Or(own.Description, r.Description)
			if own.Tools != nil {
				r.Tools = own.Tools
			}
		}
		roles[r.Name] = r
	}
	return roles, faults
}

// CheckSettings reports a role of the settings that lists a tool which does not exist.
func CheckSettings(c *config.Config) error {
	for _, role := range slices.Sorted(maps.Keys(c.Agents)) {
		if err := checkTools("agents."+role+".tools", c.Agents[role].Tools); err != nil {
			return err
		}
	}
	return nil
}

// checkTools reports a tool of a list that does not exist. Tools of MCP servers are not looked for: they may come later.
func checkTools(key string, list []string) error {
	var names []string
	for _, t := range Tools(config.Config{}, nil) {
		names = append(names, t.Spec().Name)
	}
	for _, name := range list {
		if !isRemote(name) && !slices.Contains(names, name) {
			return fmt.Errorf("%s: there is no tool %q; there are %s", key, name, strings.Join(names, ", "))
		}
	}
	return nil
}

// Faults returns the faults of Roles for the end of a message, in one line.
func Faults(faults []error) (text string) {
	for _, err := range faults {
		text += "; " + visible.Exact(err.Error())
	}
	return text
}

// Offers reports whether the role may use a tool. A read-only role may use an MCP server's tool only if its list names it,
// since the tool may have effects.
func (r Role) Offers(name string) bool {
	switch {
	case r.Tools == nil:
		return !r.ReadOnly || !changes(name)
	case r.ReadOnly && (name == "write" || name == "edit"):
		return false
	}
	return listed(r.Tools, name)
}

// OffersServers reports whether the role, or one that it delegates to, may use any MCP server's tool.
func (r Role) OffersServers() bool {
	if r.Tools == nil {
		return !r.ReadOnly
	}
	return slices.ContainsFunc(r.Tools, func(t string) bool { return isRemote(t) || t == "task" })
}

// changes reports whether a tool changes files, or may have other effects.
func changes(name string) bool { return name == "write" || name == "edit" || isRemote(name) }

// isRemote reports whether a tool's name is that of an MCP server's tool.
func isRemote(name string) bool { return strings.HasPrefix(name, "mcp__") }

// listed reports whether an allow-list contains a name; an entry mcp__NAME__* matches all tools of a server.
func listed(list []string, name string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		head, wild := strings.CutSuffix(entry, "*")
		return entry == name || wild && isRemote(entry) && strings.HasPrefix(name, head)
	})
}

// Tools returns the built-in tools. The description of task names roles to the model.
func Tools(cfg config.Config, roles map[string]Role) []tool.Tool {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(roles)) {
		if name != Orchestrator {
			names = append(names, name+": "+roles[name].Description)
		}
	}
	return []tool.Tool{
		tool.Bash(cfg.Shell.CommandTimeout.Duration, config.MaxCommandTimeout), tool.Jobs(config.MaxCommandTimeout),
		tool.Read(), tool.Write(), tool.Edit(), tool.Glob(), tool.Grep(), tool.Fetch(),
		tool.Task(names...), tool.Todo(), tool.Plan(), tool.Recall(),
	}
}

func builtin() []Role {
	return []Role{
		{
			Name:        Orchestrator,
			Description: "works with the user in their own shell and delegates",
			System: "You are sublet, an assistant in the user's terminal. Your bash tool borrows the user's own shell: " +
				"commands run in their directory with their environment, in front of their eyes, and what you cd or export stays for them. " +
				"Do the work with your tools instead of describing it, then answer briefly. For large or separable work use task.",
		},
		{
			Name:        Engineer,
			Description: "changes code, builds and tests",
			System: "You are an engineer working on your own on one task, in a private shell that nobody watches. " +
				"Read before you change, keep to the project's style, run its tests, and leave nothing half done. " +
				"Commands there reach neither the network nor anything outside the project; what needs that, leave to whoever gave you the task. " +
				"Your last message is your report: what you changed, how you checked it, what is open.",
			Private: true,
			Tools:   []string{"bash", "jobs", "read", "write", "edit", "glob", "grep", "fetch", "todo", "mcp__*"},
		},
		{
			Name:        Reviewer,
			Description: "reads and judges, changes nothing",
			System: "You are a reviewer. You read code and run commands that only read; whatever would change something is refused. " +
				"Your last message is your report: each finding with file and line, the worst first, and what you did not look at.",
			Private:  true,
			ReadOnly: true,
			Tools:    []string{"bash", "jobs", "read", "glob", "grep", "todo"},
		},
		{
			Name:        Explorer,
			Description: "finds things out quickly, changes nothing",
			System: "You look things up for another agent, quickly. You search, read and run commands that only read; whatever would change something " +
				"is refused. Your last message is your report: the answer first, with file and line, then what you did not find.",
			Private:  true,
			ReadOnly: true,
			Tools:    []string{"bash", "read", "glob", "grep", "fetch"},
		},
	}
}

// projectRoles reads the project's own roles.
func projectRoles(cfg *config.Config, dir string) (roles map[string]Role, faults []error) {
	roles = map[string]Role{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return roles, nil
	}
	for _, e := range entries {
		name, isMD := strings.CutSuffix(e.Name(), ".md")
		if !isMD || !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		text, longer, err := readRegular(path, maxRoleFile)
		if longer {
			err = errTooLong
		}
		switch {
		case err != nil:
			err = fmt.Errorf("%s: %w", path, err)
		case !roleName().MatchString(name):
			err = fmt.Errorf("%s: %s is not the name of a role: small letters, digits, - and _", path, name)
		default:
			var line int
			if roles[name], line, err = parseRole(cfg, name, text); err != nil {
				delete(roles, name)
				err = fmt.Errorf("%s:%d: %w", path, line, err)
			}
		}
		if err != nil {
			faults = append(faults, err)
		}
	}
	return roles, faults
}

// parseRole reads a role's file: optional front matter between lines of "---", then the prompt. With an
// error, line is the number of the line that it is about, counted from 1; else 0.
func parseRole(cfg *config.Config, name, text string) (r Role, line int, err error) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	var a config.Agent
	readOnly := false
	if rest, ok := strings.CutPrefix(text, "---\n"); ok {
		head, body, found := strings.Cut(rest, "\n---\n")
		if !found {
			return Role{}, 1, errors.New("the front matter has no end: a line of ---")
		}
		text, line = body, 1
		key := ""
		for l := range strings.Lines(head) {
			line++
			l = strings.TrimSpace(l)
			if l == "" || l[0] == '#' {
				continue
			}
			item, isItem := strings.CutPrefix(l, "- ")
			k, v, isPair := strings.Cut(l, ":")
			switch {
			case isItem && key == "tools":
				a.Tools = append(a.Tools, unquote(item))
			case !isPair:
				err = fmt.Errorf("%q is not of the form key: value", visible.Clip(l, 100))
			default:
				if key = strings.TrimSpace(k); key == "readonly" || key == "read_only" {
					readOnly, err = parseValue(key, unquote(v), "true or false", strconv.ParseBool)
				} else if key != "name" || unquote(v) != name { // name may repeat the file's, as in other programs' files
					err = setRole(&a, key, unquote(v))
				}
			}
			if err = cmp.Or(err, cfg.CheckAgent("", a), checkTools("tools", a.Tools)); err != nil {
				return Role{}, line, err
			}
		}
		line++
	}
	if a.Prompt = strings.TrimSpace(text); a.Prompt == "" {
		return Role{}, line + 1, errors.New("there is no prompt")
	}
	r = roleOf(name, a)
	r.ReadOnly = readOnly
	return r, 0, nil
}

// setRole sets one value of a role from its front matter, which has the keys of agents.NAME in the settings.
func setRole(a *config.Agent, key, v string) (err error) {
	switch key {
	case "description":
		a.Description = v
	case "model":
		a.Model = v
	case "tools":
		a.Tools = []string{}
		for t := range strings.SplitSeq(strings.Trim(v, "[]"), ",") {
			if t = unquote(t); t != "" {
				a.Tools = append(a.Tools, t)
			}
		}
	case "max_turns":
		a.MaxTurns, err = parseValue(key, v, "a whole number", strconv.Atoi)
	case "max_tokens":
		a.MaxTokens, err = parseValue(key, v, "a whole number", strconv.Atoi)
	case "max_cost":
		a.MaxCost, err = parseValue(key, v, "a number", func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
	case "timeout":
		if err = a.Timeout.UnmarshalText([]byte(v)); err != nil {
			err = fmt.Errorf("timeout: %w", err)
		}
	case "mode":
		a.Mode = v
	case "worktree":
		a.Worktree, err = parseValue(key, v, "true or false", strconv.ParseBool)
	case "name":
		err = fmt.Errorf("name: %q is not the name of the file; a role is called as its file", v)
	default:
		err = fmt.Errorf("there is no key %q; there are description, model, tools, read_only, max_turns, max_tokens, max_cost, timeout, mode, worktree", visible.Clip(key, 100))
	}
	return err
}

// parseValue parses a value of front matter; want describes what parse accepts.
func parseValue[T any](key, v, want string, parse func(string) (T, error)) (T, error) {
	value, err := parse(v)
	if err != nil {
		err = fmt.Errorf("%s: want %s, found %q", key, want, v)
	}
	return value, err
}

func unquote(s string) string { return strings.Trim(strings.TrimSpace(s), `"'`) }

// readRegular reads a regular file as valid UTF-8, up to limit bytes; longer reports that there are more.
func readRegular(path string, limit int) (text string, longer bool, err error) {
	f, _, err := tool.OpenRegular(path)
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return "", false, err
	}
	return visible.Cut(strings.ToValidUTF8(string(head), "\uFFFD"), limit), len(head) > limit, nil
}

var (
	errTooLong = errors.New("the file is too long")
	errNotText = errors.New("neither text nor an image")
	errTooMuch = errors.New("too much at once")

	errNoImages    = errors.New("this model takes no images")
	errSecretPlace = errors.New("it lies where keys and passwords are")
)
