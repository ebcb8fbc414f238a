package operator

import (
	"errors"
	"io/fs"
	"mime"
	"os"
	"path/filepath"
	"strings"

	"sublet/wire"
)

// projectOf returns the folder for a request: the server's own, or the one that the request names, which must exist.
func projectOf(own, named string) (string, *problem) {
	if named == "" {
		return own, nil
	}
	if !filepath.IsAbs(named) || strings.ContainsRune(named, 0) {
		return "", invalid("project path %q is not absolute", head(named)).with("field", "project")
	}
	if climbs(named) {
		return "", invalid("project path %q has .. in it", head(named)).with("field", "project")
	}
	named = filepath.Clean(named)
	if info, err := os.Stat(named); err != nil || !info.IsDir() {
		return "", invalid("project path %q is not a folder here", head(named)).with("field", "project")
	}
	return named, nil
}

// attach checks the files of a request. Each must be below the project after symbolic links are resolved, and is passed to the
// daemon in that form, so that a link changed afterwards has no effect.
func attach(project string, files []string) ([]wire.Attachment, *problem) {
	list := []wire.Attachment{}
	if len(files) == 0 {
		return list, nil
	}
	root, err := filepath.EvalSymlinks(project)
	if err != nil {
		return nil, invalid("the project %q cannot be read", project)
	}
	for _, name := range files {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(root, path)
		}
		why := ""
		switch {
		case name == "" || strings.ContainsRune(name, 0):
			why = "is no path"
		case climbs(name):
			why = "has .. in it"
		case !below(root, path) && !below(project, path):
			why = "is outside the project"
		}
		if why == "" {
			path, why = resolve(root, path)
		}
		if why != "" {
			return nil, invalid("file %q %s", head(name), why).with("field", "files").with("path", head(name))
		}
		list = append(list, wire.Attachment{Path: wire.OSString(path), MIME: mime.TypeByExtension(filepath.Ext(path))})
	}
	return list, nil
}

// resolve resolves links; why is what is wrong with the file, "" = nothing.
func resolve(root, path string) (real, why string) {
	real, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", "does not exist"
	case err != nil:
		return "", "cannot be read"
	case !below(root, real):
		return "", "leads outside the project"
	}
	if info, err := os.Stat(real); err != nil || !info.Mode().IsRegular() {
		return "", "is not a regular file"
	}
	return real, ""
}

func below(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}

func climbs(name string) bool {
	for part := range strings.SplitSeq(filepath.ToSlash(name), "/") {
		if part == ".." {
			return true
		}
	}
	return false
}
