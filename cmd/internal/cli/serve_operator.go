package cli

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"sublet/client"
	"sublet/daemon/config"
)

// operatorFlags are those of `serve operator`.
type operatorFlags struct {
	listen, approve, project string
	noToken, ui, trace       bool
	hosts, origins           []string
}

func (a *app) serveOperator() *cobra.Command {
	var f operatorFlags
	c := &cobra.Command{
		Use:   "operator",
		Short: "JSON lines and WebSocket on one TCP port, with a page on request",
		Long: "serve operator lets programs of this machine ask agents over TCP port 60100: one JSON object a line, or one a\n" +
			"message over WebSocket. docs/operator.md has both dialects. Every request carries the token, which is printed at the\n" +
			"start and lies in the runtime folder. Nobody is asked before something risky: what is over --approve is refused.",
		Example: "  sublet serve operator\n  sublet serve operator --ui",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return a.runOperator(f, c.Flags().Changed("approve")) },
	}
	fl := c.Flags()
	fl.StringVar(&f.listen, "listen", "127.0.0.1:60100", "address and port")
	fl.StringVar(&f.approve, "approve", "low", approveUsage)
	fl.StringVar(&f.project, "project", "", "folder of requests that name none (default: the current one)")
	fl.BoolVar(&f.ui, "ui", false, "serve the page too; there you are asked, as in the terminal")
	fl.BoolVar(&f.noToken, "no-token", false, "let every program of this machine in, of other users too")
	fl.StringArrayVar(&f.hosts, "allow-host", nil, "another name under which browsers may call")
	fl.StringArrayVar(&f.origins, "allow-origin", nil, "a page that may connect, such as http://localhost:5173")
	fl.BoolVar(&f.trace, "trace", false, "log each message on standard error")
	return c
}

func (a *app) runOperator(f operatorFlags, chosen bool) error {
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return &usageError{fmt.Errorf("--listen %q: %w", f.listen, err)}
	}
	ip := net.ParseIP(host)
	local := host == "localhost" || ip != nil && ip.IsLoopback()
	if !local && f.noToken {
		return &usageError{hinted{"--no-token is for this machine only, and --listen " + f.listen + " is open to others", "leave one of the two out"}}
	}
	return a.serving(f.trace, func(ctx context.Context, o client.Options, c config.Config) error {
		mode, err := approval(f.approve, chosen, c)
		if err != nil {
			return err
		}
		so := client.OperatorOptions{
			UI: f.ui, Hosts: f.hosts, Origins: f.origins, Mode: mode,
			RequestsPerSecond: c.Limits.RequestsPerSecond, RunningQueries: c.Limits.RunningTurns, MaxMessage: c.Limits.MessageBytes,
		}
		return a.operate(ctx, o, so, f, local)
	})
}

// operate opens the port, prints its address, and serves.
func (a *app) operate(ctx context.Context, o client.Options, so client.OperatorOptions, f operatorFlags, local bool) (err error) {
	if o.Cwd, err = folder(f.project); err != nil {
		return err
	}
	if err := o.Paths.Prepare(); err != nil {
		return err
	}
	if so.Listener, err = net.Listen("tcp", f.listen); err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return hinted{f.listen + " is taken by another program", "is another `sublet serve operator` running? --listen chooses another port"}
		}
		return err
	}
	defer so.Listener.Close()
	at := so.Listener.Addr().String()
	fmt.Fprintf(a.stderr, "sublet: operator on %s, project %s, approve %s\n", at, plain(o.Cwd), f.approve)
	if !local {
		fmt.Fprintln(a.stderr, "sublet: warning: other machines can reach this port, and what they send is not encrypted")
	}
	if !f.noToken {
		path := filepath.Join(o.Paths.Runtime, "operator.token")
		var remove func()
		if so.Token, remove, err = newToken(path); err != nil {
			return err
		}
		defer remove()
		fmt.Fprintf(a.stderr, "sublet: token %s (also in %s)\n", so.Token, path)
	}
	if f.ui {
		page := "http://" + at + "/"
		if so.Token != "" {
			page += "#token=" + so.Token // browsers do not send what follows #
		}
		fmt.Fprintf(a.stderr, "sublet: page %s\n", page)
	}
	return client.ServeOperator(ctx, o, so)
}

// folder is a flag's folder as an absolute path; the current one for "".
func folder(name string) (string, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return "", &usageError{fmt.Errorf("%s is not a folder", path)}
	}
	return path, nil
}

// newToken writes a new secret to a file at path that only the user can read. remove removes the file, unless another server
// has replaced it.
func newToken(path string) (token string, remove func(), err error) {
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return "", nil, err
	}
	token = base64.RawURLEncoding.EncodeToString(secret)
	f, err := os.CreateTemp(filepath.Dir(path), ".operator.token-") // 0600
	if err != nil {
		return "", nil, fmt.Errorf("keep the token: %w", err)
	}
	_, err = f.WriteString(token + "\n")
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("keep the token: %w", err), os.Remove(f.Name()))
	}
	return token, func() {
		if have, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(have)) == token {
			_ = os.Remove(path) // the runtime folder is removed at the next boot in any case
		}
	}, nil
}
