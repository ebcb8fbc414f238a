package judge

import (
	"encoding/json"
	"strings"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/risk"
	"sublet/daemon/internal/tool"
	"sublet/wire"
)

// Trust returns the question whether to trust the folder root, and the verdict to show with it. would describes, for people, what a
// trusted folder does.
func Trust(root, would string) (agent.Question, risk.Verdict) {
	args, _ := json.Marshal(map[string]string{"path": strings.ToValidUTF8(root, "\uFFFD")}) // strings can be encoded
	q := agent.Question{Agent: "sublet", Tool: wire.ToolTrust, ExecutionID: wire.ExecutionID(wire.NewID()), Arguments: args, Action: tool.Action{Cwd: root}}
	return q, risk.Verdict{
		Level: risk.Medium, Reversible: true, UndoHint: "sublet trust rm, in another terminal",
		Reasons: []risk.Reason{{Text: would, Effect: risk.Unknown, Level: risk.Medium}},
	}
}
