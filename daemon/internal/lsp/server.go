package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/go-lsp"
	"github.com/sourcegraph/jsonrpc2"

	"sublet/wire/visible"
)

const (
	// settle is how long a server may pause between two reports about a text, if it cannot be asked for one, and how long one that
	// refuses to report is left alone.
	settle = 300 * time.Millisecond
	// maxOutput bounds what a server sends between two questions, in bytes.
	maxOutput = 16 << 20
	maxLines  = 1000 // problems of one report
	maxLine   = 1000 // bytes of a problem
)

// A faultError reports that a server cannot be used.
type faultError struct{ error }

func fault(format string, args ...any) error { return &faultError{fmt.Errorf(format, args...)} }

var errBroken = errors.New("it closed the connection, or does not speak the protocol")

var errFlood = fault("it sent more than %d MiB that nobody asked for", maxOutput>>20)

// server is one server from its start to its end. It answers one question at a time.
type server struct {
	key
	ctx    context.Context // ends when the server is to end
	cancel context.CancelFunc
	ready  chan struct{} // closed when it is initialised or cannot be
	over   chan struct{} // closed when its connection has ended, after ready
	gone   chan struct{} // closed when nothing of it is left
	turn   chan struct{} // holds one question
	conn   *jsonrpc2.Conn
	pull   bool             // it can be asked for a report; others send theirs when they like
	loaded atomic.Bool      // a report without problems counts
	files  map[string]stamp // as the server knows them; only the holder of turn uses it
	left   atomic.Int64     // bytes that it may send before the next question

	// guarded by Servers.mu
	used time.Time
	idle *time.Timer

	mu sync.Mutex
	// below: guarded by mu
	since   time.Time // of the first question without an answer; zero: there is none
	err     error     // why it ended
	name    string    // of its program
	path    string    // the file of the last question
	version int
	lines   []string      // the newest report on it
	news    chan struct{} // capacity 1: there is a new report, or one can be asked for
}

func newServer(k key) *server {
	v := &server{
		key: k, ready: make(chan struct{}), over: make(chan struct{}), gone: make(chan struct{}),
		turn: make(chan struct{}, 1), news: make(chan struct{}, 1),
	}
	v.loaded.Store(!k.refreshes)
	v.ctx, v.cancel = context.WithCancel(context.Background()) // Servers.drop and Close end it
	return v
}

// A document is a file as an editor has it.
type document struct {
	path, language, text string
}

// run starts the server, opens first if it has a path, and returns when the server has ended.
func (v *server) run(start Start, first document) {
	defer v.cancel()
	v.files = v.scan(v.root) // before the server reads them
	var p Program
	var why error // why none runs: the error of the first that is installed
	by := ""      // its program
	for _, command := range v.commands {
		v.setName(command[0])
		var err error
		if p, err = v.launch(start, command); err == nil || v.ctx.Err() != nil {
			why = err
			break
		}
		if why == nil || errors.Is(why, fs.ErrNotExist) {
			why, by = err, command[0]
		}
	}
	if why != nil {
		v.setName(by)
		v.fail(why)
		close(v.over)
		close(v.ready)
		return
	}
	if first.path != "" {
		_ = v.show(first.path, first.language, first.text) // if it fails, the connection has ended, which is handled below
	}
	close(v.ready)
	<-v.conn.DisconnectNotify()
	v.fail(v.ended(p, errBroken))
	close(v.over)
	v.turn <- struct{}{} // the last question has ended, and no other begins
}

// launch starts a program and initialises it. If that fails, nothing of it is left. The error is as that of ask.
func (v *server) launch(start Start, command []string) (Program, error) {
	p, err := start(v.root, command)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, err
	case err != nil:
		return p, fault("%w", err)
	}
	v.left.Store(maxOutput)
	v.conn = jsonrpc2.NewConn(v.ctx, jsonrpc2.NewBufferedStream(stream{v, p}, jsonrpc2.VSCodeObjectCodec{}), v,
		jsonrpc2.SetLogger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)))
	if err = v.initialize(); err != nil {
		if !errors.As(err, new(*jsonrpc2.Error)) { // the server's own answer
			err = errBroken
		}
		err = v.ended(p, err)
		_ = v.conn.Close() // fails if it has ended
		<-v.conn.DisconnectNotify()
		v.conn = nil
	}
	return p, err
}

// ended returns the reason for the end of a connection.
func (v *server) ended(p Program, err error) error {
	if v.left.Load() < 0 {
		return errFlood
	}
	p.End()
	if why := p.Why(); why != "" && !errors.As(err, new(*jsonrpc2.Error)) { // the server's own answer gives the cause
		return fault("%s", why)
	}
	return fault("%s", visible.Clip(visible.Line(err.Error()), maxLine)) // it may be the server's text
}

func (v *server) initialize() error {
	var offers struct {
		Capabilities struct {
			Diagnostics any `json:"diagnosticProvider"`
		} `json:"capabilities"`
	}
	refresh := map[string]any{"refreshSupport": true}
	params := struct {
		lsp.InitializeParams
		Capabilities any  `json:"capabilities"` // package lsp does not know this one
		ProcessID    *int `json:"processId"`    // null: a server in its own PID namespace could not watch it; required
	}{
		InitializeParams: lsp.InitializeParams{RootURI: uri(v.root), RootPath: v.root, ClientInfo: lsp.ClientInfo{Name: "sublet"}, InitializationOptions: v.options},
		Capabilities: map[string]any{
			"textDocument": map[string]any{"publishDiagnostics": map[string]any{"versionSupport": true}},
			"workspace":    map[string]any{"diagnostics": refresh, "diagnostic": refresh}, // rust-analyzer read only the second, a misspelling, until 2025
		},
	}
	err := v.conn.Call(v.ctx, "initialize", params, &offers)
	if err != nil {
		return err
	}
	v.pull = offers.Capabilities.Diagnostics != nil
	return v.conn.Notify(v.ctx, "initialized", struct{}{})
}

func (v *server) setName(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.name = name
}

// fail records the first reason for the end.
func (v *server) fail(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.err == nil {
		v.err = err
	}
}

// ask returns what is wrong with text and the server's name. The error is a faultError if the server cannot be used,
// fs.ErrNotExist if there is none, else that of ctx.
func (v *server) ask(ctx context.Context, path, language, text string) (lines []string, by string, err error) {
	v.mu.Lock()
	if v.since.IsZero() {
		v.since = time.Now()
	}
	v.mu.Unlock()
	lines, err = v.try(ctx, path, language, text)
	v.mu.Lock()
	defer v.mu.Unlock()
	switch waited := time.Since(v.since); {
	case err == nil:
		v.since = time.Time{}
	case v.err != nil:
		err = v.err
	case waited >= silentBound:
		err = fault("it has not answered for %s", waited.Round(time.Second))
	}
	return lines, v.name, err
}

// try does what ask does, without keeping account of unanswered questions.
func (v *server) try(ctx context.Context, path, language, text string) ([]string, error) {
	select {
	case <-v.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if v.conn == nil {
		return nil, io.EOF // it did not start
	}
	select {
	case v.turn <- struct{}{}:
	case <-v.over:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	answer := make(chan []string, 1)
	go func() { // until the server has read what it is sent, or has ended; run waits for it
		defer func() { <-v.turn }()
		defer close(answer)
		v.left.Store(maxOutput)
		if err := v.show(path, language, text); err != nil {
			return // the connection has ended; run records the reason
		}
		if lines, ok := v.await(ctx, path); ok {
			answer <- lines
		}
	}()
	select {
	case lines, ok := <-answer:
		switch {
		case ok:
			return lines, nil
		case ctx.Err() == nil:
			<-v.over // soon, as the connection has ended
			return nil, io.EOF
		}
	case <-v.over:
		return nil, io.EOF
	case <-ctx.Done():
	}
	return nil, ctx.Err()
}

// show notifies the server of the files that changed since the last question, and sends it the text. A server ignores changes on disk
// to a file that is open, so only the file of the last question is open.
func (v *server) show(path, language, text string) error {
	now := v.scan(v.root)
	if list := changes(v.files, now); len(list) > 0 {
		if err := v.conn.Notify(v.ctx, "workspace/didChangeWatchedFiles", lsp.DidChangeWatchedFilesParams{Changes: list}); err != nil {
			return err
		}
	}
	v.files = now
	v.mu.Lock()
	was := v.path
	v.path, v.lines = path, nil
	v.version++
	version := v.version
	select {
	case <-v.news: // of an earlier question
	default:
	}
	v.mu.Unlock()
	if was == path {
		return v.conn.Notify(v.ctx, "textDocument/didChange", map[string]any{ // package lsp would send a range that is null
			"textDocument":   lsp.VersionedTextDocumentIdentifier{TextDocumentIdentifier: lsp.TextDocumentIdentifier{URI: uri(path)}, Version: version},
			"contentChanges": []any{map[string]any{"text": text}},
		})
	}
	if was != "" {
		if err := v.conn.Notify(v.ctx, "textDocument/didClose", lsp.DidCloseTextDocumentParams{TextDocument: lsp.TextDocumentIdentifier{URI: uri(was)}}); err != nil {
			return err
		}
	}
	return v.conn.Notify(v.ctx, "textDocument/didOpen", lsp.DidOpenTextDocumentParams{
		TextDocument: lsp.TextDocumentItem{URI: uri(path), LanguageID: language, Version: version, Text: text},
	})
}

// await returns the report that the server was asked for, or the newest one after a pause; ok is false if there was none until
// ctx ended.
func (v *server) await(ctx context.Context, path string) (lines []string, ok bool) {
	if v.pull {
		for {
			var report struct {
				Items []diagnostic `json:"items"`
			}
			err := v.conn.Call(ctx, "textDocument/diagnostic", map[string]any{"textDocument": lsp.TextDocumentIdentifier{URI: uri(path)}}, &report)
			var again <-chan time.Time
			switch {
			case errors.As(err, new(*jsonrpc2.Error)): // the server refuses while it is busy (ContentModified, ServerCancelled)
				again = time.After(settle)
			case err != nil:
				return nil, false
			case len(v.news) == 0 && (len(report.Items) > 0 || v.loaded.Load()):
				return problems(path, report.Items), true
			}
			select {
			case <-v.news: // the report is out of date
			case <-again:
			case <-v.over:
				return nil, false
			case <-ctx.Done():
				return nil, false
			}
		}
	}
	var pause <-chan time.Time
	for {
		select {
		case <-v.news:
			pause = time.After(settle)
			v.mu.Lock()
			lines, ok = v.lines, true
			v.mu.Unlock()
			continue
		case <-pause:
		case <-ctx.Done():
		case <-v.over:
			ok = false
		}
		return lines, ok
	}
}

// Handle implements jsonrpc2.Handler. Messages are handled in turn.
func (v *server) Handle(ctx context.Context, c *jsonrpc2.Conn, r *jsonrpc2.Request) {
	switch {
	case r.Method == "textDocument/publishDiagnostics" && r.Params != nil:
		v.published(*r.Params)
	case !r.Notif: // initialize announced no other request
		if r.Method == "workspace/diagnostic/refresh" {
			v.loaded.Store(true)
			v.notice()
		}
		_ = c.Reply(ctx, r.ID, nil) // fails if the connection has ended
	}
}

// diagnostic is lsp.Diagnostic without the code, which is a number with some servers.
type diagnostic struct {
	Range    lsp.Range              `json:"range"`
	Severity lsp.DiagnosticSeverity `json:"severity"`
	Message  string                 `json:"message"`
}

// problems returns errors and warnings as lines.
func problems(path string, all []diagnostic) (lines []string) {
	for _, d := range all {
		if d.Severity > lsp.Warning || len(lines) == maxLines {
			continue
		}
		message := strings.Join(strings.Fields(visible.Clean(visible.Cut(d.Message, maxLine))), " ")
		lines = append(lines, fmt.Sprintf("%s:%d:%d: %s", filepath.Base(path), d.Range.Start.Line+1, d.Range.Start.Character+1, message))
	}
	return lines
}

// published records a report. One that is not understood counts as none, so that its question stays without an answer. A server
// need not send the version.
func (v *server) published(params json.RawMessage) {
	var p struct {
		URI         lsp.DocumentURI `json:"uri"`
		Version     *int            `json:"version"`
		Diagnostics []diagnostic    `json:"diagnostics"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if !samePath(p.URI, v.path) || p.Version != nil && *p.Version != v.version {
		return
	}
	v.lines = problems(v.path, p.Diagnostics)
	v.notice()
}

// notice records that there is a new report, or that one can be asked for.
func (v *server) notice() {
	select {
	case v.news <- struct{}{}:
	default: // one is waiting
	}
}

// stream is the connection to a program, which may send only so much.
type stream struct {
	*server
	Program
}

func (s stream) Read(p []byte) (int, error) {
	n, err := s.Program.Read(p)
	if s.left.Add(int64(-n)) < 0 {
		return 0, errFlood
	}
	return n, err
}

func (s stream) Close() error {
	s.End()
	return nil
}
