package shell

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"sublet/lease/confine"
	"sublet/lease/shell/dialect"
)

// Files for the launcher: the text of a confined command, and its confine.Spec.
const (
	heldText  = "held"
	heldReach = "reach"
)

// launcherLine writes a confined command's text and Spec to files, and returns the line that the shell runs instead: the launcher,
// which starts a shell of the same kind.
func (s *Shell) launcherLine(c Command) (line string, err error) {
	if _, err := exec.LookPath(c.Launcher); err != nil {
		return "", fmt.Errorf("the command was not run: %w", &confine.MissingError{Path: c.Launcher})
	}
	folder := cmp.Or(c.Job, s.files.folder) // the files of a job are read after the next command has begun
	script, spec := filepath.Join(folder, heldText), *c.Confine
	if err := os.WriteFile(script, []byte(s.inChild(c.Text)), 0o600); err != nil {
		return "", fmt.Errorf("write the command: %w", err)
	}
	spec.Script = script
	spec.Hidden = append(slices.Clone(spec.Hidden), s.o.Folder) // this shell's pipes, and the daemon's socket
	st := locked(s, func() State { return s.state })
	if dir, err := filepath.EvalSymlinks(st.Dir); spec.Dir == "" && err == nil && filepath.IsAbs(dir) { // it may not be known
		spec.Dir = dir
	}
	spec.Kept = append(slices.Clone(spec.Kept), pathIn(spec.Project, st.Vars["PATH"])...)
	if home, err := os.UserHomeDir(); err == nil {
		spec.Kept = append(spec.Kept, confine.KeptHome(home, spec.Project)...)
		spec.Inert = confine.Inert(home)
	}
	file := filepath.Join(folder, heldReach)
	if err := os.WriteFile(file, spec.Encode(), 0o600); err != nil {
		return "", fmt.Errorf("write the reach: %w", err)
	}
	words := append([]string{c.Launcher, file, s.path}, s.d.ChildArgs...)
	for i, w := range words {
		words[i] = s.d.Quote(w)
	}
	line = strings.Join(words, " ")
	if c.Job == "" {
		line = confine.Shown + "=" + s.d.Quote(label(c.Text)) + " " + line
	}
	return line, nil
}

// inChild returns the text for another shell of this kind: before text are statements that make the aliases, functions and unexported
// variables that it names, and set the options that change what it means.
func (s *Shell) inChild(text string) string {
	before, _ := s.d.Restore(namedIn(locked(s, func() State { return s.state }), text), State{}, State{})
	return before + text
}

// pathIn returns the folders of PATH that lie in a project, to be kept read-only: a program put there could be what the user's
// next command runs. The project's own folder is not among them: the command must be able to write in it.
func pathIn(project, path string) (dirs []string) {
	for _, dir := range filepath.SplitList(path) {
		if rel, err := filepath.Rel(project, dir); project == "" || !filepath.IsAbs(dir) || err != nil || !filepath.IsLocal(rel) || rel == "." {
			continue
		}
		dirs = append(dirs, filepath.Clean(dir))
	}
	return dirs
}

// childOptions are the options that change what a text means; the others matter only in an interactive shell.
var childOptions = []string{
	"pipefail", "nounset", "noclobber", "noglob", "extglob", "globstar", "nullglob", "dotglob", "nocaseglob", "failglob", "extendedglob", "shwordsplit", "ksharrays",
}

// namedIn returns the aliases, functions and local variables that a text may name, those that their texts may name in turn, and the
// childOptions that are on. Exported variables are left out: a child inherits them.
func namedIn(st State, text string) State {
	part := State{Aliases: map[string]string{}, Functions: map[string]string{}, Local: map[string]string{}}
	for texts := []string{text}; len(texts) > 0; texts = texts[1:] {
		for _, word := range dialect.Words(texts[0]) {
			take := func(from, to map[string]string) {
				if value, ok := from[word]; ok && to[word] == "" {
					to[word] = value
					texts = append(texts, value)
				}
			}
			take(st.Aliases, part.Aliases)
			take(st.Functions, part.Functions)
			take(st.Local, part.Local)
		}
	}
	for _, name := range []string{"PROMPT_COMMAND", "PS0", "PS1"} { // a child has no prompt
		delete(part.Local, name)
	}
	for _, o := range st.Options {
		if slices.Contains(childOptions, strings.ReplaceAll(strings.ToLower(o), "_", "")) {
			part.Options = append(part.Options, o)
		}
	}
	return part
}

// noteDenials adds a note to the result of a confined command for each access that it was denied, with what would allow it. If the launcher
// could not confine the command, and did not run it, the status becomes refused.
func noteDenials(c Command, res *Result) {
	if res.ExitCode != nil && *res.ExitCode == confine.NotConfined && strings.Contains(string(res.Output), confine.Program+": the command was not run: ") {
		res.Status = refused
		return
	}
	// What reads prints the errors of others, so its success counts. The exit status of `make | tail` or `make; ls` is not make's. git succeeds
	// although its change of .git/config was denied, as when it switches to a branch of a remote.
	if res.ExitCode != nil && *res.ExitCode == 0 && !strings.Contains(string(res.Output), "could not write config file") &&
		!(c.Confine.Reach == confine.Project && strings.ContainsAny(c.Text, "|;\n")) {
		return
	}
	for _, d := range confine.Denied(*c.Confine, res.Dir, res.Output) {
		allows := "only a command with the reach free may do that"
		switch d.Reach {
		case confine.Hosts:
			allows = "the user can allow it by hosts under [policy.project] of the settings; the reach free would allow it"
		case confine.Project:
			allows = "the reach project would allow it"
		}
		res.Notes = append(res.Notes, fmt.Sprintf("denied by its reach, %s: %s; %s", c.Confine.Reach, d.What, allows))
	}
}
