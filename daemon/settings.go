package daemon

import (
	"reflect"
	"sync/atomic"

	"sublet/daemon/config"
	"sublet/daemon/internal/agent"
	"sublet/daemon/internal/reach"
)

// settings are the settings in force: the last valid ones.
type settings struct {
	path string
	now  atomic.Pointer[config.Config]
}

// LoadSettings reads the settings file as config.Load does, with the checks of the packages that use the settings.
func LoadSettings(path string) (config.Config, error) {
	return config.Load(path, reach.CheckSettings, agent.CheckSettings)
}

// get returns the settings in force. Callers must not change the maps, which are shared.
func (s *settings) get() config.Config { return *s.now.Load() }

// load reads the file. If that fails the old settings stay in force.
func (s *settings) load() (changed bool, err error) {
	c, err := LoadSettings(s.path)
	if err != nil {
		return false, err
	}
	old := s.now.Swap(&c)
	return old == nil || !reflect.DeepEqual(*old, c), nil
}
