package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// What is missing is said with what to do about it: the first thing that is.
func TestRemedy(t *testing.T) {
	for _, row := range []struct {
		abi                int
		mounts, restricted bool
		want               string
	}{
		{0, true, true, "no Landlock: it needs Linux 6.12"},
		{5, false, true, "version 5 of Landlock, and Linux 6.12"},
		{6, true, true, "--security-opt seccomp=unconfined"},
		{6, false, true, "sysctl kernel.apparmor_restrict_unprivileged_userns=0"},
		{7, false, false, "sysctl user.max_user_namespaces"},
	} {
		if got := remedy(row.abi, row.mounts, row.restricted); !strings.Contains(got, row.want) {
			t.Errorf("%+v: got %q", row, got)
		}
	}
}

// Where the kernel refuses to make the namespaces, the probe still says what to do about it.
func TestProbeWithoutNamespaces(t *testing.T) {
	path := launcher(t, user{"user", os.Getuid(), os.Getgid()})
	cmd := exec.Command("sh", "-c", `echo 0 >/proc/sys/user/max_mnt_namespaces && exec "$0" --probe`, path)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "make namespaces: no space left on device: mounts in a namespace are not allowed") {
		t.Errorf("%v: %s", err, out)
	}
}
