package archive

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"

	"sublet/wire"
	"sublet/wire/visible"
)

// maxSaved bounds a file that is loaded, in bytes.
const maxSaved = 1 << 30

// Save writes a session to a file, atomically and readable by the user alone, and returns its size. fill writes its history. A
// file that cannot be made there is a *FormatError.
func Save(path string, info wire.SessionInfo, fill func(*Writer) error) (size int64, err error) {
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path))) // 0600
	if err != nil {
		return 0, formatError("%v", err)
	}
	defer f.Cleanup()
	w := NewWriter(f, info)
	err = fill(w)
	if err = errors.Join(err, w.Close()); err == nil {
		err = f.CloseAtomicallyReplace()
	}
	if err != nil {
		return 0, fmt.Errorf("save session: %w", err)
	}
	return w.Size, nil
}

// Open opens a file that Save wrote, and returns its size. What is wrong with it is a *FormatError.
func Open(path string) (f *os.File, size int64, err error) {
	f, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a pipe does not wait for a writer then
	if err != nil {
		return nil, 0, formatError("%v", err)
	}
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() || st.Size() > maxSaved {
		f.Close()
		return nil, 0, formatError("%s is not a file of at most %d bytes", visible.Exact(path), maxSaved)
	}
	return f, st.Size(), nil
}
