package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sublet/lease/confine"
	"sublet/lease/confine/confinetest"
)

func TestAllows(t *testing.T) {
	list := []string{"proxy.golang.org", "*.npmjs.org", "example.com:8443", "*.corp:80"}
	for address, want := range map[string]bool{
		"proxy.golang.org:443": true, "proxy.golang.org:80": true, "PROXY.golang.org.:443": true, "registry.npmjs.org:443": true, "a.b.npmjs.org:443": true, "example.com:8443": true, "x.corp:80": true,
		"proxy.golang.org:22": false, "golang.org:443": false, "xproxy.golang.org:443": false, "npmjs.org:443": false, "evilnpmjs.org:443": false, "example.com:443": false, "x.corp:443": false,
		"proxy.golang.org": false, "proxy.golang.org.evil.com:443": false, "": false, ":443": false, "[::1]:443": false, "127.0.0.1:443": false,
	} {
		if got := Allows(list, address); got != want {
			t.Errorf("%q: %v, want %v", address, got, want)
		}
	}
}

func TestCheckHost(t *testing.T) {
	for entry, want := range map[string]bool{
		"proxy.golang.org": true, "*.npmjs.org": true, "localhost": true, "example.com:8443": true, "a-b.c_d.e": true, "*.x:1": true,
		"": false, "*": false, "https://x.org": false, "x.org/y": false, "X.org": false, "x.org:0": false, "x.org:https": false, "x.org:70000": false, "*x.org": false, "a.*.org": false, ".x": false, "x..y": false, "x.org.": false, "-x": false, "[::1]:443": false,
	} {
		if err := CheckHost(entry); (err == nil) != want {
			t.Errorf("%q: %v", entry, err)
		}
	}
}

// A name that is allowed does not lead to this machine, whatever it resolves to.
func TestOutside(t *testing.T) {
	for address, want := range map[string]bool{
		"93.184.216.34:443": true, "10.1.2.3:443": true, "[2606:2800::1]:443": true,
		"127.0.0.1:443": false, "127.9.9.9:443": false, "[::1]:443": false, "0.0.0.0:443": false, "[::]:443": false, "169.254.169.254:80": false, "[fe80::1]:80": false, "[::ffff:127.0.0.1]:80": false, "224.0.0.1:80": false, "255.255.255.255:80": false,
	} {
		if err := outside(address); (err == nil) != want {
			t.Errorf("%q: %v", address, err)
		}
	}
	// The machine's own addresses in its networks were taken for those of another machine.
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range own {
		if err := outside(net.JoinHostPort(a.(*net.IPNet).IP.String(), "80")); err == nil {
			t.Errorf("%v is taken for another machine's", a)
		}
	}
}

// served has a gate with a list of hosts, whose every address leads to a server.
func served(t *testing.T, hosts []string, server string) (client *http.Client, told *bufio.Reader) {
	t.Helper()
	a, b := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server)
	}
	g := newGate(ctx, Options{Hosts: func() []string { return hosts }, Log: slog.New(slog.DiscardHandler), dial: dial}, b)
	s := httptest.NewServer(g)
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	told = bufio.NewReader(a)
	transport := &http.Transport{Proxy: http.ProxyURL(at)}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		a.Close()
		s.Close()
		g.wait()
	})
	return &http.Client{Transport: transport}, told
}

func TestGate(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "secure ", r.Host) }))
	defer secure.Close()
	client, told := served(t, []string{"example.com"}, secure.Listener.Addr().String())
	client.Transport.(*http.Transport).TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig
	get := func(address string) (string, error) {
		r, err := client.Get(address)
		if err != nil {
			return "", err
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		return fmt.Sprint(r.StatusCode, " ", strings.TrimSpace(string(text))), err
	}
	if got, err := get("https://example.com/x"); got != "200 secure example.com" {
		t.Errorf("allowed: %q, %v", got, err)
	}
	line := make(chan string, 1)
	go func() { text, _ := told.ReadString('\n'); line <- text }() // ends with the pipe
	if got, err := get("https://other.org/x"); err == nil {
		t.Errorf("not allowed: %q", got)
	}
	if got := <-line; got != "other.org:443\n" {
		t.Errorf("told of %q", got)
	}
	if got, err := get("https://other.org/y"); err == nil { // it is not reported again, which would block here
		t.Errorf("not allowed: %q", got)
	}
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "plain ", r.Host) }))
	defer plain.Close()
	client, told = served(t, []string{"example.com"}, plain.Listener.Addr().String())
	if got, err := get("http://example.com/x"); got != "200 plain example.com" {
		t.Errorf("allowed: %q, %v", got, err)
	}
	go func() { text, _ := told.ReadString('\n'); line <- text }()
	if got, err := get("http://other.org/x"); !strings.HasPrefix(got, `403 sublet: "other.org:80" is not among`) {
		t.Errorf("not allowed: %q, %v", got, err)
	}
	if got := <-line; got != "other.org:80\n" {
		t.Errorf("told of %q", got)
	}
}

// A held command reaches the hosts that are allowed, and no other: not this machine, by whatever name, nor another host behind an
// allowed one's name.
func TestHeldCommandReachesAllowedHosts(t *testing.T) {
	launcher := confinetest.Need(t)
	project, err := os.MkdirTemp("/var/tmp", "sublet-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(project) })
	var met []string
	inside := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { met = append(met, r.Host+r.URL.Path) }))
	defer inside.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "came to", r.Host) }))
	defer server.Close()
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "proxy"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, ln, Options{
			Hosts: func() []string { return []string{"example.com", "here.example"} }, Log: slog.New(slog.DiscardHandler),
			dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				if address == "example.com:80" {
					return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
				}
				return nil, outside("127.0.0.1:80")
			},
		})
	}()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	for _, script := range []string{"", filepath.Join(project, "script")} { // with which the descriptors are others
		s := confine.Spec{Reach: confine.Project, Project: project, Proxy: ln.Addr().String(), Script: script}
		if script != "" {
			if err := os.WriteFile(script, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		spec := filepath.Join(t.TempDir(), "spec")
		if err := os.WriteFile(spec, s.Encode(), 0o600); err != nil {
			t.Fatal(err)
		}
		local := inside.Listener.Addr().String()
		text := `curl -s http://example.com/; curl -s http://here.example/; curl -s -H 'Host: example.com' http://other.org/; curl -s -H 'Host: evil.org' http://example.com/; ` +
			`curl -s -p -x $http_proxy http://` + local + `/a; curl -s -x $http_proxy --noproxy '' http://` + local + `/b; curl -s --noproxy '*' http://` + local + `/c; ls -l /proc/$$/fd | grep -c socket`
		cmd := exec.Command(launcher, spec, "bash", "-c", text)
		cmd.Dir, cmd.SysProcAttr = project, &syscall.SysProcAttr{Setpgid: true}
		cmd.Env = append(os.Environ(), "HTTP_PROXY=http://x.invalid", "NO_PROXY=example.com")
		var errs strings.Builder
		cmd.Stderr = &errs
		out, _ := cmd.Output() // grep finds nothing
		want := "came to example.com\nsublet: 127.0.0.1 is not the address of another machine\n" +
			`sublet: "other.org:80" is not among the hosts that confined commands may reach; to allow it, add it to hosts under [policy.project]` + "\ncame to example.com\n" +
			`sublet: "` + local + `" is not among the hosts that confined commands may reach; to allow it, add it to hosts under [policy.project]` + "\n0\n"
		if string(out) != want || len(met) > 0 {
			t.Errorf("got\n%swant\n%sand %v", out, want, met)
		}
		if want := confine.DeniedHost("other.org:80") + confine.DeniedHost(local); errs.String() != want {
			t.Errorf("told %q, want %q", errs.String(), want)
		}
	}
}

// launched runs Serve with one launcher, and returns that launcher's connection, the address of its command's proxy, and what stops
// Serve and waits for it. Every host is at the address server.
func launched(t *testing.T, hosts func() []string, server string) (launcher net.Conn, address string, stop func()) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server)
	}
	go func() {
		served <- Serve(ctx, ln, Options{Hosts: hosts, Log: slog.New(slog.DiscardHandler), dial: dial})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	launcher, err = net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { launcher.Close() })
	command, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { command.Close() })
	f, err := command.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, _, err := launcher.(*net.UnixConn).WriteMsgUnix([]byte{0}, syscall.UnixRights(int(f.Fd())), nil); err != nil {
		t.Fatal(err)
	}
	return launcher, command.Addr().String(), stop
}

// Serve returned while a request was still being served.
func TestServeWaitsForRequests(t *testing.T) {
	asked, stopped, ended := make(chan struct{}), make(chan struct{}), atomic.Bool{}
	launcher, address, stop := launched(t, func() []string {
		close(asked)
		<-stopped
		for range 1000 { // time in which Serve could return
			runtime.Gosched()
		}
		ended.Store(true)
		return nil
	}, "")
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-asked
	go func() {
		_, _ = io.Copy(io.Discard, launcher) // until Serve has closed it
		close(stopped)
	}()
	stop()
	if !ended.Load() {
		t.Error("Serve returned before the request had ended")
	}
}

// A connection that a host turned into one of another protocol ends with Serve.
func TestServeEndsUpgrades(t *testing.T) {
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n") // the client notices
		_, _ = io.Copy(io.Discard, c)                                                                             // until it is closed
	}))
	defer host.Close()
	_, address, stop := launched(t, func() []string { return []string{"example.com"} }, host.Listener.Addr().String())
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(c).ReadString('\n'); line != "HTTP/1.1 101 Switching Protocols\r\n" {
		t.Fatalf("%q, %v", line, err)
	}
	stop()
}

// A command cannot take all descriptors of the daemon with connections that it leaves open.
func TestConnectionsAreBounded(t *testing.T) {
	_, address, _ := launched(t, func() []string { return nil }, "")
	// ask opens a connection and sends a request.
	ask := func() net.Conn {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := io.WriteString(c, "CONNECT x.org:443 HTTP/1.1\r\nHost: x.org:443\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		return c
	}
	answered := func(c net.Conn) {
		t.Helper()
		if line, err := bufio.NewReader(c).ReadString('\n'); line != "HTTP/1.1 403 Forbidden\r\n" {
			t.Fatalf("got %q, %v", line, err)
		}
	}
	var open []net.Conn
	for range maxOpen {
		open = append(open, ask())
		answered(open[len(open)-1])
	}
	more := ask()
	if err := more.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := more.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("one more: got %d bytes, %v, want that it waits", n, err)
	}
	if err := more.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	open[0].Close()
	answered(more)
}
