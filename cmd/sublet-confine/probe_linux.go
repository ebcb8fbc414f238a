package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"sublet/lease/confine"
)

// probe has a command held to each reach, and prints by what.
func probe() (int, error) {
	dir, err := os.MkdirTemp("", "sublet-probe")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if len(program) == 0 {
		return 0, fmt.Errorf("commands are held on amd64 and arm64 only, and this is %s", runtime.GOARCH)
	}
	for _, s := range []confine.Spec{{Reach: confine.Read}, {Reach: confine.Project, Project: dir}} {
		f, err := os.CreateTemp(dir, "spec")
		if err != nil {
			return 0, err
		}
		if _, err := f.Write(s.Encode()); err != nil {
			return 0, err
		}
		if err := f.Close(); err != nil {
			return 0, err
		}
		status, err := parent(f.Name(), []string{"/proc/self/exe", stageNone})
		if err != nil {
			return 0, err
		}
		if status != 0 {
			return status, fmt.Errorf("a command cannot be held to the reach %s here: %s", s.Reach, remedy(landlockABI(), mayMount(), restricted()))
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

// remedy is what a person could do about what is missing, with this version of Landlock (0 = none), where this user may mount
// without a user namespace, and where AppArmor restricts those.
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
