package shell

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"sublet/lease/shell/dialect"
	"sublet/lease/shell/term"
)

// start starts a shell in a session of its own on a new terminal.
func start(path string, l dialect.Launch, dir string, size Size, o Options) (*process, *exec.Cmd, error) {
	t, slave, err := term.Open(size, o.Termios, o.Private)
	if err != nil {
		return nil, nil, err
	}
	defer slave.Close()
	cmd := exec.Command(path, l.Args[1:]...)
	cmd.Args[0] = l.Args[0]
	cmd.Env, cmd.Dir = l.Env, dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := startUnignored(cmd); err != nil {
		t.Close()
		return nil, nil, fmt.Errorf("start %s: %w", path, err)
	}
	return &process{pid: cmd.Process.Pid, term: t, exited: make(chan struct{})}, cmd, nil
}

// unignoring is held while ignored signals are not: of shells that are started at the same moment, the first to be done
// would have the next inherit them.
var unignoring sync.Mutex

// startUnignored starts a command that ignores no signal, whatever this process ignores.
func startUnignored(cmd *exec.Cmd) error {
	unignoring.Lock()
	defer unignoring.Unlock()
	defer unignore()()
	return cmd.Start()
}

// bequeathed are the signals that bash would pass on to what it runs, where it begins with them ignored.
var bequeathed = []os.Signal{
	syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGPIPE,
	syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGCHLD,
}

// inherited are those that this process began with ignored. After Notify and Stop the kernel ignores them again, and
// signal.Ignored denies it.
var inherited = ignoredOf(bequeathed)

func ignoredOf(list []os.Signal) (ignored []os.Signal) {
	for _, sig := range list {
		if signal.Ignored(sig) {
			ignored = append(ignored, sig)
		}
	}
	return ignored
}

// unignore undoes ignored signals for children started now: a client started by `&` in a script or by nohup ignores
// SIGINT, bash would inherit that and be deaf to every ^C.
func unignore() (restore func()) {
	ignored := ignoredOf(bequeathed)
	undone := slices.Concat(ignored, inherited)
	if len(undone) == 0 {
		return func() {}
	}
	sink := make(chan os.Signal, len(undone))
	signal.Notify(sink, undone...)
	return func() {
		signal.Stop(sink)
		if len(ignored) > 0 {
			signal.Ignore(ignored...)
		}
	}
}
