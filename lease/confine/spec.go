// Package confine describes commands that the kernel confines to a reach: read, which may change only a temporary folder, or
// project, which may also write in one folder and in the caches of build tools. The launcher, cmd/sublet-confine, enforces it;
// it is a separate, small program so that it starts fast. This package finds the launcher, encodes a Spec for it, and reads
// from a command's output what was denied. Which command gets which reach is left to others.
package confine

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strconv"
)

// The reaches that can be enforced.
const (
	Read    = "read"
	Project = "project"
)

// Spec is the confinement of one command. Paths are absolute and clean.
type Spec struct {
	Reach    string   // Read or Project
	Project  string   // the folder that Project may change; with Read, the folder that Project would allow, which Denied needs; "" = none
	Dir      string   // a folder of the project in which the user's prompt may run git: with Project no repository can be made there, nor above; "" = none
	Caches   []string // folders of build tools: Project writes in them, Read in a copy that is discarded
	Network  bool     // the command uses this machine's network; else it has none but, with Project on Linux, a loopback of its own
	Proxy    string   // with Project: the socket of the proxy through which the command reaches other hosts; "" = none
	Hidden   []string // files and folders that cannot be read; those that do not exist are ignored
	Kept     []string // paths that are read-only although they are in the project, beside Protected, and visible although below /tmp
	Inert    []string // names of Protected that start nothing by appearing: where one does not exist, a command can create it
	Script   string   // a file that is opened for the command as descriptor 3 before anything is hidden; "" = none
	TempSize int64    // the largest size of /tmp, in bytes; 0 = DefaultTempSize
}

// DefaultTempSize is the most that the temporary folder of a command may hold, in bytes. The folder is in memory.
const DefaultTempSize = 1 << 30

// Encode returns s as the launcher reads it: fields NAME=VALUE, each ended by NUL, as paths may hold anything else.
func (s Spec) Encode() []byte {
	var b bytes.Buffer
	field := func(name string, values ...string) {
		for _, v := range values {
			fmt.Fprintf(&b, "%s=%s\x00", name, v)
		}
	}
	field("reach", s.Reach)
	field("project", s.Project)
	if s.Dir != "" {
		field("dir", s.Dir)
	}
	field("cache", s.Caches...)
	field("hidden", s.Hidden...)
	field("kept", s.Kept...)
	field("inert", s.Inert...)
	if s.Network {
		field("network", "host")
	}
	if s.Proxy != "" {
		field("proxy", s.Proxy)
	}
	field("script", s.Script)
	field("temp", strconv.FormatInt(s.TempSize, 10))
	return b.Bytes()
}

// Decode reads what Encode wrote. An unknown field or a truncated text is an error, since ignoring it would confine the
// command less than intended.
func Decode(text []byte) (s Spec, err error) {
	if len(text) == 0 || text[len(text)-1] != 0 {
		return s, errors.New("the Spec is truncated")
	}
	for field := range bytes.SplitSeq(text[:len(text)-1], []byte{0}) {
		name, value, ok := bytes.Cut(field, []byte{'='})
		if !ok {
			return s, fmt.Errorf("the Spec has a field without a value: %q", field)
		}
		v := string(value)
		switch string(name) {
		case "reach":
			s.Reach = v
		case "project":
			s.Project = v
		case "dir":
			s.Dir = v
		case "cache":
			s.Caches = append(s.Caches, v)
		case "hidden":
			s.Hidden = append(s.Hidden, v)
		case "kept":
			s.Kept = append(s.Kept, v)
		case "inert":
			s.Inert = append(s.Inert, v)
		case "network":
			if s.Network = v == "host"; !s.Network {
				return s, fmt.Errorf("the Spec has an unknown network: %q", v)
			}
		case "proxy":
			s.Proxy = v
		case "script":
			s.Script = v
		case "temp":
			if s.TempSize, err = strconv.ParseInt(v, 10, 64); err != nil || s.TempSize < 0 {
				return s, fmt.Errorf("the Spec has an invalid size of the temporary folder: %q", v)
			}
		default:
			return s, fmt.Errorf("the Spec has an unknown field %q", name)
		}
	}
	return s, s.check()
}

func (s Spec) check() error {
	switch {
	case s.Reach != Read && s.Reach != Project:
		return fmt.Errorf("%q is not a reach that can be enforced", s.Reach)
	case s.Reach == Project && (s.Project == "" || s.Project == "/"):
		return fmt.Errorf("the folder %q cannot be a project", s.Project)
	case s.Proxy != "" && (s.Reach != Project || s.Network):
		return errors.New("a proxy needs the reach project without a network")
	}
	for _, list := range [][]string{{s.Project, s.Dir, s.Script, s.Proxy}, s.Caches, s.Hidden, s.Kept} {
		for _, p := range list {
			if p != "" && (!path.IsAbs(p) || path.Clean(p) != p) {
				return fmt.Errorf("the path %q is not absolute and clean", p)
			}
		}
	}
	return nil
}
