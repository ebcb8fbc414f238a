package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// question is something of ours that the idle shell does: a bare newline makes it run its prompt hook, which finds a
// script. Nothing reaches the history, and $?, $_ and PIPESTATUS stay, for bash puts them back behind each prompt hook.
type question struct {
	id     string
	status int
	told   bool
	done   chan struct{}
	mark   string // a file that is there once its script has begun; "" where that is at once
	// failed is why there will be no answer; ready, how often the shell was ready since. Guarded by Shell.mu until done.
	failed error
	ready  int
}

// begun tells whether its script has.
func (q *question) begun() bool {
	if q.mark == "" {
		return true
	}
	_, err := os.Stat(q.mark)
	return err == nil
}

// errUnanswered tells of a shell that prompts and has not answered: it could not parse what it was asked, or a hook of the user
// is in its way. It is as lent as before.
var errUnanswered = errors.New("the shell did not answer")

// nudgeAfter is how long an answer may take before it is looked whether the shell has heard the question.
const (
	nudgeAfter = 50 * time.Millisecond
	nudgeAgain = 5 * nudgeAfter
)

// nudgeMost is how many newlines a shell may swallow before it is taken for deaf.
const nudgeMost = 5

// lockTurn waits until nothing of ours is being asked. A question gives way to a command: it returns ErrBusy at once.
func (s *Shell) lockTurn(ctx context.Context, command bool) error {
	if !command && s.running.Load() {
		return ErrBusy
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.exited:
		return ErrClosed
	}
	if !command && s.running.Load() {
		<-s.turn
		return ErrBusy
	}
	return nil
}

// awaitIdle waits until the shell reads a line. The caller has the turn.
func (s *Shell) awaitIdle(ctx context.Context) error { return s.awaitIdleOr(ctx, nil) }

// awaitIdleOr waits until the shell reads a line, or event.
func (s *Shell) awaitIdleOr(ctx context.Context, event <-chan struct{}) error {
	var waits elapsed
	waits.add(0)
	nudge, nudges := time.NewTimer(nudgeAfter), 0
	defer nudge.Stop()
	for {
		s.mu.Lock()
		if s.closed || s.gone || s.proc == nil {
			s.mu.Unlock()
			return ErrClosed
		}
		idle, p := s.idle, s.proc
		s.mu.Unlock()
		select {
		case <-idle:
			return nil
		case <-event:
			return nil
		case <-nudge.C:
			s.nudge(p, nil, idle, waits.add(nudgeAgain+nudgeAfter), &nudges)
			nudge.Reset(nudgeAgain)
		case <-p.exited: // perhaps another is started
			<-p.buried
			s.mu.Lock()
			same := s.proc == p
			s.mu.Unlock()
			if same {
				return ErrClosed
			}
		case <-s.exited:
			return ErrClosed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// nudge types a newline again, where the shell is at its prompt and yet has not told what event stands for: a ^C just
// before made bash drop its prompt hook, or what it read next. One too many does no harm: the shell prompts once more, and
// unexpectedLocked takes that for what it is.
// Where that does not help the rest of a line, torn by a ^C, has the shell wait for more of it, and it is interrupted. A shell
// that tells nothing at all in the end is replaced; one that only leaves a question without an answer keeps that.
func (s *Shell) nudge(p *process, q *question, event <-chan struct{}, waited time.Duration, nudges *int) {
	if p.lineBuf.Load() == 0 && !s.shaky.Load() {
		return // what an rc file asks while the shell starts is not for us
	}
	if s.unheard(p, waited, func() bool { return closed(event) }) {
		if *nudges++; *nudges > nudgeMost && p.lineBuf.Load() != 0 {
			s.mu.Lock()
			defer s.mu.Unlock()
			if q == nil || q.ready == 0 {
				s.replaceLocked(p)
			} else if !q.told {
				s.giveUpLocked(q)
			}
			return
		}
		if *nudges%2 == 0 && s.shaky.Load() {
			_ = syscall.Kill(p.pid, syscall.SIGINT)
			return
		}
		s.mu.Lock()
		verbose := s.verboseLocked()
		s.mu.Unlock()
		p.stream.question(p.stream.current(), verbose)
		_, _ = p.write([]byte("\n"))
	}
}

// giveUpLocked takes a question back, which the shell would be asked at each prompt.
func (s *Shell) giveUpLocked(q *question) {
	s.ask = nil
	if err := s.arrangeLocked(""); err != nil {
		s.log.Warn("nonce", "error", err)
	}
	q.told, q.failed = true, errUnanswered
	close(q.done)
}

func (s *Shell) verboseLocked() bool { return slices.Contains(s.snap.State.Options, "verbose") }

// where a script of ours runs
const (
	inHook  = "q" // inside the prompt hook, with options and IFS of our own; $__sublet__s is the last status
	topLine = "a" // at the top level
)

// askShell runs a script in the idle shell and returns its output, what it wrote to $__sublet_dir/o, and its status. The
// caller has the turn. If ctx ends first the shell is interrupted and the error is context.Cause(ctx).
func (s *Shell) askShell(ctx context.Context, where, script string) (out []byte, status int, err error) {
	if err := s.awaitIdle(ctx); err != nil {
		return nil, 0, err
	}
	q := &question{done: make(chan struct{})}
	s.mu.Lock()
	p := s.proc
	q.id = newNonce()[:8]
	flags, begun := where, func() []int { return nil }
	if where == topLine { // behind hooks of the user, and it starts no program
		flags += "def"
		q.mark = filepath.Join(s.folder, "b")
		script = "\\builtin : >|\"$__sublet_dir/b\" >|\"$__sublet_dir/o\"\n" + script
		_ = os.Remove(q.mark) // mostly there is none
	} else {
		begun = startedSince(p.pid)
	}
	err = s.questionLocked(q, flags, script)
	s.mu.Unlock()
	if err != nil {
		return nil, 0, err
	}
	var waits elapsed
	waits.add(0)
	nudge, nudges := time.NewTimer(nudgeAfter), 0
	defer nudge.Stop()
wait:
	for {
		select {
		case <-q.done:
			break wait
		case <-nudge.C:
			s.nudge(p, q, q.done, waits.add(nudgeAgain+nudgeAfter), &nudges)
			nudge.Reset(nudgeAgain)
		case <-p.exited:
			return nil, 0, fmt.Errorf("ask the shell: %w", ErrClosed)
		case <-ctx.Done():
			s.abandon(p, q, begun())
			return nil, 0, context.Cause(ctx)
		}
	}
	if q.failed != nil {
		return nil, 0, q.failed
	}
	s.shaky.Store(false)
	out, err = os.ReadFile(filepath.Join(s.folder, "o"))
	if err != nil {
		return nil, 0, fmt.Errorf("read the shell's answer: %w", err)
	}
	return out, q.status, nil
}

func (s *Shell) questionLocked(q *question, flags, script string) error {
	text := "__sublet_id=" + q.id + "\n" + script + "\n\\__sublet_answer " + q.id + " \"$?\"\n"
	if err := rewrite(s.asked, text); err != nil {
		return fmt.Errorf("write question: %w", err)
	}
	if err := s.arrangeLocked(flags); err != nil {
		return err
	}
	s.ask, s.prompt = q, ""
	s.proc.stream.question(s.nonce, s.verboseLocked())
	return s.typeLocked("")
}

// abandon ends a question that took too long: what it started is killed, and nothing that was there before; where the shell
// itself does not answer then, it is interrupted, and nothing beside it. Once it has answered it may take its time, for hooks;
// where those stand before the question it is taken back.
func (s *Shell) abandon(p *process, q *question, begun []int) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ask = nil
	}()
	if s.current() != p {
		return
	}
	if !q.begun() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := s.arrangeLocked(""); err != nil {
			s.log.Warn("nonce", "error", err)
		}
		return
	}
	inside := inGroup(p.pid) // without job control it is there
	for _, pid := range begun {
		if inside(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	limit, stop := Patiently(context.Background(), nudgeAfter)
	defer stop()
	select {
	case <-q.done:
		return
	case <-p.exited:
		return
	case <-limit.Done():
	}
	if closed(q.done) {
		return
	}
	s.shake()
	s.mu.Lock()
	if err := s.arrangeLocked(""); err != nil { // or the hook would begin with the same question again
		s.log.Warn("nonce", "error", err)
	}
	s.mu.Unlock()
	if pgid, own := p.foreground(); !own {
		signalGroup(pgid, syscall.SIGINT)
	}
	_ = syscall.Kill(p.pid, syscall.SIGINT)
}

// settleSignals makes sure that no signal is on its way to the idle shell, for it would tear the next line: bash drops what
// it has read of it and runs the rest. A question that is struck is only asked again; but the prompt that the signal brings
// may answer it, and then its newline is still to be read. The caller has the turn.
func (s *Shell) settleSignals(ctx context.Context) error {
	if !s.shaky.Load() {
		return nil
	}
	if _, _, err := s.askShell(ctx, inHook, "\\builtin :"); err != nil {
		return err
	}
	p := s.current()
	p.awaitRead(nudgeAfter)
	s.takeRecords(p) // of the prompt behind that newline, whose nonce the next command has
	return s.awaitIdle(ctx)
}

// enter changes the shell's directory; *DirError if it cannot. The caller has the turn.
func (s *Shell) enter(ctx context.Context, dir string) error {
	_, status, err := s.askShell(ctx, topLine, "\\builtin cd -- "+quote(dir)+" >/dev/null 2>&1")
	if err != nil {
		return err
	}
	if status != 0 {
		reason := "not a directory the shell may enter"
		if _, err := os.Stat(dir); err != nil {
			reason = err.Error()
		}
		return &DirError{Dir: dir, Reason: reason}
	}
	// The state was asked for, and is there before the shell is ready.
	return s.awaitIdle(ctx)
}

// readyWithin tells whether the shell becomes ready for a line within d.
func (s *Shell) readyWithin(d time.Duration) bool {
	ctx, stop := Patiently(context.Background(), d)
	defer stop()
	return s.awaitIdle(ctx) == nil
}

// Prompt is what bash would ask for a line with.
type Prompt struct {
	Text    string // ${PS1@P}, with its escape sequences; \[ and \] are gone
	Editing string // "vi" or "emacs", as the user set it with set -o; "" is neither
}

// Prompt is the user's prompt as their hooks leave it; the one behind a command may be had once, another is expanded anew.
// ErrBusy while a command runs.
func (s *Shell) Prompt(ctx context.Context) (Prompt, error) {
	if err := s.lockTurn(ctx, false); err != nil {
		return Prompt{}, err
	}
	defer func() { <-s.turn }()
	if err := s.awaitIdle(ctx); err != nil {
		return Prompt{}, err
	}
	if p, told := s.toldPrompt(true); told {
		return p, nil
	}
	out, _, err := s.askShell(ctx, inHook, `\builtin printf '%s\n' "${__sublet_ed-}" >|"$__sublet_dir/o"
\builtin shopt ${__sublet_pv:--s} promptvars
\__sublet_ret "$__sublet__s"
\builtin printf %s "${__sublet_ps1@P}" >>"$__sublet_dir/o"
\builtin shopt -s promptvars`)
	if err == nil {
		err = s.awaitIdle(ctx) // behind the user's hooks
	}
	p, told := s.toldPrompt(false)
	if err == nil && !told {
		p = parsePrompt(string(out))
	}
	return p, err
}

// toldPrompt returns the prompt that the shell told together with being ready, once, and whether it is to tell the next.
func (s *Shell) toldPrompt(next bool) (p Prompt, told bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	told = s.prompt != ""
	p = parsePrompt(s.prompt)
	s.prompt, s.prompts = "", next && !told
	return p, told
}

func parsePrompt(told string) Prompt {
	editing, text, _ := strings.Cut(told, "\n")
	return Prompt{Text: strings.NewReplacer("\x01", "", "\x02", "").Replace(text), Editing: editing}
}

// History is bash's own list, oldest first. ErrBusy while a command runs.
func (s *Shell) History(ctx context.Context) ([]string, error) {
	if err := s.lockTurn(ctx, false); err != nil {
		return nil, err
	}
	defer func() { <-s.turn }()
	out, _, err := s.askShell(ctx, inHook, `\__sublet_list`)
	if err != nil {
		return nil, err
	}
	if entry := stampedEntry.FindIndex(out); entry != nil && entry[0] == 0 {
		return parseStamped(out), nil
	}
	return parseHistory(string(out)), nil
}

// stampedEntry begins an entry where `history -w` writes when each was typed, as it does under HISTTIMEFORMAT. That is what
// is read where the user made that variable read-only.
var stampedEntry = regexp.MustCompile(`(?m)^#[0-9]+\n`)

func parseStamped(out []byte) (entries []string) {
	for _, text := range stampedEntry.Split(strings.TrimSuffix(string(out), "\n"), -1)[1:] {
		entries = append(entries, strings.TrimSuffix(text, "\n"))
	}
	return entries
}

// parseHistory splits what `history` prints: "  12  \x01text", where text may have lines of its own.
func parseHistory(out string) []string {
	var entries []string
	start := -1
	for at := 0; at < len(out); {
		end := at
		for end < len(out) && out[end] != '\n' {
			end++
		}
		if n := entryStart(out[at:end]); n > 0 {
			if start >= 0 {
				entries = append(entries, out[start:at-1])
			}
			start = at + n
		}
		at = end + 1
	}
	if start >= 0 {
		end := len(out)
		if end > start && out[end-1] == '\n' {
			end--
		}
		entries = append(entries, out[start:end])
	}
	return entries
}

// entryStart is where the text begins in the first line of an entry; 0 if it is not one.
func entryStart(line string) int {
	i := 0
	for i < len(line) && line[i] == ' ' {
		i++
	}
	j := i
	for j < len(line) && line[j] >= '0' && line[j] <= '9' {
		j++
	}
	if j == i {
		return 0
	}
	if _, err := strconv.Atoi(line[i:j]); err != nil {
		return 0
	}
	for j < len(line) && (line[j] == '*' || line[j] == ' ') {
		j++
	}
	if j < len(line) && line[j] == 1 {
		return j + 1
	}
	return 0
}
