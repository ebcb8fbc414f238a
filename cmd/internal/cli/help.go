package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
)

// helpColumns is the width of help texts, in columns.
const helpColumns = 80

// descriptionColumn matches a line of help up to its description, as those of flags and commands have one.
var descriptionColumn = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^  +\S.*?  +`) })

// explainCommands makes `sublet help` and `sublet completion` refuse what they do not know, and has all help fit into helpColumns.
func (a *app) explainCommands(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Args = func(_ *cobra.Command, args []string) error {
				_, rest, err := root.Find(args)
				if err == nil && len(rest) > 0 {
					err = hinted{fmt.Sprintf("unknown command %q", strings.Join(args, " ")), "`sublet help` lists the commands"}
				}
				return err
			}
		case "completion":
			c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		paragraphs := strings.Split(c.Long, "\n\n")
		for i, p := range paragraphs {
			paragraphs[i] = wrap(p, helpColumns)
		}
		c.Long = strings.Join(paragraphs, "\n\n")
		var text bytes.Buffer
		c.SetOut(&text)
		help(c, args)
		c.SetOut(nil) // the root's again
		for line := range strings.Lines(text.String()) {
			a.printf("%s", wrapDescription(line))
		}
	})
}

// wrapDescription breaks a line with a description at helpColumns, so that all of the description is in its column.
func wrapDescription(line string) string {
	begin := descriptionColumn().FindString(line)
	if begin == "" || len(begin) > helpColumns/2 {
		return line
	}
	rest := wrap(line[len(begin):], helpColumns-len(begin))
	return begin + strings.ReplaceAll(rest, "\n", "\n"+strings.Repeat(" ", len(begin))) + "\n"
}

// wrap breaks a text at spaces.
func wrap(s string, columns int) string {
	var lines []string
	for word := range strings.FieldsSeq(s) {
		if n := len(lines); n > 0 && ansi.StringWidth(lines[n-1])+1+ansi.StringWidth(word) <= columns {
			lines[n-1] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return strings.Join(lines, "\n")
}

// usageHint returns a hint for a command that was called wrongly.
func usageHint(c *cobra.Command) string {
	path := strings.TrimSpace(strings.TrimPrefix(c.CommandPath(), "sublet"))
	if c.HasAvailableSubCommands() {
		return "`" + strings.TrimSpace("sublet help "+path) + "` lists the commands"
	}
	return "usage: `" + c.UseLine() + "`; `sublet help " + path + "` lists its flags"
}

// output is standard output. It keeps the error of the first write that failed, for Main: commands need not check their writes.
type output struct {
	*os.File
	failed atomic.Pointer[error]
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.File.Write(p)
	if err != nil && !errors.Is(err, syscall.EPIPE) { // EPIPE: the reader has left, which is not an error
		o.failed.CompareAndSwap(nil, &err)
	}
	return n, err
}
