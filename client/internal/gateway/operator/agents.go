package operator

// daemonName is an agent's name as the daemon knows it. architect, which the documents' examples use, is the orchestrator.
func daemonName(agent string) string {
	switch agent {
	case "architect", "":
		return "orchestrator"
	}
	return agent
}
