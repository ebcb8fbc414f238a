package shell

import (
	"slices"
	"testing"
)

// bash's list of history, as it prints it: a mark before each text tells an entry from a line of one that looks like it.
func TestParseHistory(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]string{
		"":                              nil,
		"noise\n":                       nil,
		"    1  \x01ls\n":               {"ls"},
		"noise\n    1  \x01ls\n":        {"ls"},
		"    1  \x01ls":                 {"ls"},
		"    9* \x01ls\n10\x01pwd\n":    {"ls", "pwd"},
		"    1  \x01\n    2  \x01x\n\n": {"", "x\n"},
		"    1  \x01cat <<E\n    2  no mark\n \x01\n3\n99999999999999999999 \x01\nE\n    2  \x01x\n": {
			"cat <<E\n    2  no mark\n \x01\n3\n99999999999999999999 \x01\nE", "x",
		},
	} {
		if got := parseHistory(in); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string][]string{
		"#1700000000\nls\n": {"ls"},
		"#1700000000\nfor i\ndo\n#1700000001\n# not one\n": {"for i\ndo", "# not one"},
		"#1\n#2\nx\n": {"", "x"},
	} {
		if got := parseStamped([]byte(in)); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// The DEBUG trap is found among all that `trap -p` prints, whatever they say.
func TestDebugTrap(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                           "",
		"trap -- 'echo bye' EXIT\n":  "",
		"trap -- 'n=1' DEBUG\n":      "n=1",
		"trap -- 'n=1' DEBUG":        "n=1",
		"odd\ntrap -- 'n=1' DEBUG\n": "",
		"trap -- 'a\ntrap -- x DEBUG\n' EXIT\ntrap -- 'it'\\''s' DEBUG\ntrap -- '' INT\n": "it's",
	} {
		if got := debugTrap(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
