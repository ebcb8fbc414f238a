package daemon

import (
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long files must be unchanged before a change is reported: editors write in several steps, and removing a
// folder takes several steps too.
const settle = 100 * time.Millisecond

// watch sends to changed when one of the files, or the file that it leads to as a symbolic link, was changed, created, removed or replaced,
// at most once in settle. It does not notice that a folder on the way was replaced. what names the files in the log. If they cannot
// be watched it logs a warning and never sends. stop ends the watching and waits for its goroutine.
func watch(log *slog.Logger, what string, paths ...string) (changed <-chan struct{}, stop func()) {
	out := make(chan struct{}, 1)
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		log.Warn(what+": not watched", "err", err)
		return out, func() {}
	}
	w := &watching{watcher: watcher, paths: paths}
	if err := w.follow(); err != nil {
		log.Warn(what+": not watched", "err", err)
	}
	var done sync.WaitGroup
	done.Go(func() { // ends when stop closes the watcher
		quiet := time.NewTimer(settle)
		quiet.Stop()
		defer quiet.Stop()
		for {
			select {
			case e, ok := <-watcher.Events:
				if !ok {
					return
				}
				if slices.Contains(w.names, e.Name) || slices.Contains(w.folders, e.Name) {
					quiet.Reset(settle)
				}
			case err, ok := <-watcher.Errors:
				if ok {
					log.Warn(what+": watching", "err", err)
				}
			case <-quiet.C:
				if err := w.follow(); err != nil { // before the report: who gets that finds what changed until now
					log.Warn(what+": not watched any more", "err", err)
				}
				select {
				case out <- struct{}{}:
				default:
				}
			}
		}
	})
	return out, func() {
		watcher.Close()
		done.Wait()
	}
}

// watching is the state of one watch. It watches folders rather than files, since a replaced file is a new file.
type watching struct {
	watcher *fsnotify.Watcher
	paths   []string
	names   []string // whose changes are reported: the paths, the files that they lead to, or the first folder that does not exist
	folders []string // that are watched
}

// follow updates the watches after a change.
func (w *watching) follow() (failed error) {
	before := w.folders
	w.names, w.folders = nil, nil
	for _, path := range w.paths {
		target, err := filepath.EvalSymlinks(path)
		if err != nil { // it does not exist
			target = path
		}
		for _, name := range []string{path, target} {
			failed = errors.Join(failed, w.add(name))
		}
	}
	for _, folder := range before {
		if !slices.Contains(w.folders, folder) {
			_ = w.watcher.Remove(folder) // an error means that the folder was removed
		}
	}
	return failed
}

// add watches a name in its folder. If that cannot be watched, add watches for the folder.
func (w *watching) add(name string) error {
	folder, err := filepath.EvalSymlinks(filepath.Dir(name)) // so that no folder is watched by two names
	if err == nil {
		err = w.watcher.Add(folder) // idempotent, and needed for a folder that was created again
	}
	switch {
	case err == nil:
		w.names, w.folders = append(w.names, filepath.Join(folder, filepath.Base(name))), append(w.folders, folder)
		return nil
	case name == filepath.Dir(name):
		return err
	}
	return w.add(filepath.Dir(name))
}
