package mcp

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sublet/wire"
)

// agents are the names that users know, by what the program's own name for itself begins with.
var agents = []string{"claude", "codex", "crush", "gemini", "goose", "opencode", "qwen"}

// nameOf is how a client is called in the user's window.
func nameOf(client string) string {
	name := strings.ToLower(client)
	for _, known := range agents {
		if strings.HasPrefix(name, known) {
			return known
		}
	}
	if name == "" {
		return "mcp-client"
	}
	return client
}

// client returns the connection for whoever calls, and who that is.
func (s *server) client(ctx context.Context, info *sdk.Implementation, session *sdk.ServerSession) (*link, wire.Borrower, error) {
	from := s.o.Client
	if info != nil {
		from.Name = info.Name
	}
	from.Name = nameOf(from.Name)
	key := session.ID()
	if key == "" {
		key = "name " + from.Name
	}
	l, err := s.link(ctx, key, session)
	if err != nil {
		return nil, from, err
	}
	if !slices.Contains(l.gs.Ready().Capabilities, wire.CapBorrower) {
		return nil, from, fmt.Errorf("the daemon is older than this program: `sublet daemon restart` replaces it")
	}
	return l, from, nil
}

// interpreters run the programs that people know by other names.
var interpreters = []string{"node", "bun", "deno", "python", "python3"}

// Parent describes the process that started this one, as far as the system tells.
func Parent() wire.Borrower {
	b := wire.Borrower{PID: os.Getppid()}
	proc := fmt.Sprintf("/proc/%d/", b.PID)
	if exe, err := os.Readlink(proc + "exe"); err == nil {
		b.Executable = wire.OSString(exe)
	}
	if line, err := os.ReadFile(proc + "cmdline"); err == nil && slices.Contains(interpreters, filepath.Base(string(b.Executable))) {
		for _, arg := range bytes.Split(line, []byte{0})[1:] {
			if len(arg) > 0 && arg[0] != '-' {
				b.Executable = wire.OSString(arg)
				break
			}
		}
	}
	return b
}
