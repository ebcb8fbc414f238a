package proxy

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
)

var name = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\*\.)?([a-z0-9_]([a-z0-9_-]*[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?$`)
})

// CheckHost returns what is wrong with an entry of the list of allowed hosts, nil if it is valid: a name in lower case, or
// *.NAME for all below it, either with a port.
func CheckHost(entry string) error {
	host, port := split(entry)
	switch {
	case !name().MatchString(host):
		return errors.New("it must be a host name in lower case or *.NAME, with or without :PORT")
	case port == "":
		return nil
	}
	if n, err := net.LookupPort("tcp", port); err != nil || n == 0 || port != fmt.Sprint(n) {
		return fmt.Errorf("%s is not a port", port)
	}
	return nil
}

// split returns host and port of an entry or an address; port is "" if there is none.
func split(entry string) (host, port string) {
	host, port, err := net.SplitHostPort(entry)
	if err != nil {
		return entry, ""
	}
	return host, port
}

// Allows reports whether a list of entries contains the address HOST:PORT. An entry without a port allows 80 and 443.
func Allows(list []string, address string) bool {
	host, port := split(address)
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return port != "" && slices.ContainsFunc(list, func(entry string) bool {
		name, at := split(entry)
		below, wild := strings.CutPrefix(name, "*")
		return (name == host || wild && strings.HasSuffix(host, below)) && (at == port || at == "" && (port == "443" || port == "80"))
	})
}

// outside returns an error for an address of this machine or in a special range, since an allowed name may resolve to any.
func outside(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}
	ip := at.Addr().Unmap()
	if !ip.IsGlobalUnicast() || slices.ContainsFunc(own, func(a net.Addr) bool { // global: also private networks, whose hosts a list may name
		network, ok := a.(*net.IPNet)
		return ok && network.IP.Equal(ip.AsSlice())
	}) {
		return fmt.Errorf("%s is not the address of another machine", ip)
	}
	return nil
}
