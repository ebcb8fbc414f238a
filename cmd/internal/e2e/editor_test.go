package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

// The line in $EDITOR, as bash has it: by C-x C-e, and by v in vi mode; with the EDITOR of the live shell, that the history
// knows nothing of, and with what was there before still in it.
func TestEditTheLine(t *testing.T) {
	w := newWorld(t, "HISTCONTROL=ignoredups\n", nil)
	editor := filepath.Join(w.home, "my editor")
	w.write(editor, "#!/bin/bash\nsed -i s/one/two/ \"$1\"\n")
	if err := os.Chmod(editor, 0o700); err != nil {
		t.Fatal(err)
	}
	term := w.open()
	term.see(prompt)
	term.run("ed() { \"$HOME/my editor\" \"$@\"; }; VISUAL=ed", prompt)
	term.send("echo one$((1+1))", "\x18\x05")
	term.see(`^two2$`)
	term.atPrompt()
	term.run("set -o vi", `set -o vi\n`+prompt[1:])
	term.atPrompt()
	term.send("echo vi one$((2+2))", escape, "v")
	term.see(`^vi two4$`)
	term.run("history | tail -n 5 | cut -c 8-", `(?s)^echo two.*^set -o vi\n^echo vi two.*^history`)
	if term.sees(`VISUAL:-`) {
		t.Error("the editor's own line is on the screen")
	}
}
