package store

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"

	"modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"
)

// A FaultError reports why the database cannot be opened or written, with a hint for the user. The file was not changed.
type FaultError struct {
	Err  error
	hint string
}

func (e *FaultError) Error() string { return e.Err.Error() }
func (e *FaultError) Unwrap() error { return e.Err }

// Hint returns what the user can do.
func (e *FaultError) Hint() string { return e.hint }

// fault converts an error of SQLite to a *FaultError if there is a hint for it.
func (s *Store) fault(err error) error {
	if hint := remedy(s.path, err); hint != "" {
		return &FaultError{Err: err, hint: hint}
	}
	return err
}

var errNewer = errors.New("made by a newer sublet")

// errGone reports that the opened database file was removed or replaced, so that what is written now would be lost.
var errGone = errors.New("the database's file was removed or replaced while the daemon ran")

// remedy returns what the user can do about an error of the store at path, "" if that is not known.
func remedy(path string, err error) string {
	code := -1
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		code = e.Code() & 0xff // the primary code; extended codes make no difference to a user: sqlite.org/rescode.html
	}
	folder := filepath.Dir(path)
	switch {
	case errors.Is(err, errNewer):
		return "start the newer sublet, or set SUBLET_STATE_DIR to another folder; nothing was changed"
	case errors.Is(err, errGone):
		return "`sublet daemon restart` starts with a new one, or with the one that is there now"
	case code == codes.SQLITE_NOTADB, code == codes.SQLITE_CORRUPT:
		return "it was left as it is; `mv " + path + " " + path + ".broken` begins a new one, `sqlite3 " + path + ".broken .recover` shows what can be saved"
	case code == codes.SQLITE_BUSY, code == codes.SQLITE_LOCKED:
		return "another program holds it locked, a backup or sqlite3: `fuser " + path + "` names it"
	case code == codes.SQLITE_FULL, errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "make room on the disk of " + folder + ", or set SUBLET_STATE_DIR to another one; what is there is kept"
	case code == codes.SQLITE_READONLY, code == codes.SQLITE_PERM, errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return "make " + folder + " writable, or set SUBLET_STATE_DIR to another folder"
	case code == codes.SQLITE_CANTOPEN, code == codes.SQLITE_IOERR, errors.Is(err, syscall.EISDIR):
		return "look at " + folder + " and its disk, or set SUBLET_STATE_DIR to another folder"
	}
	return ""
}
