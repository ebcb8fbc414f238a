package shell

import (
	"context"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// keys types into a running command when its output holds a text.
type keys struct{ when, typed string }

// drive runs a command and types: each line once, when what it waits for was printed since the one before.
func drive(t *testing.T, s *Shell, c Command, script []keys) Result {
	t.Helper()
	var mu sync.Mutex
	var seen strings.Builder
	next := 0
	out := c.Output
	c.Output = func(p []byte) {
		mu.Lock()
		defer mu.Unlock()
		if out != nil {
			out(p)
		}
		seen.Write(p)
		for next < len(script) && strings.Contains(seen.String(), script[next].when) {
			_, rest, _ := strings.Cut(seen.String(), script[next].when)
			seen.Reset()
			seen.WriteString(rest)
			if _, err := s.Write([]byte(script[next].typed)); err != nil {
				t.Errorf("write: %v", err)
			}
			next++
		}
	}
	r := do(t, s, c)
	if next < len(script) {
		t.Errorf("%q: never printed %q", c.Text, script[next].when)
	}
	return r
}

// Programs that read the keyboard, typed to by a person (T6a).
func TestKeyboard(t *testing.T) {
	t.Parallel()
	cases := []struct {
		text   string
		script []keys
		exit   int
		want   string
	}{
		{"read -p 'name? ' x; echo \"hi $x\"", []keys{{"name? ", "bob\n"}}, 0, "hi bob"},
		{"read -s -p 'secret: ' x; echo; echo ${#x}", []keys{{"secret: ", "hunter2\n"}}, 0, "7"},
		{"echo go; cat", []keys{{"go", "one\n"}, {"one\r\none", "\x04"}}, 0, "one\none"},
		{"sh -c 'echo go; exec sleep 100'", []keys{{"go", "\x03"}}, 130, "go"},
		{"sh -c 'echo go; exec sleep 100'; echo after", []keys{{"go", "\x03"}}, 130, "go"},
		{"echo go; while :; do :; done", []keys{{"go", "\x03"}}, 130, "go"},
		{"sh -c 'echo go; exec sleep 100'", []keys{{"go", "\x1c"}}, 131, "go"},
		{"python3 -q -c 'print(input(\"in: \").upper())'", []keys{{"in: ", "word\n"}}, 0, "WORD"},
		{"PS1='nest> ' bash --norc --noediting -i", []keys{{"nest> ", "echo nested-$((1+1))\n"}, {"nested-2", "exit 5\n"}}, 5, "nested-2"},
		{"stty raw -echo; echo go; dd bs=1 count=1 2>/dev/null | od -An -c; stty sane", []keys{{"go", "\x03"}}, 0, "003"},
	}
	if runtime.GOOS == "linux" {
		cases = append(cases, struct {
			text   string
			script []keys
			exit   int
			want   string
		}{"python3 -q", []keys{{">>> ", "6*7\n"}, {"42", "exit()\n"}}, 0, "42"})
	}
	for _, c := range cases {
		t.Run(label(c.text), func(t *testing.T) {
			t.Parallel()
			s := start(t, nil)
			r := drive(t, s, user(c.text), c.script)
			if r.Status != "ok" || exit(r) != c.exit || !strings.Contains(string(r.Output), c.want) || strings.Contains(string(r.Output), "after") {
				t.Errorf("got %s, exit %d, %q; want %d, %q", r.Status, exit(r), r.Output, c.exit, c.want)
			}
			if r := do(t, s, user("echo back")); string(r.Output) != "back\n" {
				t.Errorf("afterwards: got %q", r.Output)
			}
		})
	}
}

// Ctrl-Z gives the prompt back, fg goes on (job control of a user's command).
func TestStopAndContinue(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	r := drive(t, s, user("sh -c 'echo go; read x; echo got $x'"), []keys{{"go", "\x1a"}})
	if r.Status != "ok" || exit(r) != 148 || r.Signal != "SIGTSTP" {
		t.Fatalf("got %s, exit %d, signal %s, %q", r.Status, exit(r), r.Signal, r.Output)
	}
	if r := do(t, s, user("jobs")); !strings.Contains(string(r.Output), "Stopped") {
		t.Errorf("jobs: got %q", r.Output)
	}
	if r := do(t, s, leased("echo lent meanwhile")); string(r.Output) != "lent meanwhile\n" {
		t.Errorf("got %q", r.Output)
	}
	r = drive(t, s, user("fg"), []keys{{"sh -c", "line\n"}})
	if exit(r) != 0 || !strings.Contains(string(r.Output), "got line") {
		t.Errorf("fg: got exit %d, %q", exit(r), r.Output)
	}
}

// What a borrower's program does with the keyboard is told (T2g, T6a): password, screen, input, and the end of each.
func TestHandOver(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, text string
		want       []string
		typed      map[string]string // by why
		out        string
		linux      bool // can be told on Linux only
	}{
		{"password by read", "read -s -p 'Password: ' x; echo; echo len ${#x}", []string{"password", ""}, map[string]string{"password": "hunter2\n"}, "len 7", false},
		{"password by a program", `python3 -c 'import getpass; print(len(getpass.getpass()))'`, []string{"password", ""}, map[string]string{"password": "abc\n"}, "3", false},
		{"question", "read -p 'sure? [y/n] ' x; echo got $x", []string{"input", ""}, map[string]string{"input": "y\n"}, "got y", true},
		{"question with a time-out", "read -t 50 -p 'sure? [y/n] ' x; echo got $x", []string{"input", ""}, map[string]string{"input": "y\n"}, "got y", true},
		{"question with a line editor", "read -e -p 'name: ' x; echo got $x", []string{"input", ""}, map[string]string{"input": "bob\n"}, "got bob", true},
		{"question of a program", `python3 -c 'print(input("more? "))'`, []string{"input", ""}, map[string]string{"input": "yes\n"}, "yes", true},
		{"question in a pipeline", `sh -c 'printf "q? " >/dev/tty; read a </dev/tty; echo got $a' | cat`, []string{"input", ""}, map[string]string{"input": "k\n"}, "got k", true},
		{"question in a subshell", "set -e; read -p 'sure? ' x; echo got $x", []string{"input", ""}, map[string]string{"input": "y\n"}, "got y", true},
		{"full screen", `printf '\e[?1049h'; read -n1 x; printf '\e[?1049l'; echo out`, []string{"screen", ""}, map[string]string{"screen": "q"}, "out", false},
		{"question on a thread", python(`from threading import Thread; t = Thread(target=lambda: print("got", input("more? "))); t.start(); t.join()`), []string{"input", ""}, map[string]string{"input": "yes\n"}, "got yes", true},
		{"question, then poll", python(`import select; print("more? ", end="", flush=True); p = select.poll(); p.register(0, 1); p.poll(); print("got", input())`), []string{"input", ""}, map[string]string{"input": "yes\n"}, "got yes", true},
		{"question, then select", python(`import select; print("Do you want to continue? [Y/n]", end="", flush=True); select.select([0], [], []); print("got", input())`), []string{"input", ""}, map[string]string{"input": "yes\n"}, "got yes", true},
		{"question, then epoll", python(`import select; print("name: ", end="", flush=True); p = select.epoll(); p.register(0, 1); p.poll(); print("got", input())`), []string{"input", ""}, map[string]string{"input": "yes\n"}, "got yes", true},
		{"question, waits for others", python(`import select, os; print("connecting: ", end="", flush=True); select.select([os.pipe()[0]], [], [], 0.6); p = select.poll(); p.register(os.pipe()[0], 1); p.poll(300); print("done")`), nil, nil, "done", true},
		{"no question", python(`import select; print("building... 45%", end="", flush=True); select.select([0], [], [], 0.6); print(); print("done"); select.select([0], [], [], 0.6)`), nil, nil, "done", true},
		{"none", "sleep 0.6; echo quiet", nil, nil, "quiet", false},
		{"busy", "for i in 1 2 3 4 5; do sleep 0.15; echo $i; done", nil, nil, "5", false},
	}
	for _, c := range cases {
		if c.linux && runtime.GOOS != "linux" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, nil)
			var got []string
			var mu sync.Mutex
			cmd := leased(c.text)
			cmd.Keyboard = func(why string) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, why)
				if text, ok := c.typed[why]; ok {
					if _, err := s.Write([]byte(text)); err != nil {
						t.Error(err)
					}
				}
			}
			r := do(t, s, cmd)
			if !strings.Contains(string(r.Output), c.out) {
				t.Errorf("got %q, want %q", r.Output, c.out)
			}
			if strings.Contains(string(r.Output), "hunter2") {
				t.Errorf("the password shows: %q", r.Output)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("told %q, want %q", got, c.want)
			}
			if noted := strings.Contains(strings.Join(r.Notes, " "), "keyboard"); noted != (c.want != nil) {
				t.Errorf("notes: got %q", r.Notes)
			}
		})
	}
}

// A question behind a long silence was noticed up to 2 s late. What is late once may be the machine's doing.
func TestQuestionBehindASilence(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	var late time.Duration
	for range 3 {
		var asked time.Time
		cmd := leased(`sleep 3.5; sh -c 'printf "name? "; read x'`)
		cmd.Output = func([]byte) { asked = time.Now() }
		cmd.Keyboard = func(why string) {
			if why == "input" {
				late = time.Since(asked)
				if _, err := s.Write([]byte("\n")); err != nil {
					t.Error(err)
				}
			}
		}
		if do(t, s, cmd); late < time.Second {
			return
		}
	}
	t.Errorf("noticed after %v", late)
}

func python(program string) string { return "python3 -c " + quote(program) }

// What asks, by the look of it.
func TestAsks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"Do you want to continue? [Y/n] ": true, "sure? ": true, "Enter a value: ": true, "\x1b[1mOk to proceed?\x1b[0m (y) ": true,
		"root@vm:/# ": true, ">>> ": true, "$ ": true, "Stage this hunk [y,n,q,a,d,e,?]? ": true, "--More--(45%)": true,
		"Press [ENTER] to continue or Ctrl-c to cancel.\r\n": true, "Press any key to continue . . . ": true, "Pick one [1-3]": true,
		"": false, "done\r\n": false, "what?\r\n": false, "Reading package lists... ": false, "building 45%": false, "[=====>    ]": false,
		"####": false, "=====>": false, "Progress: [ 45%]": false, "Unpacking foo (1.2.3) ...": false, "name: \r": false,
		"\x1b[?1049hname: ": false,
	} {
		scr := newScreen(80, func([]byte) {})
		scr.Write([]byte(text))
		if got := scr.asks(); got != want {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

// A resize reaches the program in the terminal.
func TestResize(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *Options) { o.Size = Size{Cols: 100, Rows: 30} })
	if r := do(t, s, user("stty size; echo $COLUMNS")); string(r.Output) != "30 100\n100\n" {
		t.Errorf("got %q", r.Output)
	}
	c := user(`bash -c 'trap "stty size; exit" WINCH; echo go; while :; do sleep 0.05; done'`)
	var once sync.Once
	c.Output = func([]byte) {
		once.Do(func() {
			if err := s.Resize(Size{Cols: 120, Rows: 40, PixelWidth: 1200, PixelHeight: 800}); err != nil {
				t.Error(err)
			}
		})
	}
	if r := do(t, s, c); !strings.Contains(string(r.Output), "40 120") {
		t.Errorf("got %q", r.Output)
	}
	if err := s.Resize(Size{Cols: -1, Rows: 1 << 20}); err != nil {
		t.Error(err)
	}
}

// The foreground group tells that the shell is busy (T1d).
func TestForeground(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	if pgid, own := s.Foreground(); !own || pgid != s.PID() {
		t.Errorf("idle: got %d, %v; shell %d", pgid, own, s.PID())
	}
	c := leased("sh -c 'echo go; sleep 100'")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c.Output = func([]byte) {
		if ctx.Err() != nil {
			return
		}
		if pgid, own := s.Foreground(); own || pgid == s.PID() || pgid == 0 {
			t.Errorf("busy: got %d, %v; shell %d", pgid, own, s.PID())
		}
		cancel()
	}
	if r, err := s.Run(ctx, c); err != nil || r.Status != "cancelled" {
		t.Errorf("got %+v, %v", r, err)
	}
}

// Another command is refused while one runs; questions are, too; and the shell is free afterwards.
func TestBusy(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := leased("echo go; sleep 100")
	checked := make(chan struct{})
	var once sync.Once
	c.Output = func([]byte) {
		once.Do(func() {
			go func() { // not from the callback: it must not block
				defer close(checked)
				defer cancel()
				if _, err := s.Run(t.Context(), user("true")); err != ErrBusy {
					t.Errorf("run: got %v", err)
				}
				if _, err := s.Prompt(t.Context()); err != ErrBusy {
					t.Errorf("prompt: got %v", err)
				}
				if _, _, err := s.Complete(t.Context(), "ec", 2); err != ErrBusy {
					t.Errorf("complete: got %v", err)
				}
				if _, err := s.State(t.Context()); err != ErrBusy {
					t.Errorf("state: got %v", err)
				}
				if err := s.Undo(t.Context(), State{}, State{}); err != ErrBusy {
					t.Errorf("restore: got %v", err)
				}
			}()
		})
	}
	if r, err := s.Run(ctx, c); err != nil || r.Status != "cancelled" {
		t.Errorf("got %+v, %v", r, err)
	}
	<-checked
	if r := do(t, s, user("echo free")); string(r.Output) != "free\n" {
		t.Errorf("got %q", r.Output)
	}
}

// Close leaves no process and no file, whatever runs (T6d); a person's nohup is respected, a private shell's is not.
func TestClose(t *testing.T) {
	t.Parallel()
	for _, private := range []bool{false, true} {
		for _, text := range []string{"", "sleep 1000", "sh -c 'trap \"\" HUP TERM; sleep 1000'", "while :; do :; done", "read x", "trap '' HUP; sleep 1000"} {
			s, err := Start(t.Context(), Options{RC: NoRC, Folder: t.TempDir(), Env: testEnv(t), Private: private})
			if err != nil {
				t.Fatal(err)
			}
			pid := s.PID()
			stays := strings.Contains(text, "HUP") && !private && runtime.GOOS == "linux" // as a closed window leaves it
			do(t, s, leased("sleep 1001 &"))
			done := make(chan Result, 1)
			if text == "" {
				close(done)
			} else {
				began := make(chan struct{})
				go func() {
					r, _ := s.Run(context.Background(), Command{Text: text, User: true, Started: func() { close(began) }})
					done <- r
				}()
				await(t, began, "the start of "+text)
				if stays {
					awaitTrue(t, "its program", func() bool { return runs(s, "sleep 1000") })
				}
			}
			start := time.Now()
			if err := s.Close(); err != nil {
				t.Errorf("%q: %v", text, err)
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("%q: close took %v", text, took)
			}
			if r, ok := <-done; ok && r.Status != "shell_exited" && r.Status != "cancelled" {
				t.Errorf("%q: got status %q", text, r.Status)
			}
			deadline := time.Now().Add(5 * time.Second)
			for len(sessionOf(pid)) > 0 && !stays && time.Now().Before(deadline) {
				time.Sleep(5 * time.Millisecond) // the kernel's hang-up is not told to us
			}
			if stays {
				var names []string
				eachProcess(inSession(pid), func(st procStat) {
					names = append(names, st.Name)
					_ = syscall.Kill(st.PID, syscall.SIGKILL)
				})
				if got := strings.Join(names, " "); !strings.HasSuffix(got, "sleep") || strings.Contains(got, "bash") {
					t.Errorf("%q: left %q, want what ignores SIGHUP", text, got)
				}
			} else if left := sessionOf(pid); len(left) > 0 {
				t.Errorf("%q (private %v): left %v", text, private, left)
			}
			if err := s.Close(); err != nil {
				t.Errorf("second close: %v", err)
			}
		}
	}
	s, err := Start(t.Context(), Options{RC: NoRC, Folder: t.TempDir(), Env: testEnv(t)})
	if err != nil {
		t.Fatal(err)
	}
	r := do(t, s, user("nohup sleep 1002 >/dev/null 2>&1 & echo $!"))
	pid := strings.TrimSpace(string(r.Output))
	pid = pid[strings.LastIndexByte(pid, '\n')+1:]
	for end := time.Now().Add(slack); time.Now().Before(end); time.Sleep(5 * time.Millisecond) { // nohup takes a moment to be deaf
		if name, err := exec.Command("ps", "-o", "comm=", "-p", pid).Output(); err == nil && strings.TrimSpace(string(name)) == "sleep" {
			break
		}
	}
	s.Close()
	if err := exec.Command("kill", "-0", pid).Run(); err != nil {
		t.Errorf("nohup was not respected: %v", err)
	}
	_ = exec.Command("kill", "-9", pid).Run()
}

func sessionOf(sid int) (list []string) {
	eachProcess(inSession(sid), func(st procStat) { list = append(list, itoa(st.PID)+" "+st.Name) })
	return list
}
