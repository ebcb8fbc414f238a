package server

import "sublet/wire"

// status serves StatusRequest, ModelsRequest, JobRequest and ShutdownRequest.
func (c *conn) status(m wire.Message) {
	switch m := m.(type) {
	case *wire.StatusRequest:
		c.done(m.RequestID, c.client.Status(m))
	case *wire.ModelsRequest:
		c.done(m.RequestID, c.client.Models(m))
	case *wire.JobRequest:
		c.done(m.RequestID, c.client.Job(m))
	case *wire.ShutdownRequest:
		reply, stop, err := c.client.Shutdown(m)
		if err != nil {
			c.fail(m.RequestID, err)
			return
		}
		c.answer(reply)
		stop() // once the reply is queued: closing a connection sends what is
	}
}
