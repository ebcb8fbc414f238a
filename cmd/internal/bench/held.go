package main

import (
	"errors"
	"os"
	"path/filepath"

	"sublet/lease/confine"
)

// heldRows measure what the launcher adds to a command.
func heldRows(s *site) []row {
	dir := must(os.MkdirTemp("/var/tmp", "sublet-bench"))
	s.cleanup(func() error { return os.RemoveAll(dir) })
	env := newSite(s.binary, dir).env
	launcher := filepath.Join(filepath.Dir(s.binary), confine.Program)
	if s := confine.Probe(launcher); s.Missing != "" {
		check(errors.New(s.Missing))
	}
	held := func(s confine.Spec) measure {
		path := filepath.Join(dir, s.Reach)
		check(os.WriteFile(path, s.Encode(), 0o600))
		return runs(15, env, launcher, path, "bash", "-c", "true")
	}
	project := filepath.Join(dir, "p")
	check(os.Mkdir(project, 0o700))
	bare := runs(15, env, "bash", "-c", "true")
	return []row{
		{"H1", "`true` held to read, median", "+ms", 12, 9, held(confine.Spec{Reach: confine.Read}), "bash -c true", bare},
		{"H2", "`true` held to project, median", "+ms", 12, 9, held(confine.Spec{Reach: confine.Project, Project: project}), "bash -c true", bare},
	}
}
