package lsp

import (
	"io/fs"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sourcegraph/go-lsp"
)

// A language describes a server and the files that it checks.
type language struct {
	commands [][]string        // programs and arguments of its servers: one is tried if those before it are missing or end at once
	files    map[string]string // LSP's names of the languages it checks, by the extension of a file
	settings []string          // extensions of files that its findings depend on, besides those of files
	options  any               // initializationOptions
	// it reports no problems until it has loaded the project, and then requests to be asked again (workspace/diagnostic/refresh)
	refreshes bool
}

var languages = []*language{
	{
		commands: [][]string{{"gopls"}}, files: map[string]string{".go": "go"}, settings: []string{".mod", ".sum", ".work"},
		options: map[string]any{"pullDiagnostics": true}, // it reports what its analysers find much later than the rest otherwise
	},
	{commands: [][]string{{"pyright-langserver", "--stdio"}}, files: map[string]string{".py": "python", ".pyi": "python"}, settings: []string{".toml", ".json"}},
	{
		// the second is TypeScript's own, from version 7 on; the first needs an older one
		commands: [][]string{{"typescript-language-server", "--stdio"}, {"tsc", "--lsp", "--stdio"}}, settings: []string{".json"},
		options: map[string]any{"disableAutomaticTypingAcquisition": true}, // that needs a network
		files: map[string]string{
			".ts": "typescript", ".mts": "typescript", ".cts": "typescript", ".tsx": "typescriptreact",
			".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".jsx": "javascriptreact",
		},
	},
	{
		commands: [][]string{{"rust-analyzer"}}, files: map[string]string{".rs": "rust"}, settings: []string{".toml", ".lock"},
		options:   map[string]any{"checkOnSave": false}, // cargo check writes in the project
		refreshes: true,
	},
	{
		commands: [][]string{{"clangd"}}, settings: []string{".json", ".txt"},
		files: map[string]string{".c": "c", ".h": "c", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".hpp": "cpp", ".hh": "cpp"},
	},
}

// languageOf returns the language of a file and LSP's name of it; nil if there is none.
func languageOf(path string) (*language, string) {
	for _, l := range languages {
		if id := l.files[filepath.Ext(path)]; id != "" {
			return l, id
		}
	}
	return nil, ""
}

// maxFiles bounds the entries of a project that are looked at for changes. Beyond it a server learns only of the files it is asked
// about.
const maxFiles = 20_000

// A stamp identifies the state of a file by its time and size.
type stamp struct {
	size, modified int64
}

// scan returns the files below root on which findings depend. Hidden folders, node_modules and target are left out.
func (l *language) scan(root string) map[string]stamp {
	found := map[string]stamp{}
	entries := 0
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error { // what cannot be read is not a change
		if entries++; entries > maxFiles {
			return filepath.SkipAll
		}
		if err != nil {
			return nil
		}
		name, ext := d.Name(), filepath.Ext(d.Name())
		switch {
		case d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "target"):
			return filepath.SkipDir
		case d.Type().IsRegular() && (l.files[ext] != "" || slices.Contains(l.settings, ext)):
			if info, err := d.Info(); err == nil {
				found[path] = stamp{info.Size(), info.ModTime().UnixNano()}
			}
		}
		return nil
	})
	return found
}

// changes returns what differs between two results of scan.
func changes(was, now map[string]stamp) (list []lsp.FileEvent) {
	for path, s := range now {
		old, known := was[path]
		switch {
		case !known:
			list = append(list, lsp.FileEvent{URI: uri(path), Type: int(lsp.Created)})
		case old != s:
			list = append(list, lsp.FileEvent{URI: uri(path), Type: lsp.Changed})
		}
	}
	for path := range maps.Keys(was) {
		if _, left := now[path]; !left {
			list = append(list, lsp.FileEvent{URI: uri(path), Type: lsp.Deleted})
		}
	}
	return list
}

func uri(path string) lsp.DocumentURI {
	return lsp.DocumentURI((&url.URL{Scheme: "file", Path: path}).String())
}

// samePath reports whether a server's URI is that of path; servers escape characters differently.
func samePath(u lsp.DocumentURI, path string) bool {
	parsed, err := url.Parse(string(u))
	return err == nil && parsed.Scheme == "file" && parsed.Path == path
}
