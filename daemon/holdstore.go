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

// A StoreInUseError says that a daemon which clients here do not see uses the same sessions.
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

// Hint tells how to reach that daemon, or to end it.
func (e *StoreInUseError) Hint() string {
	if e.Socket == "" {
		return "stop it, or set SUBLET_STATE_DIR to another folder"
	}
	if _, err := os.Lstat(e.Socket); err != nil { // a home folder that several machines have
		return "it is not on this machine, or nobody finds it any more: stop it there, or set SUBLET_STATE_DIR to a folder of this machine"
	}
	folder := filepath.Dir(e.Socket)
	return fmt.Sprintf("it listens in %s: set SUBLET_RUNTIME_DIR=%s for all your shells, or stop it: `SUBLET_RUNTIME_DIR=%s sublet daemon stop`",
		folder, folder, folder)
}

// holdStore takes the state folder for this daemon. The lock in the runtime folder makes one daemon for each of those,
// and a user may have two without knowing (T5c): the second one would take the turns of the first for those of a dead
// daemon, and end them. A file system without locks is no reason not to start.
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
		log.Warn("the state folder's lock cannot be written", "err", err) // it holds all the same
	}
	return f, nil
}
