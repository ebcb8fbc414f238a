package daemon

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	// spoolAge is how long the whole output of a command is kept after it was last written; the model and the user got its path.
	spoolAge = 7 * 24 * time.Hour
	// spoolMost bounds the total size in bytes; one output may have 64 MiB.
	spoolMost = 1 << 30
	// spoolFresh is the age up to which an output is never removed, since a client's shell may still write it.
	spoolFresh = time.Hour
)

// sweepSpool removes from dir raw outputs older than spoolAge, then the oldest until at most most bytes are left, and returns
// how many. It ignores files of other names. It continues after an error and returns all errors joined.
func sweepSpool(dir string, now time.Time, most int64) (removed int, err error) {
	names, err := fs.Glob(os.DirFS(dir), "output-*.raw") // see lease/shell
	if err != nil {
		return 0, err
	}
	type file struct {
		path string
		info fs.FileInfo
	}
	var files []file
	var total int64
	for _, name := range names {
		path := filepath.Join(dir, name)
		info, lerr := os.Lstat(path)
		if lerr != nil || !info.Mode().IsRegular() {
			continue // removed meanwhile, or not readable
		}
		files = append(files, file{path, info})
		total += info.Size()
	}
	slices.SortFunc(files, func(a, b file) int {
		return cmp.Or(a.info.ModTime().Compare(b.info.ModTime()), cmp.Compare(a.path, b.path))
	})
	for _, f := range files {
		age := now.Sub(f.info.ModTime())
		if age < spoolFresh || age < spoolAge && total <= most {
			break // so are all that follow
		}
		if rerr := os.Remove(f.path); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
			continue
		}
		removed++
		total -= f.info.Size()
	}
	return removed, err
}
