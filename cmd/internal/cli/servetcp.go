package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"sublet/client"
	"sublet/daemon/config"
)

// isLocal checks the address of --flag, and reports whether only this machine can reach it.
func isLocal(flag, listen string) (local bool, err error) {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false, &usageError{fmt.Errorf("--%s %q: %w", flag, listen, err)}
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback(), nil
}

// serveMCPHTTP opens the port, prints how to reach it, and serves.
func (a *app) serveMCPHTTP(ctx context.Context, o client.Options, s client.MCP, listen string) error {
	local, err := isLocal("http", listen)
	if err != nil {
		return err
	}
	if !local {
		return &usageError{hinted{"--http " + listen + " is open to other machines, and what is sent is not encrypted", "use 127.0.0.1:0"}}
	}
	s.Token = rand.Text()
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	if err := a.printJSON(map[string]string{"url": "http://" + ln.Addr().String() + "/mcp", "token": s.Token}); err != nil {
		return errors.Join(err, ln.Close())
	}
	return client.ServeMCPHTTP(ctx, o, s, ln)
}

// operatorFlags has the flags of `serve operator`.
type operatorFlags struct {
	listen, project, approve string
	noToken, ui              bool
	client.Operator
}

func (a *app) serveOperator() *cobra.Command {
	var so operatorFlags
	var mode func(config.Config) (string, error)
	c := a.gateway("operator", "JSON lines and WebSocket on one TCP port, with a page on request",
		"serve operator lets programs of this machine ask agents over TCP port 60100: one JSON object a line, or one a\n"+
			"message over WebSocket. docs/operator.md has both dialects. Every request carries the token, which is printed at the\n"+
			"start and lies in the runtime folder. Nobody is asked before something risky: what is over --approve is refused.",
		"  sublet serve operator\n  sublet serve operator --ui",
		func(ctx context.Context, o client.Options, conf config.Config) (err error) {
			if so.Mode, err = mode(conf); err != nil {
				return err
			}
			return a.operate(ctx, o, so)
		})
	f := c.Flags()
	f.StringVar(&so.listen, "listen", "127.0.0.1:60100", "address and port")
	f.StringVar(&so.project, "project", "", "folder of requests that name none (default: the current one)")
	f.BoolVar(&so.ui, "ui", false, "serve the page too; there you are asked, as in the terminal")
	f.BoolVar(&so.noToken, "no-token", false, "let every program of this machine in, of other users too")
	f.StringArrayVar(&so.Hosts, "allow-host", nil, "another name under which browsers may call")
	f.StringArrayVar(&so.Origins, "allow-origin", nil, "a page that may connect, such as http://localhost:5173")
	mode = withApprove(c, &so.approve)
	return c
}

// operate opens the port, prints its address, and serves.
func (a *app) operate(ctx context.Context, o client.Options, so operatorFlags) error {
	local, err := isLocal("listen", so.listen)
	if err != nil {
		return err
	}
	if !local && so.noToken {
		return &usageError{hinted{"--no-token is for this machine only, and --listen " + so.listen + " is open to others", "leave one of the two out"}}
	}
	if o.Cwd, err = filepath.Abs(so.project); err != nil {
		return err
	}
	if info, err := os.Stat(o.Cwd); err != nil || !info.IsDir() {
		return &usageError{fmt.Errorf("%s is not a folder", o.Cwd)}
	}
	if err := o.Paths.Prepare(); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", so.listen)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return hinted{so.listen + " is taken by another program", "is another `sublet serve operator` running? --listen chooses another port"}
		}
		return err
	}
	defer ln.Close()
	at := ln.Addr().String()
	fmt.Fprintf(a.stderr, "sublet: operator on %s, project %s, approve %s\n", at, plain(o.Cwd), so.approve)
	if !local {
		a.printNotice("warning", "other machines can reach this port, and what they send is not encrypted", "")
	}
	page := "http://" + at + "/"
	if !so.noToken {
		path := filepath.Join(o.Paths.Runtime, "operator.token")
		so.Token = rand.Text()
		if err := renameio.WriteFile(path, []byte(so.Token+"\n"), 0o600, renameio.WithTempDir(o.Paths.Runtime)); err != nil {
			return fmt.Errorf("keep the token: %w", err)
		}
		defer func() {
			if have, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(have)) == so.Token { // still this server's
				_ = os.Remove(path) // an error leaves a useless token
			}
		}()
		fmt.Fprintf(a.stderr, "sublet: token %s (also in %s)\n", so.Token, path)
		page += "#token=" + so.Token // browsers do not send what follows #
	}
	if so.ui {
		so.Page = client.OperatorPage
		fmt.Fprintf(a.stderr, "sublet: page %s\n", page)
	}
	return client.ServeOperator(ctx, o, so.Operator, ln)
}
