package lender

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"sublet/lease/shell"
	"sublet/wire"
)

// stateBound is how long the shell may take to write its state.
const stateBound = 3 * time.Second

// errNoState reports that it took longer.
var errNoState = errors.New("the shell did not write down its state in time")

// bodiesMost bounds the function bodies in one message, in bytes; the others are left out.
const bodiesMost = wire.MaxFrame / 4

// joined concatenates two lists of executions, each of which is in the result once.
func joined(ids []wire.ExecutionID, more ...wire.ExecutionID) []wire.ExecutionID {
	return slices.Concat(ids, slices.DeleteFunc(slices.Clone(more), func(id wire.ExecutionID) bool { return slices.Contains(ids, id) }))
}

// known is the shell's state, and what the daemon knows of it.
type known struct {
	state      shell.State              // as last read; Digest "" = never
	sentDigest string                   // of the state last sent on this link; "" = none
	bodies     map[string]bool          // hashes of function bodies that the daemon has from this link
	sentEnv    map[string]wire.OSString // the environment that the daemon has, by Snapshot or by the state sent last
	// Borrowed commands that may have made changes: not yet in state; in state but not sent; in the state sent last.
	ran, unsent, sentLast []wire.ExecutionID
}

// syncState reads the shell's state and sends it to the daemon if it changed. The editor must be held.
func (l *Lender) syncState(ctx context.Context) error {
	err := l.read(ctx)
	if err == nil {
		l.sendState()
	}
	return err
}

// read reads the shell's state. The editor must be held.
func (l *Lender) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stateBound, errNoState)
	defer cancel()
	s, err := l.Shell.State(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state, l.dir = s, s.Dir
	l.unsent, l.ran = joined(l.unsent, l.ran...), nil
	return nil
}

// changedBy reads what a borrowed command changed in the shell, and returns it in one line.
func (l *Lender) changedBy(id wire.ExecutionID, before shell.State) string {
	l.mu.Lock()
	l.ran = joined(l.ran, id)
	l.mu.Unlock()
	if err := l.read(l.ctx); err != nil { // the state is read again before the shell is lent to the next borrower
		l.Log.Warn("what a command changed is not known", "execution", id, "err", err)
		return ""
	}
	changed := shell.Difference(before, l.state)
	if changed != "" {
		l.changes.Add(string(id), before, l.state)
	}
	return changed
}

// sendState sends the state to the daemon, if there is a link on which it was not sent.
func (l *Lender) sendState() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.up {
		return
	}
	if l.sentDigest == l.state.Digest {
		l.unsent = nil // these commands changed nothing
		return
	}
	if s, sent := l.next(); l.send(s) {
		sent()
	}
}

// next returns the message with the state, without what the daemon has already. The caller calls sent once the message was sent.
func (k *known) next() (s *wire.ShellState, sent func()) {
	s = &wire.ShellState{
		Digest: k.state.Digest, Cwd: wire.OSString(k.state.Dir),
		Aliases: map[string]wire.OSString{}, Functions: []wire.ShellFunction{}, Options: slices.Clone(k.state.Options),
		Hashed: map[string]wire.OSString{}, Disabled: slices.Clone(k.state.Disabled),
		Env:        wire.EnvChange{Set: map[string]wire.OSString{}, Unset: []string{}},
		Executions: append([]wire.ExecutionID{}, k.unsent...),
	}
	for _, list := range []*[]string{&s.Options, &s.Disabled} {
		if *list == nil {
			*list = []string{}
		}
	}
	for name, file := range k.state.Hashed {
		s.Hashed[name] = wire.OSString(file)
	}
	for name, text := range k.state.Aliases {
		s.Aliases[name] = wire.OSString(text)
	}
	size, bodies := 0, map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(k.state.Functions)) {
		body := k.state.Functions[name]
		sum := sha256.Sum256([]byte(body))
		f := wire.ShellFunction{Name: name, Hash: hex.EncodeToString(sum[:])}
		switch {
		case k.bodies[f.Hash] || bodies[f.Hash]:
			bodies[f.Hash] = true
		case size+len(body) <= bodiesMost:
			size += len(body)
			f.Body = wire.OSString(body)
			bodies[f.Hash] = true
		}
		s.Functions = append(s.Functions, f)
	}
	env := Public(k.state.Vars)
	for name, value := range env {
		if old, had := k.sentEnv[name]; !had || old != value {
			s.Env.Set[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(k.sentEnv)) {
		if _, has := env[name]; !has {
			s.Env.Unset = append(s.Env.Unset, name)
		}
	}
	return s, func() {
		k.sentDigest, k.sentEnv, k.bodies = s.Digest, env, bodies
		k.sentLast, k.unsent = s.Executions, nil
	}
}

// Vars converts the form of os.Environ to a map.
func Vars(env []string) map[string]string {
	m := make(map[string]string, len(env))
	for _, kv := range env {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" {
			m[name] = value
		}
	}
	return m
}
