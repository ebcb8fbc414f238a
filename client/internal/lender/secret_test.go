package lender

import "testing"

// A value is secret by its variable's name, as package secretname has it, or as a URL with a password.
func TestSecret(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        bool
	}{
		{"GITHUB_TOKEN", "x", true},
		{"PATH", "/usr/bin", false},
		{"UPSTREAM", "https://app:hush@host/x", true},
		{"UPSTREAM", "https://host/x", false},
	} {
		if got := Secret(c.name, c.value); got != c.want {
			t.Errorf("Secret(%q, %q): got %v, want %v", c.name, c.value, got, c.want)
		}
	}
}
