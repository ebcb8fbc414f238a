package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const (
	// programMost is how large the program may be, in bytes.
	programMost = 35 << 20
	// startMost and packageMost bound what package initialisation allocates, all together and in one package of ours. Bytes and not
	// time, which depends on the machine.
	startMost   = 900 << 10 // 110 KiB of it is the table of entities of x/net/html
	packageMost = 40 << 10
)

var initLine = regexp.MustCompile(`(?m)^init (\S+) .*, (\d+) bytes, \d+ allocs$`)

// Every command pays for the size of the program and for what packages do before main, whether it uses them or not.
func TestStart(t *testing.T) {
	program := filepath.Join(t.TempDir(), "sublet")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	file, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if len(file) > programMost {
		t.Errorf("the program has %d bytes, want at most %d", len(file), programMost)
	}
	// Where a method can be found by a name that is not constant, the linker keeps every exported method of every type that
	// meets an interface, 16 MB. text/template is what does that most.
	if bytes.Contains(file, []byte("reflect.Value.MethodByName")) {
		t.Error("the program finds methods by name; which package: go build -ldflags=-dumpdep, marked ReflectMethod")
	}

	version := exec.Command(program, "version")
	version.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var trace strings.Builder
	version.Stderr = &trace
	if err := version.Run(); err != nil {
		t.Fatal(err)
	}
	lines := initLine.FindAllStringSubmatch(trace.String(), -1)
	if len(lines) < 50 {
		t.Fatalf("%d packages have initialised, want more than 50: %s", len(lines), trace.String())
	}
	total := 0
	for _, l := range lines {
		n, err := strconv.Atoi(l[2])
		if err != nil {
			t.Fatal(err)
		}
		total += n
		if n > packageMost && strings.HasPrefix(l[1], "sublet/") {
			t.Errorf("%s allocates %d bytes before main, want at most %d", l[1], n, packageMost)
		}
	}
	if total > startMost {
		t.Errorf("packages allocate %d bytes before main, want at most %d", total, startMost)
	}
}
