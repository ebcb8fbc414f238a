package daemon

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// maxLog is the size in bytes at which the log is emptied; its content is copied to NAME.1 before.
const maxLog = 10 << 20

// logFile is the daemon's log. It is truncated in place rather than renamed, because the daemon's standard error and
// `sublet daemon logs -f` use the same file.
type logFile struct {
	path string
	most int64

	mu   sync.Mutex
	file *os.File // guarded by mu
}

// openLog opens the log for appending, mode 0600.
func openLog(path string, most int64) (*logFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return &logFile{path: path, most: most, file: f}, nil
}

// Write appends one record, which slog passes in one call.
func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// The size is read from the file, since standard error also writes to it.
	if info, err := l.file.Stat(); err == nil && info.Size() > 0 && info.Size()+int64(len(p)) > l.most {
		if err := l.rotateLocked(info.Size()); err != nil {
			return 0, err // slog ignores it; on a full disk the record could not be written either
		}
	}
	return l.file.Write(p)
}

// rotateLocked copies the first size bytes of the log to NAME.1 and empties it.
func (l *logFile) rotateLocked(size int64) error {
	old, err := os.OpenFile(l.path+".1", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("rotate the log: %w", err)
	}
	_, err = io.Copy(old, io.NewSectionReader(l.file, 0, size))
	if err = errors.Join(err, old.Close()); err != nil {
		return fmt.Errorf("rotate the log: %w", err)
	}
	return l.file.Truncate(0)
}

func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}
