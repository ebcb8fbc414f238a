package hub

import (
	"slices"
	"testing"
)

// A home, its folders of settings and the system are no projects: a grant for one would let a command write where programs
// start from.
func TestIsProject(t *testing.T) {
	for root, want := range map[string]bool{
		"/home/u/src/app": true, "/home/u/app/.hidden": true, "/srv/app": true, "/tmp/app": true, "/home/user2/app": true,
		"/": false, "/home": false, "/home/u": false, "/home/u/.config": false, "/home/u/.config/fish": false, "/etc": false, "/etc/app": false,
		"/usr/local/bin": false, "relative": false,
	} {
		if got := isProject(root, "/home/u"); got != want {
			t.Errorf("isProject(%q) = %v, want %v", root, got, want)
		}
	}
}

// What an agent sets in a shell changes neither which secrets are hidden nor where a command may write.
func TestConfinementIsTheDaemonsOwn(t *testing.T) {
	t.Setenv("HOME", "/home/u")
	t.Setenv("GOCACHE", "/c/go")
	s := confinement("project", "/srv/app")
	if !slices.Contains(s.Hidden, "/home/u/.ssh") || !slices.Contains(s.Caches, "/c/go") {
		t.Errorf("got %+v", s)
	}
}
