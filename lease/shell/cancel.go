package shell

import (
	"cmp"
	"context"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The steps of a cancel, from its beginning. A borrower's command has ended, with proof, within 5 s; a look that comes late
// counts as lateMost, for where the machine stood still so did what was signalled.
const (
	lateMost      = 5 * pressEvery
	termAfter     = 2 * time.Second
	stopAfter     = 3 * time.Second // another user's program, which cannot be killed
	steadyWithin  = 3500 * time.Millisecond
	killAfter     = 4 * time.Second
	replaceAfter  = 4500 * time.Millisecond
	provedWithin  = 5 * time.Second
	forksEvery    = 2 * time.Millisecond
	startWithin   = 250 * time.Millisecond // what a line may take to begin before the shell itself is interrupted
	waitWithin    = 400 * time.Millisecond // what the shell may take to start a pipeline and to wait for it
	computesAfter = 5 * time.Millisecond   // of processor time, more than it takes to start a program
	pressEvery    = 20 * time.Millisecond
	againEvery    = 100 * time.Millisecond
	stuckAfter    = 300 * time.Millisecond
	sweepEvery    = 20 * time.Millisecond
	sweepMost     = 10 // times
	sweepForks    = 3  // times for a fork in a group of its own: a background job, mostly on its way to be its program
)

// canceller ends the command in flight. Bash goes on with a list when a program takes SIGINT for an ordinary end, or is ended
// by another signal; not where the shell itself had SIGINT, too, while it waited for the program. Where it traps that, it goes
// on nevertheless: so the canceller looks again and again, and each new foreground group gets the signal that is due.
type canceller struct {
	s      *Shell
	p      *process
	r      *run
	clock  elapsed
	age    time.Duration          // of the cancel, at the last look
	sent   map[int]syscall.Signal // last signal by process group, or by process, negative
	next   time.Duration          // the age at which to press
	again  time.Duration          // and to look for a lost SIGINT
	fresh  int                    // the group that the shell is about to wait for
	since  time.Duration          // fresh was seen
	used   time.Duration          // the shell's processor time when it was first looked at
	there  map[int]bool           // in a group when SIGINT struck it
	group  int                    // that SIGINT struck, and whose members were not looked at yet; 0: none
	forks  []int                  // of the shell, not yet their program when SIGINT struck
	holder *holder                // of subshells: see freeze; nil while none are looked for
	frozen []int                  // those that are held
	unheld []int                  // those that were tried, too
	halted bool                   // the shell is stopped
	thawed []int                  // those that were let go on
	groups []int                  // theirs
	alien  int                    // the last group with another user's program in it; 0: none
	kin    map[int]int64          // what the groups that were signalled had started: see family
	timer  *time.Ticker

	struck   bool // alien was told to stop
	replaced bool
}

func newCanceller(s *Shell, p *process, r *run) *canceller {
	return &canceller{
		s: s, p: p, r: r, sent: make(map[int]syscall.Signal), kin: make(map[int]int64), there: make(map[int]bool),
		timer: time.NewTicker(pressEvery),
	}
}

func (c *canceller) tick() <-chan time.Time {
	if c == nil {
		return nil
	}
	return c.timer.C
}

// press sends what is due to the foreground group.
func (c *canceller) press() {
	c.age = c.clock.add(lateMost)
	defer func() { c.age = c.clock.add(waitWithin) }() // what is done here takes its time, too
	c.pressForks()
	c.thaw()
	if c.age < c.next {
		return
	}
	age := c.age
	c.next = age + pressEvery
	if age >= replaceAfter && !c.r.c.User {
		c.replace()
		return
	}
	due := syscall.SIGINT
	switch {
	case age >= killAfter:
		due = syscall.SIGKILL
	case age >= termAfter:
		due = syscall.SIGTERM
	}
	if due == syscall.SIGKILL && c.halted { // what it is held for has had its time
		c.release()
	}
	if !c.r.frozen && stopped(c.p.pid) { // by a child
		_ = syscall.Kill(c.p.pid, syscall.SIGCONT)
	}
	pgid, own := c.p.foreground()
	if own && !c.r.hasBegun() && age < startWithin {
		c.next = 0
		return // SIGINT would tear the line that the shell is reading: it drops a part of it, and runs the rest
	}
	if own && c.over() {
		return
	}
	if own && age < waitWithin && busy(c.p.pid) && (!c.computes() || len(leftovers(c.p.pid, c.r.typed)) > 0) {
		c.lookSoon()
		return // it may be starting a program or a pipeline, which has not taken the terminal yet: see awaited
	}
	if own && c.r.frozen && due == syscall.SIGINT && c.sent[c.p.pid] == 0 {
		return // it will be struck by the SIGINT that it has; a subshell in its EXIT trap took the terminal back, and its group
	}
	if own {
		c.pressShell(due, age)
		return
	}
	if pgid <= 1 {
		return
	}
	if c.sent[pgid] == due {
		if c.alien == pgid && age >= stopAfter {
			c.pressStop(pgid)
		} else {
			c.pressAgain(pgid, due)
		}
		return
	}
	if !c.r.frozen && !c.awaited(pgid) {
		c.lookSoon()
		return
	}
	c.sent[pgid] = due
	c.again = c.age + againEvery
	c.s.shake()
	c.interrupt() // before the program ends: bash remembers it until then
	family(c.p.pid, pgid, c.kin)
	if due == syscall.SIGINT {
		c.freeze(pgid, c.p.pid)
		c.note(pgid)
	}
	err := c.strike(pgid, due)
	if c.r.frozen {
		for _, pid := range beside(c.p.pid, c.r.typed) { // <( )
			if !slices.Contains(c.frozen, pid) || due != syscall.SIGINT {
				_ = syscall.Kill(pid, due)
			}
		}
	}
	if due != syscall.SIGINT {
		_ = syscall.Kill(-pgid, syscall.SIGCONT) // a stopped program does not hear
	}
	if err == syscall.EPERM || due != syscall.SIGINT && slices.ContainsFunc(groupMembers(pgid), foreign) {
		c.alien = pgid
		c.pressForeign(due)
		return
	}
	if due != syscall.SIGINT {
		return
	}
	// Mostly the end comes first, and nobody needs to be looked for.
	c.group = pgid
	c.timer.Reset(forksEvery)
}

// over tells that the command has ended and the shell reads a line: its end was told, and is about to be heard. SIGINT would
// strike an idle shell, which now and then costs bash its input: it runs what lies where that was, and exits.
func (c *canceller) over() bool {
	if !c.r.hasBegun() || !c.p.readsLine() || !c.s.takeRecords(c.p) {
		return false
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.r.ended
}

// computes tells whether the shell has been at work for longer than it takes to begin a program. A SIGINT that strikes while it
// does that may cost the shell: it takes the terminal back, the new process takes it behind that, and bash exits when it can't
// read its next line.
func (c *canceller) computes() bool {
	used := cpuTime(c.p.pid)
	if c.used == 0 {
		c.used = used
	}
	return used == 0 || used-c.used >= computesAfter
}

// awaited tells whether the shell is seen to wait for a group, or has had the time for it. Before that it may still be
// starting a pipeline, and SIGINT would leave one without its end.
func (c *canceller) awaited(pgid int) bool {
	if c.fresh != pgid {
		c.fresh, c.since = pgid, c.age
	}
	waits, seen := waitsForChild(c.p.pid)
	return waits || !seen || c.age-c.since >= waitWithin
}

// pressForks repeats SIGINT for those that were forks of the shell when it struck and have become their program since. A
// subshell stays a fork, and may be running its EXIT trap.
func (c *canceller) pressForks() {
	if c.group != 0 {
		c.forks, c.group = groupMembers(c.group), 0
		if slices.ContainsFunc(c.forks, foreign) {
			c.pressForeign(syscall.SIGINT)
		}
	}
	c.forks = slices.DeleteFunc(c.forks, func(pid int) bool {
		if isFork(pid) {
			return false
		}
		if c.mayHaveLost(pid) {
			_ = syscall.Kill(pid, syscall.SIGINT)
		}
		return true
	})
	if len(c.forks) == 0 && !c.r.frozen {
		c.timer.Reset(pressEvery)
	}
}

// interrupt has the shell itself discard what it runs. SIGINT does; where a borrower's text may trap that, a trap of ours for a
// signal that does nothing otherwise puts it back first: see guard in rc/borrow.bash.
func (c *canceller) interrupt() {
	_ = syscall.Kill(c.p.pid, syscall.SIGINT)
	if c.r.plan.functions && c.r.plan.guarded(c.r.c) {
		_ = syscall.Kill(c.p.pid, syscall.SIGURG)
	}
}

// note takes down who is in a group that is about to be sent SIGINT.
func (c *canceller) note(pgid int) {
	for _, pid := range c.members(pgid) {
		c.there[pid] = true
	}
}

// mayHaveLost tells that a process of a group that was sent SIGINT may not have got it: it would have died of it. Not one that
// a program began since, or a subshell that was let go on, for its EXIT trap: that may be what it cleans up with.
func (c *canceller) mayHaveLost(pid int) bool {
	if pid == c.p.pid || !diesOf(pid, syscall.SIGINT) {
		return false
	}
	parent := parentOf(pid)
	return c.there[pid] || parent == c.p.pid || isFork(parent) && !slices.Contains(c.thawed, parent)
}

// pressAgain repeats SIGINT for those who cannot have got it: a child that the shell had forked but which was not yet the
// program takes it with the shell's own handler, and it is lost. Programs that catch it are spared a second one, which
// many take for an order to stop without cleaning up.
func (c *canceller) pressAgain(pgid int, due syscall.Signal) {
	if due != syscall.SIGINT || c.age < c.again {
		return
	}
	c.again = c.age + againEvery
	for _, pid := range c.members(pgid) {
		if c.mayHaveLost(pid) && syscall.Kill(pid, syscall.SIGINT) == syscall.EPERM {
			c.pressForeign(syscall.SIGINT)
		}
	}
}

// pressChildren ends what the command started, where the shell has the terminal and still waits: a ^C that struck while a
// pipeline was being started makes bash wait for the rest of it without giving it the terminal. What bash waits for was
// started last; background jobs stand before it, and a cancel leaves them unless that was not enough.
func (c *canceller) pressChildren(due syscall.Signal, age time.Duration) {
	list := leftovers(c.p.pid, c.r.typed)
	if len(list) > 0 && age < 2*stuckAfter {
		last, _ := unix.Getpgid(slices.MaxFunc(list, func(a, b Process) int { return cmp.Compare(a.PID, b.PID) }).PID)
		list = slices.DeleteFunc(list, func(p Process) bool {
			group, err := unix.Getpgid(p.PID)
			return err != nil || group != last
		})
	}
	for _, p := range list {
		group, _ := unix.Getpgid(p.PID)
		struck := group == c.p.pid || c.sent[group] == due
		lost := !struck && diesOf(p.PID, due) || c.mayHaveLost(p.PID)
		if c.sent[-p.PID] != due && (due != syscall.SIGINT || lost) {
			c.sent[-p.PID] = due
			_ = syscall.Kill(p.PID, due)
		}
	}
}

// pressShell interrupts the shell itself (a loop, read, wait), and signals what runs in its own group beside it, which is
// what command substitutions do.
func (c *canceller) pressShell(due syscall.Signal, age time.Duration) {
	if c.sent[c.p.pid] != due {
		c.sent[c.p.pid] = due
		c.s.shake()
		c.again = c.age + againEvery
		if due == syscall.SIGINT {
			c.freeze(c.p.pid)
			c.note(c.p.pid)
		}
		_ = c.strike(c.p.pid, syscall.SIGINT)
		c.interrupt()
		if !c.r.frozen {
			_ = syscall.Kill(c.p.pid, syscall.SIGCONT)
		}
		others := c.members(c.p.pid)[1:]
		if due != syscall.SIGINT {
			for _, pid := range others {
				_ = syscall.Kill(pid, due)
			}
		}
		if slices.ContainsFunc(others, foreign) {
			c.pressForeign(due)
		}
	} else if c.age >= c.again && !c.p.readsLine() && time.Since(c.r.mended) >= waitWithin { // else rescue has it
		c.interrupt()
		c.pressAgain(c.p.pid, due)
		c.again = c.age + againEvery
	}
	if age >= stuckAfter {
		c.pressChildren(due, age)
	}
}

// replace ends a shell that goes on with a borrower's command whatever is signalled: it is deaf to SIGINT, and whoever has
// the terminal at the moment is only the next program of its list, or one of another user's.
func (c *canceller) replace() {
	if c.replaced {
		return
	}
	c.replaced = true
	c.s.log.Warn("the shell does not answer SIGINT and is replaced")
	_ = syscall.Kill(c.p.pid, syscall.SIGKILL)
}

// prove makes sure that the shell is ready again, in what is left of the time; a borrower's is replaced where it is not. A
// SIGINT that was sent to it and strikes late is settled before the next command (settleSignals).
func (c *canceller) prove(res *Result) {
	left := max(provedWithin-c.clock.add(provedWithin/2), 500*time.Millisecond) // nobody has looked since the end was told
	if !c.replaced {
		if c.s.readyWithin(left) || c.r.c.User || closed(c.p.exited) {
			return
		}
		c.s.log.Warn("the shell does not answer after a cancel and is replaced")
		_ = syscall.Kill(c.p.pid, syscall.SIGKILL)
		left = 500 * time.Millisecond
	}
	limit, stop := Patiently(context.Background(), left)
	defer stop()
	select {
	case <-c.p.buried:
	case <-limit.Done():
	}
	if closed(c.p.buried) {
		res.Respawned, res.Why = c.s.current() != c.p, death{status: c.p.state}.why()
	} else {
		res.Why = "the shell does not answer, and has not ended of SIGKILL either: the system holds it; what comes next waits until it lets go"
	}
	c.s.note(c.r, res.Why)
}

// overdue tells that the shell was replaced and its end has not come in time. It ends the wait for the command, too.
func (c *canceller) overdue() bool { return c.replaced && c.age >= provedWithin }

// sweep lists what the command left running, also in sessions of their own, where no terminal's signal would have reached it
// and none of ours was sent. It gives it a moment first: what was killed goes, a fork of the shell becomes
// its program. One that was still a fork when SIGINT struck has lost it, with the handler of the shell, and gets it again.
func (c *canceller) sweep() []Process {
	list, gone := leftovers(c.p.pid, c.r.typed), away(c.p.pid, c.kin)
	for again := 0; len(list)+len(gone) > 0 && again < sweepMost; again++ {
		time.Sleep(sweepEvery)
		list, gone = leftovers(c.p.pid, c.r.typed), away(c.p.pid, c.kin)
		going := len(gone) > 0 && again < sweepForks // a program that had it in its care may be ending it
		for _, p := range list {
			pgid, err := unix.Getpgid(p.PID)
			if err != nil {
				continue
			}
			switch sent := c.sent[pgid]; {
			case isFork(p.PID):
				going = going || sent != 0 || again < sweepForks
			case p.User != "":
				going = going || sent != 0 && again < sweepForks
			case sent != 0 && diesOf(p.PID, sent): // where nothing was sent it is a background job
				going = true
				_ = syscall.Kill(p.PID, sent)
			}
		}
		if !going {
			break
		}
	}
	return append(list, gone...)
}
