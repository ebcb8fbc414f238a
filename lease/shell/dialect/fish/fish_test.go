package fish

import (
	"testing"
)

func TestExamine(t *testing.T) {
	known := func(name string) bool { return name == "git" }
	for text, want := range map[string]string{
		"ls -l *.go":                "",
		"grep 'exit; exec' \"$x\"":  "",
		"make -j4 # exit":           "",
		"git log":                   "changes",
		"cd /":                      "changes",
		"ls; ls":                    "",
		"mytool":                    "changes",
		"ls (cd /)":                 "changes",
		"set -x A b":                "changes",
		"echo a > b":                "",
		"if true; cd /; end":        "changes",
		"echo 'a\\'; cd /; 'b'":     "changes",
		"set -e x; function f; end": "changes",
		"exit 3":                    "refused",
		"ls; and exit":              "refused",
		"true && exec sh":           "refused",
		"if true\n  logout\nend":    "refused",
		"echo \"$(exit)\"":          "refused",
		"eval 'exit 1'":             "refused",
		"ls\x00":                    "refused",
		"echo it\\'s; exit":         "refused",
	} {
		e := Dialect.Examine(text, known)
		got := ""
		switch {
		case e.Refused != "":
			got = "refused"
		case e.Changes:
			got = "changes"
		}
		if got != want || e.Text != text || e.Ends {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// fish has no subshells: only a pipeline can be one job.
func TestJobText(t *testing.T) {
	for text, want := range map[string]string{"make | cat": "make | cat", "make; make test": "", "while make; end": ""} {
		if got := Dialect.Examine(text, func(string) bool { return false }).Job; got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// The card of a cd out of a git repository said that the command had set what fish's prompt sets where it looks for Mercurial.
func TestVolatile(t *testing.T) {
	for name, want := range map[string]bool{
		"fish_color_hg_added": true, "fish_prompt_hg_order": true, "___fish_git_prompt_init": true, "CMD_DURATION": true, "PWD": true, "fish_color_cwd": false, "PAGER": false,
	} {
		if got := volatile(name); got != want {
			t.Errorf("%s: got %t, want %t", name, got, want)
		}
	}
}
