package shell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// However long the user's prompt hooks take, what is typed before they are done is told, in order, and not run by bash
// itself: after two seconds of them it was, unseen, without a prompt before it, and what was typed behind the command's end
// stood before what was typed until then. A ^C is the hooks' own.
func TestTypeAheadWaitsForSlowHooks(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "slow")
	s := start(t, func(o *Options) {
		o.RC = rcFile(t, `PROMPT_COMMAND='[ -e "$SLOW" ] && sh -c "mv \$SLOW \$SLOW.runs; exec sleep \$LONG"'`)
		o.Env = append(o.Env, "SLOW="+mark, "LONG=2.5") // more than standWithin
	})
	for _, c := range []struct {
		name         string
		cmd          Command
		hook, unread string
		long         time.Duration
	}{
		{"the user's", user(""), "", "echo a\necho b\n", 2500 * time.Millisecond},
		{"a borrower's", leased(""), "", "echo a\necho b\n", 2500 * time.Millisecond},
		{"typed on in the hook", user("LONG=0.5; "), "xyz", "echo a\necho b\nxyz", 500 * time.Millisecond},
		{"struck", user("LONG=1000; "), "gone\r\x03ls\r", "ls\n", 0},
	} {
		if err := os.Remove(mark + ".runs"); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		typed := make(chan error, 1)
		go func() {
			for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
				if _, err := os.Stat(mark + ".runs"); err == nil {
					break
				}
			}
			_, err := s.Write([]byte(c.hook))
			typed <- err
		}()
		c.cmd.Text += `echo go; read -r _ <GATE; : >"$SLOW"`
		began := time.Now()
		r := typeDuring(t, s, c.cmd, "echo a\recho b\r")
		took := time.Since(began)
		if err := <-typed; err != nil {
			t.Fatal(err)
		}
		if got := strings.ReplaceAll(string(r.Unread), "\r", "\n"); got != c.unread {
			t.Errorf("%s: unread is %q, want %q", c.name, got, c.unread)
		}
		if took < c.long {
			t.Errorf("%s: it took %v, want %v and more", c.name, took, c.long)
		}
		if r := do(t, s, user("echo next")); string(r.Output) != "next\n" || len(r.Unread) > 0 {
			t.Errorf("%s: then got %q, unread %q", c.name, r.Output, r.Unread)
		}
	}
}
