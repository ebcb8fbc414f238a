package risk

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// decoded undoes what is used to hide a command from a reader: base64 -d, xxd -r -p, rev, tr with two plain sets.
func decoded(words []string, in string) *string {
	has := func(opts ...string) bool {
		for _, w := range words[1:] {
			for _, o := range opts {
				if w == o {
					return true
				}
			}
		}
		return false
	}
	compact := strings.Join(strings.Fields(in), "")
	var out []byte
	var err error
	switch words[0] {
	case "base64":
		if !has("-d", "-D", "--decode", "-di", "-id") {
			return nil
		}
		out, err = base64.StdEncoding.DecodeString(compact)
	case "base32":
		if !has("-d", "--decode") {
			return nil
		}
		out, err = base32.StdEncoding.DecodeString(compact)
	case "xxd":
		if !has("-r") && !has("-rp", "-pr") {
			return nil
		}
		out, err = hex.DecodeString(compact)
	case "rev":
		lines := strings.Split(strings.TrimSuffix(in, "\n"), "\n")
		for i, l := range lines {
			r := []rune(l)
			for x, y := 0, len(r)-1; x < y; x, y = x+1, y-1 {
				r[x], r[y] = r[y], r[x]
			}
			lines[i] = string(r)
		}
		out = []byte(strings.Join(lines, "\n") + "\n")
	case "tr":
		if len(words) != 3 || words[1] == "" || words[2] == "" || words[1][0] == '-' {
			return nil
		}
		from, to := ranges(words[1]), ranges(words[2])
		if from == "" || to == "" {
			return nil
		}
		out = []byte(in)
		for i, c := range out {
			if k := strings.IndexByte(from, c); k >= 0 {
				out[i] = to[min(k, len(to)-1)]
			}
		}
	}
	if err != nil || len(out) == 0 || len(out) > MaxText {
		return nil
	}
	s := string(out)
	return &s
}

// ranges writes out a-z in a set of tr.
func ranges(s string) string {
	var b strings.Builder
	for i := 0; i < len(s) && b.Len() < 512; i++ {
		if i+2 < len(s) && s[i+1] == '-' && s[i] < s[i+2] {
			for c := int(s[i]); c <= int(s[i+2]); c++ {
				b.WriteByte(byte(c))
			}
			i += 2
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
