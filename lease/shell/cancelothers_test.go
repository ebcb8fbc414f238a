package shell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The cancel of a borrower's command signalled all in the shell's own group, in which a logger of the user's is (`exec 3>
// >(logger)`), and every program that a background job of theirs had begun since; those were told as left over, too.
func TestCancelLeavesTheUsersOwn(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"echo go; while :; do :; done", "echo go; read x", "x=$(echo go >/dev/tty; sleep 1000)", "(echo go; sleep 1000; echo after)",
		"echo go; sleep 1000", "cat <(echo go; sleep 1000)", "echo go; trap '' INT; while :; do :; done",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			hurt := filepath.Join(t.TempDir(), "hurt")
			s := start(t, func(o *Options) { o.Env = append(o.Env, "HURT="+hurt) })
			const busy = `while :; do sleep 0.03 || echo "$?" >>"$HURT"; done`
			do(t, s, user(`exec 3> >(exec sleep 1002) 4> >(`+busy+`); sh -c '`+busy+`' &`))
			awaitTrue(t, "the user's programs", func() bool { return runs(s, "sleep 1002") })
			time.Sleep(20 * time.Millisecond) // times of processes are told in hundredths of a second
			res, _ := cancelled(t, s, leased(text+"; : echo go"))
			if res.Status != "cancelled" || len(res.Leftovers) > 0 && !strings.Contains(text, "<(") {
				t.Errorf("got %s, left over %v", res.Status, res.Leftovers)
			}
			deaf := strings.Contains(text, "''") // it costs the shell, and with that what has its descriptors
			if got, err := os.ReadFile(hurt); err == nil && !deaf {
				t.Errorf("programs of the user ended with %q", got)
			}
			if !deaf && !runs(s, "sleep 1002") {
				t.Error("the logger is gone")
			}
			do(t, s, user("kill %1; exec 3>&- 4>&-; kill $!"))
		})
	}
}
