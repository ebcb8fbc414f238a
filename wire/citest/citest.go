// Package citest skips tests.
package citest

import (
	"os"
	"testing"
)

// Skip skips the test for a reason. Where CI is set, which has all that tests need, the test fails.
func Skip(t testing.TB, reason ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(reason...)
	}
	t.Skip(reason...)
}
