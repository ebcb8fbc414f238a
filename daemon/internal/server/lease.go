package server

import "sublet/wire"

// lease serves a second client: LeaseRunRequest borrows another's shell, LeaseRevokeRequest frees one.
func (c *conn) lease(m wire.Message) {
	switch m := m.(type) {
	case *wire.LeaseRunRequest:
		c.done(m.RequestID, c.client.LeaseRun(m))
	case *wire.LeaseRevokeRequest:
		reply, err := c.client.RevokeLease(m)
		if err != nil {
			c.fail(m.RequestID, err)
			return
		}
		c.answer(reply)
	}
}
