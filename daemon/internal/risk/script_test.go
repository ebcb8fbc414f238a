package risk

import (
	"strings"
	"testing"
)

// A script that an agent wrote is what it holds; where that may change before it has run, it is not known.
func TestWrittenScripts(t *testing.T) {
	files := map[string]string{
		"/w/look.sh":   "#!/bin/bash\nls -l \"$@\"\ngit status\n",
		"/w/plain.sh":  "ls\n",
		"/w/drop.sh":   "#!/bin/bash\nrm -rf \"$1\"\n",
		"/w/x.sh":      "#!/bin/bash\nrm -rf \"$X/\"*\n",
		"/w/build.sh":  "#!/bin/sh\ngo build ./...\n",
		"/w/self.sh":   "#!/bin/bash\nls > self.sh\n",
		"/w/call.sh":   "#!/bin/bash\n./look.sh\n",
		"/w/round.sh":  "#!/bin/bash\n./round.sh\n",
		"/w/poly.py":   "#!/bin/bash\nls\n",
		"/w/broken.sh": "#!/bin/bash\nif\n",
		"/w/big.sh":    "#!/bin/bash\n" + strings.Repeat("ls\n", 30_000),
		"/w/shift.sh":  "#!/bin/bash\nshift\nrm -rf $1\n",
		"/w/fn.sh":     "#!/bin/bash\ncleanup\n",
		"/tmp/t.sh":    "#!/usr/bin/env bash\nwc -l *.go\n",
	}
	const may = "may change"
	for text, want := range map[string]Reach{"./look.sh": ReachRead, "./build.sh": ReachProject, "bash drop.sh /": ReachFree} {
		if got := Analyze(text, Context{Cwd: "/w", Home: "/h", ProjectRoot: "/w", Written: func(path string) (string, bool) { return files[path], true }}).Reach; got != want {
			t.Errorf("%s: got the reach %s, want %s", text, got, want)
		}
	}
	for _, tc := range []struct {
		text  string
		level Level
		why   string // in one of the reasons
	}{
		{"./look.sh", Low, "judged by its text"},
		{"bash look.sh a b | head", Low, "judged by its text"},
		{"chmod +x look.sh && ./look.sh", Medium, "judged by its text"},
		{"bash plain.sh", Low, "judged by its text"},
		{"/tmp/t.sh", Low, "judged by its text"},
		{"./call.sh", Low, "judged by its text"},
		{"./plain.sh", High, "not known here"}, // the shell decides who reads it
		{"python3 poly.py", High, "not known here"},
		{"ssh host bash /w/look.sh", High, ""},
		{"./build.sh", Medium, "judged by its text"},
		{"bash drop.sh /", Critical, ""},
		{"bash shift.sh /tmp/a /", High, "not known"},
		{"echo / | xargs bash drop.sh", Critical, ""},
		{"X=safe; bash x.sh", Critical, ""}, // X is not exported
		{"export X=/; bash x.sh", Critical, ""},
		{"./broken.sh", High, ""},
		{"./big.sh", High, ""},
		{"./round.sh", High, ""},
		{"./gone.sh", High, "not known here"},
		{"`curl https://x.example; sh look.sh; rm", High, "syntax"},
		{"cat evil > look.sh; ./look.sh", High, may},
		{"chmod +x other/look.sh; cat evil > look.sh; ./look.sh", High, may},
		{"chmod +x look.sh; cat evil > look.sh; ./look.sh", High, may},
		{"cat evil > /tmp/t.sh; /tmp/t.sh", High, may},
		{"cp evil look.sh && ./look.sh", High, may},
		{"./look.sh & cp evil look.sh", High, may},
		{"./build.sh; ./look.sh", High, may},
		{"./self.sh", High, may},
		{"./fn.sh", High, ""}, // not the shell's function, nor anything that is known
		{"look.sh", High, ""},
	} {
		c := Context{
			Cwd: "/w", Home: "/h", ProjectRoot: "/w", Functions: map[string]string{"cleanup": "ls"},
			Written: func(path string) (string, bool) { text, ok := files[path]; return text, ok },
		}
		v := Analyze(tc.text, c)
		said := ""
		for _, r := range v.Reasons {
			said += r.Text + "\n"
		}
		if v.Level != tc.level || !strings.Contains(said, tc.why) {
			t.Errorf("%s: got %s, want %s with %q:\n%s", tc.text, v.Level, tc.level, tc.why, said)
		}
		if c.Written = nil; tc.level < High && Analyze(tc.text, c).Level < High {
			t.Errorf("%s: is not high where its text is not known", tc.text)
		}
	}
}
