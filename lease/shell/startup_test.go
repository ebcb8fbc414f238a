package shell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sublet/wire/citest"
)

// Zsh reads the user's own start-up files, wherever they are, and nothing remains of the folder from which it read ours.
func TestStartupFilesOfZsh(t *testing.T) {
	for name, row := range map[string]struct {
		env   string
		files map[string]string // in the home directory
		want  string            // ZDOTDIR in the shell, and what the files set; HOME is ~
	}{
		"unset": {files: map[string]string{".zshenv": "from=env", ".zshrc": "from+=,rc"}, want: "-,env,rc"},
		"set":   {env: "ZDOTDIR=/tmp/does/not/exist", files: map[string]string{".zshrc": "from=rc"}, want: "/tmp/does/not/exist-set,"},
		"set by .zshenv": {
			files: map[string]string{".zshenv": "export ZDOTDIR=~/it\\'s; from=env", ".zshrc": "from+=,rc", "it's/.zshrc": "from+=,dotrc"},
			want:  "~/it's-set,env,dotrc",
		},
		"that replace hooks":   {files: map[string]string{".zshrc": "precmd_functions=() preexec_functions=(); precmd() { from=called }"}, want: "-,called"},
		"that end in an error": {files: map[string]string{".zshrc": "from=rc; this is (not zsh"}, want: "-,rc"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			writeFiles(t, home, row.files)
			s, scr := start2(t, func(o *Options) {
				o.Path, o.Env = citest.Program(t, "zsh"), append(environment(home), row.env)
			})
			scr.prompts(t, 1)
			want := strings.ReplaceAll(row.want, "~", home)
			if r := do(t, s, "print -rn -- $ZDOTDIR-${ZDOTDIR+set},$from"); string(r.Output) != want {
				t.Errorf("got %q, want %q", r.Output, want)
			}
		})
	}
}

// A private shell reads neither the start-up file nor the history of the user, and keeps none.
func TestPrivateShellHasNoHistory(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	files := map[string]string{".bashrc": "echo read", ".bash_history": "mine\n"}
	writeFiles(t, home, files)
	s, _ := start2(t, func(o *Options) { o.Private, o.Path, o.Env = true, citest.Program(t, "bash"), environment(home) })
	if r := do(t, s, "builtin history; printenv HISTFILE; echo end"); string(r.Output) != "end\n" {
		t.Errorf("got %q", r.Output)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(home, ".bash_history")); err != nil || string(b) != files[".bash_history"] {
		t.Errorf("the user's history is %q, %v", b, err)
	}
}

// An error in a zsh text ends it, with a status, and does not reach the user's own last status.
func TestErrorsEndTheText(t *testing.T) {
	t.Parallel()
	u := newSession(t, "zsh", "")
	for _, text := range []string{
		"echo *.nothing; echo aft''er", "if; echo aft''er", "echo ${none:?message}; echo aft''er", "readonly r=1; r=2; echo aft''er", "return 3; echo aft''er", "integer i; i='1 1'; echo aft''er",
	} {
		if r := do(t, u.Shell, text); *r.ExitCode == 0 || strings.Contains(string(r.Output), "after") {
			t.Errorf("%s: %+v", text, r)
		}
		if e := u.enter("echo was $?"); string(e.Output) != "was 0\n" {
			t.Errorf("%s: then the user's line printed %q", text, e.Output)
		}
	}
}

// The user's hooks of zsh see the user's lines only, but each prompt; a hook in between finds the history as it is. Hooks that are functions
// of their own (preexec), not names in an array, saw the borrowed line.
func TestHooks(t *testing.T) {
	t.Parallel()
	u := newSession(t, "zsh", `
		autoload -Uz add-zsh-hook
		before() { print -r "before $1" >> ~/log }
		adding() { print -r "adding ${1%$'\n'}" >> ~/log }
		prompt() { print -r "prompt $? $(fc -ln -1)" >> ~/log }
		preexec() { print -r "own $1" >> ~/log }
		zshaddhistory() { print -r "keeping ${1%$'\n'}" >> ~/log }
		add-zsh-hook preexec before; add-zsh-hook zshaddhistory adding; add-zsh-hook precmd prompt
	`)
	u.enter("echo one")
	u.do("cd /; false", "", 1)
	u.enter("(exit 3)")
	u.do("true", "", 0)
	u.do("true", "", 0) // whose prompt comes behind the hooks of the one before
	text, err := os.ReadFile(filepath.Join(u.home, "log"))
	if err != nil {
		t.Fatal(err)
	}
	want := "prompt 0 \nkeeping echo one\nadding echo one\nown echo one\nbefore echo one\nprompt 0 echo one\nprompt 0 echo one\n" +
		"keeping (exit 3)\nadding (exit 3)\nown (exit 3)\nbefore (exit 3)\nprompt 3 (exit 3)\nprompt 3 (exit 3)\n"
	if !strings.HasPrefix(string(text), want) {
		t.Errorf("got %q, want %q", text, want)
	}
}

// The user's prompt of fish may take long: it was made anew before each borrowed command, too, for nobody to see.
func TestPromptIsMadeOnceForACommand(t *testing.T) {
	t.Parallel()
	u := newSession(t, "fish", "function fish_prompt; set -g made (math $made + 1); echo -n \"$made> \"; end")
	if err := u.TakeScreen(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := u.Hold(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1\n", "2\n", "3\n"} {
		u.do("echo $made", want, 0)
	}
}

// Under set -x, the agent's result ended with what __sublet_end does, and each prompt of the user's with what __sublet_prompt does.
func TestTracedHooks(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			u := newSession(t, shell, "")
			u.enter("set -x")
			r := do(t, u.Shell, "echo hi")
			if !strings.HasSuffix(string(r.Output), "echo hi\nhi\n") || strings.Contains(string(r.Output), "__sublet_end") {
				t.Errorf("the result is %q", r.Output)
			}
			u.enter("echo mine")
			if out := u.scr.String(); strings.Contains(out, "__sublet_found") {
				t.Errorf("the screen shows %q", out)
			}
		})
	}
}
