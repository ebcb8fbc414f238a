package operator

import (
	"mime"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sublet/wire"
)

// projectOf returns the folder for a request: the server's own, or the one that the request names, which must exist.
func projectOf(own, named string) (string, *problem) {
	if named == "" {
		return own, nil
	}
	info, err := os.Stat(named)
	if err != nil || !info.IsDir() || !filepath.IsAbs(named) || climbs(named) {
		return "", invalid("project path %q is not a folder here by its absolute path, without ..", clip(named)).with("field", "project")
	}
	return filepath.Clean(named), nil
}

// attach checks the files of a request. Each must be below the project after symbolic links are resolved, and is passed to the
// daemon in that form, so that a link changed afterwards has no effect.
func attach(project string, files []string) ([]wire.Attachment, *problem) {
	list := []wire.Attachment{}
	root, err := filepath.EvalSymlinks(project)
	if err != nil && len(files) > 0 {
		return nil, invalid("the project %q cannot be read", project)
	}
	for _, name := range files {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(root, path)
		}
		path, why := resolve(root, path)
		if climbs(name) {
			why = "has .. in it"
		}
		if why != "" {
			return nil, invalid("file %q %s", clip(name), why).with("field", "files").with("path", clip(name))
		}
		list = append(list, wire.Attachment{Path: wire.OSString(path), MIME: mime.TypeByExtension(filepath.Ext(path))})
	}
	return list, nil
}

// resolve returns a file's path without links, or why it cannot be attached.
func resolve(root, path string) (real, why string) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", "does not exist or cannot be read"
	}
	if rel, err := filepath.Rel(root, real); err != nil || !filepath.IsLocal(rel) {
		return "", "is outside the project"
	}
	if info, err := os.Stat(real); err != nil || !info.Mode().IsRegular() {
		return "", "is not a regular file"
	}
	return real, ""
}

// climbs reports whether a path has a .. element.
func climbs(name string) bool {
	return slices.Contains(strings.Split(filepath.ToSlash(name), "/"), "..")
}
