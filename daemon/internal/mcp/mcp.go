// Package mcp gives agents the tools of Model Context Protocol servers. It starts servers when a turn needs them, or connects
// by HTTP, keeps them while they are used, and ends them with all their processes. What a server says about itself and its
// tools is untrusted: it is bounded, cleaned, and never a reason to allow anything. The SDK implements the protocol; the
// policy decides whether a call may run.
package mcp

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sublet/daemon/config"
	"sublet/daemon/internal/tool"
	"sublet/lease/confine"
)

// Spec describes one server: Command, Args, Env and Dir start one that speaks on its standard input and output; URL and
// Headers are for one that runs.
type Spec struct {
	Name    string // see Name
	Command string // a path, or a name on PATH; ~/ is the home folder
	Args    []string
	Env     map[string]string // in addition to Place.Env
	Dir     string            // "" = the Place's home folder
	URL     string
	Headers map[string]string
	Expand  bool     // ${NAME} in Env and Headers is that variable of this process
	Reach   string   // the confinement of a Command, see config.MCP; free for a client's
	Write   []string // with the reach project
	// Secrets and NotSecrets are those of the settings. A change restarts the server.
	Secrets, NotSecrets []string

	OfClient bool // a client's server: no permission for its tools outlives the session
}

// FromConfig returns the servers of the settings.
func FromConfig(c config.Config) []Spec {
	var specs []Spec
	for name, m := range c.MCP {
		specs = append(specs, Spec{
			Name: name, Command: m.Command, Args: m.Args, Env: m.Env, URL: m.URL, Headers: m.Headers, Expand: true,
			Reach: m.Reach, Write: m.Write, Secrets: c.Policy.Secrets, NotSecrets: c.Policy.NotSecrets,
		})
	}
	return specs
}

// Place is the environment in which servers are started: that of a private shell, and the home folder.
type Place struct {
	Env  []string // NAME=value
	Home string
}

// Options for New. Zero durations mean the defaults.
type Options struct {
	Version string
	Log     *slog.Logger // nil = discard
	Folder  string       // for the folders of held servers, see child.Leftover; "" = the temporary one
	// Hold returns the launcher for a server, "" for none, and the reach that it enforces. nil: servers are not confined.
	Hold     func(Spec) (launcher string, to confine.Spec, err error)
	Patience time.Duration // how long Ready waits for servers that are starting; 10 s
	Start    time.Duration // how long a server may take from its start to its list of tools; 1 min
	Idle     time.Duration // how long an unused server is kept; 10 min
	Retry    time.Duration // the pause after a server failed, doubling up to 1 min; 1 s
	Silence  time.Duration // how long a call may take without a progress report; 5 min
	Stuck    time.Duration // how long a server may leave a cancelled call unread before it is ended; 5 s
}

const (
	maxRetry = time.Minute
	// steady is how long a server must have been up before its earlier failures are forgotten.
	steady = time.Minute
)

// Servers manages the servers of one owner: of the settings or of one client. It is safe for concurrent use.
type Servers struct {
	o      Options
	ctx    context.Context // the servers' lifetime
	cancel context.CancelFunc
	work   sync.WaitGroup
	holds  atomic.Int64 // while there are any, no server is ended as idle

	mu sync.Mutex
	// below: guarded by mu
	list    []*server // by name
	retired bool      // to be closed at the last release
}

// New returns Servers without any; Close must be called.
func New(o Options) *Servers {
	o.Patience, o.Start = cmp.Or(o.Patience, 10*time.Second), cmp.Or(o.Start, time.Minute)
	o.Idle, o.Retry = cmp.Or(o.Idle, 10*time.Minute), cmp.Or(o.Retry, time.Second)
	o.Silence, o.Stuck = cmp.Or(o.Silence, 5*time.Minute), cmp.Or(o.Stuck, 5*time.Second)
	if o.Hold == nil {
		o.Hold = func(Spec) (string, confine.Spec, error) { return "", confine.Spec{}, nil }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Servers{o: o}
	s.ctx, s.cancel = context.WithCancel(context.Background()) // Close ends it
	return s
}

// Set defines which servers there are. Servers that are removed or changed are ended in the background; the others are left as
// they are. It starts none.
func (s *Servers) Set(specs []Spec) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return
	}
	old := map[string]*server{}
	for _, srv := range s.list {
		old[srv.spec.Name] = srv
	}
	s.list = nil
	for _, spec := range specs {
		srv := old[spec.Name]
		if srv != nil && reflect.DeepEqual(srv.spec, spec) {
			delete(old, spec.Name)
		} else {
			srv = s.newServer(spec)
		}
		s.list = append(s.list, srv)
	}
	slices.SortFunc(s.list, func(a, b *server) int { return cmp.Compare(a.spec.Name, b.spec.Name) })
	for _, srv := range slices.Collect(maps.Values(old)) {
		s.work.Go(srv.close) // Close waits for it
	}
}

// Hold prevents running servers from being ended as idle until release is called.
func (s *Servers) Hold() (release func()) {
	s.addHolds(1)
	return sync.OnceFunc(func() { s.addHolds(-1) })
}

func (s *Servers) addHolds(n int64) {
	s.mu.Lock()
	last := s.holds.Add(n) == 0 && s.retired
	list := s.list
	s.mu.Unlock()
	for _, srv := range list {
		srv.holdsChanged()
	}
	if last {
		s.Close()
	}
}

// Retire calls Close when nobody holds the servers any more. If that is now, it waits for Close.
func (s *Servers) Retire() {
	s.mu.Lock()
	s.retired = true
	last := s.holds.Load() == 0
	s.mu.Unlock()
	if last {
		s.Close()
	}
}

// Close ends every server and its processes, and waits for that: at most 5 s, unless the kernel does not end a killed process.
func (s *Servers) Close() {
	s.mu.Lock()
	s.cancel()
	list := s.list
	s.list = nil
	s.mu.Unlock()
	var ends sync.WaitGroup
	for _, srv := range list {
		ends.Go(srv.close)
	}
	ends.Wait()
	s.work.Wait()
}

// Note reports that a server came up or failed.
type Note struct {
	Server  string
	Start   int    // which start of the server this was, from 1, so that users are notified once
	Err     error  // nil: it is up
	What    string // the command or the URL, in one line
	LeftOut string // tools that are left out, and why; "" = none
}

// Ready starts the servers that are not running and returns the tools of all that are, after Patience at most; a slower server
// is available to a later turn. There is a Note for each server. skip leaves servers out by name; nil: none.
func (s *Servers) Ready(ctx context.Context, at Place, skip func(server string) bool) ([]tool.Tool, []Note) {
	s.mu.Lock()
	list := s.list
	s.mu.Unlock()
	list = slices.DeleteFunc(slices.Clone(list), func(srv *server) bool { return skip != nil && skip(srv.spec.Name) })
	tools, notes := make([][]tool.Tool, len(list)), make([]Note, len(list))
	ctx, cancel := context.WithTimeout(ctx, s.o.Patience)
	defer cancel()
	var all sync.WaitGroup
	for i, srv := range list {
		all.Go(func() { tools[i], notes[i] = srv.ready(ctx, at) })
	}
	all.Wait()
	return slices.Concat(tools...), notes
}
