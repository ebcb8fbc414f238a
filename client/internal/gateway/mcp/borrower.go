package mcp

import (
	"cmp"
	"context"
	"os"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sublet/lease/caller"
	"sublet/wire"
)

// nameOf is how a client is called in the user's window.
func nameOf(client string) string {
	return cmp.Or(caller.Name(client), client, "mcp-client")
}

// client returns the connection for whoever calls, and who that is.
func (s *server) client(ctx context.Context, info *sdk.Implementation, session *sdk.ServerSession) (*link, wire.Borrower, error) {
	from := s.o.Client
	if info != nil {
		from.Name = info.Name
	}
	from.Name = nameOf(from.Name)
	l, err := s.link(ctx, session)
	return l, from, err
}

// Parent describes the process that started this one. Executable is empty if the system does not report it.
func Parent() wire.Borrower {
	pid := os.Getppid()
	return wire.Borrower{PID: pid, Executable: wire.OSString(caller.Program(pid))}
}
