// Package transparent drives a shell twice with the same keys, once by itself and once inside the real program, and
// compares what a person would see: the screen after each step, the files that commands wrote, the history file.
package transparent

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

var (
	sublet string   // the program under test, built once, with the race detector when the tests have it
	common string   // its folders: one daemon serves every window of a test run
	shared []string // the variables that name them
	sshd   bool     // a server of ssh can be run
)

func TestMain(m *testing.M) {
	if shell := os.Getenv("TRANSPARENT_PROXY"); shell != "" {
		os.Exit(proxy(shell))
	}
	flag.Parse()
	// A row mostly waits for a shell, so more of them fit beside each other than there are processors.
	if !isSet("test.parallel") {
		if err := flag.Set("test.parallel", "4"); err != nil {
			panic(err)
		}
	}
	code, err := run(m)
	if code == 0 && err == nil {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func isSet(name string) (set bool) {
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

func run(m *testing.M) (code int, err error) {
	if common, err = os.MkdirTemp("/tmp", "tr"); err != nil { // short: a socket's path holds 104 bytes
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(common)) }()
	config := filepath.Join(common, "config.toml")
	if err := os.WriteFile(config, []byte("model = \"offline\"\n"), 0o600); err != nil {
		return 1, err
	}
	shared = []string{
		"SUBLET_RUNTIME_DIR=" + filepath.Join(common, "run"), "SUBLET_STATE_DIR=" + filepath.Join(common, "state"), "SUBLET_CONFIG=" + config,
		// A race found in the program under test must fail the test: it ends that program, and is in its log.
		"GORACE=halt_on_error=1 atexit_sleep_ms=0 log_path=" + filepath.Join(common, "race"),
	}
	if zsh, err := exec.LookPath("zsh"); err == nil {
		// What compinit finds is the same for every row, and takes it a second.
		found := filepath.Join(common, "completions")
		shared = append(shared, "COMPLETIONS="+found)
		if out, err := exec.Command(zsh, "-fc", "autoload -U compinit; compinit -u -d "+found).CombinedOutput(); err != nil {
			return 1, fmt.Errorf("compinit: %w: %s", err, out)
		}
	}
	if sshd, err = prepareSSH(filepath.Join(common, "ssh")); err != nil {
		return 1, err
	}
	if under() != "sublet" {
		return m.Run(), nil
	}
	sublet = filepath.Join(common, "sublet")
	args := []string{"build", "-o", sublet}
	if raceEnabled {
		args = append(args, "-race")
	}
	build := exec.Command("go", append(args, "sublet/cmd/sublet")...)
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return 1, fmt.Errorf("build the program under test: %w", err)
	}
	daemon := func(word string) error {
		cmd := exec.Command(sublet, "daemon", word)
		cmd.Env, cmd.Dir = append(os.Environ(), shared...), common
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("daemon %s: %w: %s", word, err, out)
		}
		return nil
	}
	if err := daemon("start"); err != nil {
		return 1, err
	}
	code = m.Run()
	err = daemon("stop")
	races, _ := filepath.Glob(filepath.Join(common, "race.*")) // the pattern is constant: no error
	for _, r := range races {
		raw, readErr := os.ReadFile(r)
		err = errors.Join(err, readErr, fmt.Errorf("data race:\n%s", raw))
	}
	return code, err
}

// prepareSSH makes keys in dir for a server of ssh that a client starts by itself, and reports whether there can be one: run by
// root it needs what only its package sets up.
func prepareSSH(dir string) (bool, error) {
	const server = "/usr/sbin/sshd"
	key := filepath.Join(dir, "key")
	for _, program := range []string{server, "ssh", "ssh-keygen"} {
		if _, err := exec.LookPath(program); err != nil {
			return false, nil
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return false, err
	}
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		return false, fmt.Errorf("ssh-keygen: %w: %s", err, out)
	}
	serve := []string{server, "-f", "/dev/null", "-h", key}
	if out, err := exec.Command(serve[0], append(serve[1:], "-t")...).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "without the rows of ssh: %s", out)
		return false, nil
	}
	config := strings.Join([]string{
		"Host inside", "ProxyCommand " + strings.Join(serve, " ") + " -i -o StrictModes=no -o AuthorizedKeysFile=" + key + ".pub",
		"IdentityFile " + key, "StrictHostKeyChecking no", "UserKnownHostsFile /dev/null", "LogLevel ERROR", "",
	}, "\n\t")
	shared = append(shared, "SSH_CONFIG="+filepath.Join(dir, "config"))
	return true, os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600)
}

// under returns what is compared with the shell: sublet, or, to test the tests, bare (the shell again), proxy, or a program's
// path.
func under() string {
	if name := os.Getenv("TRANSPARENT_UNDER"); name != "" {
		return name
	}
	return "sublet"
}

// dropped returns how many bytes the proxy passes on before it drops one; -1 = it drops none.
func dropped() int {
	n, err := strconv.Atoi(os.Getenv("TRANSPARENT_DROP"))
	if err != nil {
		return -1
	}
	return n
}
