package shell

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// A process that a cancel has stopped stays so where this one is killed: nobody is left who lets it go on. Its keeper reads
// which they are, and hangs them up when its input ends. It has a session of its own, where no terminal's signal comes.
const keeperScript = `trap '' HUP INT QUIT TERM PIPE
pids=
while read -r pid; do pids="$pids $pid"; done
for pid in $pids; do kill -s HUP "$pid"; kill -s CONT "$pid"; done 2>/dev/null`

// keeper is this side of it; a nil keeper keeps nothing. Whoever starts one dismisses it.
type keeper struct {
	cmd *exec.Cmd
	in  io.WriteCloser
}

func startKeeper() (*keeper, error) {
	cmd := exec.Command("/bin/sh", "-c", keeperScript)
	cmd.Dir, cmd.Env = "/", []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("keeper of stopped processes: %w", err)
	}
	if err := cmd.Start(); err != nil {
		in.Close()
		return nil, fmt.Errorf("keeper of stopped processes: %w", err)
	}
	return &keeper{cmd: cmd, in: in}, nil
}

// keep tells it of processes that are about to be stopped.
func (k *keeper) keep(pids ...int) {
	if k == nil {
		return
	}
	for _, pid := range pids {
		fmt.Fprintln(k.in, pid) // a pipe holds hundreds, and the keeper reads: this does not wait. One that is gone keeps none
	}
}

// dismiss ends it: nothing is stopped any more.
func (k *keeper) dismiss() {
	if k == nil {
		return
	}
	_ = k.cmd.Process.Kill() // before its input ends
	k.in.Close()
	_ = k.cmd.Wait() // killed
}
