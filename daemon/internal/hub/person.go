package hub

import (
	"errors"
	"fmt"

	"sublet/daemon/internal/lend"
	"sublet/wire"
	"sublet/wire/visible"
)

// ErrAgent refuses what only a person may do to a process that a known agent of another program started.
var ErrAgent = errors.New("this is called by an agent of another program")

// Elsewhere is the hint of lend.ErrInside and ErrAgent.
const Elsewhere = "do it in the window itself (/mode, /rules, /accept), or in a terminal of your own"

// person returns nil if the client may do what only a person may: confirm, change policy, revoke or run leases. Once its
// process was inside a shell that agents use it stays so.
func (c *Client) person() error {
	if c.within.Load() {
		return lend.ErrInside
	}
	err := c.hub.shells.Inside(c.owner)
	if err != nil {
		c.within.Store(true)
	}
	return err
}

// mayDecide returns nil if the client may confirm, change policy or bounds, or take a shell back: a person does, and neither
// what runs in a shell that agents use nor what an agent of another program started.
func (c *Client) mayDecide() error {
	if err := c.person(); err != nil {
		return err
	}
	if c.startedBy != nil {
		if of := c.startedBy(); of.Name != "" {
			return fmt.Errorf("%w, %s", ErrAgent, of.Name)
		}
	}
	return nil
}

// announce sends a notice of a changed policy to every client that can confirm, except the one that changed it.
func (c *Client) announce(format string, args ...any) {
	n := &wire.Notice{Level: "info", Text: visible.Exact(visible.Cut(fmt.Sprintf(format, args...), 1024)) + ", by " + c.who()}
	for _, other := range c.hub.attached() {
		if other != c && other.confirm {
			other.Send(n)
		}
	}
}
