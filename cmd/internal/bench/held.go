package main

import (
	"errors"
	"os"
	"path/filepath"

	"sublet/lease/confine"
)

// heldRows measures what the launcher adds to a command.
func heldRows(s *site) ([]row, error) {
	dir, err := os.MkdirTemp("/var/tmp", "sublet-bench")
	if err != nil {
		return nil, err
	}
	s.cleanup(func() error { return os.RemoveAll(dir) })
	env := sandbox(dir)
	launcher := filepath.Join(filepath.Dir(s.binary), confine.Program)
	if s := confine.Probe(launcher); s.Missing != "" {
		return nil, errors.New(s.Missing)
	}
	held := func(s confine.Spec) (func() (float64, error), error) {
		path := filepath.Join(dir, s.Reach)
		return startsIn(env, launcher, path, "bash", "-c", "true"), os.WriteFile(path, s.Encode(), 0o600)
	}
	read, err := held(confine.Spec{Reach: confine.Read})
	if err != nil {
		return nil, err
	}
	project := filepath.Join(dir, "p")
	inProject, err := held(confine.Spec{Reach: confine.Project, Project: project})
	if err := errors.Join(err, os.Mkdir(project, 0o700)); err != nil {
		return nil, err
	}
	bare := startsIn(env, "bash", "-c", "true")
	return []row{
		{"H1", "`true` held to read, median", "+ms", "bash -c true", 12, 9, read, bare},
		{"H2", "`true` held to project, median", "+ms", "bash -c true", 12, 9, inProject, bare},
	}, nil
}

// startsIn returns a measurement of a program: the median of single runs in milliseconds.
func startsIn(env []string, program string, args ...string) func() (float64, error) {
	return func() (float64, error) {
		us, err := once(15, func() error { return call(env, program, args...) })
		return us / 1e3, err
	}
}
