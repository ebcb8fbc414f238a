package daemon

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// maxLog is the size in bytes above which an idle daemon empties its log.
const maxLog = 10 << 20

// rotateLog copies a log of more than most bytes to NAME.1 and empties it. It is truncated in place rather than renamed, because the
// daemon's standard error and `sublet daemon logs -f` use the same file. What is written meanwhile may be lost.
func rotateLog(path string, most int64) error {
	log, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer log.Close()
	if info, err := log.Stat(); err != nil || info.Size() <= most {
		return err
	}
	old, err := os.OpenFile(path+".1", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(old, log)
	if err = errors.Join(err, old.Close()); err != nil {
		return fmt.Errorf("keep the old log: %w", err)
	}
	return log.Truncate(0)
}
