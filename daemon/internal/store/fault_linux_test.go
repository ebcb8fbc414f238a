package store

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sublet/wire/citest"

	"sublet/wire"
)

// smallDisk is a folder with a file system of its own of so many bytes: a real full disk, and one that root cannot write
// to either when it is read-only.
func smallDisk(t *testing.T, size string) (dir string, readOnly func(bool)) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		citest.Skip(t, "making a small disk needs root: ", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir, func(on bool) {
		var flags uintptr = syscall.MS_REMOUNT
		if on {
			flags |= syscall.MS_RDONLY
		}
		if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, "size="+size); err != nil {
			t.Fatal(err)
		}
	}
}

// A full disk costs the events that do not fit, and says so; what was told to be stored is there, and once there is room
// numbers go on where they were.
func TestFullDisk(t *testing.T) {
	dir, _ := smallDisk(t, "1m")
	path := filepath.Join(dir, "sublet.db")
	s := open(t, path)
	id := newSession(t, s, "s1", 1)
	filler := filepath.Join(dir, "filler")
	seq, piece := int64(1), strings.Repeat("0123456789", 2000)
	var err error
	for ; err == nil && seq < 1000; seq++ {
		err = appendTo(t.Context(), s, text(id, seq, piece))
	}
	full := seq - 1 // the one that did not fit
	fault, ok := errors.AsType[*FaultError](err)
	if !ok || !strings.Contains(fault.Error(), "full") || !strings.Contains(fault.Hint(), "make room on the disk of "+dir) {
		t.Fatalf("got %v, want that the disk is full and what to do", err)
	}
	// Also where nothing at all is left for the journal.
	if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	if err := appendTo(t.Context(), s, text(id, full, piece)); err == nil {
		t.Error("stored on a full disk")
	}
	stored := func() int64 {
		t.Helper()
		events, _, err := s.Events(t.Context(), id, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		return int64(len(events))
	}
	if got := stored(); got != full-1 {
		t.Errorf("%d events are there, want %d", got, full-1)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=8m"); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, text(id, full, piece), text(id, full+1, "and on"))
	if got := stored(); got != full+1 {
		t.Errorf("%d events are there, want %d", got, full+1)
	}
}

// A store that cannot be opened is told with what to do, and is as it was.
func TestReadOnlyDisk(t *testing.T) {
	dir, readOnly := smallDisk(t, "4m")
	path := filepath.Join(dir, "sublet.db")
	s, err := Open(t.Context(), path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	newSession(t, s, "s1", 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	readOnly(true)
	wantFault(t, path, "read-only", "make "+dir+" writable")
	wantFault(t, filepath.Join(dir, "new.db"), "read-only", "make "+dir+" writable")
	readOnly(false)
	if events, _, err := open(t, path).Events(t.Context(), "s1", 0, 1); err != nil || len(events) != 0 {
		t.Errorf("writable again: %d events, %v", len(events), err)
	}
}

// The file that Append writes to is the one that the next daemon opens, or nothing begins.
func TestFileRemovedWhileOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sublet.db")
	s := open(t, path)
	id := newSession(t, s, "s1", 1)
	begin := func(turn wire.TurnID, seq int64) error {
		e := event(id, seq)
		e.TurnID = turn
		return appendTo(t.Context(), s, &wire.TurnStarted{Event: e, Prompt: "p"})
	}
	if err := begin("t1", 1); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	err := begin("t2", 2)
	if fault, ok := errors.AsType[*FaultError](err); !ok || !strings.Contains(fault.Hint(), "daemon restart") {
		t.Errorf("removed: got %v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := begin("t2", 2); !errors.Is(err, errGone) {
		t.Errorf("replaced: got %v", err)
	}
	if err := errors.Join(os.Remove(path), os.Rename(path+".away", path), begin("t2", 2)); err != nil {
		t.Errorf("put back: got %v", err)
	}
}
