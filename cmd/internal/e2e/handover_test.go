package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"sublet/wire/citest"
)

// modelServer plays an OpenAI-compatible model that runs the commands, one after the other, and then says that it is
// done. What it is sent is recorded.
func modelServer(t *testing.T, commands []string) (url string, sent *citest.Buffer) {
	sent = &citest.Buffer{}
	var mu sync.Mutex
	next := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(sent, r.Body); err != nil {
			t.Error(err)
		}
		if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
			fmt.Fprint(w, `{"data":[{"id":"m"}]}`)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		delta, finish := any(map[string]string{"content": "All is done."}), "stop"
		if next < len(commands) {
			arguments, err := json.Marshal(map[string]string{"command": commands[next]})
			if err != nil {
				t.Error(err)
			}
			delta = map[string]any{"tool_calls": []any{map[string]any{
				"index": 0, "id": fmt.Sprint("call", next), "type": "function",
				"function": map[string]string{"name": "bash", "arguments": string(arguments)},
			}}}
			finish = "tool_calls"
			next++
		}
		line, err := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta}}})
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", line, finish)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1", sent
}

// recordSocket starts the daemon behind a proxy that records what is said on the socket, both ways.
func (w *world) recordSocket() *citest.Buffer {
	w.t.Helper()
	behind := filepath.Join(w.root, "run2")
	if err := os.Mkdir(behind, 0o700); err != nil {
		w.t.Fatal(err)
	}
	daemon := exec.Command(binary, "daemon", "run", "--stay")
	daemon.Env = append(slices.Clone(w.env), "SUBLET_RUNTIME_DIR="+behind)
	if err := daemon.Start(); err != nil {
		w.t.Fatal(err)
	}
	socket := filepath.Join(behind, "daemon.sock")
	w.await("the daemon's socket", func() bool { _, err := os.Stat(socket); return err == nil })
	ln, err := net.Listen("unix", w.path("run/daemon.sock"))
	if err != nil {
		w.t.Fatal(err)
	}
	said := &citest.Buffer{}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return // closed below
			}
			server, err := net.Dial("unix", socket)
			if err != nil {
				client.Close()
				continue
			}
			pass := func(to, from net.Conn) {
				_, _ = io.Copy(io.MultiWriter(to, said), from) // ends with either side
				to.Close()
			}
			work.Go(func() { pass(server, client) })
			work.Go(func() { pass(client, server) })
		}
	})
	w.t.Cleanup(func() {
		stop := exec.Command(binary, "daemon", "stop") // the test's context is over
		stop.Env = w.env
		if out, err := stop.CombinedOutput(); err != nil {
			w.t.Errorf("daemon stop: %v: %s", err, out)
		}
		ln.Close()
		work.Wait()
		if err := daemon.Wait(); err != nil {
			w.t.Errorf("the daemon: %v", err)
		}
	})
	return said
}

// An agent's command that asks is answered in place, under a clear sign: passwords, questions, calculators, full-screen
// programs. A program that is none of the system's for passwords is asked about first. What was typed with echo off is nowhere
// but in the daemon's memory: not on the screen or the way to the model, in no log, store, spool or audit, also where the
// command prints it, in pieces or in base64. Where bash itself reads it into a variable, that is unset: what bash keeps is in the
// snapshot from which a shell that dies is restored, like all its variables.
func TestHandOver(t *testing.T) {
	const secret, printed = "zq7Hunter-Xw9", "kV4Correct/Horse"
	steps := []struct {
		needs, command, sign string
		keys                 [][2]string // what is typed, and what is then seen
	}{
		{"bash", "read -rsp 'Password: ' p; echo; echo \"got ${#p} letters\"; unset p", `type the secret that bash asks for`, [][2]string{{secret + enter, `got 13 letters`}}},
		{"base64", "read -rsp 'Token: ' t; echo; echo \"said $t, ${t:0:8}, $(printf 'x=%s' \"$t\" | base64)\"; unset t", `type the secret`, [][2]string{{printed + enter, `^said kV4`}}},
		// What sudo and ssh do: they ask on the terminal, whatever their input is.
		{"bash", "echo piped | ./ask", `type the secret`, [][2]string{{secret + enter, `asked for 13 letters`}}},
		{"bash", "read -rp 'sure? [y/n] ' x; echo \"chose $x\"", `your keyboard is this command's`, [][2]string{{"y" + enter, `chose y`}}},
		{"python3", "python3 -q", `your keyboard is this command's`, [][2]string{{"print('a' + 'b', 6 * 7)\r", `^ab 42`}, {"exit()\r", ``}}},
		{"bc", "bc -q", `your keyboard is this command's`, [][2]string{{"6 * 70\r", `^420`}, {"quit\r", ``}}},
		{"less", "less page.txt", `your screen and keyboard`, [][2]string{{"G", `^the last line`}, {"q", ``}}},
		{"vim", "vim -u NONE -i NONE page.txt", `your screen and keyboard`, [][2]string{{":q!\r", ``}}},
	}
	var commands []string
	for i := 0; i < len(steps); i++ {
		if _, err := exec.LookPath(steps[i].needs); err != nil {
			t.Logf("%s is not on this machine", steps[i].needs)
			steps = append(steps[:i:i], steps[i+1:]...)
			i--
			continue
		}
		commands = append(commands, steps[i].command)
	}
	w := newWorld(t, "", nil)
	url, sent := modelServer(t, commands)
	w.write(w.path("config.toml"), fmt.Sprintf("model = \"mine/m\"\n[policy]\nmode = \"auto\"\n[provider.mine]\nkind = \"openai\"\nbase_url = %q\n", url))
	w.write(filepath.Join(w.project, "page.txt"), strings.Repeat("line\n", 200)+"the last line\n")
	w.write(filepath.Join(w.project, "ask"), "#!/bin/bash\nread -rsp 'Secret: ' p </dev/tty; echo; echo \"asked for ${#p} letters\"\n")
	if err := os.Chmod(filepath.Join(w.project, "ask"), 0o700); err != nil {
		t.Fatal(err)
	}
	said := w.recordSocket()
	term := w.openShell()
	term.ask("go on then")
	for i, s := range steps {
		// In the bytes: a full-screen program's screen shows nothing but it.
		seen := func() bool { return strings.Count(term.bytes(), "⌨ ") > i }
		term.allow("the keyboard to be handed to: "+s.command, seen)
		if all := term.bytes(); !strings.Contains(all[strings.LastIndex(all, "⌨ "):], s.sign) {
			t.Errorf("%s: no sign %q:\n%s", s.command, s.sign, term.text())
		}
		for _, k := range s.keys {
			term.send(k[0])
			if k[1] != "" {
				term.see(k[1])
			}
		}
	}
	term.see(`All is done\.`)
	// The user's own command that asks. What was typed before a question was armed stays in the line: not an answer. What is
	// typed right behind a program that had the keyboard is dropped.
	term.answer(ctrlU+tab, func() bool { return atShell(term.cursorLine()) })
	term.run("read -rsp 'Mine: ' p; echo; echo \"own: ${#p} letters\"; unset p", `^Mine:`)
	term.send(secret, enter)
	term.see(`^own: 13 letters$`)
	term.run("echo mine again", `^mine again$`)
	told := regexp.MustCompile(`(?s)SecretTyped.{1,10}` + secret) // what the daemon is to mask
	for name, text := range map[string]string{"the wire": told.ReplaceAllString(said.String(), "SecretTyped"), "the model's requests": sent.String(), "the terminal": term.bytes()} {
		if !strings.Contains(text, "letters") {
			t.Errorf("%s was not recorded: %d bytes", name, len(text))
		}
		if strings.Contains(text, secret) {
			at := strings.Index(text, secret)
			t.Errorf("what was typed with echo off is on %s: %q", name, text[max(0, at-40):min(len(text), at+40)])
		}
	}
	parts := []string{secret, printed[:8], printed[8:], base64.StdEncoding.EncodeToString([]byte("x=" + printed))[4:20]}
	for _, part := range parts {
		if strings.Contains(sent.String(), part) {
			t.Errorf("the model was sent %q", part)
		}
	}
	w.keptNowhere(parts...)
}

// keptNowhere fails if one of the parts is in a file of the world.
func (w *world) keptNowhere(parts ...string) {
	w.t.Helper()
	files := 0
	err := filepath.WalkDir(w.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		files++
		for _, part := range parts {
			if bytes.Contains(raw, []byte(part)) {
				w.t.Errorf("what was typed with echo off is in %s: %s", path, part)
			}
		}
		return err
	})
	if err != nil || files < 5 {
		w.t.Errorf("looked into %d files: %v", files, err)
	}
}
