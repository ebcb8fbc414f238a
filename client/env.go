package client

import (
	"slices"
	"strings"

	"sublet/client/internal/lender"
	"sublet/wire"
)

// environment is env as the daemon may know it: the value of a variable that looks like a secret stays here.
func environment(env []string) map[string]wire.OSString {
	vars := make(map[string]string, len(env))
	for _, kv := range env {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" {
			vars[name] = value
		}
	}
	return lender.Public(vars)
}

// credentials are the values the configuration asks for by name. They are kept in the daemon's memory only.
func credentials(o Options) map[string]string {
	found := map[string]string{}
	for _, kv := range o.Env {
		if name, value, ok := strings.Cut(kv, "="); ok && value != "" && slices.Contains(o.Credentials, name) {
			found[name] = value
		}
	}
	return found
}

// daemonEnv is what a daemon is started with: the user's environment without secrets, which it gets from each client
// that has them, and without what belongs to one terminal.
func daemonEnv(env []string) []string {
	var kept []string
	for _, kv := range env {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || lender.Secret(name, value) {
			continue
		}
		switch name {
		case envInside, envPlain, "TERM_SESSION_ID", "WINDOWID", "TMUX", "TMUX_PANE", "STY", "SSH_TTY", "OLDPWD", "PWD", "SHLVL", "_":
			continue
		}
		kept = append(kept, kv)
	}
	return kept
}
