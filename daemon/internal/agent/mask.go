package agent

import "sublet/daemon/internal/risk"

// mask hides secrets from models, as the hub hides them from store and screen.
func mask(s string) string { return risk.Mask(s) }
