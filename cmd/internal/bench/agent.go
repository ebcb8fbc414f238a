package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
)

// tokensBefore is what the tasks of TestTasks cost, all but one, on 82a0fc29, the program of which the goal is a share.
const tokensBefore = 680_904

// agentRows measure what agents' work costs and what a compaction keeps, by the tests that hold both.
func agentRows(*site) []row {
	tasks, sessions := attributes("./cmd/internal/e2e", "TestTasks"), attributes("./daemon/internal/agent", "TestProbes|TestRequestsBeginAsTheOneBefore")
	share := func(id, name, attribute string, goal float64) row {
		return row{id, name, "%", goal, 1, func() float64 { return sessions(attribute) }, "", nil}
	}
	return []row{
		{"A1", "tokens of thirty tasks", "", 0.6, 1, func() float64 { return tasks("tokens") }, "all but one of them, on 82a0fc29", func() float64 { return tokensBefore }},
		share("A2", "not cached, of requests after the first turn", "uncached", 10),
		share("A3", "probes that the ledger alone has not", "forgotten", 5),
		share("A4", "probes that recall does not find either", "unrecalled", 1),
		share("A5", "the ledger, of the tokens it stands for", "ledger", 10),
	}
}

// attributes returns a function that returns what tests of a package reported by testing.T.Attr, and runs them when it is first called.
func attributes(pkg, tests string) func(name string) float64 {
	output := sync.OnceValues(exec.Command("go", "test", "-count=1", "-v", "-run", "^("+tests+")$", pkg).CombinedOutput)
	return func(name string) float64 {
		out, err := output()
		if err != nil {
			check(fmt.Errorf("%s: %w\n%s", pkg, err, out))
		}
		for line := range bytes.Lines(out) {
			attribute, ok := strings.CutPrefix(string(line), "=== ATTR  ")
			_, pair, _ := strings.Cut(attribute, " ")
			if value, found := strings.CutPrefix(pair, name+" "); ok && found {
				return must(strconv.ParseFloat(strings.TrimSpace(value), 64))
			}
		}
		check(fmt.Errorf("%s reported no %q", pkg, name))
		return 0
	}
}
