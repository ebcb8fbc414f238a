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
	"slices"
	"strings"
)

// The reaches that can be enforced.
const (
	Read    = "read"
	Project = "project"
)

// Spec is the confinement of one command. Paths are absolute and clean.
type Spec struct {
	Reach   string   // Read or Project
	Project string   // the folder that Project may change; with Read, the folder that Project would allow, which Denied needs; "" = none
	Dir     string   // a folder of the project in which the user's prompt may run git: with Project no repository can be made there, nor above; "" = none
	Caches  []string // folders of build tools: Project writes in them, Read in a copy that is discarded
	Network bool     // the command uses this machine's network; else it has none but, with Project on Linux, a loopback of its own
	Proxy   string   // with Project: the socket of the proxy through which the command reaches other hosts; "" = none
	Hidden  []string // files and folders that cannot be read; those that do not exist are ignored
	Kept    []string // paths that are read-only although they are in the project, besides Protected, and visible although below /tmp
	Inert   []string // names of Protected that start nothing by appearing: where one does not exist, a command can create it
	Script  string   // a file that is opened for the command as descriptor 3 before anything is hidden; "" = none
}

// A field is a field of a Spec that is encoded: a text, or a list of them.
type field struct {
	name string
	text *string
	list *[]string
}

// fields returns all fields but Network, in the order of the encoding.
func (s *Spec) fields() []field {
	return []field{
		{"reach", &s.Reach, nil},
		{"project", &s.Project, nil},
		{"dir", &s.Dir, nil},
		{"proxy", &s.Proxy, nil},
		{"script", &s.Script, nil},
		{"cache", nil, &s.Caches},
		{"hidden", nil, &s.Hidden},
		{"kept", nil, &s.Kept},
		{"inert", nil, &s.Inert},
	}
}

// Encode returns s as the launcher reads it: fields NAME=VALUE, each ended by NUL, as paths may hold anything else.
func (s Spec) Encode() []byte {
	var b bytes.Buffer
	for _, f := range s.fields() {
		var values []string
		if f.list != nil {
			values = *f.list
		} else if *f.text != "" {
			values = []string{*f.text}
		}
		for _, v := range values {
			fmt.Fprintf(&b, "%s=%s\x00", f.name, v)
		}
	}
	if s.Network {
		b.WriteString("network=host\x00")
	}
	return b.Bytes()
}

// Decode reads what Encode wrote. An unknown field or a truncated text is an error, since ignoring it would confine the
// command less than intended.
func Decode(text []byte) (s Spec, err error) {
	if len(text) == 0 || text[len(text)-1] != 0 {
		return s, errors.New("the Spec is truncated")
	}
	fields := s.fields()
	for line := range strings.SplitSeq(string(text[:len(text)-1]), "\x00") {
		name, value, ok := strings.Cut(line, "=")
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
		switch {
		case line == "network=host":
			s.Network = true
		case !ok || i < 0:
			return s, fmt.Errorf("the Spec has an unknown field %q", line)
		case fields[i].list != nil:
			*fields[i].list = append(*fields[i].list, value)
		default:
			*fields[i].text = value
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
