package shell

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// death tells a run that its bash is gone.
type death struct {
	status    *os.ProcessState
	respawned bool
	deaf      bool // we ended it: see replaceLocked
}

// why says in one line what happened and what is gone.
func (d death) why() string {
	how := "ended"
	ws, _ := d.status.Sys().(syscall.WaitStatus)
	switch {
	case d.deaf:
		how = "no longer told when a command ends"
	case ws.Signaled():
		how = "was ended by " + nameOf(ws.Signal())
	case ws.Exited():
		how = fmt.Sprintf("exited with status %d", ws.ExitStatus())
	}
	return "the shell " + how + " and was started again where it was; its jobs, open descriptors, traps and history of this session are gone, and IFS and PROMPT_COMMAND are as the start-up file has them"
}

// exitWithin is how soon behind a signal of ours or a ^C an idle shell may have exited for that: see over. Its user's own way out
// is a command, and TMOUT takes longer, or is given once more.
const exitWithin = time.Second

// died decides what the end of a bash means: the user's own exit ends the Shell; anything else, a borrower's exit and a
// crash, starts another where it was.
func (s *Shell) died(p *process) {
	p.hangUp()
	p.stream.finish()
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.run
	tell := func(d death) {
		d.status, d.deaf = p.state, p.deaf
		if r != nil && !r.ended {
			r.tellDeath(d)
		} else if d.respawned {
			s.sayLocked("sublet: " + d.why() + "\n")
		}
	}
	if s.proc != p || s.closed || s.starting {
		tell(death{})
		return
	}
	ws, _ := p.state.Sys().(syscall.WaitStatus)
	own := r != nil && r.c.User || r == nil && !s.struckWithin(exitWithin)
	if own && ws.Exited() {
		s.leaveLocked(p.state.ExitCode())
		tell(death{})
		return
	}
	if time.Since(s.spawned) < 2*time.Second {
		s.deaths++
	}
	if s.deaths >= 3 {
		s.log.Error("the shell dies again and again", "status", p.state.String())
		s.leaveLocked(1)
		tell(death{})
		return
	}
	s.log.Info("shell respawned", "status", p.state.String(), "deaf", p.deaf)
	err := s.respawnLocked()
	if err != nil {
		s.log.Error("respawn", "error", err)
		s.leaveLocked(1)
	}
	tell(death{respawned: err == nil})
}

// sayLocked prints a line of our own where what belongs to no command goes.
func (s *Shell) sayLocked(text string) {
	if f := s.o.Unowned; f != nil {
		f([]byte(strings.ReplaceAll(text, "\n", "\r\n")))
	}
}

// replaceLocked ends a shell that reads lines and yet tells nothing of them: a command took away the hook or a name that
// all stands on (`readonly`, `set -r`, `enable -n`). died starts another where this one was. Only where it was seen to read
// a line, again and again: a person's slow prompt hook is no such thing.
func (s *Shell) replaceLocked(p *process) {
	if s.proc != p || p.deaf {
		return
	}
	p.deaf = true
	if dir := workingDir(p.pid); dir != "" {
		s.setDirLocked(dir)
	}
	s.log.Warn("the shell reads lines and tells nothing of them: it is replaced")
	_ = syscall.Kill(p.pid, syscall.SIGKILL)
}

func (s *Shell) leaveLocked(status int) {
	s.gone = true
	s.exitStatus = status
	close(s.exited)
}

// respawnLocked starts a bash with the last known state.
func (s *Shell) respawnLocked() error {
	if err := s.refurnishLocked(); err != nil {
		return err
	}
	path := filepath.Join(s.folder, "a")
	// The start-up file's errexit would end it at what is read-only.
	text := "\\builtin set +e\n\\builtin : >|\"$__sublet_dir/o\"\n" + s.snap.script(nil, nil) +
		"[[ ! -s $__sublet_dir/o ]] || \\builtin printf 'sublet: functions that the shell does not take again: %s\\n' \"$(<\"$__sublet_dir/o\")\"\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	_, err := s.spawnLocked(path)
	return err
}

// buried fills in the result of a command whose shell died.
func (s *Shell) buried(r *run, d death, res *Result) {
	ws, _ := d.status.Sys().(syscall.WaitStatus)
	if res.Status == "ok" {
		res.Status = "shell_exited"
	}
	switch { // how the command itself ended is not known of a deaf one
	case d.deaf:
	case ws.Signaled():
		res.Signal = nameOf(ws.Signal())
	default:
		code := d.status.ExitCode()
		res.ExitCode = &code
	}
	res.Respawned = d.respawned
	if d.respawned {
		res.Why = d.why()
		s.note(r, res.Why)
		ctx, stop := Patiently(context.Background(), 5*time.Second)
		defer stop()
		if err := s.awaitIdle(ctx); err != nil {
			s.log.Warn("shell not ready after respawn", "error", err)
		}
	}
}
