package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sourcegraph/go-lsp"
	"github.com/sourcegraph/jsonrpc2"

	"sublet/wire/visible"
)

// A fake is a server in memory. It reports each word of a text that begins with bad.
type fake struct {
	t        *testing.T
	starts   int
	end      func()
	conn     *jsonrpc2.Conn
	why      string
	others   map[string]*fake               // for these programs
	begin    error                          // of its start
	raw      func(c net.Conn)               // what it does instead of speaking the protocol
	pull     bool                           // it is asked for reports
	refusals int                            // how many of these questions it answers with an error; -1: all
	empty    int                            // how many of them it answers without a problem, as if it had not loaded the project
	refuse   string                         // its answer to initialize is this error
	mute     bool                           // it leaves questions without an answer
	answer   func(c *jsonrpc2.Conn, at any) // instead of its reports
	watched  []lsp.FileEvent
	received []string
	mu       sync.Mutex
}

func (f *fake) start(_ string, args []string) (Program, error) {
	if other := f.others[args[0]]; other != nil {
		return other.start("", args)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.starts++
	if f.begin != nil {
		return Program{}, f.begin
	}
	ours, its := net.Pipe()
	end := its.Close
	if f.raw != nil {
		go f.raw(its)
	} else {
		c := jsonrpc2.NewConn(context.Background(), jsonrpc2.NewBufferedStream(its, jsonrpc2.VSCodeObjectCodec{}), f)
		f.conn, end = c, c.Close
	}
	f.end = func() { _ = errors.Join(ours.Close(), end()) }
	return Program{Reader: ours, Writer: ours, End: sync.OnceFunc(f.end), Why: func() string { return f.why }}, nil
}

func (f *fake) Handle(ctx context.Context, c *jsonrpc2.Conn, r *jsonrpc2.Request) {
	f.mu.Lock()
	f.received = append(f.received, r.Method)
	f.mu.Unlock()
	var p struct {
		TextDocument   lsp.TextDocumentItem
		ContentChanges []struct{ Text string }
		Changes        []lsp.FileEvent
	}
	if r.Params != nil {
		_ = json.Unmarshal(*r.Params, &p)
	}
	if len(p.ContentChanges) > 0 {
		p.TextDocument.Text = p.ContentChanges[0].Text
	}
	report := func() map[string]any {
		list := []map[string]any{}
		for i, line := range strings.Split(p.TextDocument.Text, "\n") {
			for word := range strings.FieldsSeq(line) {
				if at := map[string]int{"line": i, "character": strings.Index(line, word)}; strings.HasPrefix(word, "bad") {
					list = append(list, map[string]any{"range": map[string]any{"start": at, "end": at}, "severity": 1, "code": 2304, "message": "no\n\x1b[31m" + word})
				} else if strings.HasPrefix(word, "hint") {
					list = append(list, map[string]any{"range": map[string]any{"start": at, "end": at}, "severity": 4, "message": word})
				}
			}
		}
		return map[string]any{"uri": p.TextDocument.URI, "version": p.TextDocument.Version, "diagnostics": list}
	}
	switch r.Method {
	case "initialize":
		if !strings.Contains(string(*r.Params), `"processId":null`) { // TypeScript 7 refuses what has none
			f.t.Errorf("got %s, want a processId", *r.Params)
		}
		if !strings.Contains(string(*r.Params), `"diagnostic":{"refreshSupport":true}`) { // some releases of rust-analyzer read no other name
			f.t.Errorf("got %s, want to be asked again for reports", *r.Params)
		}
		if f.refuse != "" {
			_ = c.ReplyWithError(ctx, r.ID, &jsonrpc2.Error{Code: 1, Message: f.refuse})
			return
		}
		capabilities := map[string]any{}
		if f.pull {
			capabilities["diagnosticProvider"] = map[string]any{"interFileDependencies": true}
		}
		_ = c.Reply(ctx, r.ID, map[string]any{"capabilities": capabilities})
	case "workspace/didChangeWatchedFiles":
		f.mu.Lock()
		f.watched = append(f.watched, p.Changes...)
		f.mu.Unlock()
	case "textDocument/didOpen", "textDocument/didChange":
		switch {
		case f.mute:
		case f.answer != nil:
			f.answer(c, report())
		case !f.pull:
			_ = c.Notify(ctx, "textDocument/publishDiagnostics", report())
		}
	case "textDocument/diagnostic":
		if f.refusals != 0 {
			f.refusals--
			_ = c.ReplyWithError(ctx, r.ID, &jsonrpc2.Error{Code: -32801, Message: "content modified"})
			return
		}
		if f.empty != 0 {
			f.empty--
			_ = c.Reply(ctx, r.ID, map[string]any{"kind": "full", "items": []any{}})
			return
		}
		_ = c.Reply(ctx, r.ID, map[string]any{"kind": "full", "items": []any{map[string]any{"severity": 2, "message": "pulled"}}})
	}
}

func (f *fake) refresh() {
	if err := f.conn.Call(f.t.Context(), "workspace/diagnostic/refresh", nil, nil); err != nil {
		f.t.Error(err)
	}
}

// check asks for three seconds about a file of a project without any.
func (f *fake) check(s *Servers, text string) Finding {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	return s.Check(ctx, f.start, "/no/such", "/no/such/a b.go", []byte(text))
}

func inBubble(t *testing.T, do func(t *testing.T, f *fake, s *Servers)) {
	synctest.Test(t, func(t *testing.T) {
		f, s := &fake{t: t}, &Servers{}
		do(t, f, s)
		s.Close()
		synctest.Wait()
	})
}

func want(t *testing.T, f Finding, lines ...string) {
	t.Helper()
	if f.By != "gopls" || f.Fault != nil || !slices.Equal(f.Lines, lines) {
		t.Errorf("got %+v, want %q", f, lines)
	}
}

// A server that answered a question with an error made Check wait for its end, long after ctx had ended.
func TestRefusedReports(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fake, s *Servers) {
		f.pull, f.refusals = true, 2
		if got := f.check(s, "x"); len(got.Lines) != 1 || got.Fault != nil {
			t.Errorf("got %+v after two errors, want its report", got)
		}
		f.refusals = -1
		begun := time.Now()
		if got := f.check(s, "x"); got.By != "" || got.Fault != nil || time.Since(begun) != 3*time.Second {
			t.Errorf("got %+v after %v, want nothing when ctx ends", got, time.Since(begun))
		}
	})
}

// A server that had not loaded the project reported no problems, and its request to be asked again was ignored.
func TestReportsBeforeTheProjectIsLoaded(t *testing.T) {
	ask := func(f *fake, s *Servers) Finding {
		ctx, cancel := context.WithTimeout(f.t.Context(), 3*time.Second)
		defer cancel()
		return s.Check(ctx, f.start, "/no/such", "/no/such/a.rs", []byte("x"))
	}
	inBubble(t, func(t *testing.T, f *fake, s *Servers) {
		f.pull, f.empty = true, 2
		if got := ask(f, s); got.By != "" || got.Fault != nil {
			t.Errorf("got %+v before it has loaded the project, want nothing", got)
		}
		go func() {
			time.Sleep(time.Second)
			f.refresh()
		}()
		if got := ask(f, s); !slices.Equal(got.Lines, []string{"a.rs:1:1: pulled"}) {
			t.Errorf("got %+v, want the report after its request", got)
		}
		f.empty = 1
		if got := ask(f, s); got.By != "rust-analyzer" || got.Lines != nil {
			t.Errorf("got %+v later, want no problems", got)
		}
	})
}

func TestErrorsAndWarnings(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fake, s *Servers) {
		want(t, f.check(s, "x\n  bad1 bad2\nhint\n"), "a b.go:2:3: no bad1", "a b.go:2:8: no bad2")
		want(t, f.check(s, "x\n"))
		if got := s.Check(t.Context(), f.start, "/no/such", "/no/such/b.go", []byte("bad")); !slices.Equal(got.Lines, []string{"b.go:1:1: no bad"}) {
			t.Errorf("another file: got %+v", got)
		}
		want(t, f.check(s, "bad"), "a b.go:1:1: no bad")
		if got, want := strings.Join(f.received[2:], " "), "textDocument/didOpen textDocument/didChange textDocument/didClose textDocument/didOpen textDocument/didClose textDocument/didOpen"; got != want {
			t.Errorf("got %s, want only the file asked about open", got)
		}
		if f.starts != 1 {
			t.Errorf("got %d starts", f.starts)
		}
		if got := s.Check(t.Context(), f.start, "/no/such", "/no/such/a.txt", nil); got.By != "" {
			t.Errorf("a file of no language: got %+v", got)
		}
	})
	inBubble(t, func(t *testing.T, f *fake, s *Servers) {
		f.pull = true
		want(t, f.check(s, "bad"), "a b.go:1:1: pulled")
	})
}

// A report on an earlier text, on another file, and one that is not understood are none on this one; of several the last counts.
func TestReportsAboutSomethingElse(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fake, s *Servers) {
		f.answer = func(c *jsonrpc2.Conn, report any) {
			send := func(change map[string]any) {
				m := map[string]any{}
				for k, v := range report.(map[string]any) {
					m[k] = v
				}
				for k, v := range change {
					m[k] = v
				}
				_ = c.Notify(context.Background(), "textDocument/publishDiagnostics", m)
			}
			send(map[string]any{"version": 77})
			send(map[string]any{"uri": "file:///no/such/b.go"})
			send(map[string]any{"diagnostics": "none"})
			go func() {
				time.Sleep(time.Second)
				send(map[string]any{"diagnostics": []any{}, "version": nil})
				time.Sleep(settle / 2)
				send(map[string]any{"uri": "file:///no/such/a%20b.go"})
			}()
		}
		want(t, f.check(s, "bad"), "a b.go:1:1: no bad")
	})
}

// A server learns which files changed since it was asked last, whoever changed them.
func TestFilesThatOthersChanged(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	put("a.go", "1")
	put("gone.go", "1")
	f, s := &fake{t: t}, &Servers{}
	defer s.Close()
	ask := func() []lsp.FileEvent {
		if got := s.Check(t.Context(), f.start, dir, filepath.Join(dir, "x.go"), nil); got.By != "gopls" {
			t.Fatalf("got %+v", got)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		list := f.watched
		f.watched = nil
		slices.SortFunc(list, func(a, b lsp.FileEvent) int { return strings.Compare(string(a.URI), string(b.URI)) })
		return list
	}
	if got := ask(); len(got) != 0 {
		t.Errorf("got %v, want nothing that it has read itself", got)
	}
	for _, name := range []string{"sub/new.go", ".git/x.go", "node_modules/x.go", "x.txt", "go.mod"} {
		put(name, "1")
	}
	put("a.go", "22")
	if err := os.Remove(filepath.Join(dir, "gone.go")); err != nil {
		t.Fatal(err)
	}
	event := func(name string, kind int) lsp.FileEvent {
		return lsp.FileEvent{URI: uri(filepath.Join(dir, name)), Type: kind}
	}
	if got, want := ask(), []lsp.FileEvent{event("a.go", 2), event("go.mod", 1), event("gone.go", 3), event("sub/new.go", 1)}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := ask(); len(got) != 0 {
		t.Errorf("got %v, want no change", got)
	}
}

// A fault of a server is reported once, and the server is not started again.
func TestServersThatCannotBeUsed(t *testing.T) {
	for name, c := range map[string]struct {
		*fake
		questions int // until it is given up
		want      string
	}{
		"cannot start":       {&fake{begin: errors.New("no memory")}, 1, "gopls is not used any more: no memory"},
		"dies at its start":  {&fake{raw: func(c net.Conn) { c.Close() }, why: "it ended: exit status 3"}, 1, "gopls is not used any more: it ended: exit status 3"},
		"closes its output":  {&fake{raw: func(c net.Conn) { c.Close() }}, 1, "gopls is not used any more: it closed the connection, or does not speak the protocol"},
		"speaks nonsense":    {&fake{raw: func(c net.Conn) { go io.Copy(io.Discard, c); io.WriteString(c, "hello\n\rworld") }}, 1, "gopls is not used any more: it closed the connection, or does not speak the protocol"},
		"floods":             {&fake{raw: flood}, 1, "gopls is not used any more: it sent more than 16 MiB that nobody asked for"},
		"never reads":        {&fake{raw: func(net.Conn) {}}, 20, "gopls is not used any more: it has not answered for 1m0s"},
		"hangs at its start": {&fake{raw: func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }}, 20, "gopls is not used any more: it has not answered for 1m0s"},
		"refuses":            {&fake{refuse: "no\n\x1b[31m" + strings.Repeat("x", 5000)}, 1, "gopls is not used any more: " + visible.Clip("jsonrpc2: code 1 message: no␤␛[31m"+strings.Repeat("x", 5000), maxLine)},
		"refuses, and ends":  {&fake{refuse: "no compiler", why: "it ended: exit status 1"}, 1, "gopls is not used any more: jsonrpc2: code 1 message: no compiler"},
		"never reports":      {&fake{mute: true}, 20, "gopls is not used any more: it has not answered for 1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *fake, s *Servers) {
				f := c.fake
				f.t = t
				for i := 1; ; i++ {
					got := f.check(s, "bad")
					if got.By != "" || got.Lines != nil || i > c.questions {
						t.Fatalf("question %d: got %+v", i, got)
					}
					if got.Fault == nil {
						continue
					}
					if got.Fault.Error() != c.want || i != c.questions {
						t.Errorf("question %d: got %q, want %q", i, got.Fault, c.want)
					}
					break
				}
				if got := f.check(s, "bad"); got.By != "" || got.Fault != nil || f.starts != 1 {
					t.Errorf("after that: got %+v, %d starts", got, f.starts)
				}
			})
		})
	}
}

func flood(c net.Conn) {
	go func() { _, _ = io.Copy(io.Discard, c) }()
	for text := make([]byte, 1<<20); ; {
		if _, err := c.Write(text); err != nil {
			return
		}
	}
}

// The next question reports a server that exited.
func TestServersThatDieLater(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fake, s *Servers) {
		want(t, f.check(s, "x"))
		f.why = "it ended: signal: killed"
		f.end()
		synctest.Wait()
		if got := f.check(s, "x"); got.Fault == nil || !strings.HasSuffix(got.Fault.Error(), f.why) {
			t.Errorf("got %+v", got)
		}
	})
}

// A language's next server is tried if one is missing or ends at once; if none is left, the first that is installed has the fault.
func TestSecondServer(t *testing.T) {
	missing := func() *fake { return &fake{begin: fs.ErrNotExist} }
	broken := func() *fake { return &fake{raw: func(c net.Conn) { c.Close() }, why: "it ended: exit status 1"} }
	for name, c := range map[string]struct {
		first, second *fake
		by, fault     string
	}{
		"first":          {&fake{}, &fake{}, "typescript-language-server", ""},
		"first missing":  {missing(), &fake{}, "tsc", ""},
		"first broken":   {broken(), &fake{}, "tsc", ""},
		"both missing":   {missing(), missing(), "", ""},
		"both broken":    {broken(), broken(), "", "typescript-language-server is not used any more: it ended: exit status 1"},
		"second broken":  {missing(), broken(), "", "tsc is not used any more: it ended: exit status 1"},
		"second missing": {broken(), missing(), "", "typescript-language-server is not used any more: it ended: exit status 1"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fake, s *Servers) {
				c.first.t, c.second.t = t, t
				f.others = map[string]*fake{"typescript-language-server": c.first, "tsc": c.second}
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				got, fault := s.Check(ctx, f.start, "/no/such", "/no/such/a.ts", []byte("x")), ""
				if got.Fault != nil {
					fault = got.Fault.Error()
				}
				if got.By != c.by || fault != c.fault {
					t.Errorf("got %+v, want %q and %q", got, c.by, c.fault)
				}
			})
		})
	}
}

// A server that is not installed may be later.
func TestServersThatAreMissing(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fake, s *Servers) {
		f.begin = fmt.Errorf("%w: gopls", fs.ErrNotExist)
		if got := f.check(s, "x"); got.By != "" || got.Fault != nil {
			t.Errorf("got %+v", got)
		}
		f.begin = nil
		want(t, f.check(s, "x"))
	})
}

// A server that nobody asks ends; so does the one that was asked least recently where there are too many.
func TestServersEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fake, s *Servers) {
		want(t, f.check(s, "x"))
		time.Sleep(9 * time.Minute)
		want(t, f.check(s, "x"))
		time.Sleep(9 * time.Minute)
		want(t, f.check(s, "x"))
		if f.starts != 1 {
			t.Errorf("got %d starts, want one", f.starts)
		}
		time.Sleep(11 * time.Minute)
		want(t, f.check(s, "x"))
		if f.starts != 2 {
			t.Errorf("got %d starts, want a second one after a pause", f.starts)
		}
		for i := range maxServers {
			time.Sleep(time.Second)
			root := fmt.Sprintf("/no/such%d", i)
			if got := s.Check(t.Context(), f.start, root, root+"/a.go", nil); got.By == "" {
				t.Errorf("got %+v", got)
			}
		}
		synctest.Wait()
		running := func(root string) bool { return s.running[key{languages[0], root}] != nil }
		if running("/no/such") || !running("/no/such0") || len(s.live) != maxServers {
			t.Errorf("got %d servers", len(s.live))
		}
	})
}

// A server that was started by the first change had not loaded the project within the time of its check.
func TestAServerStartsWhenAFileIsOpened(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fake, s *Servers) {
		s.Open(f.start, "/no/such", "/no/such/a.txt", nil)
		s.Open(f.start, "/no/such", "/no/such/a b.go", []byte("bad1"))
		s.Open(f.start, "/no/such", "/no/such/c.go", nil)
		synctest.Wait()
		if want := []string{"initialize", "initialized", "textDocument/didOpen"}; f.starts != 1 || !slices.Equal(f.received, want) {
			t.Errorf("got %d starts and %q, want one and %q", f.starts, f.received, want)
		}
		time.Sleep(2 * silentBound) // nobody asked, so the server left no question without an answer
		want(t, f.check(s, "bad2"), "a b.go:1:1: no bad2")
		if last := f.received[len(f.received)-1]; last != "textDocument/didChange" {
			t.Errorf("got %s last", last)
		}
	})
}

// Questions at once are answered one after the other, and one that is cancelled harms no other.
func TestQuestionsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fake, s *Servers) {
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() {
				word := fmt.Sprintf("bad%d", i)
				want(t, f.check(s, word), "a b.go:1:1: no "+word)
			})
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if got := s.Check(ctx, f.start, "/no/such", "/no/such/a b.go", nil); got.By != "" || got.Fault != nil {
			t.Errorf("got %+v", got)
		}
		all.Wait()
	})
}
