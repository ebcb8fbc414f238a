package shell

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// nonceMax bounds a nonce, in bytes.
const nonceMax = 64

// endRecord is what the shell tells on the side channel when a command ended.
type endRecord struct {
	nonce   string
	status  int
	started bool // PS0 was printed: false for comments, syntax errors and prompts after a late signal
	dir     string
}

// recordLoop reads the side channel. Records end with NUL, are shorter than PIPE_BUF and so never mix:
//
//	E nonce status started SOH dir               a command ended
//	E nonce status 1 pid next [v] SOH dir        the same, and the shell is ready for a line, which it answers with next
//	S pid [i|a] number                           what a borrower's command left behind lies in the file l, as it was before
//	                                             hooks of the user run; i: what it bent was not put back yet; a: no hook
//	                                             runs, and R tells of no other
//	R pid next [v] [d] number [SOH editing LF prompt]
//	                                             the shell is ready; v: by line editor; d: its state lies in the file s
//	Q id status                                  a question of ours was answered
//	W                                            the shell stands still until what was typed ahead is taken
//	B id                                         Go's own: all before it was read
//	X                                            Close
func (s *Shell) recordLoop(fifo *os.File) {
	defer fifo.Close()
	r := bufio.NewReader(fifo)
	for {
		rec, err := r.ReadString(0)
		if err != nil {
			return // only after Close
		}
		kind, rest, _ := strings.Cut(strings.TrimSuffix(rec, "\x00"), " ")
		switch kind {
		case "E":
			s.onEnd(rest)
		case "S":
			s.onLeft(strings.Fields(rest))
		case "R":
			head, prompt, _ := strings.Cut(rest, "\x01")
			s.onReady(strings.Fields(head), prompt)
		case "Q":
			s.onAnswer(rest)
		case "W":
			s.onWait()
		case "B":
			s.onBarrier(rest)
		case "X":
			return
		}
	}
}

func (s *Shell) onEnd(rest string) {
	head, dir, _ := strings.Cut(rest, "\x01")
	f := strings.Fields(head)
	if len(f) < 3 {
		return
	}
	status, err := strconv.Atoi(f[1])
	if err != nil {
		return
	}
	if p := s.current(); p != nil {
		dir = p.placed(dir)
	}
	ended, stands := s.end(endRecord{nonce: f[0], status: status, started: f[2] == "1", dir: dir})
	if ended != nil && ended.plan.guarded(ended.c) {
		s.look(ended.plan)
	}
	if len(f) >= 5 && !stands {
		s.onReady(f[3:], "")
	}
}

// end takes in the end of a command. It tells which, nil where that is not the one that runs, and whether the shell will
// stand still before it is ready.
func (s *Shell) end(rec endRecord) (ended *run, stands bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.run
	if r == nil || r.ended {
		return nil, false // a prompt without a command
	}
	r.status = rec.status
	if rec.nonce != r.nonce {
		return nil, false // or a forger
	}
	if !rec.started {
		// The line has not begun: the shell prompted once more before it, and onReady tells the new nonce; or it never
		// will, for it is a comment, an empty alias, a syntax error.
		return nil, false
	}
	r.ended, s.prompts = true, true
	if rec.dir != "" {
		s.setDirLocked(rec.dir)
	}
	r.end <- rec
	return r, r.watched
}

// look reads behind a borrower's text what is needed to know what it changed, while the shell writes that down.
func (s *Shell) look(pl plan) {
	s.mu.Lock()
	o, noted := s.opened, s.hooks && pl.assigns == nil
	s.mu.Unlock()
	var (
		found  map[string]string
		loaded []string
	)
	if noted {
		found = s.foundVars()
	}
	if o != nil && o.bare != nil {
		loaded = libraries(o.p.pid) // to list all builtins would take the shell as long as to list all functions
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found = found
	if o != nil {
		o.loaded = loaded
	}
}

// onLeft takes in what a borrower's command left behind, and from what the variables were before it which of them it changed.
func (s *Shell) onLeft(f []string) {
	if len(f) < 2 {
		return
	}
	s.mu.Lock()
	p, own := s.proc, s.own
	s.mu.Unlock()
	if p == nil || strconv.Itoa(p.pid) != f[0] {
		return // of one that died
	}
	last := slices.Contains(f[1:], "a")
	next := s.readTold(p, "l", f[len(f)-1])
	if next != nil && own == nil && !last {
		own = s.ownVars(*next)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != p {
		return
	}
	s.hooks = !last
	if next == nil {
		s.missed = s.missed || last // else onReady has it
		return
	}
	next.State.own, s.own = own, own
	if last {
		s.own = nil
	}
	o := s.opened
	whole := o == nil || !o.unlisted() && !(last && o.named) // else tidy finds the rest
	early := whole && !slices.Contains(f[1:], "i") && s.left != nil && !closed(s.left)
	if early || last {
		s.takeSnapshotLocked(*next)
	}
	if early {
		close(s.left)
	}
}

// readTold reads a state of which the shell told that it is written down, and with which number; nil where it cannot be read.
func (s *Shell) readTold(p *process, name, number string) *snapshot {
	snap, err := s.readState(filepath.Join(s.folder, name))
	for tries := 0; err != nil && tries < 50; tries++ { // a second prompt is writing it again
		time.Sleep(2 * time.Millisecond)
		snap, err = s.readState(filepath.Join(s.folder, name))
	}
	if told, _ := strconv.Atoi(number); err == nil && snap.number < told {
		err = errors.New("the shell could not write it: what is there is an earlier one")
	}
	if err != nil {
		s.log.Warn("shell state", "error", err)
		return nil
	}
	snap.State.Dir = p.placed(snap.State.Dir)
	if snap.guarded && s.disowns() {
		snap.disown(s.foundJobs())
	}
	return &snap
}

// onReady takes in the state the shell wrote down before it told, and the prompt, and wakes who waits for the shell.
func (s *Shell) onReady(f []string, prompt string) {
	if len(f) < 2 || len(f[1]) > nonceMax {
		return
	}
	pid, nonce := f[0], f[1]
	s.mu.Lock()
	p := s.proc
	s.mu.Unlock()
	if p == nil || strconv.Itoa(p.pid) != pid {
		return // of one that died
	}
	var next *snapshot
	told := slices.Contains(f[2:], "d")
	if told {
		next = s.readTold(p, "s", f[len(f)-1])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != p {
		return
	}
	if next != nil {
		next.State.own, s.own = s.own, nil
		s.takeSnapshotLocked(*next)
	} else if told {
		s.missed = true
	}
	if !p.ready {
		s.prompts = true
		p.libraries = libraries(p.pid)
		s.workers.Go(func() { p.learnIdle(s) })
	}
	s.nonce, p.ready = nonce, true
	if s.ask != nil {
		s.ask.ready++
	}
	if r := s.run; r != nil && !r.ended {
		s.unexpectedLocked(p, r, nonce)
		return
	}
	s.deaths = 0
	if slices.Contains(f[2:], "v") {
		if s.edits = s.run != nil; !s.edits { // else finish does it: the end mark is still to be read
			s.plainInputLocked()
		}
		return
	}
	if s.prompts {
		s.prompt, s.prompts = prompt, false
	}
	select {
	case <-s.idle:
	default:
		close(s.idle)
	}
}

// unexpectedLocked handles a shell that is ready although its command has not ended: where it had begun, its end record
// did not reach us; where not, it is still to come, and will answer with the new nonce.
func (s *Shell) unexpectedLocked(p *process, r *run, nonce string) {
	if nonce == r.nonce {
		return // told twice, before the line began
	}
	if r.hasBegun() {
		r.ended = true
		r.end <- endRecord{nonce: nonce, status: r.status}
		close(s.idle)
		return
	}
	r.nonce = nonce
	p.stream.renonce(nonce)
	if err := s.arrangeLocked(s.flags); err != nil { // bash before 5.1 needs another nonce
		s.log.Warn("nonce", "error", err)
	}
	select {
	case r.late <- struct{}{}:
	default:
	}
}

// plainInputLocked switches the line editor off that `set -o vi` or emacs brought in: bash does so for a typed line only,
// not from a prompt hook.
func (s *Shell) plainInputLocked() {
	if err := s.arrangeLocked(""); err != nil {
		s.log.Warn("nonce", "error", err)
		return
	}
	s.proc.stream.hush(s.nonce)
	// Not typeLocked: who waits for the shell goes on waiting.
	if _, err := s.proc.write([]byte(" \\builtin set +o vi +o emacs; { \\__sublet_g; } 2>/dev/null\n")); err != nil {
		s.log.Warn("line editor", "error", err)
	}
}

func (s *Shell) onAnswer(rest string) {
	id, status, _ := strings.Cut(rest, " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.ask
	if q == nil || q.id != id || q.told {
		return
	}
	q.told = true
	q.status, _ = strconv.Atoi(status)
	close(q.done)
}
