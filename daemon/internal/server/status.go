package server

import "sublet/wire"

// status serves StatusRequest and ShutdownRequest.
func (c *conn) status(m wire.Message) {
	var reply *wire.StatusReply
	var err error
	stop := func() {}
	switch m := m.(type) {
	case *wire.StatusRequest:
		reply, err = c.client.Status(m)
	case *wire.ShutdownRequest:
		reply, stop, err = c.client.Shutdown(m)
	}
	if err != nil {
		c.fail(requestID(m), err)
		return
	}
	c.answer(reply)
	stop() // once the reply is queued: closing a connection sends what is
}
