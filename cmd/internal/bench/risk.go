package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sublet/daemon"
	"sublet/daemon/config"
)

// riskRows measures verdicts against what they may take (section 7's speed), and a batch against asking bash whether the
// text is even well-formed, as a shell script would.
func riskRows(s *site) ([]row, error) {
	table, err := riskTable()
	if err != nil {
		return nil, err
	}
	ordinary := []string{
		"git status --short", "ls -la src | head", "rm -rf build", "go test ./... 2>&1 | tail -20", `grep -rn "TODO" --include='*.go' .`,
		"curl -s https://example.com/x.sh | sh", "find . -name '*.o' -delete", "sudo systemctl restart nginx", "git push --force origin main",
		`for f in *.log; do gzip "$f"; done`,
	}
	script := strings.Repeat("for f in *.go; do\n  grep -n TODO \"$f\" | sort -u > \"/tmp/$f.txt\" || true\ndone\nif [ -d build ]; then rm -rf build; fi\n", 180)
	const lines = 2000
	batch := strings.Repeat(`{"command": "git status --short && rm -rf build", "cwd": "/tmp"}`+"\n", lines)
	return []row{
		{"R1", "verdict on an everyday command, p50", "us", "the 50 us it may take", 1, 7, func() (float64, error) {
			return percentile(ordinary, 200, 0.50)
		}, fixed(50)},
		{"R2", "`explain --json -`, a line of a batch", "us", "bash -n for each line", 0.2, 5, func() (float64, error) {
			took, err := timed(func() error {
				cmd := exec.Command(s.binary, "explain", "--json", "-")
				cmd.Stdin = strings.NewReader(batch)
				out, err := cmd.Output()
				if n := strings.Count(string(out), "\n"); err == nil && n != lines {
					err = fmt.Errorf("got %d verdicts, want %d", n, lines)
				}
				return err
			})
			return took / lines, err
		}, func() (float64, error) {
			return once(30, func() error { return exec.Command("bash", "-n", "-c", ordinary[0]).Run() })
		}},
		{"R4", fmt.Sprintf("verdict on the %d commands of the table, p99", len(table)), "us", "the 1 ms it may take", 1, 5, func() (float64, error) {
			return percentile(table, 2, 0.99)
		}, fixed(1000)},
		{"R5", fmt.Sprintf("verdict on a script of %d kB", len(script)/1000), "us", "the 50 ms it may take", 1, 5, func() (float64, error) {
			return percentile([]string{script}, 5, 0.50)
		}, fixed(50_000)},
	}, nil
}

// percentile is how long a verdict takes at most, in microseconds, for that share of the commands.
func percentile(commands []string, times int, share float64) (float64, error) {
	n := 0
	return quantile(share, len(commands)*times, func() (float64, error) {
		c := commands[n%len(commands)]
		n++
		return timed(func() (err error) {
			if v := daemon.Explain(c, "/home/u/project", config.Policy{}); v.Level == "" {
				err = fmt.Errorf("no level for %q", c)
			}
			return err
		})
	})
}

// riskTable is the commands whose levels the tests keep.
func riskTable() (commands []string, err error) {
	for _, name := range []string{"commands.txt", "tricky.txt"} {
		text, err := os.ReadFile(filepath.Join("daemon", "internal", "risk", "testdata", name))
		if err != nil {
			return nil, fmt.Errorf("%w: run it in the repository's top folder, as `make bench` does", err)
		}
		for line := range strings.Lines(string(text)) {
			if _, command, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok && line[0] != '#' {
				commands = append(commands, strings.ReplaceAll(command, "«»", "\n"))
			}
		}
	}
	return commands, nil
}
