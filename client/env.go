package client

import (
	"strings"

	"sublet/client/internal/lender"
	"sublet/lease/shell"
	"sublet/wire"
)

// environment returns env for the daemon: variables that look like secrets have no value.
func environment(env []string) map[string]wire.OSString { return lender.Public(lender.Vars(env)) }

// credentials returns the variables that the configuration names. The daemon keeps them in memory only.
func credentials(o Options) map[string]string {
	found := map[string]string{}
	for _, name := range o.Credentials {
		if value := lookup(o.Env, name); value != "" {
			found[name] = value
		}
	}
	return found
}

// daemonEnv returns the environment to start a daemon with: the user's, without secrets (each client sends those it has) and
// without variables that belong to one terminal.
func daemonEnv(env []string) []string {
	var kept []string
	for _, kv := range env {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || lender.Secret(name, value) {
			continue
		}
		switch name {
		case shell.EnvInside, shell.EnvStarting, "TERM_SESSION_ID", "WINDOWID", "TMUX", "TMUX_PANE", "STY", "SSH_TTY", "OLDPWD", "PWD", "SHLVL", "_":
			continue
		}
		kept = append(kept, kv)
	}
	return kept
}
