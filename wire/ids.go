package wire

import (
	"context"
	"fmt"

	"github.com/google/uuid"
)

// Ids are UUIDv7 strings minted by whoever creates the thing; a RequestID is any text of 1 to 128 bytes that the client
// has not used before on the same connection.
type (
	SessionID      string
	TurnID         string
	RequestID      string
	LeaseID        string
	ExecutionID    string // one run of a tool or command; joins a tool_call chunk, its CommandResult and its lease messages
	ConfirmationID string
	RuleID         string
)

// OSString is text that the operating system does not promise to be UTF-8: a path or an environment value. It travels
// as str where it is valid UTF-8 and as bin where it is not.
type OSString string

// NewID returns a new UUIDv7 as text; ids minted later sort later.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// OfRequest is a request, or the one reply to one, as opposed to an event or a lease's message. Its struct embeds RequestID.
type OfRequest interface {
	Message
	RequestRef() *RequestID // as the client chose it
}

// RequestRef implements OfRequest.
func (id *RequestID) RequestRef() *RequestID { return id }

func (*RequestID) isMessage() {}

// RequestFor is a request that is answered by one R, or by an Error.
type RequestFor[R Message] interface {
	OfRequest
	AnsweredBy() R // nil: it only names the type
}

// Call makes a request and returns its reply. by sends a request and returns what answers it; an Error is its error.
func Call[R Message](ctx context.Context, by interface {
	Request(ctx context.Context, r OfRequest) (Message, error)
}, r RequestFor[R],
) (R, error) {
	var none R
	m, err := by.Request(ctx, r)
	if err != nil {
		return none, err
	}
	reply, ok := m.(R)
	if !ok {
		return none, fmt.Errorf("%s was answered with %s", KindOf(r), KindOf(m))
	}
	return reply, nil
}

// RequestOf is the id of the request that m is, answers or came of, "" for none.
func RequestOf(m Message) RequestID {
	switch m := m.(type) {
	case OfRequest:
		return *m.RequestRef()
	case LeaseMessage:
		return m.Ref().RequestID
	case EventMessage:
		return m.Meta().RequestID
	}
	return ""
}
