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
	// spoolAge is how long an output that was cut is kept whole after it was last written; the model and the user were told
	// its path.
	spoolAge = 7 * 24 * time.Hour
	// spoolMost bounds what they take together, in bytes: one may be 64 MiB.
	spoolMost = 1 << 30
	// spoolFresh is how long one is left alone in any case: it may still be written, by a client's shell too.
	spoolFresh = time.Hour
)

// sweepSpool removes the raw outputs in dir that are too old, and the oldest where all are too much, and returns how many.
// Files of other names are somebody else's. Every fault is told; the rest goes on.
func sweepSpool(dir string, now time.Time, most int64) (removed int, err error) {
	paths, err := filepath.Glob(filepath.Join(escape(dir), "output-*.raw")) // see lease/shell
	if err != nil {
		return 0, err
	}
	type file struct {
		path string
		info fs.FileInfo
	}
	var files []file
	var total int64
	for _, path := range paths {
		info, lerr := os.Lstat(path)
		if lerr != nil || !info.Mode().IsRegular() {
			continue // gone meanwhile, or not ours
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

// escape makes a folder's name stand for itself in a pattern.
func escape(dir string) string {
	var b []byte
	for i := range len(dir) {
		if c := dir[i]; c == '*' || c == '?' || c == '[' || c == '\\' {
			b = append(b, '\\')
		}
		b = append(b, dir[i])
	}
	return string(b)
}
