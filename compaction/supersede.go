package compaction

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Superseded results are taken out in steps, since each change of what was sent before makes a provider read it all anew:
// as soon as they are stepShare of the conversation so far, and stepTokens.
const (
	stepShare  = 4 // a quarter
	stepTokens = 2000
)

// Supersede returns items in which a tool's result is one line where a newer one stands for it: the same file was read again,
// or the same command run again. What it gives for the first of the items never depends on later ones but in steps, so that
// most requests begin as the one before them. It changes nothing in items, and returns them where nothing is superseded.
func Supersede(items []Item) []Item { return supersede(items, stepTokens, stepShare) }

func supersede(items []Item, tokens, share int) []Item {
	out := items
	newest := map[string][2]int{} // the item and the result in it that counts for a call
	var old [][2]int
	total, waiting, cwd := 0, 0, ""
	calls := map[string]Call{}
	for i, it := range items {
		total += it.Tokens()
		for _, c := range it.Calls {
			calls[c.ID] = c
		}
		for j, r := range it.Results {
			key := subject(calls[r.CallID], r, cwd)
			if r.Cwd != "" {
				cwd = r.Cwd
			}
			if key == "" {
				continue
			}
			if before, ok := newest[key]; ok {
				if gain := gained(items[before[0]].Results[before[1]]); gain > 0 {
					old, waiting = append(old, before), waiting+gain
				}
			}
			newest[key] = [2]int{i, j}
		}
		if waiting < tokens || waiting*share < total || len(old) == 0 {
			continue
		}
		if &out[0] == &items[0] {
			out = slices.Clone(items)
		}
		for _, at := range old {
			results := slices.Clone(out[at[0]].Results)
			results[at[1]].Content, results[at[1]].Extra = inShort(results[at[1]]), 0
			out[at[0]].Results = results
		}
		total, waiting, old = total-waiting, 0, nil
	}
	return out
}

// subject is what a result is about: a newer one about the same stands for it. It is "" for one that stands for none, such as
// that of a call that failed, or of a tool that changes something.
func subject(c Call, r Result, cwd string) string {
	var args map[string]json.RawMessage
	if json.Unmarshal([]byte(c.Arguments), &args) != nil {
		return ""
	}
	switch c.Tool {
	case "bash":
		if r.ExitCode == nil { // it did not run to its end
			return ""
		}
		args = map[string]json.RawMessage{"command": args["command"], "private": args["private"]} // the rest is how it is run
	case "read", "grep", "glob", "fetch":
		if r.IsError {
			return ""
		}
	default:
		return ""
	}
	key, err := json.Marshal(args) // in the order of the names
	if err != nil {
		return ""
	}
	return c.Tool + "\x00" + cwd + "\x00" + string(key)
}

func inShort(r Result) string {
	s := "[superseded: the same call was made again, see its newest result"
	if r.ExitCode != nil {
		s += fmt.Sprintf("; exit code %d", *r.ExitCode)
	}
	return s + "]"
}

// gained is how many tokens go with a result.
func gained(r Result) int {
	return r.Extra + EstimateTokens(r.Content) - EstimateTokens(inShort(r))
}
