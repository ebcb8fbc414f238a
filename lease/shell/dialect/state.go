package dialect

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
)

// State is what a command can change in the shell and leave behind.
type State struct {
	Dir       string
	Vars      map[string]string // exported variables; those that are Volatile are not part of it, nor of Local
	Aliases   map[string]string // and fish's abbreviations
	Functions map[string]string // name to body
	Options   []string          // names of options that are on, sorted
	Hashed    map[string]string // names that run as another file than PATH finds (hash -p), with that file
	Disabled  []string          // builtins that are switched off, sorted
	Local     map[string]string // variables that are not exported: name to the statement that makes them
	Umask     string
	Painted   bool   // hooks of the user's have set PS1 anew for the prompt at which the state was read
	Digest    string // see Sum
}

// Sum returns the Digest: lower-case hex SHA-256 of all fields but Umask, Painted and Local. An approval of a command holds while
// the digest is the same. Umask and Painted do not decide what runs. Local is left out because prompts and hooks keep variables
// that change all the time: a command that expands one may run differently under the same digest.
func (st State) Sum() string {
	h := appendText(nil, st.Dir)
	for _, m := range []map[string]string{st.Vars, st.Aliases, st.Hashed, st.Functions} {
		h = strconv.AppendInt(h, int64(len(m)), 10)
		for _, k := range slices.Sorted(maps.Keys(m)) {
			h = appendText(appendText(h, k), m[k])
		}
	}
	for _, list := range [][]string{st.Options, st.Disabled} {
		h = strconv.AppendInt(h, int64(len(list)), 10)
		for _, o := range list {
			h = appendText(h, o)
		}
	}
	sum := sha256.Sum256(h)
	return hex.EncodeToString(sum[:])
}

// appendText appends a text with its length before it, so that no two sequences of texts are the same bytes.
func appendText(h []byte, s string) []byte {
	h = strconv.AppendInt(h, int64(len(s)), 10)
	return append(append(h, ':'), s...)
}
