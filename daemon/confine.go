package daemon

import (
	"log/slog"

	"sublet/daemon/internal/hub"
	"sublet/lease/confine"
)

// findConfiner finds out what holds commands to a reach here. Where nothing does, the words of a command decide alone.
func findConfiner(log *slog.Logger) hub.Confiner {
	path, err := confine.Find()
	if err != nil {
		log.Warn("commands are not held to a reach", "err", err)
		return hub.Confiner{Support: confine.Support{Missing: err.Error()}}
	}
	support := confine.Probe(path)
	if support.Missing != "" {
		log.Warn("commands are not held to a reach", "why", support.Missing)
	} else {
		log.Info("commands are held to a reach", "by", support.How)
	}
	return hub.Confiner{Launcher: path, Support: support}
}
