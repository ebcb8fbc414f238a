package zsh

import (
	"testing"

	"sublet/lease/shell/dialect"
)

func TestExamine(t *testing.T) {
	known := func(name string) bool { return name == "mine" }
	for text, want := range map[string]dialect.Examination{
		"foreach x (a b); echo; end": {Changes: true},
		"ls -l | grep x":             {},
		"x=1":                        {Changes: true},
		"mine":                       {Changes: true},
		"print -z x":                 {Changes: true},
		"setopt autocd":              {Changes: true, Lasts: "setopt"},
		"() { cd / }":                {Changes: true, Lasts: "cd"},
		"echo ${(f)x}":               {},
		"repeat 3 { x=1; }":          {Changes: true},
		"exit 3":                     {Ends: true},
		"make || exit":               {Ends: true},
		"exec zsh":                   {Ends: true},
		"logout":                     {Ends: true},
		"setopt err_exit":            {Ends: true, Lasts: "setopt"},
		"foreach x (a b) {{":         {Changes: true},
	} {
		got := Dialect.Examine(text, known)
		want.Text = text
		if want.Ends {
			want.Text = "(\n" + text + "\n)"
		}
		if want.Job = got.Job; got != want { // TestJobText has that
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
}

// A disowned job was taken for one that can go on in the background.
func TestJobText(t *testing.T) {
	for text, want := range map[string]string{"serve": "serve", "serve &!": "", "serve &|": "", "serve &": ""} {
		if got := Dialect.Examine(text, nil).Job; got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
