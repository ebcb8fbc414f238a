package dialecttest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sublet/lease/shell/dialect"
)

// Words are what the tests of Suite must know of a shell.
type Words struct {
	Options  Options // a set-up whose prompt is "$?> " with the last status
	Export   string  // a command that exports COLOUR=blue green
	Alias    string  // a command that makes an alias or an abbreviation "hello" of "echo hallo"
	Function string  // a command that defines a function "greet" that prints "greetings"
	Status   string  // what expands to the last status
	History  string  // a command that lists the history
	Unbind   string  // a command that binds nothing to the key that calls the widget
	Late     bool    // what the user runs is not reported at its beginning
}

// Suite tests what is the same in all shells.
func Suite(t *testing.T, d *dialect.Dialect, w Words) {
	run := func(name string, test func(t *testing.T, s *Shell)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, Start(t, d, w.Options))
		})
	}
	commands(run, d, w)
	line(run, w)
	usersOwn(run, w)
	terminal(run, w)
}

// runner runs one test in a shell of its own.
type runner func(name string, test func(t *testing.T, s *Shell))

// commands tests what a borrowed command sees and leaves behind.
func commands(run runner, d *dialect.Dialect, w Words) {
	run("a command runs in the user's shell", func(t *testing.T, s *Shell) {
		s.AwaitScreen("0>")
		if got, want := s.Run("echo one; echo two >&2; sh -c 'exit 3'"), (Result{"one\r\ntwo\r\n", 3, s.Home}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		s.AwaitScreen("one", "two", "0>")
	})

	run("what it changes stays", func(t *testing.T, s *Shell) {
		dir := t.TempDir()
		for _, text := range []string{w.Export, w.Alias, w.Function, "cd " + d.Quote(dir)} {
			if r := s.Run(text); r.Output != "" || r.Status != 0 {
				t.Fatalf("%s: %+v", text, r)
			}
		}
		if r := s.Run("sh -c 'echo $COLOUR'; greet; pwd"); r.Output != "blue green\r\ngreetings\r\n"+dir+"\r\n" || r.Dir != dir {
			t.Errorf("got %+v", r)
		}
		if p := s.Enter("sh -c 'echo $COLOUR'; greet; hello you"); p.Dir != dir {
			t.Errorf("the user's line ran in %s", p.Dir)
		}
		for _, text := range []string{"blue green\n", "greetings\n", "hallo you\n"} {
			s.AwaitText(text)
		}
	})

	run("it runs in the directory that is asked for", func(t *testing.T, s *Shell) {
		dir := filepath.Join(t.TempDir(), "it's a long name")
		s.Hold()
		s.Begin("pwd", dir)
		if r := s.End(); r.Status == 0 || strings.Contains(r.Output, "\n"+dir) || r.Dir != s.Home {
			t.Errorf("in a directory that does not exist: %+v", r)
		}
		s.Prompt()
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		s.Hold()
		s.Begin("pwd", dir)
		if got, want := s.End(), (Result{dir + "\r\n", 0, dir}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if p := s.Prompt(); p.Dir != dir {
			t.Errorf("the prompt is in %s", p.Dir)
		}
	})

	run("the user's status stays", func(t *testing.T, s *Shell) {
		s.Enter("sh -c 'exit 7'")
		s.AwaitText("7>")
		s.Run("true")
		s.Run("sh -c 'exit 4'")
		if p := s.Enter("echo was " + w.Status); p.Status != 0 {
			t.Errorf("the line ended with %d", p.Status)
		}
		s.AwaitText("was 7\n")
	})
}

// line tests that what the user was typing outlives a borrowed command.
func line(run runner, w Words) {
	run("an unbound key leaves nothing", func(t *testing.T, s *Shell) {
		s.Enter(w.Unbind)
		s.Type("echo " + s.dialect.HoldKey + "ok" + s.dialect.HoldKey + "\r")
		s.Prompt()
		s.AwaitText("> echo ok\nok\n")
	})

	for name, keys := range map[string]string{
		"a half-typed line":     "echo a half; echo line",
		"one with wide letters": "echo 日本 éè x ünd",
		"a long one":            "\x1b[200~echo " + strings.Repeat("long ", 400) + "end\x1b[201~",
		"one of several lines":  "\x1b[200~echo 'a\nb\n\nc' \n\x1b[201~",
	} {
		run(name+" comes back", func(t *testing.T, s *Shell) {
			s.Type(keys + "\x1b[D\x1b[D")
			typed := strings.NewReplacer("\x1b[200~", "", "\x1b[201~", "").Replace(keys)
			before := s.Hold()
			if want := (Held{"ready", "-", len([]rune(typed)) - 2, typed}); before != want {
				t.Fatalf("got %+v, want %+v", before, want)
			}
			s.Erase()
			s.Begin("echo borrowed", "")
			s.End()
			s.Prompt()
			s.Give(before)
			if after := s.Hold(); after != before {
				t.Errorf("got %+v, want %+v", after, before)
			}
			s.Direct("none")
		})
	}

	run("a given line replaces the one that is there", func(t *testing.T, s *Shell) {
		s.Type("something")
		s.Hold()
		s.write(s.Folder, map[string]string{"line": "echo given; echo lin"})
		s.Direct("line 19")
		s.AwaitText("> echo given; echo lin")
		s.Type("\x05e\r")
		s.Prompt()
		s.AwaitText("\ngiven\nline\n")
	})
}

// usersOwn tests that the user's own commands and their history are as without sublet.
func usersOwn(run runner, w Words) {
	run("the user's own commands are reported", func(t *testing.T, s *Shell) {
		long := "echo " + strings.Repeat("0123456789", 500)
		for _, line := range []string{"echo  'one  two'", long} {
			s.Type("\x1b[200~" + line + "\x1b[201~\r")
			s.Mark('B')
			if w.Late {
				s.Prompt()
				continue
			}
			if got, want := s.Record("B"), line[:min(len(line), 3000)]; got != want {
				t.Errorf("began: got %+v, want %+v", got, want)
			}
			s.Prompt()
		}
		s.Run("true")
		if n := s.Count("B"); n != 2 && !w.Late {
			t.Errorf("%d commands of the user's began, want 2", n)
		}
	})

	run("the history is untouched", func(t *testing.T, s *Shell) {
		s.Enter("echo first")
		s.Enter("echo second")
		s.Run("echo borrowed")
		s.Run("sleep 0")
		s.Type("\x1b[A")
		s.AwaitText("> echo second")
		s.Type("\x1b[A")
		s.AwaitText("> echo first")
		s.Type("\r")
		s.Prompt()
		s.Run("true")
		s.Enter(w.History + " >hist")
		text, err := os.ReadFile(filepath.Join(s.Home, "hist"))
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"sublet", "borrowed", "sleep", "true"} {
			if strings.Contains(string(text), word) {
				t.Errorf("the history has %q: %s", word, text)
			}
		}
		for _, line := range []string{"echo first", "echo second"} {
			if !strings.Contains(string(text), line) {
				t.Errorf("the history does not have %q: %s", line, text)
			}
		}
	})
}

// terminal tests commands that use the terminal, keys that end or stop them, and signals.
func terminal(run runner, w Words) {
	run("a running command is interrupted", func(t *testing.T, s *Shell) {
		s.Enter("sh -c 'exit 7'")
		s.Hold()
		s.Erase()
		s.Begin("sh -c 'echo started; exec sleep 1000'; echo not this", "")
		s.AwaitText("started")
		s.Type("\x03")
		// Where the shell drops the rest of the line, the prompt is the end.
		m := s.Mark('P')
		status := strings.Fields(s.Record("P"))[0]
		if s.Count("E") > 0 {
			status = strconv.Itoa(s.End().Status)
		}
		if m.Nonce != "n1" || status != "130" {
			t.Errorf("ended with mark %+v, status %s", m, status)
		}
		if strings.Contains(strings.Join(s.Screen(), "\n"), "not this") {
			t.Error("it went on after ^C")
		}
		s.Run("") // where the interrupted line could not put the status back
		s.Enter("echo was " + w.Status)
		s.AwaitText("was 7\n")
	})

	run("a command reads the terminal", func(t *testing.T, s *Shell) {
		s.Hold()
		s.Erase()
		s.Begin("cat; echo end", "")
		s.Type("typed\r\x04")
		if r := s.End(); r.Output != "typed\r\ntyped\r\nend\r\n" {
			t.Errorf("got %+v", r)
		}
		s.Prompt()
	})

	run("a running command is stopped, and a job", func(t *testing.T, s *Shell) {
		s.Hold()
		s.Erase()
		s.Begin("sh -c 'echo started; exec sleep 1000'", "")
		s.AwaitText("started")
		s.Type("\x1a")
		s.End()
		s.Prompt()
		if r := s.Run("jobs"); !strings.Contains(r.Output, "sleep") {
			t.Errorf("got %+v", r)
		}
		s.Type("fg\r")
		s.Mark('B')
		s.Await("the job in the foreground", func() bool { return s.Foreground() != s.PID })
		s.Type("\x03")
		s.Prompt()
	})

	run("a signal does not end the hold", func(t *testing.T, s *Shell) {
		s.Enter("sh -c 'sleep 0.1; touch done' &")
		s.Hold()
		s.Await("the end of the job", func() bool {
			_, err := os.Stat(filepath.Join(s.Home, "done"))
			return err == nil
		})
		s.Signal("CHLD")
		s.Signal("WINCH")
		if st := s.State(); st.Vars["HOME"] != s.Home {
			t.Errorf("HOME is %q", st.Vars["HOME"])
		}
		s.Direct("none")
		s.Run("true")
		s.Enter("echo ok")
		s.AwaitText("\nok\n")
	})
}

// Give puts the line back that was there before a borrowed command, where the shell has not done that by itself.
func (s *Shell) Give(before Held) {
	s.t.Helper()
	if h := s.Hold(); h.Line != "" {
		s.Direct("none")
		return
	}
	s.write(s.Folder, map[string]string{"line": before.Line})
	s.Direct("line " + strconv.Itoa(before.Cursor))
}
