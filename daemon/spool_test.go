package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// Outputs that were cut used to be kept for ever: up to 64 MiB each, on the disk that the sessions are on.
func TestSweepSpool(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name string
		age  map[string]time.Duration // of files of 10 bytes
		most int64
		want []string // that stay
	}{
		{"too old", map[string]time.Duration{"output-1.raw": spoolAge + time.Hour, "output-2.raw": spoolAge - time.Hour}, 100, []string{"output-2.raw"}},
		{
			"too much: the oldest go",
			map[string]time.Duration{"output-1.raw": 5 * time.Hour, "output-2.raw": 9 * time.Hour, "output-3.raw": 2 * time.Hour},
			20,
			[]string{"output-1.raw", "output-3.raw"},
		},
		{
			"too much, but all may still be written",
			map[string]time.Duration{"output-1.raw": time.Minute, "output-2.raw": 2 * time.Minute},
			5,
			[]string{"output-1.raw", "output-2.raw"},
		},
		{"not ours", map[string]time.Duration{"notes.txt": 10 * spoolAge, "output-1.txt": 10 * spoolAge}, 5, []string{"notes.txt", "output-1.txt"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "sp[o]ol")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			for name, age := range c.age {
				path := filepath.Join(dir, name)
				write(t, path, "0123456789")
				if err := os.Chtimes(path, time.Time{}, now.Add(-age)); err != nil {
					t.Fatal(err)
				}
			}
			removed, err := sweepSpool(dir, now, c.most)
			if err != nil || removed != len(c.age)-len(c.want) {
				t.Errorf("%d removed, %v", removed, err)
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, e := range entries {
				left = append(left, e.Name())
			}
			if !slices.Equal(left, c.want) {
				t.Errorf("left %v, want %v", left, c.want)
			}
		})
	}
}
