package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"sublet/lease/confine"
)

// A seatbelt is what a macOS sandbox profile allows. Paths are absolute and clean, those of writable without symbolic links.
type seatbelt struct {
	writable []string // folders
	locked   []string // read-only although in a writable folder, whether they exist or not
	hidden   []string // cannot be read
	network  bool     // all IP addresses; else none
}

// seatbeltOf returns the seatbelt of a command that has temp as its temporary folder.
func seatbeltOf(s confine.Spec, temp string) seatbelt {
	b := seatbelt{writable: []string{temp}, network: s.Network}
	for _, path := range s.Hidden {
		b.hidden = append(b.hidden, followed(path)...)
	}
	if s.Reach != confine.Project {
		return b
	}
	b.writable = append(append(b.writable, s.Project), caches(s)...)
	for _, path := range append(protected(s), s.Kept...) {
		for _, at := range followed(path) {
			if at != s.Project && confine.Within(at, s.Project) {
				b.locked = append(b.locked, at)
			}
		}
	}
	return b
}

// followed returns a path and all that it leads to by symbolic links.
func followed(path string) []string {
	list := []string{path}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		list = append(list, real)
	}
	for range maxLinks {
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = filepath.Clean(to)
		list = append(list, path)
		if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			path = filepath.Join(dir, filepath.Base(path))
			list = append(list, path)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// seatbeltBase denies everything but what programs need to start and to read files. Of the terminal's requests it allows
// those of its modes and its size: not TIOCSTI, which types into it. kern.procargs holds other processes' environments.
const seatbeltBase = `(version 1)
(deny default)
(allow process-exec* process-fork)
(allow process-info* signal (target same-sandbox))
(allow sysctl-read)
(deny sysctl-read (sysctl-name-prefix "kern.procargs"))
(allow user-preference-read)
(allow mach-host*)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo") (global-name "com.apple.system.opendirectoryd.membership") (global-name "com.apple.system.notification_center") (global-name "com.apple.system.logger"))
(allow ipc-posix-sem)
(allow file-read* file-map-executable)
(allow file-write-data (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (subpath "/dev/fd"))
(allow pseudo-tty)
(allow file-write* file-ioctl (literal "/dev/ptmx"))
(allow file-write* file-ioctl (require-all (regex "^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty")))
(allow file-ioctl (require-all (vnode-type CHARACTER-DEVICE) (require-any (ioctl-command TIOCGETA) (ioctl-command TIOCSETA) (ioctl-command TIOCSETAW) (ioctl-command TIOCSETAF) (ioctl-command TIOCGWINSZ))))
`

// seatbeltNetwork allows IP and what name lookups need.
const seatbeltNetwork = `(allow system-socket)
(allow network-bind network-inbound (local ip "*:*"))
(allow network-outbound (remote ip "*:*") (literal "/private/var/run/mDNSResponder"))
(allow mach-lookup (global-name "com.apple.SystemConfiguration.configd") (global-name "com.apple.SystemConfiguration.DNSConfiguration") (global-name "com.apple.dnssd.service") (global-name "com.apple.trustd.agent"))
`

// profile returns b in the language of sandbox-exec(1). The last rule that matches an operation decides.
func (b seatbelt) profile() string {
	var text strings.Builder
	text.WriteString(seatbeltBase)
	if b.network {
		text.WriteString(seatbeltNetwork)
	}
	rule := func(head, filter string) { text.WriteString("(" + head + " (" + filter + "))\n") }
	for _, dir := range b.writable {
		rule("allow file-write*", "subpath "+schemeString(dir))
	}
	for _, path := range b.locked {
		rule("deny file-write*", "regex "+schemeString("^"+anyCase(path)+"(/|$)"))
	}
	for _, path := range b.hidden {
		rule("deny file-read-data file-read-xattr file-write*", "regex "+schemeString("^"+anyCase(path)+"(/|$)"))
	}
	for _, dir := range b.foldersToKeep() { // renaming or replacing one would also move or replace what is below it
		rule("deny file-write-unlink file-write-create", "regex "+schemeString("^"+anyCase(dir)+"$"))
	}
	text.WriteString("(deny file-write-setugid)\n")
	return text.String()
}

// foldersToKeep returns the writable folders, and the folders between them and what is locked or hidden in them.
func (b seatbelt) foldersToKeep() (list []string) {
	list = slices.Clone(b.writable)
	for _, path := range slices.Concat(b.locked, b.hidden) {
		for _, dir := range b.writable {
			if confine.Within(path, dir) {
				for up := filepath.Dir(path); up != dir && confine.Within(up, dir); up = filepath.Dir(up) {
					list = append(list, up)
				}
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// schemeString quotes a string of a profile.
func schemeString(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// anyCase returns a regular expression of a path in any case, as file systems of macOS take .VSCODE for .vscode.
func anyCase(path string) string {
	var b strings.Builder
	for _, r := range path {
		switch next := unicode.SimpleFold(r); {
		case strings.ContainsRune(`\.+*?()|[]{}^$`, r):
			b.WriteString(`\` + string(r))
		case next == r:
			b.WriteRune(r)
		default:
			b.WriteString("(" + string(r))
			for ; next != r; next = unicode.SimpleFold(next) {
				b.WriteString("|" + string(next))
			}
			b.WriteByte(')')
		}
	}
	return b.String()
}
