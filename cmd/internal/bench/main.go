// Command bench prints one table: what sublet takes, what a baseline measured in the same run takes, and their ratio
// against the goal. Ours and the baseline take turns, and the median of the rounds is told: absolute figures are this
// machine's, ratios carry over. It judges nothing and fails only where something could not be measured.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A row is one comparison. ours and base each measure once and return a figure in unit; lower is better.
type row struct {
	id, name string
	unit     string
	baseline string
	goal     float64 // ours / base at most
	rounds   int
	ours     func() (float64, error)
	base     func() (float64, error)
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run prints the rows whose id starts with one of the words given, or all.
func run(only []string) error {
	binary, err := filepath.Abs("bin/sublet")
	if err != nil {
		return err
	}
	if _, err := os.Stat(binary); err != nil {
		return fmt.Errorf("no bin/sublet: run `make bench`, which builds it")
	}
	groups := []struct {
		prefix string
		pinned bool
		make   func(binary string) (rows []row, stop func(), err error)
	}{
		{"W", true, wireRows}, {"L", true, leaseRows}, {"C", false, shellRows}, {"E", false, lendRows}, {"S", false, processRows}, {"M", false, crowdRows}, {"R", false, riskRows}, {"O", false, serveRows},
	}
	fmt.Printf("%-4s %-44s %14s %14s %8s %8s  %s\n", "", "", "ours", "baseline", "ratio", "goal", "baseline is")
	for _, g := range groups {
		if len(only) > 0 && !slices.ContainsFunc(only, func(o string) bool { return strings.HasPrefix(o, g.prefix) }) {
			continue
		}
		if err := group(binary, g.pinned, g.make); err != nil {
			return fmt.Errorf("%s: %w", g.prefix, err)
		}
	}
	return nil
}

func group(binary string, pinned bool, rows func(string) ([]row, func(), error)) (err error) {
	if pinned {
		unpin, err := pin()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, unpin()) }()
	}
	list, stop, err := rows(binary)
	if err != nil {
		return err
	}
	defer stop()
	for _, r := range list {
		if err := r.print(); err != nil {
			return fmt.Errorf("%s %s: %w", r.id, r.name, err)
		}
	}
	return nil
}

func (r row) print() error {
	var ours, base, ratios []float64
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
		ours, base, ratios = append(ours, a), append(base, b), append(ratios, a/b)
	}
	ratio := median(ratios)
	verdict := "reached"
	if ratio > r.goal {
		verdict = "missed"
	}
	fmt.Printf("%-4s %-44s %11.4g %-2s %11.4g %-2s %7.2fx %7.2fx  %s: %s\n",
		r.id, r.name, median(ours), r.unit, median(base), r.unit, ratio, r.goal, verdict, r.baseline)
	return nil
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// each times n calls and returns microseconds for one.
func each(n int, call func() error) (float64, error) {
	start := time.Now()
	for range n {
		if err := call(); err != nil {
			return 0, err
		}
	}
	return float64(time.Since(start).Nanoseconds()) / 1e3 / float64(n), nil
}

// once returns the median of n single calls, in microseconds: for what has a long tail.
func once(n int, call func() error) (float64, error) {
	list := make([]float64, n)
	for i := range list {
		start := time.Now()
		if err := call(); err != nil {
			return 0, err
		}
		list[i] = float64(time.Since(start).Nanoseconds()) / 1e3
	}
	return median(list), nil
}
