// Command bench prints one table: what sublet takes, what a baseline measured in the same run takes, and their ratio
// against the goal. Ours and the baseline take turns, and the median of the rounds is printed: absolute figures are this
// machine's, ratios carry over. Goals were set by hand: a row that misses one is marked, and bench fails only where something could
// not be measured.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sublet/wire/socket"
)

// A row is one comparison. ours and base each measure once and return a figure in unit; lower is better.
type row struct {
	id, name string
	unit     string
	baseline string
	goal     float64 // what ours / base is to be at most; where unit begins with +, ours - base
	rounds   int
	ours     func() (float64, error)
	base     func() (float64, error)
}

// A group makes rows that share their setup. binary is the path of the sublet to measure.
type group struct {
	ids    string // what its rows' ids begin with, a letter each
	pinned bool
	other  bool // its rows measure what the binary does, so that two of them can be compared
	rows   func(*site) ([]row, error)
}

// A site is what the rows of a group share: the sublet that they measure, and a folder for its files and theirs.
type site struct {
	binary, dir string
	env         []string // of a sublet whose files are all in dir
	cleanups    []func() error
}

// cleanup has f called when the rows have been measured, the last such function first.
func (s *site) cleanup(f func() error) { s.cleanups = append(s.cleanups, f) }

// sublet runs the sublet to be measured.
func (s *site) sublet(args ...string) error { return call(s.env, s.binary, args...) }

// at sets a group up. leave must be called.
func (g group) at(binary string) (rows []row, leave func(), err error) {
	dir, err := os.MkdirTemp("/tmp", "bench") // short: a socket's path holds 104 bytes
	if err != nil {
		return nil, func() {}, err
	}
	s := &site{binary: binary, dir: dir, env: sandbox(dir)}
	rows, err = g.rows(s)
	return rows, func() { // its errors do not matter: measured already
		for _, f := range slices.Backward(s.cleanups) {
			_ = f()
		}
		_ = os.RemoveAll(dir)
	}, err
}

var groups = []group{
	{"W", true, false, wireRows},
	{"L", true, false, leaseRows},
	{"CDO", false, false, shellRows},
	{"ET", false, true, lendRows},
	{"S", false, true, processRows},
	{"M", false, true, crowdRows},
	{"R", false, false, riskRows},
	{"H", false, true, heldRows},
	{"J", false, true, serveRows},
	{"G", false, true, searchRows},
	{"Q", false, true, storedRows},
	{"B", false, true, jobRows},
}

func main() {
	old := flag.String("old", "", "compare with this other sublet, instead of the baselines (only rows of the program itself)")
	through := flag.String("through", "", "be the barest pass-through around this shell, as a baseline")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: bench [-old SUBLET] [ID…]\nRows whose id begins with one of the IDs; all without.")
		flag.PrintDefaults()
	}
	flag.Parse()
	if *through != "" {
		if err := passThrough(*through); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(*old, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run prints the rows whose id begins with one of the words given, or all.
func run(old string, only []string) error {
	binary, err := filepath.Abs("bin/sublet")
	if err != nil {
		return err
	}
	if _, err := os.Stat(binary); err != nil {
		return fmt.Errorf("no bin/sublet: run `make bench`, which builds it")
	}
	wanted := func(id string) bool {
		return len(only) == 0 || slices.ContainsFunc(only, func(o string) bool { return strings.HasPrefix(id, o) })
	}
	fmt.Printf("%-4s %-44s %14s %14s %8s %8s  %s\n", "", "", "ours", "baseline", "ratio", "goal", "baseline is")
	for _, g := range groups {
		named := slices.ContainsFunc(only, func(o string) bool { return o != "" && strings.Contains(g.ids, o[:1]) })
		if len(only) > 0 && !named || old != "" && !g.other {
			continue
		}
		if err := g.run(binary, old, wanted); err != nil {
			return fmt.Errorf("%s: %w", g.ids, err)
		}
	}
	return nil
}

func (g group) run(binary, old string, wanted func(id string) bool) (err error) {
	if g.pinned {
		unpin, err := pin()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, unpin()) }()
	}
	list, leave, err := g.at(binary)
	defer leave()
	if err != nil {
		return err
	}
	var others []row
	if old != "" {
		others, leave, err = g.at(old)
		defer leave()
		if err != nil {
			return fmt.Errorf("%s: %w", old, err)
		}
	}
	for i, r := range list {
		if !wanted(r.id) {
			continue
		}
		if old != "" {
			r.base, r.baseline, r.goal = others[i].ours, old, 1
		}
		if err := r.print(); err != nil {
			return fmt.Errorf("%s %s: %w", r.id, r.name, err)
		}
	}
	return nil
}

func (r row) print() error {
	var ours, base, ratios []float64
	unit, difference := strings.CutPrefix(r.unit, "+")
	format := "%7.2fx %7.2fx"
	if difference {
		format = "%+8.2f %+8.2f"
	}
	for round := range r.rounds + 1 {
		first, second := r.ours, r.base
		if round%2 == 1 {
			first, second = second, first
		}
		a, err := first()
		if err != nil {
			return err
		}
		b, err := second()
		if err != nil {
			return err
		}
		if round%2 == 1 {
			a, b = b, a
		}
		if round == 0 {
			continue // warm-up
		}
		ours, base = append(ours, a), append(base, b)
		if difference {
			a, b = a-b, 1
		}
		ratios = append(ratios, a/b)
	}
	ratio, verdict := median(ratios), "reached"
	if ratio > r.goal {
		verdict = "missed"
	}
	fmt.Printf("%-4s %-44s %11.4g %-2s %11.4g %-2s "+format+"  %s: %s\n",
		r.id, r.name, median(ours), unit, median(base), unit, ratio, r.goal, verdict, r.baseline)
	return nil
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// timed returns how many microseconds a call takes.
func timed(call func() error) (float64, error) {
	start := time.Now()
	err := call()
	return float64(time.Since(start).Nanoseconds()) / 1e3, err
}

// sandbox is the environment of a sublet whose files are all in dir.
func sandbox(dir string) []string {
	return []string{
		"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8", "SUBLET_RUNTIME_DIR=" + filepath.Join(dir, "run"),
		"SUBLET_STATE_DIR=" + filepath.Join(dir, "state"), "SUBLET_CONFIG=" + filepath.Join(dir, "config.toml"),
	}
}

// pathsIn are the folders of a sublet with the environment env.
func pathsIn(env []string) (socket.Paths, error) {
	return socket.FindPaths(func(name string) string {
		for _, kv := range env {
			if value, ok := strings.CutPrefix(kv, name+"="); ok {
				return value
			}
		}
		return ""
	}, os.Getuid())
}

// scripted has the sublet whose files are in dir use a model that plays script.
func scripted(dir string, script []map[string]any) error {
	raw, err := json.Marshal(script)
	path := filepath.Join(dir, "script.json")
	settings := fmt.Sprintf("model = \"test/m\"\n[provider.test]\nkind = \"scripted\"\nscript = %q\n", path)
	return errors.Join(err, os.WriteFile(path, raw, 0o600), os.WriteFile(filepath.Join(dir, "config.toml"), []byte(settings), 0o600))
}

// call runs a program to its end.
func call(env []string, program string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.Env = env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, out)
	}
	return nil
}

// fixed is a limit in place of a baseline.
func fixed(limit float64) func() (float64, error) {
	return func() (float64, error) { return limit, nil }
}

// once returns the median of n single calls, in microseconds: for what has a long tail.
func once(n int, call func() error) (float64, error) {
	return quantile(0.5, n, func() (float64, error) { return timed(call) })
}

// quantile returns the one of n measurements that has the share q of them below it; 0.5 is the median.
func quantile(q float64, n int, measure func() (float64, error)) (float64, error) {
	list := make([]float64, n)
	for i := range list {
		var err error
		if list[i], err = measure(); err != nil {
			return 0, err
		}
	}
	slices.Sort(list)
	return list[int(q*float64(n-1))], nil
}
