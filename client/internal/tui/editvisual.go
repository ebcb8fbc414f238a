package tui

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sublet/client/internal/lender"
)

// visualEdit is a line that the user edits in $VISUAL or $EDITOR: C-x C-e, and v in vi mode, as bash has them.
type visualEdit struct {
	dir, file string
	ai        bool
}

// editVisual hands the line to the user's editor, which runs in their shell: there their EDITOR is set, and there it can
// be stopped and brought back. What it wrote is run, a question is put into the line; after an editor that failed the line
// is as it was.
func (m *model) editVisual() {
	if m.userRun != nil {
		return
	}
	if lend := m.lending; lend.Command != "" && lend.Holder != "" && lend.Holder != "user" {
		m.noEditor(lend.Holder)
		return
	}
	e, err := newVisualEdit(m.ed.text, m.ai)
	if err != nil {
		m.fail("the line could not be handed to an editor: "+err.Error(), "")
		return
	}
	m.comp, m.search = nil, nil
	m.giveTerminal(&userRun{text: e.command(), started: m.now(), line: m.ed.text, edit: e})
}

func (m *model) noEditor(holder string) {
	m.hintLines(m.th.dim.Render("your editor would run in your shell, and " + visibleLine(holder) + " has it now"))
}

func newVisualEdit(text string, ai bool) (*visualEdit, error) {
	dir, err := os.MkdirTemp("", "sublet-edit-")
	if err != nil {
		return nil, err
	}
	e := &visualEdit{dir: dir, file: filepath.Join(dir, "line.sh"), ai: ai}
	if ai {
		e.file = filepath.Join(dir, "question.md")
	}
	if text != "" {
		text += "\n"
	}
	if err := os.WriteFile(e.file, []byte(text), 0o600); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return e, nil
}

// done is the file that tells that the editor ended well. Its exit status would be the end's of what follows it.
func (e *visualEdit) done() string { return filepath.Join(e.dir, "done") }

// command runs the editor and takes itself out of the history again, if it came in, as bash's own does not come in.
func (e *visualEdit) command() string {
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	return fmt.Sprintf(` ${VISUAL:-${EDITOR:-vi}} %s && : >%s; [[ $(HISTTIMEFORMAT= \builtin history 1) != *%s* ]] || `+
		`\builtin history -d "$(HISTTIMEFORMAT= \builtin history 1 | { \builtin read -r n x; \builtin echo "${n%%\*}"; })"`,
		quote(e.file), quote(e.done()), quote(e.dir))
}

// onEdited uses what the editor wrote.
func (m *model) onEdited(d runDone) {
	e := d.run.edit
	defer os.RemoveAll(e.dir)
	m.ai = e.ai
	m.ed.set(d.run.line)
	m.onPrompt(d.prompt)
	if lent, ok := errors.AsType[*lender.LentError](d.err); ok {
		m.noEditor(lent.Lending.Holder)
		return
	}
	if d.err != nil {
		if !m.isExited() {
			m.fail(d.err.Error(), "")
		}
		return
	}
	defer m.tryHand()
	if _, err := os.Stat(e.done()); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			m.fail("what the editor wrote cannot be read: "+err.Error(), "")
			return
		}
		m.hintLines(m.th.dim.Render("your editor did not end well: the line is as it was"))
		return
	}
	raw, err := os.ReadFile(e.file)
	if err != nil {
		m.fail("what the editor wrote cannot be read: "+err.Error(), "")
		return
	}
	text := strings.TrimRight(string(raw), "\n")
	if len(text) > maxPaste {
		m.fail("what the editor wrote is longer than a line may be", "")
		return
	}
	m.ed.set(text)
	m.ed.viInsert()
	if !e.ai && strings.TrimSpace(text) != "" {
		m.runShell(text, false)
	}
}
