package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// A link that is put on the way to a file just as its folder is about to be watched: the folder is watched by the link's name.
func TestLinkPutInWhileWatching(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(target, 0o700), os.Symlink("target", link)); err != nil {
		t.Fatal(err)
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Close()
	file := filepath.Join(link, "file")
	w := &watching{watcher: watcher, paths: []string{file}, names: []string{file}, folders: []string{link}}
	if err := errors.Join(watcher.Add(link), w.follow()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(target, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case e := <-watcher.Events:
		if want := filepath.Join(target, "file"); e.Name != want {
			t.Errorf("an event of %s, want %s", e.Name, want)
		}
	case <-time.After(patience):
		t.Error("what the link leads to is not watched")
	}
}
