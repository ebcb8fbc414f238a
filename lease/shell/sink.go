package shell

import (
	"bytes"
	"syscall"

	"golang.org/x/sys/unix"
)

// sink takes the raw output of one command: to the caller as it comes, to the spool, and rendered into head and tail.
// All is called under the stream's lock.
type sink struct {
	c     Command
	scr   *screen
	text  *headTail
	spool spool
	alt   bool
	notes []string
	path  []byte // how bash names the sourced file in front of a syntax error: taken out
	asked bool   // the keyboard was handed over
}

func newSink(cols, head, tail int, folder, path string, c Command) *sink {
	k := &sink{c: c, text: newHeadTail(head, tail), spool: spool{folder: folder}, path: []byte(path + ": ")}
	k.scr = newScreen(cols, k.text.Write)
	k.scr.onAlt = func(on bool) { k.alt = on }
	return k
}

func (k *sink) write(p []byte) {
	if bytes.Contains(p, k.path) {
		p = bytes.ReplaceAll(p, k.path, nil)
	}
	if k.c.Output != nil {
		k.c.Output(p)
	}
	k.spool.Write(p)
	k.scr.Write(p)
}

func (k *sink) close() (text []byte, left int64, path string, err error) {
	k.scr.Flush()
	text, left = k.text.result()
	path, err = k.spool.finish(left > 0)
	return text, left, path, err
}

// signalName reads the shell's way of telling that a signal ended a command: 128 + its number. Only those are named that
// no program uses as a status of its own.
func signalName(status int) string {
	switch sig := syscall.Signal(status - 128); sig {
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGILL, syscall.SIGABRT, syscall.SIGBUS, syscall.SIGFPE,
		syscall.SIGKILL, syscall.SIGSEGV, syscall.SIGPIPE, syscall.SIGALRM, syscall.SIGTERM, syscall.SIGTSTP:
		return nameOf(sig)
	}
	return ""
}

func nameOf(sig syscall.Signal) string { return unix.SignalName(sig) }
