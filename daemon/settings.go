package daemon

import (
	"log/slog"
	"path/filepath"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"sublet/daemon/config"
)

// settings are those in force: the last ones that could be read.
type settings struct {
	path string
	now  atomic.Pointer[config.Config]
}

// load reads the settings for the first time.
func (s *settings) load() error {
	c, err := config.Load(s.path)
	if err != nil {
		return err
	}
	s.now.Store(&c)
	return nil
}

// get returns the settings in force. Their maps are shared: readers only.
func (s *settings) get() config.Config { return *s.now.Load() }

// reload reads the file again. With an error the old settings stay (T5d).
func (s *settings) reload() (changed bool, err error) {
	c, err := config.Load(s.path)
	if err != nil {
		return false, err
	}
	changed = !reflect.DeepEqual(*s.now.Load(), c)
	s.now.Store(&c)
	return changed, nil
}

// watch has a value some time after the file changed. Without a folder to watch, or on a system that cannot, SIGHUP is
// left. stop ends the watching and waits for it.
func (s *settings) watch(log *slog.Logger) (changed <-chan struct{}, stop func()) {
	out := make(chan struct{}, 1)
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		log.Warn("settings are not watched", "err", err)
		return out, func() {}
	}
	// The folder, not the file: editors replace the file. Where the folder is not there yet, the one above it is watched
	// until it is.
	folder, watched := filepath.Dir(s.path), false
	follow := func() {
		for at := folder; ; at = filepath.Dir(at) {
			err := watcher.Add(at)
			if watched = err == nil && at == folder; err == nil {
				return
			}
			if at == filepath.Dir(at) {
				log.Warn("settings are not watched", "err", err)
				return
			}
		}
	}
	follow()
	var done sync.WaitGroup
	done.Go(func() { // ends when stop closes the watcher
		settle := time.NewTimer(settleConfig)
		settle.Stop()
		for {
			select {
			case e, ok := <-watcher.Events:
				if !ok {
					settle.Stop()
					return
				}
				switch {
				case !watched && e.Op.Has(fsnotify.Create):
					follow()
					settle.Reset(settleConfig) // it may have come with the file in it
				case e.Name == s.path && e.Op != fsnotify.Chmod:
					settle.Reset(settleConfig)
				case e.Name == folder && e.Op.Has(fsnotify.Remove|fsnotify.Rename):
					follow()
				}
			case err, ok := <-watcher.Errors:
				if ok {
					log.Warn("watching the settings", "err", err)
				}
			case <-settle.C:
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
