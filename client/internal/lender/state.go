package lender

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"sublet/lease/shell"
	"sublet/wire"
)

// lookBound is how long a look at the shell's state may take; lookWanted, how much longer one at what a borrowed command
// left behind may go on when the user wants the shell.
const (
	lookBound  = 3 * time.Second
	lookWanted = 250 * time.Millisecond
)

// bodiesMost bounds the function bodies of one message; the rest go without.
const bodiesMost = wire.MaxFrame / 4

// ranKept bounds the executions of one message.
const ranKept = 64

// change is what a borrowed command did to the shell's state.
type change struct {
	by            wire.ExecutionID
	before, after shell.State
}

// joined is two lists of executions, one after the other. Of very many the oldest become one without a name: the daemon
// trusts what it does not know as little as what nobody approved.
func joined(ids []wire.ExecutionID, more ...wire.ExecutionID) []wire.ExecutionID {
	all := slices.Concat(ids, slices.DeleteFunc(slices.Clone(more), func(id wire.ExecutionID) bool { return slices.Contains(ids, id) }))
	if over := len(all) - ranKept; over > 0 {
		all = all[over:]
		all[0] = ""
	}
	return all
}

// staleLocked reports whether the shell's state is not known, or not told.
func (l *Lender) staleLocked() bool {
	return l.dirty || l.up && l.told != l.state.Digest
}

// look brings what is known and told of the shell's state up to date. The caller holds the token. The shell has written
// its state down a moment after each command that may have changed it, so this is short. A state that cannot be had is
// given up until the next command: lending goes on without.
func (l *Lender) look(ctx context.Context) {
	l.mu.Lock()
	if !l.staleLocked() {
		l.mu.Unlock()
		return
	}
	if !l.dirty {
		l.tellLocked()
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	l.learn(ctx, l.sh.State, false)
}

// learn takes the shell's state from what tells it; more: there may be more to know soon.
func (l *Lender) learn(ctx context.Context, from func(context.Context) (shell.State, error), more bool) {
	bound, stop := shell.Patiently(ctx, lookBound)
	defer stop()
	s, err := from(bound)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil && (l.user != nil || ctx.Err() != nil) {
		return // the user wanted the shell, or who looked gave up: another time
	}
	l.dirty = more && err == nil
	if err != nil {
		l.log.Warn("shell state not known", "err", err)
		l.told = l.state.Digest
		return
	}
	l.state = s
	l.untold = joined(l.untold, l.ran...)
	if !more { // what hooks make of it is no more trusted than it is
		l.ran = nil
	}
	l.tellLocked()
}

// lookAfter looks at what a borrowed command left behind, for the caller, who holds the token, and calls known with the
// lock held when that is known; then at what prompt hooks of the user made of it. A user who wants the shell waits for that
// lookWanted at most, and may then not be told what the command changed.
func (l *Lender) lookAfter(known func()) {
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	var timer *time.Timer
	hurry := func() { timer = time.AfterFunc(lookWanted, cancel) }
	l.mu.Lock()
	if l.looking = hurry; l.user != nil {
		hurry()
	}
	l.mu.Unlock()
	l.learn(ctx, l.sh.Left, true)
	l.mu.Lock()
	known()
	l.mu.Unlock()
	l.look(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looking = nil
	if timer != nil {
		timer.Stop()
	}
}

// tellLocked sends the state to the daemon, if there is a link that does not have it.
func (l *Lender) tellLocked() {
	if !l.up {
		return
	}
	if l.told == l.state.Digest {
		l.untold = nil // they changed nothing
		return
	}
	s := &wire.ShellState{
		Digest: l.state.Digest, Cwd: wire.OSString(l.state.Dir),
		Aliases: map[string]wire.OSString{}, Functions: []wire.ShellFunction{}, Options: slices.Clone(l.state.Options),
		Hashed: map[string]wire.OSString{}, Disabled: slices.Clone(l.state.Disabled), Loaded: slices.Clone(l.state.Loaded),
		Env:        wire.EnvChange{Set: map[string]wire.OSString{}, Unset: []string{}},
		Executions: append([]wire.ExecutionID{}, l.untold...),
	}
	for _, list := range []*[]string{&s.Options, &s.Disabled, &s.Loaded} {
		if *list == nil {
			*list = []string{}
		}
	}
	for name, file := range l.state.Hashed {
		s.Hashed[name] = wire.OSString(file)
	}
	for name, text := range l.state.Aliases {
		s.Aliases[name] = wire.OSString(text)
	}
	size, bodies := 0, map[string]bool{}
	for _, name := range sortedKeys(l.state.Functions) {
		body := l.state.Functions[name]
		sum := sha256.Sum256([]byte(body))
		f := wire.ShellFunction{Name: name, Hash: hex.EncodeToString(sum[:])}
		switch {
		case l.bodies[f.Hash] || bodies[f.Hash]:
			bodies[f.Hash] = true
		case size+len(body) <= bodiesMost:
			size += len(body)
			f.Body = wire.OSString(body)
			bodies[f.Hash] = true
		}
		s.Functions = append(s.Functions, f)
	}
	env := Public(l.state.Vars)
	for name, value := range env {
		if old, had := l.sentEnv[name]; !had || old != value {
			s.Env.Set[name] = value
		}
	}
	for _, name := range sortedKeys(l.sentEnv) {
		if _, has := env[name]; !has {
			s.Env.Unset = append(s.Env.Unset, name)
		}
	}
	if l.send(s) {
		l.told, l.sentEnv, l.bodies = s.Digest, env, bodies
		l.toldOf, l.untold = s.Executions, nil
	}
}

// vars turns os.Environ's form into a map.
func vars(env []string) map[string]string {
	m := make(map[string]string, len(env))
	for _, kv := range env {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" {
			m[name] = value
		}
	}
	return m
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
