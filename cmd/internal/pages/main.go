// Command pages writes the manual pages and the shell completions of sublet below the folder that it is given: for archives
// and packages. It is no part of sublet, since the library that writes them would be 16 MB in it.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra/doc"

	"sublet/cmd/internal/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pages FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "pages:", err)
		os.Exit(1)
	}
}

// write makes man/*.1 and completions/{sublet.bash,_sublet,sublet.fish} below dir. The pages' date is SOURCE_DATE_EPOCH.
func write(dir string) error {
	man, completions := filepath.Join(dir, "man"), filepath.Join(dir, "completions")
	if err := errors.Join(os.MkdirAll(man, 0o755), os.MkdirAll(completions, 0o755)); err != nil {
		return err
	}
	root := cli.Commands()
	root.DisableAutoGenTag = true
	return errors.Join(
		doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "sublet", Manual: "sublet"}, man),
		root.GenBashCompletionFileV2(filepath.Join(completions, "sublet.bash"), true),
		root.GenZshCompletionFile(filepath.Join(completions, "_sublet")),
		root.GenFishCompletionFile(filepath.Join(completions, "sublet.fish"), true),
	)
}
