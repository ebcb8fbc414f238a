package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"sublet/lease/confine"
)

// probe confines a command to each reach, and prints the mechanisms. The error names what a person could change.
func probe() (int, error) {
	dir, err := os.MkdirTemp("", "sublet-probe")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if len(filterProgram) == 0 {
		return 0, fmt.Errorf("commands can be confined on amd64 and arm64 only, and this is %s", runtime.GOARCH)
	}
	spec := filepath.Join(dir, "spec")
	for _, s := range []confine.Spec{{Reach: confine.Read}, {Reach: confine.Project, Project: dir}} {
		if err := os.WriteFile(spec, s.Encode(), 0o600); err != nil {
			return 0, err
		}
		status, err := parent(spec, []string{"/proc/self/exe", argNothing})
		if err != nil {
			return 0, fmt.Errorf("%w: %s", err, remedy(landlockABI(), mayMount(), restricted()))
		}
		if status != 0 {
			return status, fmt.Errorf("a command cannot be confined to the reach %s here: %s", s.Reach, remedy(landlockABI(), mayMount(), restricted()))
		}
	}
	how := "namespaces"
	if !mayMount() {
		how = "user namespaces"
	}
	fmt.Printf("%s, Landlock %d, seccomp\n", how, landlockABI())
	return 0, nil
}

// restricted reports whether AppArmor restricts what user namespaces may do, as on Ubuntu.
func restricted() bool {
	on, err := os.ReadFile("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
	return err == nil && strings.TrimSpace(string(on)) != "0"
}

// remedy returns what is missing and what a person could do about it. abi is the version of Landlock (0 = none), mounts whether
// this user may mount without a user namespace, restricted whether AppArmor restricts user namespaces.
func remedy(abi int, mounts, restricted bool) string {
	switch {
	case abi == 0:
		return "the kernel has no Landlock: it needs Linux 6.12 with landlock among the security modules (lsm=)"
	case abi < minABI:
		return fmt.Sprintf("the kernel has version %d of Landlock, and Linux 6.12 is the first to have %d", abi, minABI)
	case mounts:
		return "mounts in a namespace are not allowed, as in many containers: run with --security-opt seccomp=unconfined, or as an ordinary user"
	case restricted:
		return "AppArmor restricts user namespaces: sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for sublet-confine"
	}
	return "user namespaces are switched off: sysctl user.max_user_namespaces and kernel.unprivileged_userns_clone allow them"
}
