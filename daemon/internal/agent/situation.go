package agent

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"sublet/compaction"
	"sublet/daemon/internal/mask"
	"sublet/daemon/internal/project"
	"sublet/daemon/internal/provider"
	"sublet/daemon/internal/worktree"
	"sublet/wire"
	"sublet/wire/visible"
)

const (
	maxOutputTail = 4 << 10 // bytes of the screen's newest output
	maxToolchain  = 200     // bytes of the value of a variable that names a toolchain

	// situationHead begins the part of a message that describes the agent's environment, a line for each fact.
	situationHead    = "Where you work:\n"
	workingDirectory = "Working directory"
)

// toolchains maps variables that select a virtual environment or toolchain to names for the model.
var toolchains = [][2]string{
	{"VIRTUAL_ENV", "Python environment"},
	{"CONDA_DEFAULT_ENV", "Conda environment"},
	{"PYENV_VERSION", "pyenv"},
	{"NVM_BIN", "Node"},
	{"RUSTUP_TOOLCHAIN", "Rust toolchain"},
	{"GOTOOLCHAIN", "Go toolchain"},
	{"JAVA_HOME", "Java"},
}

// modeNames are the modes, the strictest first.
var modeNames = []string{"plan", "ask", "auto", "full"}

// modes explains the policy modes to the model.
var modes = map[string]string{
	"plan": "plan: look, and change nothing; what writes or runs more than reading is refused. End with a plan: with the tool plan if you have it, else numbered steps",
	"ask":  "ask: what only reads runs at once, the user is asked about the rest",
	"auto": "auto: what the kernel can hold to the project runs at once, the user is asked about the rest",
	"full": "full: nearly everything runs without a question; think before you delete or publish",
}

// userAtHost returns "user at host"; "" if it is not known.
var userAtHost = sync.OnceValue(func() string {
	host, err := os.Hostname()
	who, uerr := user.Current()
	if err != nil || uerr != nil {
		return ""
	}
	return who.Username + "@" + host
})

// situation returns the facts about the agent's environment, each as "name: value" on one line, and the names of those that could
// not be found out.
func (r *runner) situation(ctx context.Context) (lines, unknown []string) {
	env := r.environment()
	add := func(name, value string) {
		if value != "" {
			lines = append(lines, situationLine(name, value))
		}
	}
	add(workingDirectory, env.Cwd)
	add("Project", r.t.Project)
	if r.t.GitTime > 0 && r.t.Project != "" {
		bounded, cancel := context.WithTimeout(ctx, r.t.GitTime)
		status, err := worktree.StatusOf(bounded, r.t.Project)
		cancel()
		switch {
		case err == nil:
			add("Git", status.String())
		case !errors.Is(err, fs.ErrNotExist):
			unknown = append(unknown, "Git")
		}
	}
	shell := "bash, a private one of yours"
	if r.t.Shell != "" {
		shell = r.t.Shell + ", the user's own; write your commands for it. A private shell is bash"
	}
	add("Shell", shell)
	add("System", runtime.GOOS+"/"+runtime.GOARCH)
	add("User", userAtHost())
	vars := r.t.Environ()
	for _, t := range toolchains {
		if add(t[1], clip(vars[t[0]], maxToolchain)); len(vars) == 0 {
			unknown = append(unknown, t[1])
		}
	}
	if r.t.Project != "" {
		for _, line := range project.Commands(r.t.Project) {
			file, commands, _ := strings.Cut(line, ": ")
			add("Commands of "+file, commands)
		}
	}
	if r.t.Jobs != nil {
		add("Jobs running", r.t.Jobs())
	}
	add("Mode", modes[r.t.Mode])
	add("Date", time.Now().Format(time.DateOnly))
	return lines, unknown
}

// situationLine returns a fact of a situation as the model gets it.
func situationLine(name, value string) string {
	return name + ": " + strings.ReplaceAll(mask.String(clean(value)), "\n", " ")
}

// containedContext returns the context that the conversation already contains: the newest line of situations by its name, and other
// parts by their first lines. A directory that a result reported replaces the line about it. Context in compacted entries is not
// included.
func containedContext(entries []entry) (situation, parts map[string]string) {
	situation, parts = map[string]string{}, map[string]string{}
	for _, e := range entries {
		if e.kind != compaction.Request && e.kind != compaction.Results {
			continue
		}
		for i, p := range e.msg.Parts {
			if p.ToolResult != nil {
				if cwd := e.facts[p.ToolResult.CallID].Cwd; cwd != "" && situation[workingDirectory] != "" {
					situation[workingDirectory] = situationLine(workingDirectory, cwd)
				}
				continue
			}
			if p.Text == "" || e.kind == compaction.Request && i == 0 {
				continue
			}
			if lines, ok := strings.CutPrefix(p.Text, situationHead); ok {
				for line := range strings.SplitSeq(lines, "\n") {
					name, _, _ := strings.Cut(line, ": ")
					situation[name] = line
				}
				continue
			}
			head, _, _ := strings.Cut(p.Text, "\n")
			parts[head] = p.Text
		}
	}
	return situation, parts
}

// standingContext returns the parts of the situation and of the instructions of user and project that are new or changed since the
// conversation last contained them. What no longer holds is changed to "none".
func (r *runner) standingContext(ctx context.Context) []string {
	stale, contained := containedContext(r.entries)
	var lines, parts []string
	facts, unknown := r.situation(ctx)
	for _, line := range facts {
		name, _, _ := strings.Cut(line, ": ")
		if stale[name] != line {
			lines = append(lines, line)
		}
		delete(stale, name)
	}
	for _, name := range unknown {
		delete(stale, name)
	}
	for _, name := range slices.Sorted(maps.Keys(stale)) {
		if none := situationLine(name, "none"); stale[name] != none {
			lines = append(lines, none)
		}
	}
	if len(lines) > 0 {
		parts = append(parts, situationHead+strings.Join(lines, "\n"))
	}
	add := func(head, text string) {
		if part := head + "\n" + text; text != "" && contained[head] != part {
			parts = append(parts, part)
		}
	}
	if r.t.Instructions != "" {
		add("The user's own instructions:", readInstructions(r.t.Instructions))
	}
	for _, f := range instructions(r.t.Project, r.environment().Cwd) {
		if !r.t.Trusted(filepath.Dir(f.path)) {
			continue // not trusted: data that the agent may read like any file
		}
		add("The project's own instructions, from "+f.path+":", f.text)
	}
	return parts
}

// promptContext returns the context that goes with a prompt: new standing context, attached texts, the user's commands since the
// prompt before, and the open files.
func (r *runner) promptContext(ctx context.Context, attached []string) []string {
	parts := append(r.standingContext(ctx), attached...)
	add := func(head, text string) {
		if text = strings.TrimSpace(text); text != "" {
			parts = append(parts, mask.String(head+text))
		}
	}
	add(sinceHead, strings.Join(r.userCommands(), "\n"))
	c := r.t.Context
	if len(c.RecentOutput) > 0 && !slices.ContainsFunc(c.RecentCommands, func(rc wire.RecentCommand) bool { return len(rc.OutputTail) > 0 }) {
		add("Newest output on the user's screen:\n", visible.CutTail(clean(string(c.RecentOutput)), maxOutputTail))
	}
	var open []string
	for _, f := range c.OpenFiles[:min(len(c.OpenFiles), 50)] {
		open = append(open, clean(string(f)))
	}
	add("Open in the user's editor: ", strings.Join(open, ", "))
	return parts
}

// userCommands returns the commands that the user ran since the last prompt: those that the client lists and the conversation does
// not contain yet, then those of the session's events.
func (r *runner) userCommands() []string {
	var lines []string
	recent := r.t.Context.RecentCommands
	for _, rc := range recent[max(0, len(recent)-maxContextCommands):] {
		line := mask.String(describeCommand(string(rc.Command), rc.ExitCode, string(rc.OutputTail)))
		if !slices.Contains(r.t.History.pending, line) && !r.contains(line) {
			lines = append(lines, line)
		}
	}
	return append(lines, r.t.History.pending...)
}

// contains reports whether the conversation contains a text already.
func (r *runner) contains(text string) bool {
	return slices.ContainsFunc(r.entries, func(e entry) bool {
		return slices.ContainsFunc(e.msg.Parts, func(p provider.Part) bool { return strings.Contains(p.Text, text) })
	})
}

// addContext adds texts to the newest message, which is the user's, and stores them as context chunks for later turns. A sub-agent's
// are not stored: its conversation is kept in memory, and the events are its parent's.
func (r *runner) addContext(texts []string) {
	e := &r.entries[len(r.entries)-1]
	e.msg.Parts = slices.Clip(e.msg.Parts) // the array may be another entry's too
	for _, text := range texts {
		if !r.t.subAgent {
			e.last = max(e.last, r.chunk(wire.Chunk{Type: wire.ChunkContext, Text: text}))
		}
		e.msg.Parts = append(e.msg.Parts, provider.Part{Text: text})
	}
}
