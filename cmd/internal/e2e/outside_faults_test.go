package e2e

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// mock starts aimock, a server that plays OpenAI's and Anthropic's, with these fixtures and the faults that its options name.
func (w *world) mock(fixtures string, faults ...string) (url string) {
	w.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	addr := ln.Addr().(*net.TCPAddr)
	ln.Close()
	w.write(w.path("fixtures/all.json"), fixtures)
	program, err := filepath.Abs("testdata/outside/node_modules/.bin/llmock")
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(program, append([]string{"-p", fmt.Sprint(addr.Port), "-f", w.path("fixtures"), "--log-level", "silent"}, faults...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait() // killed
	})
	w.await("aimock to listen", func() bool {
		c, err := net.Dial("tcp", addr.String())
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return "http://" + addr.String()
}

// A provider that fails in another implementation's ways (HTTP 500, 429, broken JSON, a connection that ends, a stream that is cut)
// costs a turn nothing but time, or the turn ends with an error that says what happened. An answer that broke off is never given out.
func TestOutsideFaults(t *testing.T) {
	needOutside(t)
	const whole = "There are three files in this folder."
	const cut = `{"fixtures": [
 {"match": {"userMessage": "what", "sequenceIndex": 0}, "response": {"content": "An answer that breaks off in the middle."}, "truncateAfterChunks": 2, "chunkSize": 10},
 {"match": {"userMessage": "what"}, "response": {"content": "` + whole + `"}}
]}`
	const work = `{"fixtures": [
 {"match": {"userMessage": "what", "hasToolResult": true}, "response": {"content": "` + whole + `"}},
 {"match": {"userMessage": "what"}, "response": {"toolCalls": [{"id": "call_1", "name": "bash", "arguments": {"command": "ls"}}]}}
]}`
	for _, p := range []struct{ name, settings string }{
		{"chat", "kind = \"openai\"\napi = \"chat\"\nbase_url = \"$url/v1\""},
		{"responses", "kind = \"openai\"\napi = \"responses\"\nbase_url = \"$url/v1\""},
		{"anthropic", "kind = \"anthropic\"\nbase_url = \"$url\""},
	} {
		ask := func(t *testing.T, fixtures string, times int, faults ...string) (answered int, tries string) {
			w := newWorld(t, "", nil)
			settings := strings.ReplaceAll(p.settings, "$url", w.mock(fixtures, faults...))
			w.write(w.path("config.toml"), "model = \"mine/m\"\n[provider.mine]\napi_key_env = \"KEY\"\n"+settings+"\n")
			w.env = append(w.env, "KEY=none")
			for range times {
				out, errs, status := w.sublet("ask", "what is it")
				tries += errs
				switch {
				case status == 0 && out == whole+"\n":
					answered++
				case status != 0 && out == "" && strings.Contains(errs, "error: mine: "):
				default:
					t.Errorf("got %d, %q, %q", status, out, errs)
				}
			}
			return answered, tries
		}
		t.Run(p.name+" cut", func(t *testing.T) {
			if answered, tries := ask(t, cut, 1); answered != 1 || !strings.Contains(tries, "broke off") {
				t.Errorf("answered %d of 1: %s", answered, tries)
			}
		})
		t.Run(p.name, func(t *testing.T) {
			faults := []string{"--chaos-drop", "0.15", "--chaos-malformed", "0.15", "--chaos-disconnect", "0.15", "--chaos-ratelimit", "0.1"}
			answered, tries := ask(t, work, 8, faults...)
			if answered == 0 || !strings.Contains(tries, "waiting") {
				t.Errorf("answered %d of 8: %s", answered, tries)
			}
			t.Logf("answered %d of 8", answered)
		})
	}
}
