package main

import (
	_ "embed"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sublet/lease/confine"
)

//go:embed testdata/attacks.txt
var attackTable string

// An attack is a row of testdata/attacks.txt, which says what it finds.
type attack struct {
	class, text string
	users       string // "root" or "user" only; "" = all
	readOnly    bool   // only with the reach read: project allows it
}

// attacks reads the table.
func attacks(t *testing.T) (list []attack) {
	var head attack
	var uses, at []string
	// flush has each use tried at the first most paths, and each path by the first each uses.
	flush := func(most, each int) {
		for i, use := range uses {
			for j, path := range at {
				if i < each || j < most {
					a := head
					a.text = strings.ReplaceAll(use, "@@", path)
					list = append(list, a)
				}
			}
		}
		uses, at = nil, nil
	}
	for line := range strings.Lines(attackTable) {
		line = strings.TrimSuffix(line, "\n")
		name, rest, _ := strings.Cut(line, " ")
		switch name {
		case "", "#":
		case "==":
			flush(2, 6)
			head = attack{}
			for _, word := range strings.Fields(rest) {
				switch word {
				case "[root]", "[user]":
					head.users = strings.Trim(word, "[]")
				case "[read]":
					head.readOnly = true
				default:
					head.class = strings.TrimSpace(head.class + " " + word)
				}
			}
		case "@write", "@read":
			uses = append(uses, rest)
		case "@path", "@secret":
			at = append(at, rest)
		default:
			if len(uses) > 0 { // of secrets
				flush(2, 5)
			}
			a := head
			a.text = line
			list = append(list, a)
		}
	}
	flush(2, 6)
	if len(list) < 400 {
		t.Fatalf("%d attacks", len(list))
	}
	return list
}

// batch is how many attacks are made in one held command where they do not disturb each other.
const batch = 25

// disturbs reports whether an attack may change what another one finds even if it is held.
func (a attack) disturbs(reach string) bool {
	return a.class == "terminal" || reach == confine.Project && (a.class == "links" || a.class == "protected")
}

// together returns attacks as one command.
func together(list []attack) string {
	var text strings.Builder
	for _, a := range list {
		fmt.Fprintf(&text, "(%s\n)\n", a.text)
	}
	return text.String()
}

var only = flag.String("attacks", "", "make only the attacks whose class and text contain this")

var every = flag.Bool("every", false, "make every attack also where nothing holds it, not one in five")

// sample is the share of the attacks that is made with -short, and unheld without -every: one in so many.
const sample = 5

// A trial is a number of attacks that are made as one held command.
type trial struct {
	who   user
	reach string
	list  []attack
}

// A campaign is all attacks on a launcher.
type campaign struct {
	t       *testing.T
	program string
	users   []user

	mu      sync.Mutex
	works   map[attack]bool   // has its effect where nothing holds it
	lacking map[string]bool   // programs
	counts  map[string]*count // by class
}

type count struct{ attacks, held, effects int }

// TestAttacks makes every attack held to each reach by each user, which must have no effect; and unheld, which must have one, with
// -every: that is most of the time, and changes with the table only.
func TestAttacks(t *testing.T) {
	all := users(t)
	c := &campaign{t: t, program: launcher(t, all[0]), users: all, works: map[attack]bool{}, lacking: map[string]bool{}, counts: map[string]*count{}}
	t.Cleanup(func() {
		prototypes.Range(func(_, once any) bool {
			if dir, err := once.(func() (string, error))(); err == nil {
				os.RemoveAll(dir)
			}
			return true
		})
	})
	begin := time.Now()
	var alone, rest []attack
	for i, a := range attacks(t) {
		if *only == "" && testing.Short() && i%sample != 0 || !strings.Contains(a.class+": "+a.text, *only) {
			continue
		}
		if a.class == "all of the user's" {
			alone = append(alone, a)
		} else {
			rest = append(rest, a)
		}
	}
	tried := func(list []attack) (some []attack) {
		for i, a := range list {
			if *every || *only != "" || testing.Short() || i%sample == 0 {
				some = append(some, a)
			} else if c.unheldBy(a) != nil && missingProgram(a.text) == "" {
				c.works[a] = true
			}
		}
		return some
	}
	parallel(tried(rest), c.unheld)
	for _, a := range tried(alone) {
		c.unheld(a)
	}
	t.Logf("unheld: %v", time.Since(begin))
	begin = time.Now()
	parallel(c.trials(), c.held)
	t.Logf("held: %v", time.Since(begin))
	for a := range c.works {
		c.counts[a.class].attacks++
	}
	total := 0
	for _, class := range slices.Sorted(maps.Keys(c.counts)) {
		n := c.counts[class]
		total += n.attacks
		t.Logf("%-16s %4d attacks, held %4d times, %d effects", class, n.attacks, n.held, n.effects)
	}
	t.Logf("%d attacks", total)
	if total < 400 && *only == "" && !testing.Short() {
		t.Error("too few attacks have an effect here where nothing holds them")
	}
	if len(c.lacking) > 0 {
		t.Logf("without the attacks that need what is not installed: %s", strings.Join(slices.Sorted(maps.Keys(c.lacking)), " "))
	}
}

// try makes a scene for an attack and runs a text there.
func (c *campaign) try(who user, a attack, text, held, reach string) ([]string, string) {
	s := newScene(c.t, who, text)
	defer s.end()
	s.patience = patience * time.Duration(1+strings.Count(text, "\n")/10)
	effects, output := s.run(c.program, held, reach, a.class == "terminal")
	if strings.Contains(output, "the command was not run") {
		effects = append(effects, "was not run")
	}
	return effects, output
}

// unheldBy returns who can make an attack where nothing holds it, or nil.
func (c *campaign) unheldBy(a attack) *user {
	i := slices.IndexFunc(c.users, func(u user) bool { return a.users == "" || a.users == u.name })
	if i < 0 || a.users == "user" && os.Getuid() != 0 { // there is no program of another user's
		return nil
	}
	return &c.users[i]
}

// unheld makes an attack where nothing holds it.
func (c *campaign) unheld(a attack) {
	who := c.unheldBy(a)
	if who == nil {
		return
	}
	judged := confine.Project
	if a.readOnly {
		judged = confine.Read
	}
	effects, output := c.try(*who, a, a.text, "", judged)
	name := missingProgram(a.text)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case len(effects) > 0:
		c.works[a] = true
	case name != "":
		c.lacking[name] = true
	default:
		c.t.Errorf("%s: %s: has no effect where nothing holds it\n%s", a.class, a.text, output)
	}
}

// trials returns the attacks that work, in batches.
func (c *campaign) trials() (list []trial) {
	for _, who := range c.users {
		for _, reach := range []string{confine.Read, confine.Project} {
			now := map[string][]attack{}
			for _, a := range attacks(c.t) {
				if !c.works[a] || a.users != "" && a.users != who.name || a.readOnly && reach == confine.Project {
					continue
				}
				if c.counts[a.class] == nil {
					c.counts[a.class] = &count{}
				}
				c.counts[a.class].held++
				now[a.class] = append(now[a.class], a)
				if a.disturbs(reach) || len(now[a.class]) == batch {
					list = append(list, trial{who, reach, now[a.class]})
					now[a.class] = nil
				}
			}
			for _, class := range slices.Sorted(maps.Keys(now)) {
				if len(now[class]) > 0 {
					list = append(list, trial{who, reach, now[class]})
				}
			}
		}
	}
	return list
}

// held makes attacks as one held command; where that has an effect, also each by itself to find out which it was.
func (c *campaign) held(tr trial) {
	effects, output := c.try(tr.who, tr.list[0], together(tr.list), tr.reach, tr.reach)
	if len(effects) == 0 {
		return
	}
	found := 0
	for _, a := range tr.list {
		if effects, output := c.try(tr.who, a, a.text, tr.reach, tr.reach); len(effects) > 0 {
			found++
			c.t.Errorf("%s as %s, held to %s: %s: %s\n%s", a.class, tr.who.name, tr.reach, a.text, strings.Join(effects, "; "), output)
		}
	}
	if found == 0 {
		c.t.Errorf("%s as %s, held to %s, together: %s\n%s\n%s", tr.list[0].class, tr.who.name, tr.reach, strings.Join(effects, "; "), together(tr.list), output)
	}
	c.mu.Lock()
	c.counts[tr.list[0].class].effects += max(found, 1)
	c.mu.Unlock()
}

// parallel calls f for each of a list, some at the same time.
func parallel[T any](list []T, f func(T)) {
	work := make(chan T)
	var workers sync.WaitGroup
	for range 2 * runtime.NumCPU() {
		workers.Go(func() {
			for v := range work {
				done := make(chan struct{})
				go func() { // which t.Fatal ends
					defer close(done)
					f(v)
				}()
				<-done
			}
		})
	}
	for _, v := range list {
		work <- v
	}
	close(work)
	workers.Wait()
}

// missingProgram returns a program of an attack that is not installed, or "".
func missingProgram(text string) string {
	for _, name := range strings.Fields("node curl wget git gcc gdb strace sqlite3 vim ed xxd openssl make tclsh ssh-keygen ssh ssh-add ssh-agent man jq fuser script docker tmux logger start-stop-daemon python3 perl ip unshare less more strings tar npm ipcrm") {
		if strings.Contains(" "+text, " "+name+" ") {
			if _, err := exec.LookPath(name); err != nil {
				return name
			}
		}
	}
	return ""
}
