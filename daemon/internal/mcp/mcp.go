// Package mcp gives agents the tools of Model Context Protocol servers: it starts servers when a turn needs them or
// reaches them by HTTP, keeps them while they are used, and ends them with everything they started. What a server says of
// itself and of its tools is untrusted: bounded, cleaned, and never a reason to allow anything. The protocol is the SDK's;
// whether a call may run is the policy's.
package mcp

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"sublet/daemon/config"
	"sublet/daemon/internal/tool"
	"sublet/lease/confine"
)

// Spec is how one server is had: Command, Args, Env and Dir start one that talks over its standard input and output; URL
// and Headers reach one that runs.
type Spec struct {
	Name    string // see Name
	Command string // a path, or a name that PATH leads to; ~/ is the home folder
	Args    []string
	Env     map[string]string // beside the Place's
	Dir     string            // "" = the Place's home folder
	URL     string
	Headers map[string]string
	Expand  bool     // ${NAME} in Env and Headers is that variable of this process
	Reach   string   // what a Command is held to, see config.MCP; free for a client's
	Write   []string // with the reach project
	// Secrets and NotSecrets are those of the settings: with others, the server is started anew.
	Secrets, NotSecrets []string

	Passing bool // a client's: no permission for its tools outlives the session
}

// FromConfig are the servers of the settings.
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

// Place is where servers are started: the environment that a private shell would have, and the home folder.
type Place struct {
	Env  []string // NAME=value
	Home string
}

// Options for New. Zero durations mean the defaults.
type Options struct {
	Version string
	Log     *slog.Logger // nil = discard
	Folder  string       // for the folders of held servers, which are called Leftover; "" = the temporary one
	// Hold returns the launcher that is to start a server, "" for none, and what it holds the server to. nil: nothing does.
	Hold     func(Spec) (launcher string, to confine.Spec, err error)
	Patience time.Duration // how long Ready waits for servers that are not up yet; 10 s
	Start    time.Duration // how long a server may take from its start to its list of tools; 1 min
	Idle     time.Duration // how long a server that no turn holds is kept; 10 min
	Retry    time.Duration // the pause after a server failed, doubling up to 1 min; 1 s
	Silence  time.Duration // how long a call may take without a sign of progress; 5 min
	Most     time.Duration // how long a call may take; 1 h
	Stuck    time.Duration // how long a server may leave a cancelled call unread before it is ended; 5 s
}

const (
	maxRetry = time.Minute
	// steady is how long a server must have been up for its earlier failures to be forgotten.
	steady = time.Minute
)

// Servers are those of one owner: of the settings, or of one client. Safe for concurrent use.
type Servers struct {
	o      Options
	ctx    context.Context // the servers' lifetime
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu sync.Mutex
	// below: guarded by mu
	list    []*server // by name
	holds   int
	retired bool // ends with the last hold
}

// New returns Servers without any; Close must be called.
func New(o Options) *Servers {
	o.Patience, o.Start = cmp.Or(o.Patience, 10*time.Second), cmp.Or(o.Start, time.Minute)
	o.Idle, o.Retry = cmp.Or(o.Idle, 10*time.Minute), cmp.Or(o.Retry, time.Second)
	o.Silence, o.Most = cmp.Or(o.Silence, 5*time.Minute), cmp.Or(o.Most, time.Hour)
	o.Stuck = cmp.Or(o.Stuck, 5*time.Second)
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

// Set says which servers there are. Those that go or changed are ended, without waiting for that; the others are left as
// they are. Nothing is started.
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
			srv = s.server(spec)
		}
		s.list = append(s.list, srv)
	}
	slices.SortFunc(s.list, func(a, b *server) int { return cmp.Compare(a.spec.Name, b.spec.Name) })
	for _, srv := range slices.Collect(maps.Values(old)) {
		s.work.Go(srv.close) // Close waits for it
	}
}

// Empty reports that there are none.
func (s *Servers) Empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.list) == 0
}

// Hold keeps servers that are up from being ended for idleness, until release is called.
func (s *Servers) Hold() (release func()) {
	s.mu.Lock()
	s.holds++
	list := s.list
	s.mu.Unlock()
	for _, srv := range list {
		srv.hold(1)
	}
	return sync.OnceFunc(func() {
		for _, srv := range list {
			srv.hold(-1)
		}
		s.mu.Lock()
		s.holds--
		last := s.retired && s.holds == 0
		s.mu.Unlock()
		if last {
			s.Close()
		}
	})
}

// Retire is Close, once nobody holds the servers any more. It waits if that is now.
func (s *Servers) Retire() {
	s.mu.Lock()
	s.retired = true
	last := s.holds == 0
	s.mu.Unlock()
	if last {
		s.Close()
	}
}

// Close ends every server, with all it started, and returns when they have ended: after 5 s at most, unless the system
// holds a process that was killed.
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

// Note is what became of a server: it came up, or it could not be had. Number tells one start from another, so that
// nobody has to be told twice.
type Note struct {
	Server string
	Number int
	Err    error  // nil: it is up
	What   string // the command or the address, in one line
	Left   string // tools that are left out, and why; "" = none
}

// State of a server.
type State int

// States. One that rests was not needed yet, or not for a while.
const (
	Resting State = iota
	Starting
	Up
	Failed
)

// Status is how a server is.
type Status struct {
	Server string
	What   string // as in Note
	State  State
	Err    error    // of Failed
	Tools  []string // their names, of when it was last up
	Left   string   // as in Note
}

// Status tells how the servers are, by name, and starts none.
func (s *Servers) Status() []Status {
	s.mu.Lock()
	list := s.list
	s.mu.Unlock()
	all := make([]Status, len(list))
	for i, srv := range list {
		all[i] = srv.status()
	}
	return all
}

// Ready starts the servers that are not up and returns the tools of all that are, after Patience at most: a server that
// takes longer is there for a later turn. Each server has a Note. skip leaves servers out by their names; nil: none.
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
