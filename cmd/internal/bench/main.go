// Command bench prints one table: what sublet takes, what a baseline measured in the same run takes, and their ratio
// against the goal. Ours and the baseline take turns, and the median of the rounds is printed: absolute figures are this
// machine's, ratios carry over. Goals were set by hand: a row that misses one is marked, and bench fails only where something could
// not be measured.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"sublet/client"
	"sublet/wire"
	"sublet/wire/socket"
)

// A measure returns one figure, in microseconds if it is a time. What it cannot measure it reports with check.
type measure func() float64

// A row is one comparison; lower is better.
type row struct {
	id, name string
	unit     string  // with + before it, ours - base is compared with goal instead of ours / base
	goal     float64 // at most
	rounds   int
	ours     measure
	baseline string  // what base measures
	base     measure // nil = goal limits ours, without a baseline
}

// A group makes rows that share their setup.
type group struct {
	ids    string // what its rows' ids begin with, a letter each
	oneCPU bool   // this process runs on one CPU: a round trip between two takes five times as long on some runs
	rows   func(*site) []row
}

var groups = []group{
	{"W", true, wireRows},
	{"CD", false, shellRows},
	{"ET", false, windowRows},
	{"S", false, processRows},
	{"H", false, heldRows},
	{"J", false, jsonrpcRows},
	{"G", false, searchRows},
	{"Q", false, storedRows},
	{"B", false, jobRows},
	{"A", false, agentRows},
}

func main() {
	only := os.Args[1:] // ids, or what they begin with
	binary, err := filepath.Abs("bin/sublet")
	if err == nil {
		_, err = os.Stat(binary)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: run `make bench`, which builds the program:", err)
		os.Exit(1)
	}
	fmt.Printf("%-4s %-44s %14s %14s %8s %8s  %s\n", "", "", "ours", "baseline", "ratio", "goal", "baseline is")
	for _, g := range groups {
		if len(only) > 0 && !slices.ContainsFunc(only, func(id string) bool { return strings.Contains(g.ids, id[:min(1, len(id))]) }) {
			continue
		}
		if err := g.run(binary, only); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
	}
}

// run measures the rows of a group whose id begins with one of only, or all.
func (g group) run(binary string, only []string) (err error) {
	at := g.ids
	defer func() {
		switch f := recover().(type) {
		case nil:
		case failure:
			err = fmt.Errorf("%s: %w", at, f.error)
		default:
			panic(f)
		}
	}()
	if g.oneCPU {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	}
	dir := must(os.MkdirTemp("/tmp", "bench")) // short: a socket's path holds 104 bytes
	s := newSite(binary, dir)
	defer s.leave()
	for _, r := range g.rows(s) {
		if len(only) == 0 || slices.ContainsFunc(only, func(id string) bool { return strings.HasPrefix(r.id, id) }) {
			at = r.id
			r.print()
		}
	}
	return nil
}

// failure is what check panics with.
type failure struct{ error }

// check ends the run if err is not nil.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

// print measures the row, r.rounds times after a warm-up, and prints the medians and whether their ratio (or difference, for a unit
// with +) reaches the goal.
func (r row) print() {
	unit, difference := strings.CutPrefix(r.unit, "+")
	scale := 1.0 // of what is measured, for one unit
	if unit == "ms" {
		scale = 1e3
	}
	if r.base == nil {
		limit := r.goal * scale
		r.base, r.baseline, r.goal = func() float64 { return limit }, "the limit", 1
	}
	var ours, base, ratios []float64
	for round := range r.rounds + 1 {
		var a, b float64
		if round%2 == 0 {
			a, b = r.ours(), r.base()
		} else {
			b, a = r.base(), r.ours()
		}
		if round == 0 {
			continue // warm-up
		}
		ours, base = append(ours, a/scale), append(base, b/scale)
		if difference {
			ratios = append(ratios, (a-b)/scale)
		} else {
			ratios = append(ratios, a/b)
		}
	}
	format := "%7.2fx %7.2fx"
	if difference {
		format = "%+8.2f %+8.2f"
	}
	ratio, verdict := middle(ratios), "reached"
	if ratio > r.goal {
		verdict = "missed"
	}
	fmt.Printf("%-4s %-44s %11.4g %-2s %11.4g %-2s "+format+"  %s: %s\n",
		r.id, r.name, middle(ours), unit, middle(base), unit, ratio, r.goal, verdict, r.baseline)
}

func middle(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// since returns the microseconds since a time.
func since(begun time.Time) float64 { return float64(time.Since(begun).Nanoseconds()) / 1e3 }

// timed returns the microseconds that f takes.
func timed(f func()) float64 {
	begun := time.Now()
	f()
	return since(begun)
}

// quantile returns, of n measurements, the one that has the share q of them below it.
func quantile(q float64, n int, m measure) measure {
	return func() float64 {
		list := make([]float64, n)
		for i := range list {
			list[i] = m()
		}
		slices.Sort(list)
		return list[int(q*float64(n-1))]
	}
}

// median is for what has a long tail.
func median(n int, m measure) measure { return quantile(0.5, n, m) }

// runs returns the median time of n runs of a program with the environment env; nil = this one's.
func runs(n int, env []string, program string, args ...string) measure {
	return median(n, func() float64 { return timed(func() { call(env, program, args...) }) })
}

// call runs a program to its end.
func call(env []string, program string, args ...string) {
	cmd := exec.Command(program, args...)
	cmd.Env = env
	if out, err := cmd.CombinedOutput(); err != nil {
		check(fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, out))
	}
}

// processorTime returns the microseconds of processor time that this process has used.
func processorTime() float64 {
	var used syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e3
}

// A site is what the rows of a group share: the sublet that they measure, and a folder for its files and theirs.
type site struct {
	binary, dir string
	env         []string // of a sublet whose files are all in dir
	cleanups    []func() error
}

func newSite(binary, dir string) *site {
	return &site{binary: binary, dir: dir, env: []string{
		"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8", "SUBLET_RUNTIME_DIR=" + filepath.Join(dir, "run"),
		"SUBLET_STATE_DIR=" + filepath.Join(dir, "state"), "SUBLET_CONFIG=" + filepath.Join(dir, "config.toml"),
	}}
}

// cleanup has f called when the rows have been measured, the last such function first. Its error does not matter by then.
func (s *site) cleanup(f func() error) { s.cleanups = append(s.cleanups, f) }

// leave stops what the rows started, and removes their files.
func (s *site) leave() {
	for _, f := range slices.Backward(s.cleanups) {
		_ = f()
	}
	_ = os.RemoveAll(s.dir)
}

// sublet runs the sublet to be measured.
func (s *site) sublet(args ...string) { call(s.env, s.binary, args...) }

// stopDaemon stops a daemon that may run.
func (s *site) stopDaemon() error {
	cmd := exec.Command(s.binary, "daemon", "stop", "--drain", "0s")
	cmd.Env = s.env
	return cmd.Run()
}

type object = map[string]any

// scripted writes settings with a model that plays script, and no limit of requests. A daemon that runs at the end is stopped.
func (s *site) scripted(script ...object) {
	path := filepath.Join(s.dir, "script.json")
	check(os.WriteFile(path, must(json.Marshal(script)), 0o600))
	settings := fmt.Sprintf("model = \"test/m\"\n[provider.test]\nkind = \"scripted\"\nscript = %q\n[limits]\nrequests_per_second = 100000\n", path)
	check(os.WriteFile(filepath.Join(s.dir, "config.toml"), []byte(settings), 0o600))
	s.cleanup(s.stopDaemon)
}

// dial connects to the daemon, and starts it if none runs. handle receives what answers no request.
func (s *site) dial(handle func(wire.Message)) *client.Conn {
	getenv := func(name string) string {
		i := slices.IndexFunc(s.env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
		if i < 0 {
			return ""
		}
		return s.env[i][len(name)+1:]
	}
	paths := must(socket.FindPaths(getenv, os.Getuid()))
	return must(client.Dial(context.Background(), client.Options{Paths: paths, Executable: s.binary, Env: s.env, Cwd: s.dir, Handle: handle}))
}

// connect is dial for a connection that is closed at the end.
func (s *site) connect(handle func(wire.Message)) *client.Conn {
	c := s.dial(handle)
	s.cleanup(c.Close)
	return c
}

// turn runs a turn of the daemon to its end.
func turn(c *client.Conn, r wire.OfRequest, each func(wire.Message)) error {
	var fault error
	end, err := c.Turn(context.Background(), r, func(m wire.Message) {
		if e, ok := m.(*wire.Error); ok {
			fault = e
		}
		each(m)
	})
	if err == nil && end.Status != wire.StatusSuccess {
		err = fmt.Errorf("a turn ended with %s: %w", end.Status, fault)
	}
	return err
}
