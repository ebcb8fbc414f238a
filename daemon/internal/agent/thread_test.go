package agent

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sublet/wire"
)

// A thread that is asked at any moments, and goes on, has the conversation that all events give at once, entry by entry;
// what it gave out before does not change.
func TestThreadIsHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := anyEvents(t)
		var thread Thread
		type given struct{ got, want Conversation }
		var earlier []given
		for i, m := range events {
			if rapid.Bool().Draw(t, "ask") {
				got, want := thread.Snapshot(), History(events[:i])
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("after %d events: got\n%s\nwant\n%s", i, show(got.Messages()), show(want.Messages()))
				}
				earlier = append(earlier, given{got, want})
			}
			thread.Add(m)
		}
		if got, want := thread.Snapshot(), History(events); !reflect.DeepEqual(got, want) {
			t.Fatalf("got\n%s\nwant\n%s", show(got.Messages()), show(want.Messages()))
		}
		if n := int64(len(events)); thread.last != n {
			t.Fatalf("last: got %d, want %d", thread.last, n)
		}
		for _, g := range earlier {
			if !reflect.DeepEqual(g.got, g.want) {
				t.Fatalf("what was given out changed: got\n%s\nwant\n%s", show(g.got.Messages()), show(g.want.Messages()))
			}
		}
	})
}

// A conversation that is too large is not kept between two turns.
func TestCacheIsBounded(t *testing.T) {
	var c Cache
	for _, size := range []int{10, maxCached + 1} {
		_, _, err := c.History("t", func(int64) ([]wire.EventMessage, bool, error) {
			return []wire.EventMessage{&wire.TurnStarted{Event: wire.Event{Seq: 7}, Model: "a/b", Prompt: strings.Repeat("x", size)}}, false, nil
		})
		if kept := c.thread != nil; err != nil || kept != (size <= maxCached) {
			t.Errorf("%d bytes: kept %v (%v)", size, kept, err)
		}
	}
}
