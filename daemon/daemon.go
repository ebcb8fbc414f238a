// Package daemon is the background program: Run builds store, hub and server, serves clients until it is asked to stop or
// has been idle for long enough, and shuts everything down in order.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"time"

	"sublet/daemon/config"
	"sublet/daemon/internal/child"
	"sublet/daemon/internal/hosted"
	"sublet/daemon/internal/hub"
	"sublet/daemon/internal/mcp"
	"sublet/daemon/internal/proxy"
	"sublet/daemon/internal/reach"
	"sublet/daemon/internal/server"
	"sublet/daemon/internal/store"
	"sublet/lease/confine"
	"sublet/lease/footprint"
	"sublet/lease/shell"
	"sublet/wire"
	"sublet/wire/socket"
	"sublet/wire/visible"
)

// Options for Run. Paths must be set.
type Options struct {
	Paths   socket.Paths
	Version string
	Log     *slog.Logger // nil: the log file in Paths.State, mode 0600
	Stay    bool         // never exit when idle, whatever the settings, because a service manager decides when it runs

	place *place // nil: the one that the environment names, or a new one
}

const (
	// drainBound is how long running turns may go on after a signal to stop; a client's ShutdownRequest has its own bound.
	drainBound = 30 * time.Second
	// dozeAfter is how long the daemon must be inactive before it returns memory to the system.
	dozeAfter  = 10 * time.Second
	closeBound = 15 * time.Second // for turns, leases and private shells to end, once cancelled
)

// A RunningError reports that another daemon of this user runs.
type RunningError struct{ Socket string }

func (e *RunningError) Error() string { return "another daemon runs on " + e.Socket }

// Hint returns what the user can do.
func (e *RunningError) Hint() string {
	return "`sublet daemon status` shows it, `sublet daemon restart` replaces it"
}

// daemon is the state of one Run.
type daemon struct {
	o     Options
	log   *slog.Logger
	level *slog.LevelVar
	conf  *settings
	place *place
	exe   string // of this process, as it was at the start
	built int64  // see socket.BuiltAt
	hub   *hub.Hub
	mcp   *mcp.Servers // the settings'
	debug *sideServer  // profiles
	proxy *sideServer  // connects confined commands to the hosts that the settings allow

	serving bool      // the start succeeded, and clients are served
	stops   chan stop // capacity 1: the first request to stop counts
}

// stop is a request to end the daemon.
type stop struct {
	why   string
	drain time.Duration // how long running turns may go on
	asked bool          // on request: clients are asked not to start another daemon
}

// Run serves until ctx ends, SIGTERM or SIGINT arrives, a client asks it to stop, or it was idle for as long as the
// settings allow. It returns nil after an ordered stop: refuse work, notify clients, cancel turns, end leases and private
// shells, flush the store, remove the socket, release the lock. Errors are those of starting: *RunningError,
// *socket.PathError, *ActivationError, *config.Error and those of files. Run leaves no process behind.
func Run(ctx context.Context, o Options) (err error) {
	d := &daemon{o: o, log: o.Log, level: new(slog.LevelVar), place: o.place, stops: make(chan stop, 1)}
	if exe, err := os.Executable(); err == nil { // now, since the file may be replaced later
		d.exe, d.built = exe, socket.BuiltAt(exe)
	}
	if d.place == nil {
		d.place = &place{}
	}
	if err := d.place.take(o.Paths); err != nil {
		d.place.close()
		return err
	}
	defer func() {
		if err != nil && !d.serving {
			server.Refuse(d.place.listener, err)
		}
		err = errors.Join(err, d.place.leave())
	}()
	if d.log == nil {
		file, err := os.OpenFile(o.Paths.Log(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return fmt.Errorf("open log: %w", err)
		}
		defer file.Close()
		d.log = slog.New(slog.NewTextHandler(file, &slog.HandlerOptions{Level: d.level}))
	}
	d.place.identify(d.log)
	return d.run(ctx)
}

func (d *daemon) run(ctx context.Context) (err error) {
	// Watch before reading, so that no change in between is missed.
	d.conf = &settings{path: d.o.Paths.Config}
	changed, stopWatching := watch(d.log, "settings", d.o.Paths.Config)
	defer stopWatching()
	moved, stopGuarding := watch(d.log, "the daemon's folder", d.o.Paths.Socket, d.o.Paths.Lock)
	defer stopGuarding()
	if _, err := d.conf.load(); err != nil {
		return err
	}
	d.debug = &sideServer{path: filepath.Join(d.o.Paths.Runtime, "debug.sock"), what: "serve profiles", serve: serveProfiles, log: d.log}
	defer d.debug.set(false)
	d.proxy = &sideServer{
		path: filepath.Join(d.o.Paths.Runtime, "proxy.sock"), what: "connect confined commands to allowed hosts", log: d.log,
		serve: func(ctx context.Context, ln net.Listener) error {
			return proxy.Serve(ctx, ln, proxy.Options{Hosts: func() []string { return d.conf.get().Policy.Project.Hosts }, Log: d.log})
		},
	}
	defer d.proxy.set(false)
	confiner := sync.OnceValue(func() reach.Confiner { return findConfiner(d.log) })
	d.mcp = mcp.New(mcp.Options{Version: d.o.Version, Log: d.log, Folder: d.o.Paths.Runtime, Hold: func(s mcp.Spec) (string, confine.Spec, error) { return reach.Hold(confiner(), s) }})
	defer d.mcp.Close()
	d.apply()
	d.sweep()
	if err := os.MkdirAll(d.o.Paths.Spool(), 0o700); err != nil {
		return fmt.Errorf("make the spool folder: %w", err)
	}
	held, err := holdStore(d.o.Paths, d.log)
	if err != nil {
		return err
	}
	defer held.Close()
	st, err := store.Open(ctx, d.o.Paths.Database(), d.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	audit, err := store.OpenAudit(AuditLog(d.o.Paths))
	if err != nil {
		return err
	}
	agents := hosted.New(hosted.Options{
		Version: d.o.Version, Log: d.log, Store: st, Folder: d.o.Paths.Runtime, Server: []string{d.exe, "serve", "mcp"}, ServerEnv: d.o.Paths.Environ(),
		Hold: func(a config.Agent, cwd string) (string, confine.Spec, error) {
			return reach.HoldAgent(confiner(), a, d.conf.get().Policy, cwd)
		},
	})
	defer agents.Close()
	models := &models{conf: d.conf, log: d.log}
	if d.hub, err = hub.New(ctx, hub.Options{
		Store: st, Audit: audit, Config: d.conf.get, OpenModel: models.open, Models: models.describe, FindModels: models.find,
		MCP: d.mcp, Hosted: agents, Instructions: filepath.Join(filepath.Dir(d.o.Paths.Config), "AGENTS.md"),
		Stop:    func(drain time.Duration) { d.ask(stop{"a client asked for it", drain, true}) },
		Confine: confiner, Proxy: d.proxy.path,
		Runtime: d.o.Paths.Runtime, Spool: d.o.Paths.Spool(), Jobs: filepath.Join(d.o.Paths.State, "jobs"), Log: d.log,
		Version: d.o.Version, BuiltAt: d.built, Kept: d.o.Stay || d.place.theirs,
	}); err != nil {
		return err
	}

	// Catch signals before serving, so that one that arrives early does not kill the process.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)

	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	d.serving = true
	served := make(chan error, 1)
	var parts sync.WaitGroup
	srv := server.New(server.Options{Hub: d.hub, Config: d.conf.get, Log: d.log})
	parts.Go(func() { served <- srv.Serve(serving, d.place.listener) }) // ends with serving

	d.log.Info("daemon started", "version", d.o.Version, "pid", os.Getpid(), "socket", d.o.Paths.Socket)
	why, failure := d.wait(ctx, events{signals, changed, moved, served}, models)
	d.log.Info("daemon stops", "why", why.why, "drain", why.drain)
	d.end(why)
	stopServing()
	parts.Wait()
	d.log.Info("daemon stopped")
	return failure
}

// events are what wait waits for, besides clients.
type events struct {
	signals <-chan os.Signal
	changed <-chan struct{} // the settings
	moved   <-chan struct{} // something in the runtime folder was changed
	served  <-chan error    // the listener failed
}

// ask passes a request to stop to wait; only the first one counts.
func (d *daemon) ask(s stop) {
	select {
	case d.stops <- s:
	default:
	}
}

// wait returns when the daemon must end, with the reason; the error is that of the failed listener.
func (d *daemon) wait(ctx context.Context, on events, m *models) (stop, error) {
	idle, doze := time.NewTimer(time.Hour), time.NewTimer(dozeAfter)
	defer idle.Stop()
	defer doze.Stop()
	rest := func() { // restarts the timers after activity; idle runs only while no client is connected
		idle.Stop()
		doze.Reset(dozeAfter)
		if limit := d.conf.get().Daemon.IdleExit.Duration; limit > 0 && !d.o.Stay && d.hub.Idle() {
			idle.Reset(limit)
		}
	}
	rest()
	for {
		select {
		case <-ctx.Done():
			return stop{why: "its caller ended it", asked: true}, nil
		case s := <-d.stops:
			return s, nil
		case err := <-on.served:
			return stop{why: "the listener failed"}, err
		case <-d.hub.Activity():
			rest()
		case <-idle.C:
			if d.hub.Idle() {
				return stop{why: "nobody needed it"}, nil
			}
			rest()
		case <-doze.C:
			if d.hub.Running() == 0 {
				d.tidy()
			}
		case s := <-on.signals:
			if s != syscall.SIGHUP {
				return stop{why: s.String(), drain: drainBound, asked: true}, nil
			}
			d.reload(m)
			rest()
		case <-on.changed:
			d.reload(m)
			rest()
		case <-on.moved:
			if why := d.place.lost(); why != "" {
				d.log.Error("clients cannot find the daemon any more", "why", why)
				return stop{why: why, drain: drainBound}, nil
			}
		}
	}
}

// sweep removes what a killed daemon left in the runtime folder, which belongs to the holder of the lock.
func (d *daemon) sweep() {
	for _, pattern := range []string{shell.Leftover, child.Leftover, hosted.Leftover + "*"} {
		left, err := fs.Glob(os.DirFS(d.o.Paths.Runtime), pattern)
		for _, name := range left {
			err = errors.Join(err, os.RemoveAll(filepath.Join(d.o.Paths.Runtime, name)))
		}
		if err != nil {
			d.log.Warn("remove what a killed daemon left", "err", err)
		}
	}
}

// tidy frees what an idle daemon does not need: old output files, a log that is full, freed heap, and mapped pages of the executable.
func (d *daemon) tidy() {
	if err := rotateLog(d.o.Paths.Log(), maxLog); err != nil && d.o.Log == nil {
		d.log.Warn("the log cannot be emptied", "err", err)
	}
	switch removed, err := sweepSpool(d.o.Paths.Spool(), time.Now(), spoolMost); {
	case err != nil:
		d.log.Warn("old outputs", "err", err)
	case removed > 0:
		d.log.Info("old outputs removed", "files", removed)
	}
	if err := footprint.Shrink(); err != nil {
		d.log.Debug("memory was not returned to the system", "err", err)
	}
}

// end stops everything in order. A second signal ends the wait for running turns.
func (d *daemon) end(s stop) {
	again, unwatch := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer unwatch()
	d.hub.Refuse()
	text := "the daemon stops: " + s.why
	working, waiting := d.hub.Work()
	if !s.asked || s.drain > 0 && working > 0 { // otherwise the farewell follows at once
		n := &wire.Notice{Level: "warning", Text: text, Hint: "the next request starts a new one"}
		if s.drain > 0 && working > 0 {
			n.Text += fmt.Sprintf("; running turns have %s to finish", s.drain)
		}
		if waiting > 0 {
			n.Text += "; open questions end unanswered"
		}
		d.hub.Notify(n)
	}
	if s.drain > 0 {
		ctx, cancel := context.WithTimeout(again, s.drain)
		d.hub.Drain(ctx)
		cancel()
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeBound)
	defer cancel()
	if err := d.hub.Close(ctx); err != nil {
		d.log.Error("not everything ended in time", "err", err)
	}
	if s.asked {
		d.hub.Farewell(text)
	}
}

// reload reads the settings again. If they are invalid the old ones stay in force, and clients get a Notice with the error.
func (d *daemon) reload(m *models) {
	was := d.conf.get().Policy
	changed, err := d.conf.load()
	if err != nil {
		d.log.Warn("settings not applied", "err", err)
		n := &wire.Notice{Level: "error", Text: "settings not applied: " + err.Error(), Hint: "the previous ones stay in force"}
		d.hub.Notify(n)
		return
	}
	if changed {
		m.forget()
		d.apply()
		d.log.Info("settings read again")
		n := wire.Notice{Level: "info", Text: "settings read again; agents use " + d.conf.get().Model}
		if policy := changes(was, d.conf.get().Policy); policy == "" {
			d.hub.Notify(&n)
		} else {
			n.Text += "; policy: " + policy
			d.hub.NotifyPolicy(n)
		}
	}
}

// changes returns the keys of the policy whose values differ, with their new values.
func changes(was, now config.Policy) string {
	var changed []string
	w, n := reflect.ValueOf(was), reflect.ValueOf(now)
	for i := range n.NumField() {
		if v := n.Field(i).Interface(); !reflect.DeepEqual(w.Field(i).Interface(), v) {
			key, _, _ := strings.Cut(n.Type().Field(i).Tag.Get("toml"), ",")
			changed = append(changed, visible.Exact(visible.Cut(fmt.Sprintf("%s = %q", key, v), 1024)))
		}
	}
	return strings.Join(changed, ", ")
}

// apply passes changed settings to the parts that do not read them on each use.
func (d *daemon) apply() {
	c := d.conf.get()
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Daemon.LogLevel)); err == nil {
		d.level.Set(level)
	}
	d.debug.set(c.Daemon.Debug)
	d.proxy.set(len(c.Policy.Project.Hosts) > 0)
	d.mcp.Set(mcp.FromConfig(c))
}
