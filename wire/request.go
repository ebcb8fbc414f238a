package wire

// OfRequest is a request, or the one reply to one, as opposed to an event or a lease's message.
type OfRequest interface {
	Message
	RequestRef() RequestID // as the client chose it
}

func (m *AgentRequest) RequestRef() RequestID       { return m.RequestID }
func (m *ToolRequest) RequestRef() RequestID        { return m.RequestID }
func (m *UndoRequest) RequestRef() RequestID        { return m.RequestID }
func (m *ShowRequest) RequestRef() RequestID        { return m.RequestID }
func (m *ShowReply) RequestRef() RequestID          { return m.RequestID }
func (m *CompactRequest) RequestRef() RequestID     { return m.RequestID }
func (m *SessionRequest) RequestRef() RequestID     { return m.RequestID }
func (m *SessionReply) RequestRef() RequestID       { return m.RequestID }
func (m *PolicyRequest) RequestRef() RequestID      { return m.RequestID }
func (m *PolicyReply) RequestRef() RequestID        { return m.RequestID }
func (m *StatusRequest) RequestRef() RequestID      { return m.RequestID }
func (m *StatusReply) RequestRef() RequestID        { return m.RequestID }
func (m *ModelsRequest) RequestRef() RequestID      { return m.RequestID }
func (m *ModelsReply) RequestRef() RequestID        { return m.RequestID }
func (m *JobRequest) RequestRef() RequestID         { return m.RequestID }
func (m *JobReply) RequestRef() RequestID           { return m.RequestID }
func (m *ShutdownRequest) RequestRef() RequestID    { return m.RequestID }
func (m *LeaseRunRequest) RequestRef() RequestID    { return m.RequestID }
func (m *LeaseRevokeRequest) RequestRef() RequestID { return m.RequestID }

// RequestOf is the id of the request that m is, answers or came of, "" for none.
func RequestOf(m Message) RequestID {
	switch m := m.(type) {
	case OfRequest:
		return m.RequestRef()
	case LeaseMessage:
		return m.Ref().RequestID
	case EventMessage:
		return m.Meta().RequestID
	}
	return ""
}
