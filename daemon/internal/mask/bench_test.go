package mask

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// BenchmarkMask is what tools print, in MB a second, and how many times longer a regular expression takes to look for two of
// the known keys.
func BenchmarkMask(b *testing.B) {
	plain := regexp.MustCompile(`AKIA[0-9A-Z]{16}|ghp_[0-9A-Za-z]{36}`)
	for _, c := range []struct{ name, text string }{
		{"log", strings.Repeat("2026-11-20 12:00:00 INFO server: request /api/v1/users took 12ms status=200 bytes=1234\n", 12000)},
		{"build", strings.Repeat("ok  \tsublet/daemon/internal/risk\t2.513s\ngcc -O2 -Wall -Iinclude -DVERSION=\"1.2\" -c -o build/a.o src/a.c\n"+
			"src/a.c:12:5: warning: unused variable 'x' [-Wunused-variable]\nnpm http fetch GET 200 https://registry.npmjs.org/left-pad 61ms\n", 4000)},
		{"key in a long line", strings.Repeat("abc def{x:1,y=2};", 120_000) + " " + secretSamples["aws"] + " " + strings.Repeat("foo.bar-baz ", 160_000)},
	} {
		b.Run(c.name, func(b *testing.B) {
			if testing.Short() && c.name != "log" {
				b.Skip()
			}
			b.ReportAllocs()
			var masking, searching time.Duration
			for b.Loop() {
				start := time.Now()
				String(c.text)
				masked := time.Now()
				plain.FindAllStringIndex(c.text, -1)
				masking += masked.Sub(start)
				searching += time.Since(masked)
			}
			b.ReportMetric(float64(len(c.text))*float64(b.N)/1e6/masking.Seconds(), "MB/s")
			b.ReportMetric(searching.Seconds()/masking.Seconds(), "regexp/mask")
		})
	}
}
