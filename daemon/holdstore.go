package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"sublet/wire/socket"
)

// A StoreInUseError reports that another daemon, which clients here do not find, uses the same state folder.
type StoreInUseError struct {
	State  string
	PID    string // "" = it did not say
	Socket string // "" = it did not say
}

func (e *StoreInUseError) Error() string {
	who := "another daemon of yours"
	if e.PID != "" {
		who += ", pid " + e.PID + ","
	}
	return who + " uses the sessions in " + e.State
}

// Hint returns how to reach or stop that daemon.
func (e *StoreInUseError) Hint() string {
	if e.Socket == "" {
		return "stop it, or set SUBLET_STATE_DIR to another folder"
	}
	if _, err := os.Lstat(e.Socket); err != nil { // the home folder may be shared by several machines
		return "it is not on this machine, or nobody finds it any more: stop it there, or set SUBLET_STATE_DIR to a folder of this machine"
	}
	folder := filepath.Dir(e.Socket)
	return fmt.Sprintf("it listens in %s: set SUBLET_RUNTIME_DIR=%s for all your shells, or stop it: `SUBLET_RUNTIME_DIR=%s sublet daemon stop`",
		folder, folder, folder)
}

// holdStore locks the state folder. The lock in the runtime folder is not enough, since a user may have two runtime folders:
// a second daemon would take the running turns of the first for those of a dead daemon and end them. On a file system without
// locks it returns nil and no error.
func holdStore(p socket.Paths, log *slog.Logger) (*os.File, error) {
	path := filepath.Join(p.State, "store.lock")
	f, err := socket.TryLock(path)
	switch {
	case errors.Is(err, socket.ErrLocked):
		held := &StoreInUseError{State: p.State}
		if text, err := os.ReadFile(path); err == nil {
			held.PID, held.Socket, _ = strings.Cut(strings.TrimSpace(string(text)), " ")
		}
		return nil, held
	case err != nil:
		log.Warn("the state folder cannot be locked", "err", err)
		return nil, nil
	}
	if err := socket.Sign(f, p.Socket); err != nil {
		log.Warn("the state folder's lock cannot be written", "err", err) // the lock is held nevertheless
	}
	return f, nil
}
