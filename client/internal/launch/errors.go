package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"sublet/lease/procstat"
	"sublet/wire"
	"sublet/wire/socket"
	"sublet/wire/visible"
)

// A StartError reports a daemon that was started but does not serve.
type StartError struct {
	Err     error
	LogPath string
	Last    []string // its answer, else the last lines of its log since the start, made safe to display
	Advice  string   // the daemon's own; "" = none
}

func (e *StartError) Error() string {
	if len(e.Last) == 0 {
		return fmt.Sprintf("the daemon did not start: %v", e.Err)
	}
	return "the daemon did not start: " + strings.Join(e.Last, "; ")
}

func (e *StartError) Unwrap() error { return e.Err }

// Hint returns the daemon's hint, else where to look.
func (e *StartError) Hint() string {
	if e.Advice != "" {
		return e.Advice
	}
	return "its log is " + e.LogPath + "; `sublet doctor` checks what it needs, `sublet daemon run` starts it in the foreground"
}

// A WedgedError reports a daemon that runs but does not answer. The client does not kill it: the pid may be another process's
// by now, and the daemon may be writing.
type WedgedError struct {
	Paths socket.Paths
	Err   error
}

func (e *WedgedError) Error() string { return "the daemon does not answer: " + e.Err.Error() }
func (e *WedgedError) Unwrap() error { return e.Err }

// Hint returns how to end or continue it.
func (e *WedgedError) Hint() string {
	const look = "`sublet daemon logs` shows what it did last; "
	pid, ok := socket.Holder(e.Paths.Lock)
	switch {
	case !ok:
		return look + "`fuser " + e.Paths.Lock + "` names its process, end that and start again"
	case isStopped(pid):
		return fmt.Sprintf("its process is stopped: `kill -CONT %d` lets it go on", pid)
	}
	return look + fmt.Sprintf("`kill %d` ends it, `kill -9 %d` if it must be; nothing that was shown is lost. Then start again", pid, pid)
}

// isStopped reports whether a process is stopped, as by SIGSTOP. Without /proc it is false.
func isStopped(pid int) bool {
	st, err := procstat.Read(pid)
	return err == nil && st.State == 'T'
}

const (
	lastLines = 5        // of a log, shown with an error
	lastBytes = 64 << 10 // read of what was logged since the start, to find them
	// lastWordsBound is how long a daemon that cannot start may take to answer why and to end.
	lastWordsBound = 2 * time.Second
)

// failedStart returns the Error by which a daemon reports that it cannot start; nil for another error.
func failedStart(err error) *wire.Error {
	if e, ok := errors.AsType[*wire.Error](err); ok && e.Code == wire.CodeInternal && !e.Recoverable {
		return e
	}
	return nil
}

// refused converts the Error of a daemon that cannot start to a *StartError, and returns other errors unchanged.
func (l *Launcher) refused(err error) error {
	e := failedStart(err)
	if e == nil {
		return err
	}
	return &StartError{Err: err, LogPath: l.o.Paths.Log(), Last: []string{e.Message}, Advice: e.Hint}
}

// startError adds what the daemon has logged since its start. It waits for the daemon's end first, because the reason is the
// last thing that it writes.
func (l *Launcher) startError(ctx context.Context, err error) error {
	deadline := time.Now().Add(lastWordsBound)
	for wait := time.Millisecond; l.alive() && time.Now().Before(deadline); wait = min(2*wait, 50*time.Millisecond) {
		if pause(ctx, wait) != nil {
			break
		}
	}
	l.mu.Lock()
	from := l.logged
	l.mu.Unlock()
	e := &StartError{Err: err, LogPath: l.o.Paths.Log()}
	for _, line := range tail(e.LogPath, from) {
		e.Last = append(e.Last, strings.TrimPrefix(line, "sublet: error: ")) // ours says it already
	}
	return e
}

// tail returns the last lines of a log from an offset on. If a panic has printed stacks, it returns the lines before the first,
// which have the reason. A log is data: it comes without control sequences. A file that cannot be read has no lines.
func tail(path string, from int64) []string {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() < from {
		from = 0 // a new file was begun meanwhile
	}
	b, err := io.ReadAll(io.NewSectionReader(f, from, lastBytes))
	if err != nil {
		return nil
	}
	var lines []string
	for line := range bytes.Lines(b) {
		clean := strings.TrimSpace(visible.Clean(string(line)))
		if clean == "runtime stack:" || strings.HasPrefix(clean, "goroutine ") {
			break
		}
		if clean != "" {
			lines = append(lines, clean)
		}
	}
	return lines[max(0, len(lines)-lastLines):]
}
