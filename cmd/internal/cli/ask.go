package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sublet/client"
	"sublet/wire"
)

// maxStdin is how many bytes of standard input are added to a question.
const maxStdin = 16 << 20

func (a *app) ask() *cobra.Command {
	var q question
	c := explained(command("ask 'PROMPT'", "One question, the answer on standard output", nil, func(args []string) error {
		q.prompt = strings.Join(args, " ")
		return a.runAsk(q)
	}), "ask runs one turn and prints the answer. Standard input, where it is a file or a pipe, goes along as context; with\n"+
		"the prompt - it is the prompt. On a terminal you are asked before anything risky; in a script, what would need\n"+
		"a question is refused, and the exit status is 3. The agent works in a private shell that starts in the current folder.\n"+
		"Retries, notices and errors are on standard error; so is, where that is no terminal, the session: `sublet: session: ID`.\n"+
		"With --json all are events on standard output; retries and the session are on standard error as well.",
		"  sublet ask 'what changed since yesterday?'\n  go test ./... 2>&1 | sublet ask 'why does this fail?'\n"+
			"  sublet ask --ephemeral --output-schema schema.json --allow 'bash: go test *' -f task.md")
	f := c.Flags()
	f.BoolVar(&q.json, "json", false, "print the events as they come, one JSON object a line")
	f.StringVar(&q.options.Mode, "mode", "", "policy mode for this turn: plan, ask, auto, full")
	f.StringVar(&q.session, "session", "", "go on in this session: its id or name")
	f.BoolVarP(&q.continueLast, "continue", "c", false, "continue this folder's last session")
	f.StringVarP(&q.file, "file", "f", "", "read the prompt from this file")
	f.StringVar(&q.options.Model, "model", "", "provider/name instead of the configured one")
	f.StringVar(&q.options.Thinking, "thinking", "", "how much the model thinks first: off, low, medium, high")
	f.StringVar(&q.agent, "agent", "", "orchestrator (default), engineer, reviewer, explorer or one of yours")
	f.StringSliceVar(&q.options.Tools, "tools", nil, "the only tools that it may use, such as read,grep")
	f.StringVar(&q.options.System, "system", "", "replaces the agent's part of the system prompt")
	f.StringVar(&q.options.AppendSystem, "append-system", "", "is added to the system prompt")
	f.StringArrayVar(&q.allow, "allow", nil, "a rule for this session, such as 'bash: go test *'; may be repeated")
	f.DurationVar(&q.timeout, "timeout", 0, "end the work after this time (0 = no bound)")
	f.IntVar(&q.options.MaxSteps, "max-turns", 0, "how often the model may be asked (0 = 100)")
	f.Float64Var(&q.options.MaxCostUSD, "max-cost", 0, "US dollars that it may cost (0 = the limit of the settings)")
	f.StringVar(&q.schema, "output-schema", "", "print one JSON value that is valid by the JSON Schema in this file, and nothing else")
	f.StringVar(&q.name, "name", "", "name the session")
	f.BoolVar(&q.ephemeral, "ephemeral", false, "delete the session at the end")
	f.BoolVar(&q.show, "show-request", false, "print what the model would be sent first, with tokens by part, and ask nothing")
	return c
}

// question is the arguments of ask.
type question struct {
	prompt, file, agent     string
	session                 string
	continueLast, ephemeral bool
	name                    string
	allow                   []string
	schema                  string // a file's path
	json, show              bool
	timeout                 time.Duration
	resolvedSchema          *outputSchema               // in place of schema
	print                   func(json.RawMessage) error // prints a valid JSON answer; nil = unchanged
	options                 wire.RequestOptions
}

// check returns an error for invalid flags.
func (q *question) check() error {
	o := &q.options
	switch {
	case !slices.Contains([]string{"", "plan", "ask", "auto", "full"}, o.Mode):
		return fmt.Errorf("mode %q is none of plan, ask, auto, full", o.Mode)
	case !slices.Contains([]string{"", "off", "low", "medium", "high"}, o.Thinking):
		return fmt.Errorf("thinking %q is none of off, low, medium, high", o.Thinking)
	case q.continueLast && q.session != "":
		return errors.New("--continue and --session each name a session; use one of them")
	case q.ephemeral && (q.continueLast || q.session != ""):
		return errors.New("--ephemeral would delete the session that you continue")
	case q.json && q.schema != "":
		return errors.New("--json prints events and --output-schema one value; use one of them")
	case q.file != "" && q.prompt != "":
		return errors.New("there is a prompt, and another one in " + q.file + "; use one of them")
	case q.timeout < 0 || o.MaxSteps < 0 || o.MaxCostUSD < 0:
		return errors.New("--timeout, --max-turns and --max-cost must not be negative")
	case q.prompt == "" && q.file == "":
		return errors.New("the prompt is missing")
	}
	o.TimeoutMS = q.timeout.Milliseconds()
	return nil
}

func (a *app) runAsk(q question) error {
	if err := q.check(); err != nil {
		return &usageError{err}
	}
	schema := q.resolvedSchema
	if q.schema != "" {
		var err error
		if schema, err = readSchema(q.schema); err != nil {
			return &usageError{err}
		}
	}
	if schema != nil {
		q.options.AppendSystem = strings.TrimSpace(q.options.AppendSystem + "\n\n" + schema.instruction())
	}
	ctx, stop := interruptible(context.Background())
	defer stop()
	req, done, err := a.request(ctx, q)
	if err != nil {
		return err
	}
	defer done()
	session, err := a.findSession(q.session)
	if err != nil {
		return err
	}
	asker := newAsker(a, q.json)
	defer asker.close()
	c, err := a.dial(ctx, autoStart, func(o *client.Options) {
		o.Session, o.Confirm, o.Handle = session, asker != nil, a.warn
	})
	if err != nil {
		return err
	}
	defer c.Close()
	if q.continueLast {
		if err := resumeLast(ctx, c, req.Context.Cwd); err != nil {
			return err
		}
	}
	if q.show {
		return a.showRequest(ctx, c, req, q.json)
	}
	for _, rule := range q.allow {
		if _, err := c.Request(ctx, &wire.PolicyRequest{Op: "add", Rule: &wire.Rule{Decision: "allow", Pattern: rule, Scope: "session"}}); err != nil {
			return invalidFlag(fmt.Errorf("--allow %q: %w", rule, err))
		}
	}
	if !q.ephemeral && !isTerminal(a.stderr) {
		a.printNotice("session", string(c.Ready().Session.ID), "")
	}
	out := &answer{app: a, json: q.json, asker: asker, conn: c, quiet: schema != nil}
	turn := func() (*wire.AgentComplete, error) {
		end, err := c.Turn(ctx, req, func(m wire.Message) { out.show(ctx, m) })
		out.finish()
		return end, err
	}
	end, err := turn()
	if schema != nil && err == nil {
		end, err = schema.askUntilValid(a, q, req, end, turn)
	}
	if kerr := a.keepSession(ctx, c, q); err == nil {
		err = kerr
	}
	if err != nil {
		return invalidFlag(err)
	}
	return statusOfTurn(end)
}

// invalidFlag returns err as a usageError if the daemon refused a value, which is that of a flag.
func invalidFlag(err error) error {
	if errors.Is(err, wire.ErrInvalidMessage) {
		return &usageError{err}
	}
	return err
}

// request returns the question as a message. done, if there is no error, must be called after the turn: it removes the file of input.
func (a *app) request(ctx context.Context, q question) (_ *wire.AgentRequest, done func(), _ error) {
	req := &wire.AgentRequest{
		Agent: q.agent, Prompt: q.prompt, Attachments: []wire.Attachment{}, Options: q.options,
		Context: wire.RequestContext{RecentCommands: []wire.RecentCommand{}, OpenFiles: []wire.OSString{}},
	}
	if dir, err := os.Getwd(); err == nil {
		req.Context.Cwd = wire.OSString(dir)
	}
	if q.file != "" {
		text, err := os.ReadFile(q.file)
		if err != nil {
			return nil, nil, &usageError{err}
		}
		req.Prompt = string(text)
	}
	input, err := a.input(ctx)
	if err != nil {
		return nil, nil, err
	}
	if q.prompt == "-" {
		req.Prompt, input = strings.TrimSpace(string(input)), nil
	}
	if strings.TrimSpace(req.Prompt) == "" {
		return nil, nil, &usageError{errors.New("the prompt is empty")}
	}
	if len(input) == 0 {
		return req, func() {}, nil
	}
	file, remove, err := writeStdin(input)
	if err != nil {
		return nil, nil, err
	}
	req.Attachments = append(req.Attachments, wire.Attachment{Path: wire.OSString(file), MIME: "text/plain"})
	return req, remove, nil
}

// input reads standard input if it is a file, a pipe or a socket. After 2 s it prints what it waits for.
func (a *app) input(ctx context.Context) ([]byte, error) {
	info, err := a.stdin.Stat()
	if err != nil || !(info.Mode().IsRegular() || info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0) {
		return nil, nil
	}
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() { // ends with its input, or with the program: a blocked read cannot be cancelled
		data, err := io.ReadAll(io.LimitReader(a.stdin, maxStdin+1))
		done <- result{data, err}
	}()
	slow := time.NewTimer(2 * time.Second)
	defer slow.Stop()
	for {
		select {
		case r := <-done:
			if len(r.data) > maxStdin {
				return nil, fmt.Errorf("standard input is over %d MiB", maxStdin>>20)
			}
			return r.data, r.err
		case <-slow.C:
			fmt.Fprintln(a.stderr, "sublet: reading standard input to its end, as context; call it with </dev/null where there is none")
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// writeStdin writes standard input to a file, for the agent. remove removes it.
func writeStdin(input []byte) (path string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "sublet-ask-") // 0700
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, "standard-input.txt")
	if err := os.WriteFile(path, input, 0o600); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return path, func() { os.RemoveAll(dir) }, nil
}

// answer prints a turn: the agent's text on standard output, notices and errors on standard error, and there, on a terminal, its actions.
type answer struct {
	app       *app
	json      bool
	asker     *asker
	conn      *client.Conn
	quiet     bool              // the answer's text is not printed
	mayBeVoid wire.StreamedText // text that may become void, if standard output is not a terminal
	written   bool              // some text is on standard output
	midLine   bool              // the last line printed has no newline yet
}

func (o *answer) show(ctx context.Context, m wire.Message) {
	if q, ok := m.(*wire.ConfirmationRequest); ok && o.asker != nil {
		o.endLine()
		o.asker.ask(ctx, o.conn, q)
	}
	if o.json {
		_ = o.app.printMessage(m)
	}
	if t, ok := m.(*wire.AgentThinking); ok && t.Phase == wire.PhaseWaiting { // on every standard error: it shows why it takes so long
		o.endLine()
		o.app.printNotice(t.Agent, t.Message, "")
	}
	if o.json {
		return
	}
	switch m := m.(type) {
	case *wire.AgentStreamChunk:
		if !wire.IsDelegate(m.Agent) {
			o.chunk(m)
		}
	case *wire.Error:
		o.release()
		o.endLine()
		text := m.Error()
		if ctx.Err() != nil && errors.Is(m, wire.ErrCancelled) { // by this program
			text = context.Cause(ctx).Error()
		}
		o.app.printNotice("error", text, m.Hint)
	case *wire.AgentComplete:
		o.complete(m)
	}
}

// chunk prints a piece of the answer.
func (o *answer) chunk(m *wire.AgentStreamChunk) {
	switch m.Chunk.Type {
	case wire.ChunkText:
		if isTerminal(o.app.stdout) {
			o.text(m.Chunk.Text)
		} else {
			o.mayBeVoid.Add(m.First(), m.Chunk.Text)
		}
	case wire.ChunkVoid:
		o.mayBeVoid.Void(m.Chunk.FromSeq)
		o.endLine()
		o.app.printNotice("the answer so far is void and asked for again", m.Chunk.Text, "")
	case wire.ChunkToolCall:
		o.release()
		o.endLine()
		if isTerminal(o.app.stderr) {
			fmt.Fprintf(o.app.stderr, "· %s\n", firstLine(m.Chunk.Tool+" "+m.Chunk.Arguments, 120))
		}
	case wire.ChunkNotice:
		o.endLine()
		o.app.printNotice("notice", m.Chunk.Text, "")
	}
}

// complete prints how the turn ended, and facts that are not in the answer.
func (o *answer) complete(m *wire.AgentComplete) {
	o.release()
	o.endLine()
	if !o.written && m.Summary != "" && m.Status == wire.StatusSuccess { // after a failure the Error is printed instead
		o.text(m.Summary)
		o.endLine()
	}
	if m.StopReason == "max_tokens" {
		o.app.printNotice("warning", "the answer is cut off at the model's output limit", "`sublet ask --session "+string(m.SessionID)+" 'go on'` continues it")
	}
	for _, r := range m.Refused {
		o.app.printNotice("error", r.Tool+" was refused: "+r.Reason, "")
	}
	if len(m.Refused) > 0 && o.asker == nil {
		fmt.Fprintln(o.app.stderr, "sublet: hint: questions are asked only on a terminal; `sublet help policy` explains modes and rules")
	}
}

// warn prints the daemon's warnings that belong to no turn.
func (a *app) warn(m wire.Message) {
	if n, ok := m.(*wire.Notice); ok && n.Level != "info" {
		a.printNotice(n.Level, n.Text, n.Hint)
	}
}

func (o *answer) text(s string) {
	if s = plain(s); s == "" || o.quiet {
		return
	}
	fmt.Fprint(o.app.stdout, s)
	o.written, o.midLine = true, !strings.HasSuffix(s, "\n")
}

// release prints the text that was held back.
func (o *answer) release() {
	o.text(o.mayBeVoid.String())
	o.mayBeVoid.Reset()
}

func (o *answer) endLine() {
	if o.midLine && !o.json {
		fmt.Fprintln(o.app.stdout)
		o.midLine = false
	}
}

func (o *answer) finish() {
	o.release()
	o.endLine()
}
