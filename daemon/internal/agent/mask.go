package agent

import "sublet/daemon/internal/mask"

// forModel returns a text as the model of this turn sees it: with secrets masked unless the user allowed them. The stored text
// is masked in any case, so a later turn does not have them.
func (r *runner) forModel(s string) string {
	if r.t.ShowSecrets != nil && r.t.ShowSecrets() {
		return s
	}
	return mask.String(s)
}
