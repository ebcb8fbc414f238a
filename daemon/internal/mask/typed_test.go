package mask

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

// What was typed without echo is hidden whole, in pieces of half of it, in base64 wherever it stands in it, and in hex.
func TestKeepTyped(t *testing.T) {
	const secret = "tr0ub4dor&3x"
	KeepTyped(secret)
	KeepTyped("abc") // too short: it stands in too many texts
	for _, text := range []string{
		"it is " + secret + "!", secret[:6] + " then " + secret[6:], secret[3:],
		base64.StdEncoding.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte("x=" + secret + "\n")),
		base64.URLEncoding.EncodeToString([]byte("a" + secret)), hex.EncodeToString([]byte("p" + secret)), strings.ToUpper(hex.EncodeToString([]byte(secret))),
		fmt.Sprintf("0000000 % x 0a", secret),
	} {
		got := String(text)
		if !strings.Contains(got, "[masked:typed]") || strings.Contains(got, secret[:6]) || strings.Contains(got, secret[6:]) || strings.Contains(got, fmt.Sprintf("% x", secret)) {
			t.Errorf("%q: got %q", text, got)
		}
		if again := String(got); again != got {
			t.Errorf("%q: masked again it is %q", got, again)
		}
	}
	if got := String("abc tr0ub the rest"); got != "abc tr0ub the rest" {
		t.Errorf("got %q", got)
	}
}
