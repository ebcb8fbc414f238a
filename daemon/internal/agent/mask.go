package agent

import "sublet/daemon/internal/mask"

// forModel is a text as the model of this turn sees it. Where the user allowed it, secrets stay; what is stored is masked
// all the same, so a later turn that reads the conversation from the store does not have them.
func (r *runner) forModel(s string) string {
	if r.t.ShowSecrets != nil && r.t.ShowSecrets() {
		return s
	}
	return mask.String(s)
}
