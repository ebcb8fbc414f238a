package tui

import (
	"context"
	"strings"

	"sublet/wire"
	"sublet/wire/visible"
)

// slashSecrets prints or sets whether models see what looks like a secret, in this conversation.
func (m *model) slashSecrets(args string) {
	r := &wire.PolicyRequest{Op: "get"}
	switch args {
	case "":
	case "mask", "show":
		r.Op, r.Secrets = "set_secrets", args
	default:
		m.fail("/secrets takes mask or show", "")
		return
	}
	daemon := m.daemon
	m.op("/secrets", func(ctx context.Context) (then, error) {
		p, err := daemon.Policy(ctx, r)
		if err != nil {
			return nil, err
		}
		if p.Secrets == "show" {
			return m.saying("models see secrets as they are in this conversation; /secrets mask hides them again"), nil
		}
		return m.saying("what looks like a secret is masked before a model sees it"), nil
	})
}

// slashAccept takes what agents changed in the shell for the user's own: it no longer raises what later commands are
// judged as.
func (m *model) slashAccept(string) {
	daemon := m.daemon
	m.op("/accept", func(ctx context.Context) (then, error) {
		p, err := daemon.Policy(ctx, &wire.PolicyRequest{Op: "get"})
		if err != nil {
			return nil, err
		}
		if len(p.Suspects) == 0 {
			return m.saying("agents changed nothing in your shell that you have not allowed"), nil
		}
		_, err = daemon.Policy(ctx, &wire.PolicyRequest{Op: "accept"})
		return m.saying("accepted: " + visible.Line(strings.Join(p.Suspects, " "))), err
	})
}
