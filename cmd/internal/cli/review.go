package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"sublet/wire/visible"
)

// finding is one thing that a review found. Its fields are those of reviewSchema.
type finding struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Level   string `json:"level"`
	Message string `json:"message"`
}

const reviewSchema = `{
	"type": "object",
	"properties": {"findings": {"type": "array", "items": {
		"type": "object",
		"properties": {
			"file": {"type": "string", "description": "path below the folder the review began in"},
			"line": {"type": "integer", "minimum": 1},
			"level": {"enum": ["error", "warning", "note"]},
			"message": {"type": "string", "description": "what is wrong, what follows from it, and how to mend it"}
		},
		"required": ["file", "line", "level", "message"], "additionalProperties": false
	}}},
	"required": ["findings"], "additionalProperties": false
}`

func (a *app) review() *cobra.Command {
	var asJSON, sarif bool
	var q question
	c := explained(command("review [RANGE]", "Have changes reviewed", cobra.MaximumNArgs(1), func(args []string) error {
		if asJSON && sarif {
			return &usageError{errors.New("--json and --sarif are two forms of the same; use one of them")}
		}
		schema, err := parseSchema([]byte(reviewSchema))
		if err != nil {
			return err
		}
		revisions, hint := "HEAD", "`git add -N FILE` includes a file that git does not know yet"
		if len(args) > 0 {
			revisions, hint = args[0], ""
		} else if hasNoCommit() {
			if revisions, err = emptyTree(); err != nil {
				return err
			}
		}
		changed, err := hasChanges(revisions)
		if err != nil {
			return err
		}
		if !changed {
			a.printNotice("nothing to review", "`git diff "+revisions+"` shows no change", hint)
			return a.printReview([]byte("{}"), asJSON, sarif)
		}
		if !strings.Contains(revisions, "..") { // else the working tree is not reviewed
			if n, err := untrackedFiles(); err != nil {
				return err
			} else if n > 0 {
				a.printNotice("not reviewed", fmt.Sprintf("untracked files (%d); `git add -N FILE` includes one", n), "")
			}
		}
		q.agent, q.ephemeral, q.prompt = "reviewer", true, "Review the changes that `git diff "+revisions+"` shows. Look at the code around them where that decides. "+
			"Report what is wrong: faults, missing cases, security, what contradicts the code around it; no matters of taste. The worst comes first; "+
			"an empty list is a good review."
		q.resolvedSchema = schema
		q.print = func(value json.RawMessage) error { return a.printReview(value, asJSON, sarif) }
		return a.runAsk(q)
	}), "review has the agent reviewer, which changes nothing, look at changes: those that are not committed, or those of a range\n"+
		"as git diff takes it. It prints a line for each finding, the worst first. The session is deleted at the end.",
		"  sublet review\n  sublet review main...HEAD --sarif >review.sarif")
	f := c.Flags()
	f.BoolVar(&asJSON, "json", false, "print one JSON object for each finding")
	f.BoolVar(&sarif, "sarif", false, "print SARIF 2.1.0")
	f.StringVar(&q.options.Model, "model", "", "provider/name instead of the configured one")
	f.DurationVar(&q.timeout, "timeout", 0, "end the review after this time (0 = no bound)")
	return c
}

// emptyTree returns the id of the tree without files, which git knows in every repository. It depends on the repository's hash.
func emptyTree() (string, error) {
	id, err := exec.Command("git", "hash-object", "-t", "tree", "/dev/null").Output()
	return strings.TrimSpace(string(id)), err
}

// hasNoCommit reports whether the folder is in a repository without a commit.
func hasNoCommit() bool {
	err := exec.Command("git", "rev-parse", "--quiet", "--verify", "HEAD").Run()
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && exit.ExitCode() == 1 // git exits with 128 outside of a repository
}

// hasChanges reports whether git diff shows changes in a range, before a model is paid to look at them. If git rejects the
// folder or the range, the error is a usageError.
func hasChanges(revisions string) (bool, error) {
	out, err := exec.Command("git", "diff", "--quiet", "--end-of-options", revisions).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 && len(out) == 0 {
		return true, nil
	}
	if err != nil {
		return false, &usageError{fmt.Errorf("git diff %s: %s", revisions, cmp.Or(visible.FirstLine(string(out)), err.Error()))}
	}
	return false, nil
}

// untrackedFiles returns the number of files in the working tree that git neither tracks nor ignores.
func untrackedFiles() (int, error) {
	out, err := exec.Command("git", "ls-files", "-z", "--others", "--exclude-standard", "--", ":/").Output()
	if err != nil {
		return 0, fmt.Errorf("git ls-files: %w", err)
	}
	return bytes.Count(out, []byte{0}), nil
}

func (a *app) printReview(value json.RawMessage, asJSON, sarif bool) error {
	var review struct{ Findings []finding }
	if err := json.Unmarshal(value, &review); err != nil {
		return err
	}
	switch {
	case sarif:
		return a.printIndented(toSARIF(Version(), review.Findings), "  ")
	case asJSON:
		for _, f := range review.Findings {
			if err := a.printJSON(f); err != nil {
				return err
			}
		}
		return nil
	}
	for _, f := range review.Findings {
		a.printf("%s:%d: %s: %s\n", plain(f.File), f.Line, f.Level, oneLine(f.Message))
	}
	if len(review.Findings) == 0 {
		fmt.Fprintln(a.stderr, "sublet: nothing was found")
	}
	return nil
}

type object = map[string]any

// toSARIF is a log of the Static Analysis Results Interchange Format, version 2.1.0.
func toSARIF(version string, findings []finding) object {
	results := []object{}
	for _, f := range findings {
		results = append(results, object{
			"ruleId": "review", "level": f.Level, "message": object{"text": f.Message},
			"locations": []object{{"physicalLocation": object{
				"artifactLocation": object{"uri": (&url.URL{Path: f.File}).String()}, "region": object{"startLine": f.Line},
			}}},
		})
	}
	return object{
		"version": "2.1.0", "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
		"runs": []object{{
			"tool":    object{"driver": object{"name": "sublet review", "version": version, "rules": []object{{"id": "review"}}}},
			"results": results,
		}},
	}
}
