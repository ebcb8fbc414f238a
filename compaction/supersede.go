package compaction

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Superseded results are shortened in batches, since a change in earlier messages invalidates the provider's prompt cache: only
// when they are at least stepTokens and 1/stepShare of the conversation so far.
const (
	stepShare  = 4 // a quarter of the conversation
	stepTokens = 2000
)

// Supersede returns a copy of items in which a tool's result is replaced by one line if a newer result supersedes it: the same
// file was read, or the same command run, again. It works in batches, so that most requests to a model begin with the same
// text as the one before. It returns items itself if nothing is superseded.
func Supersede(items []Item) []Item {
	return supersede(items, func(saved, total int) bool { return saved >= stepTokens && saved*stepShare >= total })
}

// supersede shortens a batch once enough reports that the tokens it saves, of the total so far, are enough.
func supersede(items []Item, enough func(saved, total int) bool) []Item {
	out := items
	newest := map[string][2]int{} // item index and result index of the newest result, by subject
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
		if len(old) == 0 || !enough(waiting, total) {
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

// subject returns a key that is equal for results of which a newer one supersedes an older one. It is "" for a result that
// supersedes none: of a failed call, or of a tool that changes something.
func subject(c Call, r Result, cwd string) string {
	var args map[string]json.RawMessage
	if json.Unmarshal([]byte(c.Arguments), &args) != nil {
		return ""
	}
	switch c.Tool {
	case "bash":
		if r.ExitCode == nil { // the command did not run to its end
			return ""
		}
		args = map[string]json.RawMessage{"command": args["command"], "private": args["private"]} // other arguments do not change the result
	case "read", "grep", "glob", "fetch":
		if r.IsError {
			return ""
		}
	default:
		return ""
	}
	key, err := json.Marshal(args) // with sorted names
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

// gained returns how many tokens it saves to shorten r.
func gained(r Result) int {
	return r.Extra + EstimateTokens(r.Content) - EstimateTokens(inShort(r))
}
