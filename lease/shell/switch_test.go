package shell

import (
	"context"
	"testing"
)

// A key that switches is heard as soon as the prompt is on the screen, though the record of it may be read a moment later.
func TestHoldIfEmptyBeforeTheRecord(t *testing.T) {
	s, scr := start2(t, nil)
	scr.prompts(t, 1)
	s.mu.Lock()
	s.told = promptRecord{} // as if it were not read yet
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if held, err := s.HoldIfEmpty(ctx); !held || err != nil {
		t.Errorf("got %v, %v; %s", held, err, s.Busy())
	}
}
