package confine

import (
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
)

// A Denial is something outside its reach that a confined command tried.
type Denial struct {
	What  string // "writing /etc/x", "the network", …
	Reach string // what would allow it: Project, Hosts, or "" for no confinement at all
}

// Hosts is the Reach of a Denial of a host that the settings could allow.
const Hosts = "hosts"

// deniedHost is the prefix of the launcher's line about a host that was denied.
const deniedHost = Program + ": denied: "

// DeniedHost returns the launcher's line about a denied host, which Denied recognises.
func DeniedHost(address string) string { return fmt.Sprintf("%s%q\n", deniedHost, address) }

// maxDenials bounds what Denied returns.
const maxDenials = 3

// Denied returns at most maxDenials denials that it recognises in the output of a command that ran in dir. The list may
// be incomplete, because every program has its own error texts.
func Denied(s Spec, dir string, output []byte) (list []Denial) {
	for line := range strings.Lines(string(output)) {
		d, ok := denial(s, dir, strings.TrimSpace(line), runtime.GOOS == "darwin")
		if ok && !slices.Contains(list, d) {
			if list = append(list, d); len(list) == maxDenials {
				break
			}
		}
	}
	return list
}

// Error texts of programs, in lower case, by what was denied.
var (
	noNetwork = []string{
		"network is unreachable", "could not resolve host", "temporary failure in name resolution", "couldn't connect to server",
		"name or service not known", "enetunreach", "eai_again", "dial tcp: lookup", "unable to resolve host", "getaddrinfo",
	}
	// The name of the file precedes or follows readOnly and noPlace. noPlace are the errors of a Protected name that is a mount
	// point or is replaced by a placeholder; they count only with such a name.
	readOnly = []string{"read-only file system", "erofs"}
	noPlace  = []string{"not a directory", "enotdir", "no such device or address", "enxio", "permission denied", "eacces", "device or resource busy", "ebusy"}
	noRight  = []string{"operation not permitted", "eperm"}
	loopback = []string{"127.0.0.1", "localhost", "::1"}
)

// A plainDenial is a denial that a line reports by its texts alone: one of texts and, if there are any, one of with.
type plainDenial struct {
	reach       string // "": any
	texts, with []string
	denial      Denial
}

// plain has the plain denials. The first that a line reports counts.
var plain = []plainDenial{
	{Read, noNetwork, loopback, Denial{"connecting to a port", Project}},
	{Project, []string{"connection refused", "econnrefused"}, loopback, Denial{"connecting to a port that it does not listen on itself", ""}},
	{"", noNetwork, nil, Denial{"the network", ""}},
	{"", []string{
		"docker daemon", "failed to connect to bus", "socket: operation not permitted", "operation not permitted (socket)",
		"could not open a connection to your authentication agent",
	}, nil, Denial{"reaching another program", ""}},
	{Read, []string{"readonly database", "unable to open database file"}, nil, Denial{"writing a database", Project}}, // SQLite also writes to read
	{Project, []string{"readonly database"}, nil, Denial{"writing a database", ""}},
	{"", []string{"ptrace"}, nil, Denial{"watching another program", ""}},
	{Read, []string{"bind: permission denied", "listen eacces"}, nil, Denial{"listening on a port", Project}},
}

// calls are what programs do that need a right that no confined command has. The texts are of errors which, besides noRight, are meant
// where a line begins with the program: others print them about a file of that name.
var calls = []struct {
	what            string
	programs, texts []string
}{
	{"a signal to another program", []string{"kill", "pkill", "killall"}, nil},
	{"mounts and namespaces", []string{"mount", "umount", "unshare", "nsenter", "chroot"}, []string{"permission denied", "must be superuser"}},
	{"another user's rights", []string{"sudo", "su"}, []string{"no new privileges", "system error"}},
}

// deniedCall returns what was denied, of calls, if a line of output has the name of one of its programs before an error; else "".
// It uses no regular expression: their package costs the launcher time at each start.
func deniedCall(lower string) string {
	pieces := strings.Split(lower, ":")
	in := func(text string) bool { return strings.Contains(lower, text) }
	for _, c := range calls {
		named := slices.ContainsFunc(pieces[:len(pieces)-1], func(piece string) bool {
			return slices.Contains(c.programs, piece[strings.LastIndexByte(piece, ' ')+1:])
		})
		first := slices.Contains(c.programs, pieces[0])
		if named && slices.ContainsFunc(noRight, in) || first && slices.ContainsFunc(c.texts, in) {
			return c.what
		}
	}
	return ""
}

// denial returns the denial that one line of output reports; false if it reports none. Under seatbelt (macOS) every denial shows
// as EPERM.
func denial(s Spec, dir, line string, seatbelt bool) (Denial, bool) {
	lower := strings.ToLower(line)
	has := func(texts []string) bool {
		return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(lower, t) })
	}
	host, denied := strings.CutPrefix(line, deniedHost)
	i := slices.IndexFunc(plain, func(p plainDenial) bool {
		return (p.reach == "" || p.reach == s.Reach) && has(p.texts) && (p.with == nil || has(p.with))
	})
	switch {
	case denied:
		return Denial{What: "the host " + host, Reach: Hosts}, true
	case has(readOnly):
		file := named(dir, line, readOnly)
		if file == "" {
			return Denial{What: "writing outside its reach"}, true
		}
		return writing(s, file), true
	case s.Reach == Project && has(noPlace) && protects(s.Project, named(dir, line, noPlace)):
		return Denial{What: "writing " + named(dir, line, noPlace)}, true
	case strings.Contains(lower, "enoent: no such file or directory, mkdir") && writing(s, named(dir, line, nil)).Reach == Project:
		// Node's mkdirSync with {recursive: true} reports a read-only file system as a file that does not exist.
		return writing(s, named(dir, line, nil)), true
	case i >= 0:
		d := plain[i].denial
		if s.Project == "" {
			d.Reach = "" // there is no reach project
		}
		return d, true
	case deniedCall(lower) != "":
		return Denial{What: deniedCall(lower)}, true
	case strings.Contains(lower, "permission denied") || strings.Contains(lower, "operation not permitted") || strings.Contains(lower, "no such file"):
		// no such file: for root a hidden folder is an empty one (hide in cmd/sublet-confine).
		for _, hidden := range s.Hidden {
			if strings.Contains(line, hidden) {
				return Denial{What: "reading " + hidden}, true
			}
		}
		if file := named(dir, line, noRight); seatbelt && has(noRight) && file != "" {
			return writing(s, file), true
		}
	}
	return Denial{}, false
}

// writing returns the denial of writing a file.
func writing(s Spec, file string) Denial {
	d := Denial{What: "writing " + file}
	if s.Reach == Read && s.Project != "" && Within(file, s.Project) && !protects(s.Project, file) {
		d.Reach = Project
	}
	return d
}

// protects reports whether file is, or is below, a Protected or GitProtected name of a project.
func protects(project, file string) bool {
	below := func(base string) func(string) bool {
		return func(name string) bool { return Within(file, path.Join(base, name)) }
	}
	return slices.ContainsFunc(Protected, below(project)) || slices.ContainsFunc(GitProtected, below(path.Join(project, ".git")))
}

// named returns the absolute path of the file that an error message in dir names: the last quoted text, else the word before
// the colon that precedes one of texts, else "".
func named(dir, line string, texts []string) string {
	file := quoted(line)
	if file == "" {
		at := len(line)
		for at > 0 && !slices.ContainsFunc(texts, func(t string) bool { return at+len(t) <= len(line) && strings.EqualFold(line[at:at+len(t)], t) }) {
			at--
		}
		file = strings.TrimRight(line[:at], ": ")
		file = file[strings.LastIndexAny(file, " :")+1:]
	}
	switch {
	case file == "" || strings.ContainsAny(file, "[]()"): // brackets: an error code, such as that of "[Errno 30]", not a file
		return ""
	case path.IsAbs(file):
		return path.Clean(file)
	}
	return path.Join(dir, file)
}

// quoted returns the last text in single quotes, else in typographic quotes, in double quotes or between ` and '; "" if there
// is none.
func quoted(line string) string {
	for _, q := range [][2]string{{"'", "'"}, {"‘", "’"}, {`"`, `"`}, {"`", "'"}} {
		end := strings.LastIndex(line, q[1])
		if end <= 0 {
			continue
		}
		if start := strings.LastIndex(line[:end], q[0]); start >= 0 && start+len(q[0]) < end {
			return line[start+len(q[0]) : end]
		}
	}
	return ""
}
