package client

import (
	"log/slog"
	"sync"

	"sublet/lease/confine"
)

// holder is the program that holds commands to a reach. works reports whether it can here; it has that tried once.
type holder struct {
	path  string // "" = it was not found
	works func() bool
}

func findHolder(log *slog.Logger) holder {
	path, err := confine.Find()
	if err != nil {
		log.Warn("commands are not held to a reach", "err", err)
		return holder{works: func() bool { return false }}
	}
	return holder{path, sync.OnceValue(func() bool {
		support := confine.Probe(path)
		if support.Missing != "" {
			log.Warn("commands are not held to a reach", "why", support.Missing)
		}
		return support.Missing == ""
	})}
}
