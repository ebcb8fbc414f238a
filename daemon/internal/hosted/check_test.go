package hosted

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/daemon/config"
)

// An agent is checked by a session, and by a prompt if there is one, in which it is refused what it asks for; a known one that is only installed is found, with the settings for it.
func TestCheck(t *testing.T) {
	conf := config.Agent{Command: []string{os.Args[0]}, Env: map[string]string{"HOSTED_TEST_MODE": "loads"}}
	got := Check(t.Context(), Options{}, "mine", conf, os.Environ(), "/", t.TempDir(), "")
	if got.Err != nil || got.Version != "player 1.2" || got.Protocol != 1 || !got.Resumes || got.Images || got.Mode != "default" || got.ShellOff {
		t.Errorf("got %+v", got)
	}
	conf.Env["HOSTED_TEST_MODE"] = "crash"
	if got := Check(t.Context(), Options{}, "mine", conf, os.Environ(), "/", t.TempDir(), ""); got.Err == nil || !strings.Contains(got.Err.Error(), "exit status 3") {
		t.Errorf("got %+v", got)
	}
	for mode, want := range map[string]string{
		"loads": "loads", "asks": "2:no", "late": "mine: you are not signed in there", "silent": "mine: it did not answer within 1s", "dies": "mine: it ended: exit status 4",
	} {
		conf.Env["HOSTED_TEST_MODE"] = mode
		o := Options{Start: time.Minute}
		if mode == "silent" {
			o.Start = time.Second
		}
		got := Check(t.Context(), o, "mine", conf, os.Environ(), "/", t.TempDir(), "say it")
		if text := got.Answer + fmt.Sprint(got.Err); !strings.Contains(text, want) {
			t.Errorf("%s: got %q", mode, text)
		}
	}
	dir := t.TempDir()
	for _, name := range []string{"codex-acp", "qwen"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	found := Found(map[string]config.Agent{"q": {Command: []string{"qwen", "--acp"}}}, []string{"PATH=" + dir}, "/")
	if len(found) != 1 || found[0].Name != "codex" || found[0].Setting() != "    [agents.codex]\n    command = [\"codex-acp\"]" {
		t.Errorf("got %+v", found)
	}
}
