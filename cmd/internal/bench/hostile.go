package main

import (
	"math"

	"sublet/wire"
	"sublet/wire/wiretest"
)

// hostileRow times what the slowest of ten megabytes made to be slow costs the receiver.
func hostileRow() row {
	worst := wiretest.Worst(10 << 20)
	return row{
		id: "W9", name: "the slowest of 10 MiB made to be slow", unit: "ms", baseline: "the 50 ms it may take", goal: 1, rounds: 5,
		ours: func() (slowest float64, _ error) {
			for _, payload := range worst {
				slowest = max(slowest, walk(payload))
			}
			return slowest, nil
		},
		base: fixed(50),
	}
}

// walk is the processor time of decoding a payload, the least of three runs, in milliseconds: other work on the machine does
// not count. Some payloads are messages and some are errors; what counts is what either takes.
func walk(payload []byte) float64 {
	least := math.Inf(1)
	for range 3 {
		before := processorTime()
		_, _ = wire.Unmarshal(payload)
		least = min(least, processorTime()-before)
	}
	return least
}
