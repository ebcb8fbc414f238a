package mcp

import (
	"context"
	"fmt"
	"slices"

	"sublet/daemon/internal/tool"
)

// maxTurnTools bounds the tools of all servers that one turn has.
const maxTurnTools = 128

// Offer is what a turn needs to get its tools of servers.
type Offer struct {
	Settings, Client *Servers               // nil: none
	Taken            func(name string) bool // reports whether the settings have a server of that name
	Only             []string               // an allow-list of tools; nil = all
	At               Place
	Held             func(release func())   // is given a function to call when the turn is over
	Notify           func(key, text string) // is given a notice for the user; a key stands for one notice
}

// Tools starts the servers that are needed and returns the tools of those that are ready in time. Notify gets notices
// about the others.
func (o Offer) Tools(ctx context.Context) (tools []tool.Tool) {
	for _, from := range []*Servers{o.Settings, o.Client} {
		if from == nil {
			continue
		}
		clients := from == o.Client
		o.Held(from.Hold())
		list, notes := from.Ready(ctx, o.At, func(name string) bool {
			if clients && o.Taken(name) {
				o.Notify(name, fmt.Sprintf("The MCP server %s of the client is not used: the settings have one of that name.", name))
				return true
			}
			return o.Only != nil && !slices.ContainsFunc(o.Only, func(entry string) bool { return MayName(entry, name) })
		})
		tools = append(tools, list...)
		for _, n := range notes {
			n.notifyUser(clients, o.Notify)
		}
	}
	if len(tools) > maxTurnTools {
		o.Notify("tools", fmt.Sprintf("MCP servers have %d tools together; agents have the first %d.", len(tools), maxTurnTools))
		tools = tools[:maxTurnTools]
	}
	return tools
}
