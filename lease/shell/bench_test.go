package shell

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Benchmarks report ratios to a baseline measured in the same run, the two taken in turn (perf-limits.md).

// p50 of what f takes, in microseconds.
func p50(n int, f func()) float64 {
	took := make([]time.Duration, n)
	for i := range took {
		start := time.Now()
		f()
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return float64(took[n/2]) / float64(time.Microsecond)
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// rawMarker is a bash on a terminal whose end is told by a marker typed on the command's own line: the fastest wrong way.
type rawMarker struct {
	master *os.File
	r      *bufio.Reader
	cmd    *exec.Cmd
}

func newRawMarker(b *testing.B) *rawMarker {
	master, slave, err := openTerminal(Size{}, nil, false)
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command("bash", "--noediting", "--norc", "-i")
	cmd.Env = append(testEnv(b), "PS1=")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	slave.Close()
	m := &rawMarker{master: master, r: bufio.NewReaderSize(master, 64<<10), cmd: cmd}
	b.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		master.Close()
		_ = cmd.Wait()
	})
	m.run("PS1=")
	return m
}

func (m *rawMarker) run(text string) {
	fmt.Fprintf(m.master, "%s; printf '<%%s %%s>\\n' $? \"$PWD\"\n", text)
	for {
		line, err := m.r.ReadSlice('\n')
		if err != nil || bytes.HasPrefix(line, []byte("<")) {
			return
		}
	}
}

// BenchmarkTrue is C1: a leased and a user's `true`, exit code and directory known, against bash -c and the marker.
func BenchmarkTrue(b *testing.B) {
	s := start(b, nil)
	raw := newRawMarker(b)
	var leasedUS, userUS, rawUS, bashUS []float64
	for b.Loop() {
		leasedUS = append(leasedUS, p50(100, func() { do(b, s, leased("true")) }))
		rawUS = append(rawUS, p50(100, func() { raw.run("true") }))
		bashUS = append(bashUS, p50(20, func() { _ = exec.Command("bash", "-c", "true").Run() }))
		userUS = append(userUS, p50(100, func() { do(b, s, user("true")) }))
	}
	l, u, r, c := median(leasedUS), median(userUS), median(rawUS), median(bashUS)
	b.ReportMetric(l, "leased-p50-us")
	b.ReportMetric(u, "user-p50-us")
	b.ReportMetric(r, "marker-p50-us")
	b.ReportMetric(c/l, "x-faster-than-bash-c")
	b.ReportMetric(l/r, "x-marker")
}

// BenchmarkResult is the latency of the result alone, with the shell idle before: what a lease adds to a command.
func BenchmarkResult(b *testing.B) {
	s := start(b, nil)
	for _, text := range []string{"true", "cd /usr", "set -e; true"} {
		b.Run(text, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				if _, err := s.State(b.Context()); err != nil {
					b.Fatal(err)
				}
				start := time.Now()
				do(b, s, leased(text))
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2])/1e3, "p50-us")
		})
	}
}

// BenchmarkBinTrue is C3: a program, against a bare fork and exec.
func BenchmarkBinTrue(b *testing.B) {
	s := start(b, nil)
	var ours, bare []float64
	for b.Loop() {
		ours = append(ours, p50(20, func() { do(b, s, leased("/bin/true")) }))
		bare = append(bare, p50(20, func() { _ = exec.Command("/bin/true").Run() }))
	}
	b.ReportMetric(median(ours), "p50-us")
	b.ReportMetric(median(ours)/median(bare), "x-fork-exec")
}

// BenchmarkCancel is C5: from the cancel of `sleep 100` to its end told; with the probe that follows, to the result.
func BenchmarkCancel(b *testing.B) {
	s := start(b, nil)
	var took []float64
	for b.Loop() {
		took = append(took, cancelOnce(b, s))
	}
	b.ReportMetric(median(took), "p50-us")
}

// BenchmarkOutput is O1 and O3: output through the terminal, rendered, head and tail kept, against a bare reader.
func BenchmarkOutput(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"x20MB", "head -c 20000000 /dev/zero | tr '\\0' x"},
		{"seq", "seq 1 500000"},
		{"paths", `awk 'BEGIN { for (i = 0; i < 100000; i++) printf "%079d\n", i }'`},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := start(b, nil)
			private := start(b, func(o *Options) { o.Private = true })
			var ours, quiet, bare []float64
			for b.Loop() {
				ours = append(ours, seconds(func() { do(b, s, leased(c.text)) }))
				bare = append(bare, seconds(func() { bareRead(b, c.text) }))
				quiet = append(quiet, seconds(func() { do(b, private, leased(c.text)) }))
			}
			b.ReportMetric(median(ours)/median(bare), "x-bare-reader")
			b.ReportMetric(median(bare)/median(quiet), "x-private-faster")
		})
	}
}

func seconds(f func()) float64 {
	start := time.Now()
	f()
	return time.Since(start).Seconds()
}

// bareRead reads a command's terminal and throws it away.
func bareRead(b *testing.B, text string) {
	master, slave, err := openTerminal(Size{}, nil, false)
	if err != nil {
		b.Fatal(err)
	}
	defer master.Close()
	cmd := exec.Command("bash", "-c", text)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	slave.Close()
	buf := make([]byte, 16<<10)
	for {
		if _, err := master.Read(buf); err != nil {
			break
		}
	}
	_ = cmd.Wait()
}

func BenchmarkRender(b *testing.B) {
	for _, c := range []struct{ name, unit string }{
		{"plain", strings.Repeat("x", 79) + "\r\n"},
		{"short", "y\r\n"},
		{"colour", "\x1b[32mgreen\x1b[0m and \x1b[1;31mred\x1b[0m text in a line of output\r\n"},
		{"wide", strings.Repeat("漢", 39) + "\r\n"},
		{"progress", "\rprogress 50% [=====     ]"},
	} {
		b.Run(c.name, func(b *testing.B) {
			data := bytes.Repeat([]byte(c.unit), 1<<20/len(c.unit))
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				s := newScreen(80, func([]byte) {})
				s.Write(data)
				s.Flush()
			}
		})
	}
}

func BenchmarkAnalyze(b *testing.B) {
	for b.Loop() {
		analyze("git status --short && go test ./... 2>&1 | tail -20", false, nil)
	}
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		s, err := Start(b.Context(), Options{Path: "/bin/bash", RC: NoRC, Folder: b.TempDir(), Env: testEnv(b)})
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}
