package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"sublet/daemon"
	"sublet/wire"
)

func (a *app) explain() *cobra.Command {
	var asJSON, live bool
	c := &cobra.Command{
		Use:   "explain 'CMD'",
		Short: "Say what a command would do and how risky it is; runs nothing",
		Long: "explain judges a command as the agents' commands are judged, for a fresh shell in the current folder, without a\n" +
			"daemon and without running anything: its level, what in it is the reason, and what each mode would do with it, rules\n" +
			"aside. --live judges it for the shell of the window last typed in, with its aliases, functions and folder. With --json\n" +
			"and - it reads one {\"command\", \"cwd\"} a line and answers each, in order. Rules: `sublet policy test`.",
		Example: "  sublet explain 'rm -rf build && git push --force'\n  jq -c '{command: .}' list.json | sublet explain --json -",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if asJSON && len(args) == 1 && args[0] == "-" {
				if live {
					return &usageError{errors.New("--live judges one command, not a batch")}
				}
				return a.explainLines()
			}
			command := strings.Join(args, " ")
			v, outcomes, err := a.verdict(command, live)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(explained{Command: command, Verdict: verdictOf(v)})
			}
			a.drawVerdict(command, v)
			a.drawOutcomes(outcomes, "")
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&live, "live", false, "for the shell of the window last typed in")
	return c
}

// verdict judges a command offline, or with the daemon's help for the live shell.
func (a *app) verdict(command string, live bool) (v wire.Verdict, outcomes []wire.PolicyOutcome, err error) {
	if !live {
		dir, err := os.Getwd()
		if err != nil {
			return v, nil, err
		}
		settings, err := a.settings()
		if err != nil {
			return v, nil, err
		}
		v, outcomes = daemon.ExplainModes(command, dir, settings.Policy)
		return v, outcomes, nil
	}
	r := &wire.PolicyRequest{Op: "test", Command: wire.OSString(command), Live: true}
	err = a.policies("", r, func(reply *wire.PolicyReply) error {
		if reply.Verdict == nil {
			return errors.New("the daemon is older than `explain --live`; `sublet daemon restart` starts this one")
		}
		v, outcomes = *reply.Verdict, reply.Outcomes
		return nil
	})
	return v, outcomes, err
}

type explained struct {
	Command string      `json:"command"`
	Verdict verdictJSON `json:"verdict"`
}

type verdictJSON struct {
	Level      string       `json:"level"`
	Reasons    []reasonJSON `json:"reasons"`
	Reversible bool         `json:"reversible"`
	UndoHint   string       `json:"undo_hint"`
	Reach      string       `json:"reach"`
}

type reasonJSON struct {
	Text   string    `json:"text"`
	Effect string    `json:"effect"`
	Span   *spanJSON `json:"span"`
}

type spanJSON struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

func verdictOf(v wire.Verdict) verdictJSON {
	out := verdictJSON{Level: v.Level, Reasons: []reasonJSON{}, Reversible: v.Reversible, UndoHint: v.UndoHint, Reach: v.Reach}
	for _, r := range v.Reasons {
		reason := reasonJSON{Text: r.Text, Effect: r.Effect}
		if r.Span != nil {
			reason.Span = &spanJSON{r.Span.Start, r.Span.End}
		}
		out.Reasons = append(out.Reasons, reason)
	}
	return out
}

const maxExplainLine = 16 << 20 // bytes of one line of input

// explainLines answers one object a line. Answers are held back only while more input waits, so that a program that asks
// one thing at a time gets each answer at once. A line that is no such object is answered with an error, and the exit
// status tells that there was one.
func (a *app) explainLines() error {
	home, err := os.Getwd()
	if err != nil {
		return err
	}
	settings, err := a.settings()
	if err != nil {
		return err
	}
	in := bufio.NewReaderSize(a.stdin, 64<<10)
	out := bufio.NewWriterSize(a.stdout, 64<<10)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	bad := 0
	for n := 1; ; n++ {
		line, err := readLine(in, maxExplainLine)
		if len(line) > 0 {
			var q struct {
				Command *string `json:"command"`
				Cwd     string  `json:"cwd"`
			}
			jerr := json.Unmarshal(line, &q)
			if jerr == nil && q.Command == nil {
				jerr = errors.New(`no "command"`)
			}
			var werr error
			if jerr != nil {
				bad++
				werr = encoder.Encode(map[string]string{"error": fmt.Sprintf("line %d: %v", n, jerr)})
			} else {
				if q.Cwd == "" {
					q.Cwd = home
				}
				werr = encoder.Encode(explained{*q.Command, verdictOf(daemon.Explain(*q.Command, q.Cwd, settings.Policy))})
			}
			if werr != nil {
				return werr
			}
		}
		if in.Buffered() == 0 || err != nil {
			if ferr := out.Flush(); ferr != nil {
				return ferr
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d lines of input were no {\"command\", \"cwd\"}", bad)
	}
	return nil
}

// readLine reads a line without its end, of at most limit bytes.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > limit {
			return nil, fmt.Errorf("a line of input is over %d bytes", limit)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return []byte(strings.TrimRight(string(line), "\r\n")), err
		}
	}
}
