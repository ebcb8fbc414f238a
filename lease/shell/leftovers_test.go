package shell

import (
	"strings"
	"testing"
)

// What a borrowed command leaves running is listed, also where it is no job of the shell's; what the prompt's hooks run is not.
func TestLeftovers(t *testing.T) {
	s, _ := start2(t, nil)
	do(t, s, `PROMPT_COMMAND+=('sleep 0.02; x=$(sleep 0.02)')`)
	for range 20 {
		if res := do(t, s, "true"); len(res.Leftovers) > 0 {
			t.Fatalf("of a command that runs nothing: %+v", res.Leftovers)
		}
	}
	res := do(t, s, `left=$(sleep 100 >/dev/null & echo $!); sleep 200 & left="$left $!"; until [ "$(ps -o comm= $!)" = sleep ]; do :; done`)
	if len(res.Leftovers) != 2 || !strings.HasPrefix(res.Leftovers[0].Command, "sleep") || !strings.HasPrefix(res.Leftovers[1].Command, "sleep") {
		t.Errorf("got %+v, want two programs", res.Leftovers)
	}
	do(t, s, "kill $left")
}
