package wire

import (
	"reflect"
	"sync"
)

// Direction is who may send a kind.
type Direction uint8

// Directions.
const (
	ToDaemon Direction = 1 << iota // client to daemon
	ToClient                       // daemon to client
	Both     = ToDaemon | ToClient
)

// kindInfo is one row of the table of kinds.
type kindInfo struct {
	name string
	dir  Direction
	typ  reflect.Type // the struct, not the pointer
	new  func() Message

	request bool // see IsRequest
}

// table is every kind in the order of PROTOCOL.md. Some lease messages go both ways: the daemon forwards them to a client
// that sent LeaseRunRequest. The rows are made on first use.
var table = sync.OnceValue(allKinds)

// byKind and byType are the rows of table by their names and structs.
var (
	byKind = sync.OnceValue(func() map[string]*kindInfo { return rowsBy(func(k *kindInfo) string { return k.name }) })
	byType = sync.OnceValue(func() map[reflect.Type]*kindInfo { return rowsBy(func(k *kindInfo) reflect.Type { return k.typ }) })
)

func rowsBy[K comparable](key func(*kindInfo) K) map[K]*kindInfo {
	rows := make(map[K]*kindInfo, len(table()))
	for _, k := range table() {
		rows[key(k)] = k
	}
	return rows
}

func allKinds() []*kindInfo {
	return []*kindInfo{
		row[EnvSnapshot](ToDaemon),
		row[Ready](ToClient),
		row[ShellState](ToDaemon),
		row[Heartbeat](Both),

		row[AgentRequest](ToDaemon),
		row[TurnStarted](ToClient),
		row[AgentThinking](ToClient),
		row[AgentStreamChunk](ToClient),
		row[CommandResult](Both),
		row[AgentComplete](ToClient),
		row[TurnSteered](ToClient),
		row[TurnQueueChanged](ToClient),
		row[CancelRequest](ToDaemon),
		row[ShowRequest](ToDaemon),
		row[ShowReply](ToClient),
		row[ToolRequest](ToDaemon),
		row[UndoRequest](ToDaemon),

		row[ConfirmationRequest](ToClient),
		row[ConfirmationResponse](ToDaemon),
		row[ConfirmationResolved](ToClient),
		row[PolicyRequest](ToDaemon),
		row[PolicyReply](ToClient),

		row[AcquireShellLease](ToClient),
		row[ShellLeaseQueued](Both),
		row[ShellLeaseAcquired](Both),
		row[ShellLeaseDenied](Both),
		row[ExecuteLeasedCommand](ToClient),
		row[CommandStarted](Both),
		row[CommandOutput](Both),
		row[CommandCompleted](Both),
		row[CancelLeasedCommand](ToClient),
		row[ContinueLeasedCommand](ToClient),
		row[RestoreShellState](ToClient),
		row[ReleaseShellLease](ToClient),
		row[ShellLeaseReleased](Both),
		row[ShellQueueChanged](ToClient),
		row[ShellUseRequest](ToClient),
		row[ShellUseReply](ToDaemon),
		row[SecretTyped](ToDaemon),
		row[LeaseRunRequest](ToDaemon),
		row[LeaseRevokeRequest](ToDaemon),

		row[CompactRequest](ToDaemon),
		row[CompactionStarted](ToClient),
		row[CompactionComplete](ToClient),

		row[SessionRequest](ToDaemon),
		row[SessionReply](ToClient),
		row[StatusRequest](ToDaemon),
		row[StatusReply](ToClient),
		row[ShutdownRequest](ToDaemon),
		row[ModelsRequest](ToDaemon),
		row[ModelsReply](ToClient),
		row[JobRequest](ToDaemon),
		row[JobReply](ToClient),
		row[AgentsRequest](ToDaemon),
		row[AgentsReply](ToClient),

		row[Notice](ToClient),
		row[Error](Both),
	}
}

// row makes the table's row for the message struct T.
func row[T any, P interface {
	*T
	Message
}](dir Direction,
) *kindInfo {
	_, ofRequest := any(new(T)).(OfRequest)
	return &kindInfo{
		name: reflect.TypeFor[T]().Name(),
		dir:  dir,
		typ:  reflect.TypeFor[T](),
		new:  func() Message { return P(new(T)) },

		request: ofRequest && dir == ToDaemon,
	}
}

// KindOf returns the name that precedes the body of m in a payload: that of its struct, such as "AgentStreamChunk".
func KindOf(m Message) string { return reflect.TypeOf(m).Elem().Name() }

// Kinds returns the names of all kinds, in the order of PROTOCOL.md. The slice is the caller's.
func Kinds() []string {
	names := make([]string, len(table()))
	for i, k := range table() {
		names[i] = k.name
	}
	return names
}

// New returns an empty message of the kind, and false for a kind this build does not know.
func New(kind string) (Message, bool) {
	k, ok := byKind()[kind]
	if !ok {
		return nil, false
	}
	return k.new(), true
}

// Directions returns who may send the kind; 0 for a kind this build does not know.
func Directions(kind string) Direction {
	if k, ok := byKind()[kind]; ok {
		return k.dir
	}
	return 0
}

// IsRequest reports whether the kind is a request: it carries a request_id chosen by the client, a repeat of which is refused,
// and counts against the connection's rate. Lease, output and heartbeat messages never do.
func IsRequest(kind string) bool {
	k, ok := byKind()[kind]
	return ok && k.request
}
