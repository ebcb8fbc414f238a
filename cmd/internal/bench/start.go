package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const helloSource = "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello\") }\n"

// startRows times a command that does nothing; its baseline is built in dir.
func startRows(binary, dir string) ([]row, error) {
	source, hello := filepath.Join(dir, "hello.go"), filepath.Join(dir, "hello")
	if err := os.WriteFile(source, []byte(helloSource), 0o600); err != nil {
		return nil, err
	}
	if out, err := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", hello, source).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build hello world: %w: %s", err, out)
	}
	many := func(program string, args ...string) func() (float64, error) {
		return func() (float64, error) {
			return once(15, func() error { return exec.Command(program, args...).Run() })
		}
	}
	return []row{
		{"S5", "`version`", "us", "hello world in Go", 4, 7, many(binary, "version"), many(hello)},
		{"S6", "the program's size", "MB", "the 35 MB it may have", 1, 1, func() (float64, error) {
			info, err := os.Stat(binary)
			if err != nil {
				return 0, err
			}
			return float64(info.Size()) / (1 << 20), nil
		}, fixed(35)},
	}, nil
}
