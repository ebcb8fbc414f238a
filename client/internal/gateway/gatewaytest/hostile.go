package gatewaytest

import (
	"fmt"
	"sync"
	"testing"
)

// Crowd has n clients at once do f, and reports what went wrong for each.
func Crowd(t testing.TB, n int, f func(i int) error) {
	t.Helper()
	var all sync.WaitGroup
	errs := make(chan error, n)
	for i := range n {
		all.Go(func() {
			if err := f(i); err != nil {
				errs <- fmt.Errorf("client %d: %w", i, err)
			}
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
}

// Mangled is a message with each of its bytes, one at a time, left out or become one that means something else: a quote, a
// backslash, a brace, a digit, a zero, half of a character. Each is one line still.
func Mangled(message string) []string {
	var list []string
	for i := range len(message) {
		for _, b := range []string{"", `"`, `\`, "{", "9", "\x00", "\xff"} {
			list = append(list, message[:i]+b+message[i+1:])
		}
	}
	return list
}
