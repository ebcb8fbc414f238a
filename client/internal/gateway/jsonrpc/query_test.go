package jsonrpc

import "testing"

// A time is taken in seconds and in milliseconds; one that no command can have begun at is left out, rather than becoming another.
func TestStartedMS(t *testing.T) {
	for timestamp, want := range map[float64]int64{
		0: 0, 1696435200: 1696435200_000, 1696435200.5: 1696435200_500, 1696435200_000: 1696435200_000, -1: 0, 1e300: 0, -1e300: 0,
	} {
		if got := (recentCommand{Timestamp: timestamp}).startedMS(); got != want {
			t.Errorf("%v: got %d, want %d", timestamp, got, want)
		}
	}
}
