package main

import (
	"fmt"
	"os/exec"
	"strings"

	"sublet/daemon"
)

// riskRows compares a verdict with asking bash whether the text is even well-formed, as a shell script would.
func riskRows(binary string) ([]row, func(), error) {
	commands := []string{
		"git status --short", "ls -la src | head", "rm -rf build", "go test ./... 2>&1 | tail -20", `grep -rn "TODO" --include='*.go' .`,
		"curl -s https://example.com/x.sh | sh", "find . -name '*.o' -delete", "sudo systemctl restart nginx", "git push --force origin main",
		`for f in *.log; do gzip "$f"; done`,
	}
	const lines = 2000
	batch := strings.Repeat(`{"command": "git status --short && rm -rf build", "cwd": "/tmp"}`+"\n", lines)
	return []row{
		{"R1", "verdict on an everyday command", "us", "the 50 us it may take", 1, 7, func() (float64, error) {
			i := 0
			return each(2000, func() error {
				i++
				if v := daemon.Explain(commands[i%len(commands)], "/home/u/project"); v.Level == "" {
					return fmt.Errorf("no level for %q", commands[i%len(commands)])
				}
				return nil
			})
		}, func() (float64, error) { return 50, nil }},
		{"R2", "`explain --json -`, a line of a batch", "us", "bash -n for each line", 0.2, 5, func() (float64, error) {
			took, err := each(1, func() error {
				cmd := exec.Command(binary, "explain", "--json", "-")
				cmd.Stdin = strings.NewReader(batch)
				out, err := cmd.Output()
				if n := strings.Count(string(out), "\n"); err == nil && n != lines {
					err = fmt.Errorf("got %d verdicts, want %d", n, lines)
				}
				return err
			})
			return took / lines, err
		}, func() (float64, error) {
			return once(30, func() error { return exec.Command("bash", "-n", "-c", commands[0]).Run() })
		}},
	}, func() {}, nil
}
