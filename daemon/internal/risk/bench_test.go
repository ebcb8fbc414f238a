package risk

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkOrdinary is a command as agents write them; the goal is a p50 under 50 µs.
func BenchmarkOrdinary(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Analyze(`cd src && grep -rn "TODO" --include='*.go' . | head -20`, here())
	}
}

// BenchmarkSimple is the shortest that happens.
func BenchmarkSimple(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Analyze("git status --short", here())
	}
}

// BenchmarkTable goes through the whole table of commands and reports percentiles: p99 under 1 ms.
func BenchmarkTable(b *testing.B) {
	rows := commandTable(b)
	var took []time.Duration
	for b.Loop() {
		for _, r := range rows {
			start := time.Now()
			Analyze(r.command, here())
			took = append(took, time.Since(start))
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2])/1e3, "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100])/1e3, "p99-µs")
	b.ReportMetric(0, "ns/op")
}

// Benchmark20kB is a long script; the goal is 50 ms.
func Benchmark20kB(b *testing.B) {
	text := strings.Repeat("for f in *.go; do\n  grep -n TODO \"$f\" | sort -u > \"/tmp/$f.txt\" || true\ndone\nif [ -d build ]; then rm -rf build; fi\n", 160)
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Analyze(text, here())
	}
}

// BenchmarkMask is what tools print, in MB a second (100 and more where nothing else runs), and how many times longer a
// regular expression takes to look for two of the known keys: three to six times.
func BenchmarkMask(b *testing.B) {
	plain := regexp.MustCompile(`AKIA[0-9A-Z]{16}|ghp_[0-9A-Za-z]{36}`)
	for _, c := range []struct{ name, text string }{
		{"log", strings.Repeat("2026-11-20 12:00:00 INFO server: request /api/v1/users took 12ms status=200 bytes=1234\n", 12000)},
		{"build", strings.Repeat("ok  \tsublet/daemon/internal/risk\t2.513s\ngcc -O2 -Wall -Iinclude -DVERSION=\"1.2\" -c -o build/a.o src/a.c\n"+
			"src/a.c:12:5: warning: unused variable 'x' [-Wunused-variable]\nnpm http fetch GET 200 https://registry.npmjs.org/left-pad 61ms\n", 4000)},
		{"key in a long line", strings.Repeat("abc def{x:1,y=2};", 120_000) + " " + secretSamples["aws"] + " " + strings.Repeat("foo.bar-baz ", 160_000)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var masking, searching time.Duration
			for b.Loop() {
				start := time.Now()
				Mask(c.text)
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
