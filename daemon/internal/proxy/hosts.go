package proxy

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

var name = regexp.MustCompile(`^(\*\.)?([a-z0-9_]([a-z0-9_-]*[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?$`)

// CheckHost returns what is wrong with an entry of the list of allowed hosts: a name in lower case, *.NAME for all below it,
// or either with a port.
func CheckHost(entry string) error {
	host, port := split(entry)
	switch {
	case !name.MatchString(host):
		return errors.New("it is no host name in lower case, nor *.NAME, with or without :PORT")
	case port == "":
		return nil
	}
	if n, err := net.LookupPort("tcp", port); err != nil || n == 0 || port != fmt.Sprint(n) {
		return fmt.Errorf("%s is no port", port)
	}
	return nil
}

// split takes an entry or an address apart; port is "" where there is none.
func split(entry string) (host, port string) {
	host, port, err := net.SplitHostPort(entry)
	if err != nil {
		return entry, ""
	}
	return host, port
}

// Allows reports whether a list of entries has an address HOST:PORT. An entry without a port allows 80 and 443.
func Allows(list []string, address string) bool {
	host, port := split(address)
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return port != "" && slices.ContainsFunc(list, func(entry string) bool {
		name, at := split(entry)
		below, wild := strings.CutPrefix(name, "*")
		return (name == host || wild && strings.HasSuffix(host, below)) && (at == port || at == "" && (port == "443" || port == "80"))
	})
}

// outside returns an error for an address that is no other machine's: a name that is allowed may resolve to anything.
func outside(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if ip := at.Addr().Unmap(); !ip.IsGlobalUnicast() { // private networks are: a list may name a host there
		return fmt.Errorf("%s is no address of another machine", ip)
	}
	return nil
}
