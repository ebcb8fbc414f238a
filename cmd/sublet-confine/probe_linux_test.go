package main

import (
	"strings"
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
