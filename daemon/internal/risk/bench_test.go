package risk

import (
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
