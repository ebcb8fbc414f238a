package lender

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

type observer func(any)

func (o observer) Observe(event any) { o(event) }

// What waits for a slow screen keeps its order; neighbours merge, of one command each, and only the newest of who has the
// shell is shown. All of it is delivered before the end, also what comes of delivering it.
func TestOutbox(t *testing.T) {
	var got []string
	var o *outbox
	o = newOutbox(observer(func(event any) {
		switch e := event.(type) {
		case LeasedOutput:
			got = append(got, fmt.Sprintf("%s %s", e.ExecutionID, e.Data))
		case Unowned:
			got = append(got, fmt.Sprintf("unowned %s", e.Data))
		case LeaseChanged:
			got = append(got, "lent to "+e.Lending.Holder)
		case Respawned:
			got = append(got, "respawned "+e.Why)
			if e.Why != "again" {
				o.put(Respawned{Why: "again"})
			}
		}
	}))
	for _, e := range []any{
		LeasedOutput{ExecutionID: "x1", Data: []byte("a")},
		LeasedOutput{ExecutionID: "x1", Data: []byte("b")},
		LeasedOutput{ExecutionID: "x2", Data: []byte("c")},
		Unowned{Data: []byte("d")},
		Unowned{Data: []byte("e")},
		LeasedOutput{ExecutionID: "x2", Data: []byte("f")},
		Unowned{Data: []byte("g")},
		LeaseChanged{Lending{Holder: "one"}},
		LeaseChanged{Lending{Holder: "two"}},
		Respawned{Why: "once"},
	} {
		o.put(e)
	}
	o.close()
	o.run()
	want := []string{"x1 ab", "x2 c", "unowned de", "x2 f", "unowned g", "lent to two", "respawned once", "respawned again"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The end is kept of output that nobody takes, from a line's start where there is one near.
func TestBoundedOutput(t *testing.T) {
	whole := bytes.Repeat([]byte("x"), 2*liveBound)
	if got := bounded(whole); len(got) != len(whole) {
		t.Errorf("%d of %d bytes are kept", len(got), len(whole))
	}
	if got := bounded(append(whole, 'y')); len(got) != liveBound || got[len(got)-1] != 'y' {
		t.Errorf("%d bytes are kept, want the last %d", len(got), liveBound)
	}
	lines := []byte(strings.Repeat(strings.Repeat("z", 99)+"\n", 2*liveBound/100+1))
	if got := bounded(lines); len(got)%100 != 0 || len(got) > liveBound || len(got) < liveBound-100 {
		t.Errorf("%d bytes are kept, which do not begin with a line", len(got))
	}
}
