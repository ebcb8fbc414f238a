package cli

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sublet/daemon"
	"sublet/daemon/config"
)

func (a *app) config() *cobra.Command {
	at := func(use, short string, run func(path string) error) *cobra.Command {
		return command(use, short, cobra.NoArgs, func([]string) error {
			paths, err := a.paths()
			if err != nil {
				return err
			}
			return run(paths.Config)
		})
	}
	return family("config", "The settings: where, what is in force, whether they are right", "",
		at("path", "Print where the settings file is, or would be", func(path string) error {
			a.printf("%s\n", path)
			return nil
		}),
		at("show", "Print every key with its value in force and a comment", func(path string) error {
			c, err := daemon.LoadSettings(path)
			if err != nil {
				return err
			}
			text, err := config.Show(c)
			a.printf("%s", text)
			return err
		}),
		at("check", "Check the settings file; errors are printed with line and column", a.checkConfig),
		at("edit", "Open the settings file in $VISUAL or $EDITOR, then check it", a.editConfig))
}

func (a *app) checkConfig(path string) error {
	found, err := checkSettings(path)
	if err == nil {
		a.printf("%s\n", found)
	}
	return err
}

// checkSettings reports which settings are in force, or what is wrong in their file.
func checkSettings(path string) (found string, err error) {
	if _, err := daemon.LoadSettings(path); err != nil {
		return "", err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "none, the defaults apply: " + path + " does not exist", nil
	}
	return path + " is valid", nil
}

// editConfig opens the file itself in an editor: a running daemon applies a valid change, and otherwise keeps its settings.
func (a *app) editConfig(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		begin := "# Settings of sublet. `sublet config show` prints every key with its default and what it is for.\n"
		if err := os.WriteFile(path, []byte(begin), 0o600); err != nil {
			return err
		}
	}
	// The variable contains a command of the shell, as for git and others.
	editor := cmp.Or(strings.TrimSpace(a.env("VISUAL")), strings.TrimSpace(a.env("EDITOR")), "vi")
	e := exec.Command("sh", "-c", editor+` "$@"`, editor, path)
	e.Stdin, e.Stdout, e.Stderr = a.stdin, os.Stdout, os.Stderr
	if err := e.Run(); err != nil {
		return hinted{editor + ": " + err.Error(), "set VISUAL or EDITOR to your editor"}
	}
	return a.checkConfig(path)
}
