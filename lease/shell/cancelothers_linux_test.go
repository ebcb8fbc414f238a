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
			if got, err := os.ReadFile(hurt); err == nil {
				t.Errorf("programs of the user ended with %q", got)
			}
			if !runs(s, "sleep 1002") {
				t.Error("the logger is gone")
			}
			do(t, s, user("kill %1; exec 3>&- 4>&-; kill $!"))
		})
	}
}

// A subshell that such a logger begins is theirs, too: it was held for one of the command's, and the shell stopped for it, until
// that was killed; under a person's own command for good.
func TestCancelLeavesTheUsersSubshells(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		inner, text string
		user        bool
	}{
		{"(sleep 0.5; :)", "echo go; while :; do :; done", false},
		{"(sleep 0.5; :)", "x=$(echo go >/dev/tty; sleep 1000)", false},
		{"(sleep 1001; :)", "x=$(echo go >/dev/tty; sleep 1000)", false},
		{"(sleep 1001; :)", "x=$(echo go >/dev/tty; sleep 1000)", true},
		{"(sleep 1001; :)", "echo go; read x", false},
	} {
		t.Run(c.inner+" "+c.text+map[bool]string{true: " user"}[c.user], func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			hurt, begin, begun := filepath.Join(dir, "hurt"), filepath.Join(dir, "begin"), filepath.Join(dir, "begun")
			s := start(t, func(o *Options) { o.Env = append(o.Env, "HURT="+hurt, "BEGIN="+begin, "BEGUN="+begun) })
			do(t, s, user(`exec 4> >(while [[ ! -e $BEGIN ]]; do read -t 0.05 x; done; while :; do (: >"$BEGUN"; `+c.inner+`) || echo "$?" >>"$HURT"; done)`))
			pid := s.PID()
			time.Sleep(20 * time.Millisecond) // times of processes are told in hundredths of a second
			res, took := cancelled(t, s, Command{User: c.user, Text: `: >"$BEGIN"; until [[ -e $BEGUN ]]; do :; done; ` + c.text})
			if res.Status != "cancelled" || took > time.Second+slack || len(res.Leftovers) > 0 || s.PID() != pid {
				t.Errorf("got %s after %v, left over %v; the shell %d was %d", res.Status, took, res.Leftovers, s.PID(), pid)
			}
			if got, err := os.ReadFile(hurt); err == nil {
				t.Errorf("a subshell of the user ended with %q", got)
			}
			do(t, s, user("exec 4>&-; kill $!; sleep 0.05; kill $(jobs -p) 2>/dev/null; :"))
		})
	}
}
