package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"sublet/wire/socket"
)

// Who removes the daemon's folder may be at it while it is put back: that is no reason to give up.
func TestMendWhileSomebodyRemoves(t *testing.T) {
	dir := t.TempDir()
	paths := socket.Paths{Runtime: filepath.Join(dir, "run"), State: filepath.Join(dir, "state")}
	paths.Socket, paths.Lock = filepath.Join(paths.Runtime, "s"), filepath.Join(paths.Runtime, "l")
	if err := paths.Prepare(); err != nil {
		t.Fatal(err)
	}
	lock, err := socket.TryLock(paths.Lock)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := socket.Listen(paths.Socket)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPlace(Options{Paths: paths, LockFile: lock, Listener: ln})
	if err != nil {
		t.Fatal(err)
	}
	p.log = slog.New(slog.DiscardHandler)
	defer p.leave()
	removed := make(chan struct{})
	go func() {
		defer close(removed)
		for range 300 {
			_ = os.RemoveAll(paths.Runtime) // fails where something is put back at that moment
		}
	}()
	for {
		if _, err := p.mend(); err != nil {
			t.Errorf("the place is given up: %v", err)
		}
		select {
		case <-removed:
			return
		default:
		}
	}
}
