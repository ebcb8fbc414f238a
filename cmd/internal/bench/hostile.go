package main

import (
	"bytes"
	"maps"
	"math"
	"slices"

	"github.com/vmihailenco/msgpack/v5"

	"sublet/wire"
	"sublet/wire/wiretest"
)

// hostileRows time what ten megabytes made to be slow cost the receiver: each of them against a bound, and all of them
// against a library that only walks them.
func hostileRows() []row {
	worst := wiretest.Worst(10 << 20)
	delete(worst, "lists in lists") // the library overflows its stack
	names := slices.Sorted(maps.Keys(worst))
	return []row{{
		id: "W9", name: "the slowest of 10 MiB made to be slow", unit: "ms", baseline: "the 50 ms it may take", goal: 1, rounds: 5,
		ours: func() (float64, error) {
			var slowest float64
			for _, name := range names {
				slowest = max(slowest, walk(worst[name], refuse))
			}
			return slowest, nil
		},
		base: fixed(50),
	}, {
		id: "W9s", name: "all of them, together", unit: "ms", baseline: "msgpack/v5 skipping the same bytes", goal: 1, rounds: 5,
		ours: func() (float64, error) { return all(worst, names, refuse), nil },
		base: func() (float64, error) { return all(worst, names, skip), nil },
	}}
}

func all(worst map[string][]byte, names []string, f func([]byte)) (total float64) {
	for _, name := range names {
		total += walk(worst[name], f)
	}
	return total
}

// walk is the processor time of f and of the collector after it, the least of three runs, in milliseconds: other work on
// the machine does not count.
func walk(payload []byte, f func([]byte)) float64 {
	least := math.Inf(1)
	for range 3 {
		before := processorTime()
		f(payload)
		least = min(least, processorTime()-before)
	}
	return least
}

// Some are messages and some are errors; what counts is what either takes.
func refuse(payload []byte) { _, _ = wire.Unmarshal(payload) }

func skip(payload []byte) { _ = msgpack.NewDecoder(bytes.NewReader(payload)).Skip() }
