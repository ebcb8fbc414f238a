// Package policy decides whether an action runs, is asked about or is denied. It applies a mode and the user's rules to
// the verdict of package risk and to the reach that holds the action. Asking somebody is left to the agent.
package policy
