package lend

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"sublet/daemon/internal/mask"
	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/tool"
	"sublet/lease/shell"
	"sublet/wire"
	"sublet/wire/visible"
)

// settleBound is how long Where waits for the client to report the state of its shell, which the user may be using.
const settleBound = 250 * time.Millisecond

// view is what is known of a lent shell, as its client reported. Its maps are replaced, never changed in place. The Lender's mu guards it.
type view struct {
	info   wire.ShellInfo
	env    map[string]wire.OSString
	cwd    string
	digest string            // "" = not known yet
	state  shell.State       // as last reported, on whatever link, without a Digest if not on this one; env may be newer
	bodies map[string]string // of functions, by hash: a state names those of the one before, and brings the others

	reported chan struct{} // closed when the client reports its state; then a new one
}

// link takes over a client's description of its shell on a new link; the shell's state follows.
func (v *view) link(env *wire.EnvSnapshot) {
	v.env, v.info, v.cwd = maps.Clone(env.Env), env.Shell, string(env.Cwd)
	v.digest, v.state.Digest = "", ""
}

// change takes over the state that the live shell has now and returns the state before and that one.
func (v *view) change(st *wire.ShellState) (before, now shell.State) {
	v.cwd, v.digest = string(st.Cwd), st.Digest
	env := maps.Clone(v.env)
	if env == nil {
		env = map[string]wire.OSString{}
	}
	maps.Copy(env, st.Env.Set)
	for _, name := range st.Env.Unset {
		delete(env, name)
	}
	v.env = env
	now = shell.State{
		Digest: st.Digest, Vars: Texts(env), Aliases: Texts(st.Aliases), Functions: v.functions(st), Hashed: Texts(st.Hashed), Disabled: st.Disabled,
	}
	before, v.state = v.state, now
	return before, now
}

// current reports whether state is that of the shell now.
func (v *view) current() bool { return v.digest != "" && v.digest == v.state.Digest }

// functions returns the bodies of the functions of st by their names, "" for a body that is not known. The client sends each body only
// once: functions looks up the others in v.bodies by their hashes, and replaces v.bodies by the bodies of st. The caller
// guards v.
func (v *view) functions(st *wire.ShellState) map[string]string {
	functions, bodies := make(map[string]string, len(st.Functions)), make(map[string]string, len(st.Functions))
	for _, f := range st.Functions {
		switch {
		case f.Body != "":
			bodies[f.Hash] = string(f.Body)
		case bodies[f.Hash] == "":
			bodies[f.Hash] = v.bodies[f.Hash]
		}
		functions[f.Name] = bodies[f.Hash]
	}
	v.bodies = bodies
	return functions
}

// name returns which shell it is, with its version.
func (v *view) name() string {
	return visible.Exact(visible.Cut(cmp.Or(v.info.Name, "bash")+" "+v.info.Version, 64))
}

// Texts returns a message's map with values of type string.
func Texts(m map[string]wire.OSString) map[string]string {
	out := make(map[string]string, len(m))
	for name, value := range m {
		out[name] = string(value)
	}
	return out
}

// EnvChanged takes over a later EnvSnapshot. That of a connection that was replaced is older than what is known, and ignored.
func (ln *Lender) EnvChanged(w Window, env *wire.EnvSnapshot) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.conn.window != w {
		return
	}
	ln.view.env, ln.view.cwd = maps.Clone(env.Env), string(env.Cwd) // newer than the last ShellState
}

// StateChanged records the state that the client reports. What a borrowed command changed that no person approved becomes suspect (see
// trust); all else is the user's. It returns ErrNotShellOwner from a connection that was replaced.
func (ln *Lender) StateChanged(w Window, st *wire.ShellState) error {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	if ln.conn.window != w {
		return ErrNotShellOwner
	}
	before, now := ln.view.change(st)
	ln.trust.changedBy(st.Executions, before, now)
	close(ln.view.reported)
	ln.view.reported = make(chan struct{})
	return nil
}

// Where returns where a command would run now. It waits a moment for a client that has just come, or was just given its
// shell back, to report the shell's state, so that no command is judged, and no user asked, by an earlier one.
func (ln *Lender) Where(ctx context.Context) tool.ShellPlace {
	bound := time.NewTimer(settleBound)
	defer bound.Stop()
	for {
		ln.mu.Lock()
		place := tool.ShellPlace{Cwd: ln.view.cwd, StateDigest: ln.view.digest, Facts: ln.Facts}
		var wait chan struct{}
		switch {
		case ln.conn.window == nil:
		case ln.answered != nil:
			wait = ln.answered
		case !ln.view.current():
			wait = ln.view.reported
		}
		ln.mu.Unlock()
		if wait == nil {
			return place
		}
		select {
		case <-wait:
		case <-bound.C:
			return place
		case <-ctx.Done():
			return place
		}
	}
}

// Environ returns the live shell's environment and folder. The caller must not change the map.
func (ln *Lender) Environ() (env map[string]wire.OSString, cwd wire.OSString) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	return ln.view.env, wire.OSString(ln.view.cwd)
}

// State waits as Where does and returns what the live shell looks like, as last reported.
func (ln *Lender) State(ctx context.Context) shell.State {
	ln.Where(ctx)
	ln.mu.Lock()
	defer ln.mu.Unlock()
	return ln.view.state
}

// Name returns which shell commands are written for, with its version.
func (ln *Lender) Name() string {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	return ln.view.name()
}

// Facts is a tool.Facts of the live shell in the state that it is in now.
func (ln *Lender) Facts(ctx context.Context, c *risk.Context) (known bool) {
	ln.Where(ctx)
	ln.mu.Lock()
	defer ln.mu.Unlock()
	v := &ln.view
	c.Env = Texts(v.env)
	c.Aliases, c.Functions, c.Hashed = v.state.Aliases, v.state.Functions, v.state.Hashed
	c.Disabled, c.Poisoned, c.Dialect = v.state.Disabled, ln.trust.suspects(v.state), v.info.Name
	return v.current()
}

// Look describes the shell, for people and agents. Recent is left to the caller.
func (ln *Lender) Look() *wire.ShellLook {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	v := &ln.view
	l := &wire.ShellLook{
		Shell: v.name(), Cwd: wire.OSString(v.cwd), Exported: slices.Sorted(maps.Keys(v.env)),
		Functions: slices.Sorted(maps.Keys(v.state.Functions)), Aliases: map[string]wire.OSString{}, Recent: []wire.RecentCommand{},
	}
	for name, text := range v.state.Aliases {
		l.Aliases[name] = wire.OSString(mask.String(text))
	}
	return l
}

// Suspects implements Trusting.
func (ln *Lender) Suspects(context.Context) (names []string, in shell.State) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	return ln.trust.suspects(ln.view.state), ln.view.state
}

// Accept implements Trusting.
func (ln *Lender) Accept(_ context.Context, names []string, shown shell.State) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.trust.accept(names, shown, ln.view.state)
}
