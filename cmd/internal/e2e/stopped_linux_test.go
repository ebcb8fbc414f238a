package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// A window that was stopped while a command ran takes the silence for its own: the command did not wait for the keyboard.
func TestStoppedWindow(t *testing.T) {
	url, sent := modelServer(t, []string{"sleep 3.0517; echo aw''ake"})
	w := newWorld(t, "", nil)
	w.write(w.path("config.toml"), fmt.Sprintf("model = \"mine/m\"\n[provider.mine]\nkind = \"openai\"\nbase_url = %q\n", url))
	term := w.open()
	term.ask("sleep and wake")
	sleeps := func() bool { return strings.Contains(w.processes(), "sleep 3.0517 ") }
	w.await("the command", sleeps)
	signal(syscall.SIGSTOP)(term)
	w.await("its end", func() bool { return !sleeps() })
	signal(syscall.SIGCONT)(term)
	term.see(`All is done`)
	if got := sent.String(); !strings.Contains(got, `awake`) || strings.Contains(got, "keyboard, and the user") || strings.Contains(term.text(), "keyboard") {
		t.Errorf("the model got %s, the screen is %s", got, term.text())
	}
}
