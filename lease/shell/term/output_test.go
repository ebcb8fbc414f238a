package term

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestHeadTail(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 9, 10, 11, 19, 20, 21, 35, 1000} {
		for _, piece := range []int{1, 7, 1000} {
			h := newHeadTail(10, 10)
			var all []byte
			for i := range n {
				all = append(all, byte('a'+i%26))
			}
			for i := 0; i < n; i += piece {
				h.Write(all[i:min(i+piece, n)])
			}
			got, left := h.result()
			if n <= 20 {
				if !bytes.Equal(got, all) || left != 0 {
					t.Errorf("%d by %d: got %q, %d left out", n, piece, got, left)
				}
				continue
			}
			want := fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s", all[:10], n-20, all[n-10:])
			if string(got) != want || left != int64(n-20) {
				t.Errorf("%d by %d: got %q (%d), want %q", n, piece, got, left, want)
			}
		}
	}
	// Never inside a character, at a line where one is near.
	h := newHeadTail(10, 10)
	h.Write([]byte(strings.Repeat("漢", 20)))
	if got, _ := h.result(); string(got) != "漢漢漢\n[... 42 bytes left out ...]\n漢漢漢" {
		t.Errorf("got %q", got)
	}
	h = newHeadTail(2000, 2000)
	for i := range 1000 {
		h.Write(fmt.Appendf(nil, "line %d\n", i))
	}
	got, left := h.result()
	head, tail, _ := strings.Cut(string(got), fmt.Sprintf("\n[... %d bytes left out ...]\n", left))
	if last := head[strings.LastIndexByte(head, '\n')+1:]; !strings.HasPrefix(last, "line ") || !strings.HasPrefix(tail, "line ") || len(head)+1+len(tail)+int(left) != 8890 {
		t.Errorf("head ends with %q, tail begins with %.20q, %d left out", last, tail, left)
	}
	h = newHeadTail(3000, 3000) // no line is near
	h.Write([]byte("a\n" + strings.Repeat("b", 9000) + "\nc"))
	if got, left := h.result(); left != 3004 || !strings.HasPrefix(string(got), "a\nb") || !strings.HasSuffix(string(got), "b\nc") {
		t.Errorf("%d left out of %.10q…%q", left, got, got[len(got)-10:])
	}
	if h := newHeadTail(0, -1); h.headMax != defaultHead || h.tail.Most != defaultTail {
		t.Errorf("zero stands for %d and %d", h.headMax, h.tail.Most)
	}
}

// The spool keeps the first 64 MiB.
func TestSpoolIsBounded(t *testing.T) {
	t.Parallel()
	piece := bytes.Repeat([]byte("0123456789abcde\n"), 62_499) // pieces lie across the bound
	s := spool{folder: t.TempDir()}
	for range 71 {
		s.Write(piece)
	}
	path, err := s.finish(true)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if want := bytes.Repeat(piece, 71)[:spoolMost]; err != nil || !bytes.Equal(raw, want) {
		t.Errorf("got %d bytes, want %d, or others; %v", len(raw), len(want), err)
	}
}

// What is short, or not to be kept, leaves no file; what should be kept is, however short; where nothing can be kept that is
// told once, and the output goes on.
func TestSpoolFiles(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	long := bytes.Repeat([]byte("x"), spoolAfter)
	for _, c := range []struct {
		name, folder string
		writes       int
		keep         bool
		size         int64 // of the file; -1 = none
		fails        bool
	}{
		{"nothing, to be kept", folder, 0, true, -1, false},
		{"short, not to be kept", folder, 1, false, -1, false},
		{"short, to be kept", folder, 1, true, spoolAfter, false},
		{"long, not to be kept", folder, 3, false, -1, false},
		{"long, to be kept", folder, 3, true, 3 * spoolAfter, false},
		{"no folder", "", 3, true, -1, false},
		{"a folder that cannot be made", filepath.Join(file, "spool"), 3, true, -1, true},
		{"one for a short output", filepath.Join(file, "spool"), 1, true, -1, true},
	} {
		s := spool{folder: c.folder}
		for n := range c.writes {
			if s.Write(long); n == 0 && s.file != nil {
				t.Errorf("%s: %d bytes are on disk", c.name, len(long))
			}
		}
		if len(s.first) > spoolAfter {
			t.Errorf("%s: %d bytes are kept in memory", c.name, len(s.first))
		}
		path, err := s.finish(c.keep)
		if (err != nil) != c.fails || (path != "") != (c.size >= 0) {
			t.Errorf("%s: got %q, %v", c.name, path, err)
			continue
		}
		if path != "" {
			if st, err := os.Stat(path); err != nil || st.Size() != c.size || st.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v, want %d bytes", c.name, st, err, c.size)
			}
			os.Remove(path)
		}
		if files, err := os.ReadDir(folder); len(files) != 1 || err != nil {
			t.Errorf("%s: %d files are left, %v", c.name, len(files)-1, err)
		}
	}
}

// A spool file that could not be written in full is an error, and is removed. The test is not parallel: the limit holds for
// the process.
func TestSpoolWriteFails(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	small := limit
	small.Cur = spoolAfter / 2
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
	for _, writes := range []int{1, 2} {
		s := spool{folder: t.TempDir()}
		for range writes {
			s.Write(make([]byte, spoolAfter))
		}
		path, err := s.finish(true)
		files, readErr := os.ReadDir(s.folder)
		if readErr != nil {
			t.Fatal(readErr)
		}
		if path != "" || !errors.Is(err, syscall.EFBIG) || len(files) > 0 {
			t.Errorf("%d writes: got %q, %v, %d files; want an error", writes, path, err, len(files))
		}
	}
}
