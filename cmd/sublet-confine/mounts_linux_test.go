package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sublet/lease/confine"
	"sublet/lease/confine/confinetest"
	"sublet/wire/citest"
)

// TestMountsBelowTmp: an ordinary user cannot have an overlay over /tmp while something is mounted below it.
func TestMountsBelowTmp(t *testing.T) {
	if os.Getuid() != 0 {
		citest.Skip(t, "not root")
	}
	below, err := os.MkdirTemp("", "sublet-mount")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(below)
	project, err := os.MkdirTemp("", "sublet-project")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(project)
	if err := os.Chown(project, ordinary.uid, ordinary.gid); err != nil {
		t.Fatal(err)
	}
	read, inProject := map[user]string{}, map[user]string{}
	for _, who := range users(t) { // which finds out what is held here
		_, read[who] = placeOf(t, who, confine.Spec{Reach: confine.Read})
		_, inProject[who] = placeOf(t, who, confine.Spec{Reach: confine.Project, Project: project})
	}
	if err := unix.Mount("tmpfs", below, "tmpfs", 0, "size=4k"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Unmount(below, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	for _, who := range users(t) {
		if out, err := who.run(t, project, read[who], "touch /tmp/x$$ && echo fine; touch y || pwd"); !strings.HasPrefix(out, "fine\n") || !strings.HasSuffix(out, project+"\n") {
			t.Errorf("%s, read: %q, %v", who.name, out, err)
		}
		if out, err := who.run(t, project, inProject[who], "touch /tmp/x$$ made && echo fine; rm made"); out != "fine\n" {
			t.Errorf("%s, project: %q, %v", who.name, out, err)
		}
	}
}

// TestCaches: a cache that a command replaced by a link out of its project, or out of another cache, is none.
func TestCaches(t *testing.T) {
	who := users(t)[0]
	out, _ := placeOf(t, who, confine.Spec{Reach: confine.Read})
	base, _ := placeOf(t, who, confine.Spec{Reach: confine.Read})
	for _, dir := range []string{"project", "cache", "real"} {
		if err := os.Mkdir(filepath.Join(base, dir), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(filepath.Join(base, dir), who.uid, who.gid); err != nil {
			t.Fatal(err)
		}
	}
	links := []string{filepath.Join(base, "project/c"), filepath.Join(base, "cache/c")}
	for _, link := range links {
		if err := os.Symlink(out, link); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("real", filepath.Join(base, "users")); err != nil { // one that the user made is one
		t.Fatal(err)
	}
	alias := base + "-alias" // as of a home that is reached by a link
	if err := os.Symlink(base, alias); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(alias) })
	links = append(links, filepath.Join(alias, "project/c"), filepath.Join(alias, "cache/c"))
	project := filepath.Join(base, "project")
	_, prefix := placeOf(t, who, confine.Spec{Reach: confine.Project, Project: project, Caches: append(links, filepath.Join(base, "cache"), filepath.Join(alias, "cache"), filepath.Join(base, "users"))})
	if text, err := who.run(t, project, prefix, "touch "+out+"/evil; touch ../cache/x ../users/x x && echo fine"); !strings.HasSuffix(text, "fine\n") {
		t.Errorf("%q, %v", text, err)
	}
	if list, err := os.ReadDir(out); err != nil || len(list) > 0 {
		t.Errorf("written out of the project: %v, %v", list, err)
	}
}

// TestScript: the command's text is a copy of it.
func TestScript(t *testing.T) {
	who := users(t)[0]
	dir, _ := placeOf(t, who, confine.Spec{Reach: confine.Read})
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("echo $((6*7))\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(script, who.uid, who.gid); err != nil {
		t.Fatal(err)
	}
	_, prefix := placeOf(t, who, confine.Spec{Reach: confine.Read, Script: script, Hidden: []string{dir}})
	out, err := who.run(t, "/", prefix, ". /dev/fd/3; chmod 777 /dev/fd/3; echo evil >/dev/fd/3; ls -A "+dir)
	if text, rerr := os.ReadFile(script); !strings.HasPrefix(out, "42\n") || rerr != nil || string(text) != "echo $((6*7))\n" {
		t.Errorf("%q, %v; the script is %q, %v", out, err, text, rerr)
	}
	if st, err := os.Stat(script); err != nil || st.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", st, err)
	}
}

// A home below /tmp stays as it is. What was written there, or removed, was thrown away, and the command ended with 0.
func TestHomeBelowTmpIsKept(t *testing.T) {
	launcher := confinetest.Need(t)
	home, err := os.MkdirTemp("/tmp", "sublet-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	for _, dir := range []string{"docs", "project/sub", "cache"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []confine.Spec{{Reach: confine.Read}, {Reach: confine.Read, Project: filepath.Join(home, "project")}, {Reach: confine.Project, Project: filepath.Join(home, "project"), Caches: []string{filepath.Join(home, "cache")}}} {
		s.Kept = confine.KeptHome(home, s.Project)
		spec := filepath.Join(t.TempDir(), "spec")
		if err := os.WriteFile(spec, s.Encode(), 0o600); err != nil {
			t.Fatal(err)
		}
		try := func(dir, text string) error {
			cmd := exec.Command(launcher, spec, "bash", "-c", text)
			cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Setpgid: true}
			return cmd.Run()
		}
		if err := try(home, "ls docs && ! touch docs/x && ! rm -rf docs && ! mkdir new && touch /tmp/x$$"); err != nil {
			t.Errorf("%s: %v", s.Reach, err)
		}
		if err := try(home, "touch project/made cache/made && test -e project/made"); (err == nil) != (s.Reach == confine.Project) {
			t.Errorf("%s: writing in the project: %v", s.Reach, err)
		}
		if err := try(filepath.Join(home, "project/sub"), `test "$(stat -c %d .)" = "$(stat -c %d ..)"`); s.Project != "" && err != nil {
			t.Errorf("%s: git would not look for the repository above a folder of it: %v", s.Reach, err)
		}
	}
	for _, name := range []string{"docs", "project/made", "cache/made"} {
		if _, err := os.Stat(filepath.Join(home, name)); err != nil {
			t.Error(err)
		}
	}
}
