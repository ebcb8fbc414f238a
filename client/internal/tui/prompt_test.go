package tui

import (
	"testing"

	"sublet/lease/shell"
)

// On a busy machine the shell's first answer came too late, and a bare $ stood there until the next command.
func TestPromptIsAskedForAgain(t *testing.T) {
	d := newDesk(t)
	d.prompt, d.prompted = "", false
	d.send(promptRead{})
	if d.prompt != "$ " || d.promptTries != 1 {
		t.Fatalf("got prompt %q after %d tries, want a bare one and another try", d.prompt, d.promptTries)
	}
	d.send(promptRead{shell.Prompt{Text: "mine> "}})
	if d.prompt != "mine> " {
		t.Errorf("got prompt %q, want the shell's", d.prompt)
	}
	d.send(promptRead{})
	if d.prompt != "mine> " || d.promptTries != 1 {
		t.Errorf("got prompt %q after %d tries, want the last one kept", d.prompt, d.promptTries)
	}
}
