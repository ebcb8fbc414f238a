package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long files must be unchanged before a change is reported: editors write in several steps, and removing a
// folder takes several steps too.
const settle = 100 * time.Millisecond

// maxLinks bounds the symbolic links followed in one path, as the kernel does: path_resolution(7).
const maxLinks = 40

// watch sends to changed when one of the files was changed, created, removed, replaced, or reached through a symbolic link that
// changed, at most once in settle. what names the files in the log. If they cannot be watched it logs a warning and never
// sends. stop ends the watching and waits for its goroutine.
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
				if !slices.Contains(w.names, e.Name) && !slices.Contains(w.folders, e.Name) {
					continue
				}
				quiet.Reset(settle)
				if e.Op&^(fsnotify.Write|fsnotify.Chmod) == 0 {
					continue // the set of watched names is unchanged
				}
				if err := w.follow(); err != nil {
					log.Warn(what+": not watched any more", "err", err)
				}
			case err, ok := <-watcher.Errors:
				if ok {
					log.Warn(what+": watching", "err", err)
				}
			case <-quiet.C:
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
	names   []string // paths whose changes are reported: the files and the links on the way to them, or the first folder that does not exist
	folders []string // folders that are watched
}

// follow updates the watches after a change. It repeats until nothing changes, since a path may be changed during the lookup.
func (w *watching) follow() error {
	for range maxLinks {
		names, folders, err := w.watchFolders()
		for _, folder := range w.folders {
			if !slices.Contains(folders, folder) {
				_ = w.watcher.Remove(folder) // an error means that the folder was removed
			}
		}
		same := slices.Equal(names, w.names) && slices.Equal(folders, w.folders)
		w.names, w.folders = names, folders
		if same || err != nil {
			return err
		}
	}
	return nil // the paths change all the time, and each change is reported
}

// watchFolders watches the folders of all names on the way to the paths, and returns both. Two paths may share a folder's watch, so
// after removing a watch watchFolders must be called again.
func (w *watching) watchFolders() (names, folders []string, failed error) {
	for _, path := range w.paths {
		for _, name := range chain(path) {
			for {
				folder := filepath.Dir(name)
				err := w.watcher.Add(folder) // idempotent, and needed for a folder that was created again
				if err == nil {
					names, folders = append(names, name), append(folders, folder)
					break
				}
				if folder == name {
					failed = err
					break
				}
				name = folder
			}
		}
	}
	return names, folders, failed
}

// chain returns the paths that determine what path refers to: each symbolic link on the way, and the final target.
func chain(path string) []string {
	var names []string
	at, rest := "/", strings.Split(path, "/")
	for links := 0; len(rest) > 0 && links < maxLinks; {
		name := rest[0]
		rest = rest[1:]
		if name == "" || name == "." {
			continue
		}
		at = filepath.Join(at, name) // Join resolves ".." correctly because at contains no links
		to, err := os.Readlink(at)
		if err != nil { // not a link, or it does not exist
			continue
		}
		links++
		names = append(names, at)
		at = filepath.Dir(at)
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return append(names, at)
}
