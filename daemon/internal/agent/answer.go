package agent

import (
	"errors"
	"fmt"
	"slices"

	"sublet/daemon/internal/tool"
	"sublet/wire"
	"sublet/wire/visible"
)

// Answered returns the decision of a response to a question, without By. The error names the invalid field and the reason.
func Answered(ask *wire.ConfirmationRequest, r *wire.ConfirmationResponse) (Decision, error) {
	d := Decision{Comment: r.Comment}
	always := r.Decision == wire.DecisionAllowAlways || r.Decision == wire.DecisionDenyAlways
	switch r.Decision {
	case wire.DecisionAllow, wire.DecisionAllowAlways:
		d.Allowed = true
	case wire.DecisionDeny, wire.DecisionDenyAlways:
		d.Reason = "denied by the user"
	default:
		return d, fmt.Errorf("decision: %q is none of allow, allow_always, deny, deny_always", visible.Exact(visible.Cut(r.Decision, 64)))
	}
	if d.Allowed && r.EditedCommand != nil {
		text := string(*r.EditedCommand)
		_, err := tool.PlanSteps(text)
		switch {
		case ask.Tool == wire.ToolPlan && err != nil:
			return d, fmt.Errorf("edited_command: %w", err)
		case ask.Tool != "bash" && ask.Tool != wire.ToolPlan || always:
			return d, errors.New("edited_command: only a shell command or a plan can be edited, and an edited one is allowed once, not always")
		case text == "":
			return d, errors.New("edited_command: is empty")
		}
		d.EditedCommand = &text
	}
	if always && (r.Grant == nil || !slices.Contains(ask.Grants, *r.Grant)) {
		return d, errors.New("grant: must be one of those that were offered")
	}
	return d, nil
}
