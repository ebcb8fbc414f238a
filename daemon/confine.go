package daemon

import (
	"log/slog"

	"sublet/daemon/internal/reach"
	"sublet/lease/confine"
)

// findConfiner probes whether commands can be confined here. If not, the policy decides by the text of a command alone.
func findConfiner(log *slog.Logger) reach.Confiner {
	path, err := confine.Find()
	if err != nil {
		log.Warn("commands are not held to a reach", "err", err)
		return reach.Confiner{Support: confine.Support{Missing: err.Error()}}
	}
	support := confine.Probe(path)
	if support.Missing != "" {
		log.Warn("commands are not held to a reach", "why", support.Missing)
	} else {
		log.Info("commands are held to a reach", "by", support.How)
	}
	return reach.Confiner{Launcher: path, Support: support}
}
