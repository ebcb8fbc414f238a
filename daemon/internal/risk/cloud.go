package risk

import "strings"

// doCloud judges a cloud's command line by its operation, which these programs name by its verb: describe-instances,
// compute instances delete, group list.
func (a *analysis) doCloud(c *cmdCall) {
	level, says := Level(0), ""
	var at Span
	for i := range c.operands {
		f := &c.operands[i]
		if f.opaque() {
			break
		}
		switch verb, rest, _ := strings.Cut(f.s, "-"); {
		case cloudSecret(f.s):
			a.seen |= flowSecret
			a.facts.secret = true
			level, says, at = High, "asks a cloud for a secret", f.span
		case (verb == "delete" || verb == "terminate" || verb == "destroy" || verb == "purge") && rest != "tags":
			level, says, at = Critical, "deletes something in a cloud", f.span
		case level == 0 && (verb == "describe" || verb == "list" || verb == "ls" || verb == "show" || verb == "get" || verb == "wait" || verb == "help"):
			level, says, at = Medium, "asks a cloud", f.span
			continue // `get-x` may be followed by nothing worse, but `list` may be a name
		default:
			continue
		}
		break
	}
	switch {
	case level == Critical && c.has("--dry-run", "--dryrun"):
		a.note(High, Network, at, says+", but is told not to")
	case level == Critical:
		a.note(Critical, Delete, at, says).cannotUndo()
		a.facts.send = true
	case level == High:
		a.note(High, Secret, at, says)
	case level == Medium:
		a.facts.fetched = true
		a.seen |= flowNet
		a.note(Medium, Network, at, says)
		a.optionRoles(c)
		return
	}
	a.usual(c)
}

// cloudSecret tells that an operation answers with a secret.
func cloudSecret(op string) bool {
	switch op {
	case "get-secret-value", "get-parameter", "get-parameters", "get-parameters-by-path", "get-password-data", "get-login-password", "get-login",
		"get-session-token", "get-federation-token", "assume-role", "get-credentials", "create-access-key", "print-access-token",
		"print-identity-token", "get-access-token", "list-keys", "get-object", "access", "get-random-password", "decrypt":
		return true
	}
	return false
}
