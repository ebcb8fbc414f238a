// Package confine starts commands that the kernel holds to a reach: read, which changes nothing but a temporary folder, or
// project, which also writes in one folder and in the caches of build tools. The holding itself is done by a program of its
// own, cmd/sublet-confine, which is small so that it starts fast; this package describes to it what to hold, finds it, and
// reads from a command's output what was denied. Which command gets which reach is left to others.
package confine

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strconv"
)

// The reaches that can be held.
const (
	Read    = "read"
	Project = "project"
)

// Spec is what a command is held to. Paths are absolute and clean.
type Spec struct {
	Reach    string   // Read or Project
	Project  string   // the folder that Project may change; "" with Read
	Caches   []string // folders of build tools: Project writes in them, Read in a copy that is thrown away
	Network  bool     // it has the network of this machine; else its own loopback with Project, and nothing with Read
	Proxy    string   // with Project: the socket of the proxy through which the command reaches other hosts; "" = it reaches none
	Hidden   []string // files and folders with secrets; those that do not exist are passed over
	Kept     []string // folders and files that stay as they are also in the project, beside the names in Protected, and below /tmp
	Script   string   // a file that is opened for the command as descriptor 3 before anything is hidden; "" = none
	TempSize int64    // the most that /tmp may take, in bytes; 0 = DefaultTempSize
}

// DefaultTempSize is the most that the temporary folder of a command may hold, in bytes. It is memory.
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
	field("cache", s.Caches...)
	field("hidden", s.Hidden...)
	field("kept", s.Kept...)
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

// Decode reads what Encode wrote. What it does not know, or is not whole, is an error: nothing may be held to less than was
// meant.
func Decode(text []byte) (s Spec, err error) {
	if len(text) == 0 || text[len(text)-1] != 0 {
		return s, errors.New("the description of the reach is cut off")
	}
	for field := range bytes.SplitSeq(text[:len(text)-1], []byte{0}) {
		name, value, ok := bytes.Cut(field, []byte{'='})
		if !ok {
			return s, fmt.Errorf("the description of the reach has a field without a value: %q", field)
		}
		v := string(value)
		switch string(name) {
		case "reach":
			s.Reach = v
		case "project":
			s.Project = v
		case "cache":
			s.Caches = append(s.Caches, v)
		case "hidden":
			s.Hidden = append(s.Hidden, v)
		case "kept":
			s.Kept = append(s.Kept, v)
		case "network":
			if s.Network = v == "host"; !s.Network {
				return s, fmt.Errorf("the description of the reach has a network that is not known: %q", v)
			}
		case "proxy":
			s.Proxy = v
		case "script":
			s.Script = v
		case "temp":
			if s.TempSize, err = strconv.ParseInt(v, 10, 64); err != nil || s.TempSize < 0 {
				return s, fmt.Errorf("the description of the reach has no size of a temporary folder: %q", v)
			}
		default:
			return s, fmt.Errorf("the description of the reach has a field %q, which this program does not know", name)
		}
	}
	return s, s.check()
}

func (s Spec) check() error {
	switch {
	case s.Reach != Read && s.Reach != Project:
		return fmt.Errorf("%q is no reach that can be held", s.Reach)
	case s.Reach == Project && (s.Project == "" || s.Project == "/"):
		return fmt.Errorf("the folder %q cannot be a project", s.Project)
	case s.Proxy != "" && (s.Reach != Project || s.Network):
		return errors.New("a proxy is for what is held to project without a network")
	}
	for _, list := range [][]string{{s.Project, s.Script, s.Proxy}, s.Caches, s.Hidden, s.Kept} {
		for _, p := range list {
			if p != "" && (!path.IsAbs(p) || path.Clean(p) != p) {
				return fmt.Errorf("the path %q is not absolute and clean", p)
			}
		}
	}
	return nil
}
