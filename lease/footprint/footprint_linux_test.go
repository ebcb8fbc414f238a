package footprint

import (
	"os"
	"testing"

	"sublet/wire/citest"

	"golang.org/x/sys/unix"
)

// What an idle daemon gives back is no longer resident, and the program goes on.
func TestReleaseText(t *testing.T) {
	list, err := programMappings()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list { // all of it is there
		if err := m.advise(unix.MADV_POPULATE_READ); err != nil {
			citest.Skip(t, "this kernel cannot read a whole mapping in:", err)
		}
	}
	before := resident(t, list)
	if err := releaseText(); err != nil {
		t.Fatal(err)
	}
	after := resident(t, list) // what the measuring itself needs is there again
	if before < 1<<20 || after > before*3/4 {
		t.Errorf("the program's own pages: %d bytes before, %d after", before, after)
	}
}

// resident is how many bytes of the mappings this process has mapped.
func resident(t *testing.T, list []mapping) int {
	t.Helper()
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum, page := 0, os.Getpagesize()
	for _, m := range list {
		entries := make([]byte, 8*int(m.to-m.from)/page)
		if _, err := f.ReadAt(entries, 8*int64(m.from)/int64(page)); err != nil {
			t.Fatal(err)
		}
		for i := 7; i < len(entries); i += 8 {
			if entries[i]&0x80 != 0 { // present: proc_pid_pagemap(5)
				sum += page
			}
		}
	}
	return sum
}
