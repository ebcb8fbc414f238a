package agent

import (
	"fmt"
	"math"
	"time"

	"sublet/wire"
)

const (
	maxPrompt = 10 << 20 // bytes of a prompt: more belongs in a file
	maxSystem = 64 << 10 // bytes of system and append_system of a request
	maxSteps  = 1000     // model calls that a request may ask for

	maxTimeoutMS = int64(math.MaxInt64 / time.Millisecond) // of a turn
)

// CheckRequest returns an error that names the first field of a request that is out of its bounds, or a tool that does not exist.
func CheckRequest(r *wire.AgentRequest) error {
	if len(r.Prompt) > maxPrompt {
		return fmt.Errorf("prompt: %d bytes is more than the limit of %d; name a file instead", len(r.Prompt), maxPrompt)
	}
	switch o := r.Options; {
	case o.TimeoutMS < 0 || o.TimeoutMS > maxTimeoutMS:
		return fmt.Errorf("options.timeout_ms: %d is outside 0 to %d", o.TimeoutMS, maxTimeoutMS)
	case o.MaxSteps < 0 || o.MaxSteps > maxSteps:
		return fmt.Errorf("options.max_steps: %d is outside 0 to %d", o.MaxSteps, maxSteps)
	case !(o.MaxCostUSD >= 0):
		return fmt.Errorf("options.max_cost_usd: %v is less than 0", o.MaxCostUSD)
	case len(o.System)+len(o.AppendSystem) > maxSystem:
		return fmt.Errorf("options.system and append_system: %d bytes are more than the limit of %d", len(o.System)+len(o.AppendSystem), maxSystem)
	}
	return checkTools("options.tools", r.Options.Tools)
}
