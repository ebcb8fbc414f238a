package hub

import (
	"context"

	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/judge"
	"sublet/daemon/internal/policy"
	"sublet/daemon/internal/tool"
	"sublet/wire"
)

// propose asks the user about a plan, as tool.Propose. If they accept it, plan mode of the turn and the session is over.
func (t *turn) propose(role agent.Role, cwd string) tool.Propose {
	return func(ctx context.Context, call tool.Proposed) (tool.Proposal, error) {
		steps := call.Steps
		q := agent.Question{
			Agent: t.agent, Mode: role.Mode, Tool: wire.ToolPlan, ExecutionID: wire.ExecutionID(call.ExecutionID), Arguments: call.Arguments,
			Action: tool.Action{Cwd: cwd, Preview: tool.Preview{Type: "text", Content: tool.PlanText(steps)}},
		}
		if !t.attended() || t.approve != nil && !*t.approve {
			return tool.Proposal{Reason: "nobody is there who could"}, nil
		}
		next := judge.AfterPlan(t.s.policyMode(), policy.Mode(t.hub.opts.Config().Policy.Mode))
		holds := next
		if role.Mode != "" {
			holds = judge.Stricter(next, policy.Mode(role.Mode))
		}
		holds = (&approver{t: t}).policyIn(ctx, q, holds).Mode
		why := "yes ends plan mode: it is carried out in " + string(holds) + " mode"
		if holds == policy.ModePlan {
			why = "plan mode stays on, by the settings of the project or of the role"
		}
		d, err := (&approver{t: t}).ask(ctx, q, harmless(why), why)
		if err != nil || !d.Allowed {
			return tool.Proposal{Comment: d.Comment, Reason: d.Reason}, err
		}
		if d.EditedCommand != nil {
			if steps, err = tool.PlanSteps(*d.EditedCommand); err != nil {
				return tool.Proposal{}, err
			}
		}
		if t.mode == string(policy.ModePlan) {
			t.mode = ""
		}
		if t.s.policyMode() == policy.ModePlan {
			t.s.policy.SetMode(next)
			t.hub.log.Info("mode set", "session", t.s.id, "mode", next, "by", d.By)
			t.origin.announce("a plan was accepted; mode of session %s: %s", t.s.id, next)
		}
		return tool.Proposal{Accepted: true, Steps: steps, Mode: string(holds)}, nil
	}
}
