package shell

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
)

// digest is a SHA-256 over the state. The functions, by far the most of it, are in it by their own sum, which is made anew
// only where they were read anew.
func (sn snapshot) digest() string {
	st := sn.State
	h := sumText(nil, st.Dir)
	for _, m := range []map[string]string{st.Vars, st.Aliases, st.Hashed} {
		h = sumMap(h, m)
	}
	h = append(h, sn.functions.sum[:]...)
	for _, list := range [][]string{st.Options, st.Disabled, st.Loaded} {
		h = sumText(h, strconv.Itoa(len(list)))
		for _, o := range list {
			h = sumText(h, o)
		}
	}
	sum := sha256.Sum256(h)
	return hex.EncodeToString(sum[:])
}

func sumOf(m map[string]string) [sha256.Size]byte { return sha256.Sum256(sumMap(nil, m)) }

func sumMap(h []byte, m map[string]string) []byte {
	h = sumText(h, strconv.Itoa(len(m)))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		h = sumText(sumText(h, k), m[k])
	}
	return h
}

// sumText appends a text with its length before it, so that no two sequences of texts are the same bytes.
func sumText(h []byte, s string) []byte {
	h = strconv.AppendInt(h, int64(len(s)), 10)
	return append(append(h, ':'), s...)
}
