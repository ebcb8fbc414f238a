package mcp

import (
	"os"
	"path/filepath"

	"sublet/daemon/internal/child"
	"sublet/daemon/internal/mask"
)

// startProcess starts the server's program. Error texts are shown to the user.
func (s *server) startProcess(at Place) (*child.Process, error) {
	own, err := mask.Expand(s.spec.Env, s.spec.Expand)
	if err != nil {
		return nil, err
	}
	env := child.Env(at.Env, own)
	dir := "/"
	for _, d := range []string{s.spec.Dir, at.Home} {
		if info, err := os.Stat(d); filepath.IsAbs(d) && err == nil && info.IsDir() {
			dir = d
			break
		}
	}
	path, err := child.Find(s.spec.Command, env, dir, at.Home)
	if err != nil {
		return nil, err
	}
	launcher, to, err := s.o.Hold(s.spec)
	if err != nil {
		return nil, err
	}
	return child.Start(child.Spec{
		Name: s.spec.Name, Path: path, Args: s.spec.Args, Env: env, Dir: dir,
		Launcher: launcher, Reach: to, Folder: s.o.Folder, Log: s.o.Log,
	})
}
