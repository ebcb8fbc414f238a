package client

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"sublet/wire/socket"
)

// makeFolder creates the folder for the files of this process's shell, mode 0700. If the folders of o.Paths cannot be used,
// which the launcher reports, it is a temporary one.
func makeFolder(o Options) (string, error) {
	err := o.NoDaemon
	if err == nil {
		err = o.Paths.Prepare()
	}
	if bad, ok := errors.AsType[*socket.PathError](err); err == nil || ok && bad.Path == o.Paths.State {
		folder := filepath.Join(o.Paths.Runtime, "client-"+strconv.Itoa(os.Getpid()))
		if os.MkdirAll(folder, 0o700) == nil {
			return folder, nil
		}
	}
	folder, err := os.MkdirTemp("", "sublet-client-")
	if err != nil {
		return "", fmt.Errorf("make the shell's folder: %w", err)
	}
	return folder, nil
}

// logMost is the size in bytes at which a client's log is renamed; one old log is kept.
const logMost = 4 << 20

// openLog opens the client's log in the state folder, mode 0600. It is a file because the screen owns the terminal. If it
// cannot be opened, notice is the reason, or "" where the failure of the daemon reports it too. close must be called.
func openLog(state string) (log *slog.Logger, notice string, close func()) {
	none := slog.New(slog.DiscardHandler)
	if state == "" {
		return none, "", func() {}
	}
	path := filepath.Join(state, "client.log")
	if info, err := os.Stat(path); err == nil && info.Size() > logMost {
		_ = os.Rename(path, path+".1") // if that fails, the log continues to grow
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		if unix.Access(state, unix.W_OK) == nil {
			notice = "no log is kept: " + err.Error()
		}
		return none, notice, func() {}
	}
	return slog.New(slog.NewTextHandler(f, nil)).With("pid", os.Getpid()), "", func() { f.Close() }
}
