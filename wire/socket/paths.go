// Package socket locates the daemon's socket and secures it: folders and their permissions, the lock that allows one daemon,
// listening, dialing, and the identity of the peer. Finding, starting and replacing daemons is left to its callers.
package socket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// Paths is the folders and files of one user. Socket and Lock are in Runtime; Config is a file.
type Paths struct {
	Runtime string // folder, 0700
	Socket  string // daemon.sock
	Lock    string // daemon.lock; never removed
	State   string // folder, 0700: sublet.db, daemon.log, spool/
	Config  string // config.toml; need not exist
}

// Log returns the path of the daemon's log.
func (p Paths) Log() string { return filepath.Join(p.State, "daemon.log") }

// Spool returns the folder for complete outputs of which the model got only a part.
func (p Paths) Spool() string { return filepath.Join(p.State, "spool") }

// Database returns the path of the store.
func (p Paths) Database() string { return filepath.Join(p.State, "sublet.db") }

// MaxPath bounds a socket's path. sun_path has 104 bytes on macOS and 108 on Linux, including the terminating NUL: unix(4),
// unix(7). One limit for both, so that a shared configuration works on both.
const MaxPath = 103

// A PathError reports a path that cannot be used, and what to do about it.
type PathError struct {
	Path, Reason, Remedy string
}

func (e *PathError) Error() string { return e.Path + " " + e.Reason }

// Hint returns what the user can do.
func (e *PathError) Hint() string { return e.Remedy }

// FindPaths works out the folders of the user uid from the environment, which getenv reads (os.Getenv):
//
//	Runtime  $SUBLET_RUNTIME_DIR, else $XDG_RUNTIME_DIR/sublet, else /tmp/sublet-UID
//	State    $SUBLET_STATE_DIR, else $XDG_STATE_HOME/sublet, else ~/.local/state/sublet
//	Config   $SUBLET_CONFIG, else $XDG_CONFIG_HOME/sublet/config.toml, else ~/.config/sublet/config.toml
//
// It touches no file. XDG variables that are not absolute are ignored, as their specification asks; SUBLET_ ones are
// refused with a *PathError, like a socket path over MaxPath, and a missing HOME where it is needed.
func FindPaths(getenv func(string) string, uid int) (Paths, error) {
	var p Paths
	var err error
	if p.Runtime, err = pick(getenv, "SUBLET_RUNTIME_DIR", "XDG_RUNTIME_DIR", "sublet", ""); err != nil {
		return Paths{}, err
	}
	if p.Runtime == "" {
		p.Runtime = "/tmp/sublet-" + strconv.Itoa(uid)
	}
	if p.State, err = pick(getenv, "SUBLET_STATE_DIR", "XDG_STATE_HOME", "sublet", ".local/state"); err != nil {
		return Paths{}, err
	}
	if p.Config, err = pick(getenv, "SUBLET_CONFIG", "XDG_CONFIG_HOME", "sublet/config.toml", ".config"); err != nil {
		return Paths{}, err
	}
	p.Socket = filepath.Join(p.Runtime, "daemon.sock")
	p.Lock = filepath.Join(p.Runtime, "daemon.lock")
	return p, checkLength(p.Socket)
}

// Environ returns the variables by which another process finds the same places.
func (p Paths) Environ() map[string]string {
	return map[string]string{"SUBLET_RUNTIME_DIR": p.Runtime, "SUBLET_STATE_DIR": p.State, "SUBLET_CONFIG": p.Config}
}

// Elsewhere returns the sockets on which a daemon of the user answers in the other possible runtime folders: those for another
// XDG_RUNTIME_DIR, or for none.
func Elsewhere(ctx context.Context, p Paths, getenv func(string) string, uid int) []string {
	id := strconv.Itoa(uid)
	folders := []string{"/run/user/" + id + "/sublet", "/tmp/sublet-" + id}
	if xdg := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(xdg) {
		folders = append(folders, filepath.Join(xdg, "sublet"))
	}
	var found []string
	for _, folder := range folders {
		path := filepath.Join(folder, filepath.Base(p.Socket))
		if folder == p.Runtime || slices.Contains(found, path) {
			continue
		}
		if c, err := Dial(ctx, path); err == nil {
			c.Close()
			found = append(found, path)
		}
	}
	return found
}

// pick returns the value of the variable own, else a path in the folder that the variable xdg names, else one in the home folder.
func pick(getenv func(string) string, own, xdg, below, home string) (string, error) {
	if v := getenv(own); v != "" {
		if !filepath.IsAbs(v) {
			return "", &PathError{v, "is not an absolute path", "set " + own + " to an absolute path, or unset it"}
		}
		return filepath.Clean(v), nil
	}
	if v := getenv(xdg); filepath.IsAbs(v) {
		return filepath.Join(v, below), nil
	}
	if home == "" {
		return "", nil
	}
	v := getenv("HOME")
	if !filepath.IsAbs(v) {
		return "", &PathError{"HOME", "is not set", "set HOME, or " + own}
	}
	return filepath.Join(v, home, below), nil
}

// checkLength refuses a socket path that is too long for the kernel.
func checkLength(path string) error {
	if len(path) > MaxPath {
		return &PathError{
			path, fmt.Sprintf("is %d bytes long; a socket's path may have %d", len(path), MaxPath),
			"set SUBLET_RUNTIME_DIR to a shorter folder, such as /tmp/sublet-" + strconv.Itoa(os.Getuid()),
		}
	}
	return nil
}

// Prepare creates the runtime and state folders, mode 0700, and checks existing ones. It refuses, with a *PathError, a folder that
// is a symbolic link, belongs to another user or is accessible to others: in /tmp another user could have created it first.
func (p Paths) Prepare() error {
	if err := private(p.Runtime, "set SUBLET_RUNTIME_DIR to a folder of yours"); err != nil {
		return err
	}
	return private(p.State, "set SUBLET_STATE_DIR to a folder of yours")
}

// private is Prepare for one folder. otherwise is what the user can do if they cannot mend the folder itself.
func private(dir, otherwise string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return &PathError{dir, "cannot be made: " + reason(err), otherwise}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return &PathError{dir, "cannot be made: " + reason(err), otherwise}
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return &PathError{dir, "cannot be inspected: " + reason(err), otherwise}
	}
	switch owner, known := ownerOf(info); {
	case info.Mode()&fs.ModeSymlink != 0:
		return &PathError{dir, "is a symbolic link", "remove it, or " + otherwise}
	case !info.IsDir():
		return &PathError{dir, "is not a folder", "remove it, or " + otherwise}
	case known && owner != os.Geteuid():
		return &PathError{dir, fmt.Sprintf("belongs to user %d, not to you", owner), otherwise}
	case info.Mode().Perm()&0o077 != 0:
		return &PathError{dir, fmt.Sprintf("is open to others (mode %04o)", info.Mode().Perm()), "run `chmod 700 " + dir + "`"}
	}
	return nil
}

// reason returns an error without the path, which the message contains already.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return err.Error()
}

func ownerOf(info fs.FileInfo) (uid int, known bool) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid), true
	}
	return 0, false
}
