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

// settle is how long watched files must be left alone before somebody looks at them: editors write in several steps, and
// who removes a folder is still at it.
const settle = 100 * time.Millisecond

// maxLinks bounds the symbolic links followed in one path, as the kernel does: path_resolution(7).
const maxLinks = 40

// watch has a value some time after one of the files or its mode changed, or it came or went, however that was done: written in place,
// renamed over, or by a symbolic link on its way that leads elsewhere now. what names them in the log. Without a folder
// to watch, or on a system that cannot, it never has one. stop ends the watching and waits for it.
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
					continue // what is watched stays the same
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

// watching is what one watch looks at. Folders are watched, not files: a file that is replaced is another file.
type watching struct {
	watcher *fsnotify.Watcher
	paths   []string
	names   []string // whose changes count: the files, links on the way to them, else the first folder that is missing
	folders []string // that are watched
}

// follow watches what is to be watched now. What came before its folder was watched counts as a change, which is why every
// call but the first comes with one. A path may lead elsewhere while it is looked up, so it is, until it stays the same.
func (w *watching) follow() error {
	for range maxLinks {
		names, folders, err := w.look()
		for _, folder := range w.folders {
			if !slices.Contains(folders, folder) {
				_ = w.watcher.Remove(folder) // gone already where the folder is
			}
		}
		same := slices.Equal(names, w.names) && slices.Equal(folders, w.folders)
		w.names, w.folders = names, folders
		if same || err != nil {
			return err
		}
	}
	return nil // somebody changes it all the time, and each change is an event
}

// look watches the folders that decide what the paths lead to. A folder that two paths lead to has one watch, which ends
// with either: where that is possible, look must come again.
func (w *watching) look() (names, folders []string, failed error) {
	for _, path := range w.paths {
		for _, name := range chain(path) {
			for {
				folder := filepath.Dir(name)
				err := w.watcher.Add(folder) // again is no error, and needed for one that was made anew
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

// chain is the names that decide what path leads to: each symbolic link on its way, and where they lead in the end.
func chain(path string) []string {
	var names []string
	at, rest := "/", strings.Split(path, "/")
	for links := 0; len(rest) > 0 && links < maxLinks; {
		name := rest[0]
		rest = rest[1:]
		if name == "" || name == "." {
			continue
		}
		at = filepath.Join(at, name) // Join takes care of ..: at has no links left in it
		to, err := os.Readlink(at)
		if err != nil { // no link, or not there
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
