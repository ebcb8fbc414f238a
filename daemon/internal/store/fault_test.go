package store

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// wantFault opens a store that cannot be opened, and looks that its file is left alone.
func wantFault(t *testing.T, path, message, hint string) {
	t.Helper()
	before, _ := os.ReadFile(path) // a folder has nothing to read
	s, err := openWithin(t.Context(), path, slog.New(slog.DiscardHandler), 20*time.Millisecond)
	if err == nil {
		s.Close()
		t.Fatalf("%s was opened", path)
	}
	err = (&Store{path: path}).fault(err)
	fault, ok := errors.AsType[*FaultError](err)
	if !ok || !strings.Contains(fault.Error(), message) || !strings.Contains(fault.Hint(), hint) {
		t.Errorf("got %v, want %q and a hint to %q", err, message, hint)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("the file was changed")
	}
}

// What cannot be opened is refused in words, with what to do, and nothing in it is changed.
func TestCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	put := func(name string, b []byte) {
		t.Helper()
		if err := os.WriteFile(path(name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(t.Context(), path("good"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	id := newSession(t, s, "s1", 1)
	for seq := int64(1); seq <= 50; seq++ {
		mustAppend(t, s, text(id, seq, strings.Repeat("words ", 100)))
	}
	if _, err := s.db.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path("good"))
	if err != nil {
		t.Fatal(err)
	}

	put("text", []byte(strings.Repeat("this is no database\n", 100)))
	wantFault(t, path("text"), "not a database", "mv "+path("text"))
	put("torn", good[:len(good)/2]) // a copy that was broken off
	wantFault(t, path("torn"), "malformed", ".recover")
	overwritten := bytes.Clone(good)
	copy(overwritten[100:], make([]byte, 3996)) // the first page, after its header: the schema
	put("overwritten", overwritten)
	wantFault(t, path("overwritten"), "malformed", ".recover")
	newer := bytes.Clone(good)
	newer[63] = 99 // the user version: sqlite.org/fileformat.html
	put("newer", newer)
	wantFault(t, path("newer"), "made by a newer sublet (schema 99", "start the newer sublet")
	if err := os.Mkdir(path("folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	wantFault(t, path("folder"), "is a directory", "SUBLET_STATE_DIR")

	// Events that cannot be read are told when they are asked for, too.
	broken := bytes.Clone(good)
	for at := 4096 * 8; at < len(broken); at += 4096 {
		broken[at] = 0xff // each page's type
	}
	put("broken", broken)
	b, err := Open(t.Context(), path("broken"), slog.New(slog.DiscardHandler))
	if err == nil {
		_, _, err = b.Events(t.Context(), id, 0, 1000)
		b.Close()
	}
	if fault, ok := errors.AsType[*FaultError](err); !ok || !strings.Contains(fault.Hint(), ".recover") {
		t.Errorf("broken pages: got %v", err)
	}
}

// Another program's lock is waited for, and told.
func TestLockedByAnother(t *testing.T) {
	if path := os.Getenv("STORE_TEST_LOCKER"); path != "" { // the other program
		s := open(t, path)
		if _, err := s.db.Exec("BEGIN EXCLUSIVE"); err != nil {
			t.Fatal(err)
		}
		fmt.Println("locked")
		os.Stdin.Read(make([]byte, 1)) // until the other end closes
		return
	}
	path := filepath.Join(t.TempDir(), "sublet.db")
	s := open(t, path)
	id := newSession(t, s, "s1", 1)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLockedByAnother$")
	cmd.Env = append(os.Environ(), "STORE_TEST_LOCKER="+path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("the other program: %q, %v", line, err)
	}
	other, err := openWithin(t.Context(), path, slog.New(slog.DiscardHandler), 20*time.Millisecond)
	if err == nil { // reading goes on while somebody else writes; writing does not
		err = appendTo(t.Context(), other, text(id, 1, "x"))
		defer other.Close()
	}
	fault, ok := errors.AsType[*FaultError]((&Store{path: path}).fault(err))
	if !ok || !strings.Contains(fault.Error(), "locked") || !strings.Contains(fault.Hint(), "fuser "+path) {
		t.Errorf("got %v, want that it is locked and by whom", err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, text(id, 1, "x"))
}
