package shell

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
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
	// Never inside a character, at a line where one is near (T4d).
	h := newHeadTail(10, 10)
	h.Write([]byte(strings.Repeat("漢", 20)))
	if got, _ := h.result(); !strings.HasPrefix(string(got), "漢漢漢\n[... ") || strings.ContainsRune(string(got), '\ufffd') {
		t.Errorf("got %q", got)
	}
}

// 20 MB of output: bounded memory, head and tail, the rest in the spool (T2h, O4).
func TestMuchOutput(t *testing.T) { // not parallel: it measures the heap
	spool := filepath.Join(t.TempDir(), "spool")
	s := start(t, func(o *Options) { o.Spool = spool })
	var live, peak atomic.Int64
	var base runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&base)
	c := leased(`awk 'BEGIN { for (i = 1; i <= 250000; i++) printf "%079d\n", i }'`)
	c.Output = func(p []byte) {
		if live.Add(int64(len(p)))%(1<<20) < int64(len(p)) {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak.Store(max(peak.Load(), int64(m.HeapInuse)-int64(base.HeapInuse)))
		}
	}
	r := do(t, s, c)
	if want := int64(250000 * 81); live.Load() != want { // onlcr: CR LF
		t.Errorf("live: got %d bytes, want %d", live.Load(), want)
	}
	if peak.Load() > 8<<20 {
		t.Errorf("heap grew by %d KiB", peak.Load()>>10)
	}
	if len(r.Output) > 65<<10 || r.Truncated < 19<<20 {
		t.Errorf("got %d bytes, %d left out", len(r.Output), r.Truncated)
	}
	first, last := fmt.Sprintf("%079d\n", 1), fmt.Sprintf("%079d\n", 250000)
	if !bytes.HasPrefix(r.Output, []byte(first)) || !bytes.HasSuffix(r.Output, []byte(last)) {
		t.Errorf("got %q … %q", r.Output[:100], r.Output[len(r.Output)-100:])
	}
	st, err := os.Stat(r.SpoolPath)
	if err != nil || st.Size() != 250000*81 || st.Mode().Perm() != 0o600 {
		t.Errorf("spool: got %v, %v", st, err)
	}
	// Little output touches no disk.
	if r := do(t, s, leased("seq 1 1000")); r.SpoolPath != "" || r.Truncated != 0 {
		t.Errorf("got %q, %d", r.SpoolPath, r.Truncated)
	}
	// Much raw output that is little to read is not kept either.
	if r := do(t, s, leased(`for i in {1..20000}; do printf '\rprogress %d' $i; done; echo`)); r.SpoolPath != "" || string(r.Output) != "progress 20000\n" {
		t.Errorf("got %q, %q", r.SpoolPath, r.Output)
	}
	if ents, _ := os.ReadDir(spool); len(ents) != 1 {
		t.Errorf("spool folder holds %d files, want 1", len(ents))
	}
}

// The spool becomes a ring after 64 MiB and is put in order at its end.
func TestSpoolRing(t *testing.T) {
	t.Parallel()
	s := spool{folder: t.TempDir()}
	block := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16) // 1 MiB
	for i := range 70 {
		copy(block, fmt.Sprintf("block %6d", i))
		s.Write(block)
	}
	path, err := s.finish(true)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) < 64<<20 || len(raw) > 64<<20+100 {
		t.Errorf("got %d bytes", len(raw))
	}
	if !bytes.HasPrefix(raw, []byte("block      0")) || !bytes.Contains(raw, []byte(fmt.Sprintf("\n[... %d bytes not kept ...]\n", 6<<20))) {
		t.Error("head or seam missing")
	}
	at := 0
	for _, want := range []int{31, 38, 69} {
		i := bytes.Index(raw[at:], []byte(fmt.Sprintf("block %6d", want)))
		if i < 0 {
			t.Fatalf("block %d is missing or out of order", want)
		}
		at += i
	}
}

// A program that prints for ever is ended by its time, in flat memory (T2h).
func TestYes(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := leased("yes")
	c.Timeout = 300 * time.Millisecond
	r := do(t, s, c)
	if r.Status != "timeout" || exit(r) != 130 || r.Duration > 3*time.Second || len(r.Output) > 65<<10 {
		t.Errorf("got %s, exit %d, %v, %d bytes", r.Status, exit(r), r.Duration, len(r.Output))
	}
	if r := do(t, s, leased("echo on")); string(r.Output) != "on\n" {
		t.Errorf("got %q", r.Output)
	}
}

// The clock starts at execution (T2h, N7).
func TestTimeout(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	c := leased("sleep 100")
	c.Timeout = 50 * time.Millisecond
	r := do(t, s, c)
	if r.Status != "timeout" || r.Duration < 50*time.Millisecond || r.Duration > 2*time.Second {
		t.Errorf("got %s after %v", r.Status, r.Duration)
	}
	c.Text, c.Timeout = "sleep 0.1; echo done", 10*time.Second
	if r := do(t, s, c); r.Status != "ok" || string(r.Output) != "done\n" {
		t.Errorf("got %s %q", r.Status, r.Output)
	}
}
