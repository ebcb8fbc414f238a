package mcp

import (
	"fmt"
	"slices"
	"strings"

	"sublet/daemon/internal/risk"
	"sublet/wire"
	"sublet/wire/visible"
)

// FromClient returns the servers that a client brought, which run in its folder, and faults, in words, of the first maxNamed
// that are invalid.
func FromClient(list []wire.MCPServer, cwd string) (specs []Spec, faults []string) {
	for _, m := range list {
		spec, err := fromWire(m, cwd)
		if err == nil && slices.ContainsFunc(specs, func(s Spec) bool { return s.Name == spec.Name }) {
			err = fmt.Errorf("another one is called %s", spec.Name)
		}
		if err != nil {
			if len(faults) < maxNamed {
				faults = append(faults, fmt.Sprintf("The MCP server %q of the client is not used: %v.", visible.Exact(visible.Cut(m.Name, 64)), err))
			}
			continue
		}
		specs = append(specs, spec)
	}
	return specs, faults
}

// fromWire validates and converts one server of a client.
func fromWire(m wire.MCPServer, cwd string) (Spec, error) {
	s := Spec{
		Name: Name(m.Name), Command: string(m.Command), URL: m.URL, Headers: m.Headers, Dir: cwd, OfClient: true, Reach: string(risk.ReachFree),
		Env: make(map[string]string, len(m.Env)),
	}
	for _, a := range m.Args {
		s.Args = append(s.Args, string(a))
	}
	for name, value := range m.Env {
		s.Env[name] = string(value)
	}
	switch {
	case s.Name == "":
		return s, fmt.Errorf("its name has no letter and no digit")
	case (s.Command == "") == (s.URL == ""):
		return s, fmt.Errorf("it needs either a command or a url")
	}
	return s, nil
}

// Report describes the servers and starts none. clients reports whether s are those of a client, not of the settings. s may be nil: there
// are none.
func (s *Servers) Report(clients bool) []wire.MCPServerStatus {
	all := []wire.MCPServerStatus{}
	if s == nil {
		return all
	}
	s.mu.Lock()
	list := s.list
	s.mu.Unlock()
	for _, srv := range list {
		all = append(all, srv.status(clients))
	}
	return all
}

// MayName reports whether an entry of an allow-list can name a tool of a server.
func MayName(entry, server string) bool {
	head, wild := strings.CutSuffix(entry, "*")
	begin := Prefix + server + "__"
	return strings.HasPrefix(entry, begin) || wild && strings.HasPrefix(begin, head)
}

// notifyUser calls notify with messages for the user about a server (a client's if clients is set, else of the settings), each with a key
// that stays the same while nothing changes.
func (n Note) notifyUser(clients bool, notify func(key, text string)) {
	whose := "MCP server " + n.Server
	if clients {
		whose = "client's " + whose
	}
	key := fmt.Sprint(whose, n.Start, n.Err)
	switch {
	case n.Err != nil:
		notify(key, fmt.Sprintf("The %s cannot be used (%s): %v. The turn goes on without its tools.", whose, n.What, n.Err))
	case clients:
		notify(key, fmt.Sprintf("The %s is in use: %s", whose, n.What))
	}
	if n.LeftOut != "" {
		notify(key+n.LeftOut, fmt.Sprintf("Tools of the %s that are left out: %s.", whose, n.LeftOut))
	}
}
