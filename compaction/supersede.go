package compaction

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Supersede returns a copy of items in which a tool's result is replaced by one line if a newer result supersedes it: the same
// file was read, or the same command run, again. It returns items itself if nothing is superseded. A result that is no longer
// than that line is left as it is.
func Supersede(items []Item) []Item {
	out := items
	newest := map[string][2]int{} // item index and result index of the newest result, by subject
	cwd := ""
	calls := map[string]Call{}
	for i, it := range items {
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
			before, ok := newest[key]
			newest[key] = [2]int{i, j}
			if !ok {
				continue
			}
			old := items[before[0]].Results[before[1]]
			if old.Extra == 0 && len(old.Content) <= len(inShort(old)) {
				continue
			}
			if &out[0] == &items[0] {
				out = slices.Clone(items)
			}
			results := slices.Clone(out[before[0]].Results)
			results[before[1]].Content, results[before[1]].Extra = inShort(old), 0
			out[before[0]].Results = results
		}
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
