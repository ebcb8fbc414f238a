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

// clientFolder is where the files of the terminal program with that pid lie, while it runs.
func clientFolder(o Options, pid int) string {
	if o.Paths.Runtime == "" {
		return spareFolder(pid)
	}
	return filepath.Join(o.Paths.Runtime, "client-"+strconv.Itoa(pid))
}

// spareFolder is where they lie when there is no runtime folder to use.
func spareFolder(pid int) string {
	return filepath.Join(os.TempDir(), "sublet-client-"+strconv.Itoa(pid))
}

// makeFolder makes the folder of this process's shell, 0700. Where the folders of o.Paths cannot be used, which the
// launcher tells by itself, a temporary one does for a shell without a daemon.
func makeFolder(o Options) (string, error) {
	err := o.NoDaemon
	if err == nil {
		err = o.Paths.Prepare()
	}
	folder := clientFolder(o, os.Getpid())
	if bad, ok := errors.AsType[*socket.PathError](err); err == nil || ok && bad.Path == o.Paths.State {
		sweep(o)
		if os.MkdirAll(folder, 0o700) == nil {
			return folder, nil
		}
	}
	// Its name can be guessed, as EnvInside must find it: one that is there already is nobody's to use.
	folder = spareFolder(os.Getpid())
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", fmt.Errorf("make the shell's folder: %w", err)
	}
	return folder, nil
}

// logMost is the size in bytes at which a client's log gives way to a new one; one old one is kept.
const logMost = 4 << 20

// openLog opens the client's log in the state folder, 0600: the terminal belongs to the screen. Without it the shell is
// as good: then notice says why there is none, or is empty where that is told anyway, because no daemon can start there.
// close must be called.
func openLog(state string) (log *slog.Logger, notice string, close func()) {
	none := slog.New(slog.DiscardHandler)
	if state == "" {
		return none, "", func() {}
	}
	path := filepath.Join(state, "client.log")
	if info, err := os.Stat(path); err == nil && info.Size() > logMost {
		_ = os.Rename(path, path+".1") // a log that cannot be moved goes on growing
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
