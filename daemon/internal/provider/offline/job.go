package offline

import (
	"encoding/json"
	"strconv"
	"strings"

	"sublet/daemon/internal/provider"
)

// job is one prompt with what is known so far.
type job struct {
	said    string            // the clause in hand, tidied
	args    map[string]string // what its pattern caught
	facts   provider.Facts
	tools   map[string]bool
	results []result
	earlier []string        // the prompts before this one, oldest first
	before  []result        // what the calls of those brought
	beside  []provider.Part // what came with this prompt: the user's newest commands among them
	private bool            // the user's shell could not be had: use one of the agent's own
	advised bool            // an earlier answer has connect
	schema  bool            // a review is to be JSON, as `sublet review` asks
}

// result is what one call brought.
type result struct {
	tool    string
	command string   // bash
	steps   []string // plan
	text    string   // the output, without the notes that the tool adds
	exit    int      // bash: exit code; -1 where it did not end by itself
	isError bool
	denied  bool
	why     string // with a refusal: who or what refused
	comment string // with a refusal: the user's own words
	stopped string // cancelled, timeout, interrupted, job; "" = it ran to its end
}

func (r result) ok() bool { return !r.isError && r.exit == 0 && !r.refused() }

// refused: the user or the policy said no, or the turn was stopped; there is nothing to go on from.
func (r result) refused() bool {
	return r.denied || r.stopped == "cancelled" || r.stopped == "interrupted"
}

func (r result) lines() (list []string) {
	for line := range strings.Lines(r.text) {
		if line = strings.TrimRight(line, "\r\n"); strings.TrimSpace(line) != "" {
			list = append(list, line)
		}
	}
	return list
}

// newJob returns the job of a prompt, the last in req. after are the messages that follow it: the calls made for it so far, and their results.
func newJob(req provider.Request, prompt string, after []provider.Message) *job {
	j := &job{said: prompt, facts: req.Facts, tools: map[string]bool{}, schema: strings.Contains(req.System, `"findings":{"type":"array"`)}
	for _, t := range req.Tools {
		j.tools[t.Name] = true
	}
	calls := map[string]provider.ToolCall{}
	for i, m := range req.Messages {
		if p, ok := provider.PromptOf(m); ok {
			j.earlier = append(j.earlier, p)
			j.beside = m.Parts[1:]
		}
		for _, p := range m.Parts {
			j.advised = j.advised || m.Role == provider.Assistant && strings.Contains(p.Text, connect)
			if p.ToolCall != nil {
				calls[p.ToolCall.ID] = *p.ToolCall
			}
			if p.ToolResult == nil {
				continue
			}
			r := parseResult(calls[p.ToolResult.CallID], *p.ToolResult)
			switch {
			case i < len(req.Messages)-len(after):
				j.before = append(j.before, r)
			case r.tool == "bash" && r.isError && !j.private && noShell().MatchString(r.text):
				j.private = true // the same call comes again, in a shell of the agent's own
			case r.tool == "plan" && !r.isError:
				if j.last().denied { // by plan mode: the same call comes again
					j.results = j.results[:len(j.results)-1]
				}
			default:
				j.results = append(j.results, r)
			}
		}
	}
	if n := len(j.earlier); n > 0 {
		j.earlier = j.earlier[:n-1] // the last is the prompt itself
	}
	return j
}

var (
	noShell = rx(`set "private": true`)
	// The agent's own words for a refusal, from beginning to end: a program's output that speaks of one is none.
	denial   = rx(`(?s)^Denied: (.*?)\.(?: The user says: (.*?))? It did not run\. Do not try the same in another way; .*\.$`)
	bashNote = rx(`^\[(?:exit code (\d+)|(no output)|now in (.+)|ended by (\w+)|(ended: .*)|(still running: .*)|(\d+ bytes of output are left out.*)|(\w+: the shell did not run it)|(the shell ended with it)|(it goes on as the job .*)|([a-z].* .*))\]$`)
)

// parseResult reads a result back into its parts, from the texts that the agent and the tool bash write for a model.
func parseResult(c provider.ToolCall, t provider.ToolResult) result {
	r := result{tool: c.Name, text: t.Content, isError: t.IsError}
	var args struct {
		Command string
		Items   []string
	}
	if json.Unmarshal(c.Arguments, &args) == nil {
		r.command, r.steps = args.Command, args.Items
	}
	if m := denial().FindStringSubmatch(t.Content); t.IsError && m != nil {
		r.denied, r.why, r.comment = true, m[1], strings.TrimSpace(m[2])
		return r
	}
	switch {
	case !t.IsError:
	case strings.HasPrefix(t.Content, "interrupted"):
		r.stopped = "interrupted"
		return r
	case strings.HasPrefix(t.Content, "stopped: "):
		r.stopped = "cancelled"
		return r
	}
	if c.Name != "bash" {
		return r
	}
	// The tool's notes are the last lines; an output that ends in a line of the same form cannot be distinguished, and loses that line.
	lines := strings.Split(strings.TrimRight(t.Content, "\n"), "\n")
	var others []string // such as what its reach denied, which explains the output
	for len(lines) > 0 {
		m := bashNote().FindStringSubmatch(lines[len(lines)-1])
		if m == nil {
			break
		}
		switch {
		case m[1] != "":
			r.exit, _ = strconv.Atoi(m[1])
		case m[4] != "": // a signal
			r.exit = -1
		case strings.Contains(m[5], "longer than"):
			r.exit, r.stopped = -1, "timeout"
		case m[5] != "":
			r.exit, r.stopped = -1, "cancelled"
		case m[8] != "", m[9] != "": // not run, or the shell ended
			r.exit = -1
		case m[10] != "":
			r.exit, r.stopped = -1, "job"
		case m[11] != "":
			others = append([]string{m[0]}, others...)
		}
		lines = lines[:len(lines)-1]
	}
	r.text = strings.Join(append(lines, others...), "\n")
	if r.isError && r.exit == 0 {
		r.exit = -1
	}
	return r
}

// last is the newest result, the zero one where there is none.
func (j *job) last() result {
	if len(j.results) == 0 {
		return result{}
	}
	return j.results[len(j.results)-1]
}

// failed: what was done last did not succeed.
func (j *job) failed() bool { return len(j.results) > 0 && !j.last().ok() }

// inShell sends a command to the agent's own shell where the user's cannot be had.
func (j *job) inShell(c call) call {
	if j.private && c.tool == "bash" {
		c.args = append(json.RawMessage(`{"private":true,`), c.args[1:]...)
	}
	return c
}
