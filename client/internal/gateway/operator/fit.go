package operator

import "strings"

// maxMessage is the longest line that is sent, in bytes (N1). Conversations are longer; what is in one message is cut.
const maxMessage = 10 << 20

// fit calls build with smaller and smaller bounds until the line is within limit. build gets how many bytes of each text to
// keep, 0 = all.
func fit(limit int, build func(most int) []byte) []byte {
	l := build(0)
	for most := 1 << 20; len(l) > limit && most >= 64; most /= 4 {
		l = build(most)
	}
	return l
}

// cut keeps the beginning and end of a text longer than most bytes, and whole characters.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most/2], "") + "\n[…]\n" + strings.ToValidUTF8(s[len(s)-most/2:], "")
}

func cutCalls(calls []s3Call, most int) []s3Call {
	out := make([]s3Call, len(calls))
	for i, c := range calls {
		if c.Output != nil {
			short := cut(*c.Output, most)
			c.Output = &short
		}
		if len(c.Input) > most {
			c.Input = mustJSON(map[string]string{"arguments": cut(string(c.Input), most)})
		}
		out[i] = c
	}
	return out
}
