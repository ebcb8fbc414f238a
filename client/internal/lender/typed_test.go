package lender

import (
	"slices"
	"testing"
)

// A secret is the line as the command gets it; nothing is gathered where the command has echo on.
func TestTypedSecret(t *testing.T) {
	var s typedSecret
	if got := s.take([]byte("ls\r")); got != nil {
		t.Errorf("with echo: got %q", got)
	}
	s.asked(true)
	for _, c := range []struct {
		keys string
		want []string
	}{
		{"hun", nil},
		{"tex\x7fr2\r", []string{"hunter2"}},
		{"wrong\x15right\n", []string{"right"}},
		{"one two_2 \x17x\r", []string{"one x"}}, // was one two_2 ^Wx, so that what the command got was not masked
		{"one\x17\x17x\r", []string{"x"}},
		{"\r", nil},
		{"\u00fc\x7fab\x03", nil},
		{"one\rtwo\r", []string{"one", "two"}},
	} {
		if got := s.take([]byte(c.keys)); !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.keys, got, c.want)
		}
	}
	s.take([]byte("half"))
	s.asked(false)
	s.asked(true)
	if got := s.take([]byte("x\r")); !slices.Equal(got, []string{"x"}) {
		t.Errorf("after another prompt: got %q", got)
	}
}
