package lend

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sublet/wire"
)

// restoreBound is how long a shell may take to put its state back, in which it runs nothing but builtins.
const restoreBound = 10 * time.Second

// Restore undoes the last change that a borrowed command made to the shell, or (all) every such change. changed describes in one line
// what was undone, left what could not be; "" = nothing.
func (ln *Lender) Restore(ctx context.Context, id wire.ExecutionID, all bool, on Terms) (changed, left string, err error) {
	ln.mu.Lock()
	restores := ln.conn.restores
	ln.mu.Unlock()
	if !restores {
		return "", "", errors.New("the client that lends the shell cannot put its state back; it is older than the daemon")
	}
	done, err := ln.run(ctx, wish{
		Terms: on, purpose: "put back what changed in the shell", execution: id, timeout: restoreBound, undo: true, all: all,
	})
	switch {
	case err != nil:
		return "", "", err
	case done.Status != wire.StatusOK:
		return "", "", fmt.Errorf("the shell's state was not put back (%s): %s", done.Status, strings.Join(done.Notes, "; "))
	}
	return string(done.Output), strings.Join(done.Notes, "; "), nil
}
