package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A confined command reaches other hosts through the daemon's proxy, which listens on a Unix socket. The keeper makes a
// listening TCP socket in the command's network namespace and sends it to the proxy, which accepts the command's connections
// on it: a socket stays in the namespace in which it was made. That connection stays open as long as the keeper runs, and the
// proxy writes the names of denied hosts to it.

// dialProxy connects to the proxy.
func dialProxy(path string) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		unix.Close(fd)
		return 0, fmt.Errorf("reach the proxy of the allowed hosts: %w", err)
	}
	return fd, nil
}

// offerListener sends a listening socket of this network namespace to the proxy at the other end of fd, and sets the variables
// HTTP_PROXY and the like to its address.
func offerListener(fd int) error {
	ln, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(ln)
	if err := unix.Bind(ln, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	if err := unix.Listen(ln, unix.SOMAXCONN); err != nil {
		return err
	}
	at, err := unix.Getsockname(ln)
	if err != nil {
		return err
	}
	if err := unix.Sendmsg(fd, []byte{0}, unix.UnixRights(ln), nil, 0); err != nil {
		return err
	}
	proxy, direct := fmt.Sprintf("http://127.0.0.1:%d", at.(*unix.SockaddrInet4).Port), "localhost,127.0.0.1,::1"
	for name, value := range map[string]string{
		"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "http_proxy": proxy, "https_proxy": proxy, "NO_PROXY": direct, "no_proxy": direct,
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

// denied returns the hosts that the proxy at the other end of fd has denied, one a line.
func denied(fd int) string {
	text := make([]byte, 8<<10) // the proxy writes no more
	n, _, err := unix.Recvfrom(fd, text, unix.MSG_DONTWAIT)
	if err != nil {
		return ""
	}
	return string(text[:n])
}
